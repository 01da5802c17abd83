"""Laws of conservation: rows and nulls of commits that only rearrange data, and rows of row-level operations."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from lakeview.delta.audit.records import CommitRecord
from lakeview.delta.audit.run import Run
from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.data.statistics import Leaf, physical_leaves, statistics_frame
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.actions import Metadata, Protocol, table_protocol
from lakeview.delta.log.commit_info import whole
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.model.audit_cases import Case, proven, unknowable, violated
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.printable import count_text, first_few

_MAX_COLUMNS = 200
"""Columns whose nulls are summed, in schema order: writers collect statistics of far fewer."""


def rearrangements_conserve_rows(run: Run) -> Iterator[Case]:
    """rearrangement-conserves-rows."""
    for version, rows_in, rows_out, unknown in _rearrangements(run).iter_rows():
        if unknown:
            yield unknowable(version, f"{count_text(unknown, 'file does', 'files do')} not count their rows")
        elif rows_in > rows_out and run.base is None:  # an add may be that of a file which was live before
            yield unknowable(version, run.unknown_past)
        elif rows_in != rows_out:
            word = "multiplied" if rows_in > rows_out else "lost"
            yield violated(version, f"rows were {word}: dataChange=false promises the same rows", rows_out, rows_in)
        else:
            yield proven(version)


def _rearrangements(run: Run) -> pl.DataFrame:
    """`version`, `rows_in`, `rows_out` and how many files do not count theirs, of commits that only rearrange."""
    versions = run.sums.filter("rearranges").select("version")
    unknown = (pl.col("unknown_in") + pl.col("unknown_out")).alias("unknown")
    return run.balances.join(versions, on="version", how="semi").select("version", "rows_in", "rows_out", unknown)


def rearrangements_conserve_nulls(run: Run) -> Iterator[Case]:
    """rearrangement-conserves-nulls, of the commits that conserve rows. Statistics are read for their files alone."""
    same = (pl.col("unknown") == 0) & (pl.col("rows_in") == pl.col("rows_out"))
    versions = _rearrangements(run).filter(same)["version"].to_list()
    if not versions:
        return
    sides = _sides(run, versions)
    statistics = _statistics(run, sides).unique(["version", *IDENTITY], keep="last")
    files = sides.join(statistics, on=["version", *IDENTITY], how="left", nulls_equal=True)
    schemas = _leaves_in_force(run)
    by_schema: dict[tuple[int | None, int | None], list[int]] = {}
    for version in versions:
        newest = max((v for v in schemas if v <= version), default=None)
        by_schema.setdefault((max((v for v in schemas if v < version), default=newest), newest), []).append(version)
    for (earlier, newest), own in by_schema.items():
        if earlier is None or newest is None:
            yield from (unknowable(version, "the log no longer shows the schema") for version in own)
        else:
            leaves = {False: schemas[earlier], True: schemas[newest]}
            yield from _nulls(own, files.filter(pl.col("at").is_in(own)), leaves)


def _sides(run: Run, versions: Sequence[int]) -> pl.DataFrame:
    """The files that these commits (`at`) add, `added`, and those that they replace: the version that added each, its
    identity, live rows and deleted rows."""
    events = run.events.filter(pl.col("added") & pl.col("version").is_in(versions)) if versions else run.events.clear()
    additions = events.unique(["version", *IDENTITY], keep="last").select(
        pl.col("version").alias("at"),
        pl.lit(value=True).alias("added"),
        "version",
        *IDENTITY,
        "records",
        "deleted_records",
    )
    replacements = run.story.filter(
        pl.col("version").is_in(versions) & (~pl.col("added") | pl.col("was_live").fill_null(value=False))
    ).select(
        pl.col("version").alias("at"), pl.lit(value=False).alias("added"), pl.col("before").alias("version"), *IDENTITY,
        pl.col("records_before").alias("records"), pl.col("deleted_before").alias("deleted_records"),
    )  # fmt: skip
    return pl.concat([additions, replacements])


def _statistics(run: Run, sides: pl.DataFrame) -> pl.DataFrame:
    """`version`, identity, `path`, `stats` and `stats_parsed` of these files."""
    files = sides.select("version", *IDENTITY).unique()
    base = run.first - 1
    commits = sorted(v for v in files["version"].unique() if v >= run.first)
    frames = [run.read_adds(commits, ["version", "stats"]).select("version", *IDENTITY, "path", "stats")]
    if run.checkpoint is not None and (files["version"] == base).any():
        adds = run.checkpoint.adds(["stats", "stats_parsed"]).with_columns(pl.lit(base, pl.Int64).alias("version"))
        near = adds.filter(pl.col("key").is_in(files["key"].implode()))
        names = ["version", *IDENTITY, "path", *(n for n in ("stats", "stats_parsed") if n in near.columns)]
        frames.append(near.select(names))
    every = pl.concat(frames, how="diagonal")
    return every.join(files, on=["version", *IDENTITY], how="semi", nulls_equal=True)


def _nulls(versions: Sequence[int], files: pl.DataFrame, leaves: Mapping[bool, Sequence[Leaf]]) -> Iterator[Case]:
    """The cases of commits (`at` of their files) under one schema: sums of each column's nulls, before and after.
    `leaves`: those of files that are `added`, and of those before; a commit that ends column mapping renames them.

    Proven if all columns are that any file counts; a column that no file counts is not looked at.
    """
    incomplete = set(files.filter(pl.col("path").is_null())["at"])
    present = files.filter(pl.col("path").is_not_null())
    sides = {is_added: present.filter(pl.col("added") == is_added) for is_added in leaves}
    frames = {is_added: statistics_frame(side, leaves[is_added]) for is_added, side in sides.items()}
    exact_columns: set[int] = set()
    inexact: dict[int, list[str]] = {}
    violations: dict[int, Case] = {}
    for name in (n for n in frames[True].columns[2:] if n in frames[False].columns):
        counts = pl.concat([_null_counts(side, frames[is_added][name]) for is_added, side in sides.items()])
        for version, before, after, is_exact in _null_sums(counts).iter_rows():
            if not is_exact:
                inexact.setdefault(version, []).append(name)
                continue
            exact_columns.add(version)
            if before != after:
                reason = f"nulls of {name} changed: dataChange=false promises the same rows"
                violations.setdefault(version, violated(version, reason, int(before), int(after)))
    for version in versions:
        if version in incomplete:
            yield unknowable(version, "the statistics of files that it replaces are gone")
        elif version in violations:
            yield violations[version]
        elif version not in exact_columns:
            yield unknowable(version, "no column has exact null counts in all of the files")
        elif version in inexact:
            yield unknowable(version, f"the null counts of {first_few(inexact[version])} are not exact in all files")
        else:
            yield proven(version)


def _null_counts(files: pl.DataFrame, column: pl.Series) -> pl.DataFrame:
    counts = column.struct.unnest().select("null_count", "null_count_exact")
    return files.select("at", "added", "records", "deleted_records").hstack(counts)


def _null_sums(counts: pl.DataFrame) -> pl.DataFrame:
    """`at`, a column's nulls before and after, and whether all files count them exactly, of the commits some of whose
    files count them."""
    nulls, records = pl.col("null_count"), pl.col("records")
    # with deleted rows counts are of all rows: exact for the live ones only if there are none
    exact = pl.when(pl.col("deleted_records") == 0).then(nulls <= records).otherwise(
        (nulls == 0) & pl.col("null_count_exact")
    )  # fmt: skip
    return (
        counts.group_by("at")
        .agg(
            nulls.filter(~pl.col("added")).cast(pl.Int128).sum().alias("before"),
            nulls.filter("added").cast(pl.Int128).sum().alias("after"),
            exact.fill_null(value=False).all().alias("exact"),
            nulls.is_not_null().any().alias("counted"),
        )
        .filter("counted")
        .drop("counted")
    )


def _leaves_in_force(run: Run) -> Mapping[int, Sequence[Leaf]]:
    """The leaf columns by the version from which they are in force, partition columns left out."""
    by_version: dict[int, Sequence[Leaf]] = {}
    for version, (protocol, metadata) in run.definitions.items():
        is_new = version < run.first or run.by_version[version].metadata is not None
        if is_new and metadata is not None and (leaves := _leaves(protocol, metadata, run)) is not None:
            by_version[version] = leaves
    return by_version


def _leaves(protocol: Protocol | None, metadata: Metadata, run: Run) -> Sequence[Leaf] | None:
    try:
        mode = "none" if protocol is None else column_mapping_mode(table_protocol(protocol), metadata.properties)
        depth = run.log.storage.config.max_schema_depth
        schema = parse_schema(metadata.schema_string, is_mapped=mode != "none", max_depth=depth)
    except (CorruptTableError, UnsupportedTableError):
        return None
    return physical_leaves(schema, None, metadata.partition_columns or ())[:_MAX_COLUMNS]


def row_counts_fit_operations(run: Run) -> Iterator[Case]:
    """row-counts-fit-operation, of UPDATE, DELETE and MERGE commits; one without file actions changes no row."""
    names = ["version", "rows_in", "unknown_in", "rows_out", "unknown_out"]
    balances = {row[0]: row[1:] for row in run.balances.select(names).iter_rows()}
    for version, record in run.by_version.items():
        if record.info.operation not in _CHANGES:
            continue
        rows_in, unknown_in, rows_out, unknown_out = balances.get(version, (0, 0, 0, 0))
        change = _change(record)
        if record.restores_files and not record.is_restore:
            yield unknowable(version, "the commit restores files as well")
        elif change is None:
            yield unknowable(version, "the commit does not report how many rows it changed")
        elif unknown_in or unknown_out:
            number = unknown_in + unknown_out
            yield unknowable(version, f"{count_text(number, 'file does', 'files do')} not count their rows")
        elif rows_in - rows_out != change:
            reason = f"the number of rows changed by {rows_in - rows_out:+,}, not by {change:+,}"
            yield violated(version, reason, rows_out + change, rows_in)
        else:
            yield proven(version)


_CHANGES: Mapping[str, tuple[str, ...]] = {
    "UPDATE": (),
    "DELETE": ("numDeletedRows",),
    "MERGE": ("numTargetRowsInserted", "numTargetRowsDeleted"),
}
"""Operation -> the metrics without which the change of its number of rows is unknown."""

_ROWS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "numDeletedRows": (-1, ("numDeletedRows", "num_deleted_rows")),
    "numTargetRowsInserted": (1, ("numTargetRowsInserted", "num_target_rows_inserted")),
    "numTargetRowsDeleted": (-1, ("numTargetRowsDeleted", "num_target_rows_deleted")),
}
"""Metric -> sign and spellings. A commit of lakeview that deletes, merges and appends at once reports all of them."""


def _change(record: CommitRecord) -> int | None:
    operation, metrics = record.info.operation or "", record.metrics
    total = 0
    for metric, (sign, names) in _ROWS.items():
        number = next((n for name in names if (n := whole(metrics.get(name))) is not None), None)
        if number is None and metric in _CHANGES[operation]:
            return None
        total += sign * (number or 0)
    return total
