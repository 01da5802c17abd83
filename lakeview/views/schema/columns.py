"""A schema and its files' statistics to what is known of each column without reading a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import polars as pl

from lakeview.model.schema import ArrayType, DataType, Field, MapType, Schema, StructType, leaf_name
from lakeview.views.sums import shown_bounds
from lakeview.views.values import bound_texts, statistic

SCHEMA_TREE = pl.Schema(
    {
        "path": pl.String(),
        "depth": pl.Int64(),
        "name": pl.String(),
        "type": pl.String(),
        "nullable": pl.Boolean(),
        "comment": pl.String(),
        "id": pl.Int64(),
        "leaf": pl.Boolean(),
        "null_share": pl.Float64(),
        "null_share_bound": pl.Boolean(),
        "null_share_mark": pl.String(),
        "absent_share": pl.Float64(),
        "absent": pl.String(),
        "absent_text": pl.String(),
        "coverage": pl.Float64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "range_is": pl.String(),
    }
)
"""One row a column at every level, in order. `null_share_mark`: "" exact, "≥" or "≤" a bound, "≈" from some files only,
or of rows of which some are deleted and not counted.
`absent_share`, `absent`, `absent_text`: as in `births.ABSENT_SHARES`, null where no file lacks the column.
`coverage`: share of files with min and max. `range_is`: exact, bound (the true range lies within), partial (some
files do not tell theirs), null unknown. Null where statistics say nothing: structs, and lists and maps beyond nulls."""

NULL_SHARES = pl.Schema(
    {
        "column": pl.String(),
        "null_count": pl.Int64(),
        "records": pl.Int64(),
        "null_share": pl.Float64(),
        "exact": pl.Boolean(),
        "mark": pl.String(),
        "files": pl.Int64(),
        "files_known": pl.Int64(),
    }
)
"""One row a leaf column. `null_count` and `records` add up `files_known` of `files` files, those that count both;
`null_share` null when there are none; `mark` as `null_share_mark` of SCHEMA_TREE."""


def schema_tree(
    schema: Schema,
    statistics: pl.DataFrame | None = None,
    records: int | None = None,
    *,
    files: pl.DataFrame | None = None,
    least: int | None = None,
    shares: pl.DataFrame | None = None,
    absent: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """SCHEMA_TREE of a schema, with what STATISTICS say of its leaves.

    `records`: live rows, if known; `least`: a bound of them. `files` (FILES) tells files whose every value is null, and
    so have no min and max, from files without statistics; without it the null share needs `records`. Of columns that
    STATISTICS leave out because files are partitioned by them the partition values tell all. `shares`: NULL_SHARES of
    the same statistics, where they have been computed; `absent`: ABSENT_SHARES.
    """
    nodes = [
        (leaf_name(path), depth, f.name, str(f.type), f.nullable, f.comment, f.id, leaf)
        for path, depth, f, leaf in _nodes(schema.fields, ())
    ]
    without_range = {leaf_name(path) for path, f in schema.leaves() if isinstance(f.type, ArrayType | MapType)}
    names = SCHEMA_TREE.names()
    tree = pl.DataFrame(nodes, schema={n: SCHEMA_TREE[n] for n in names[:8]}, orient="row")
    if statistics is None:
        return tree.with_columns(pl.lit(None, dtype=SCHEMA_TREE[n]).alias(n) for n in names[8:]).select(names)
    leaves = set(tree.filter("leaf")["path"].to_list())
    found: list[dict[str, Any]] = []
    ranges: list[dict[str, Any]] = []
    partitioned = _by_partition(statistics, files, leaves)
    for column, part in chain(_by_file(statistics, files, sorted(leaves & set(statistics.columns))), partitioned):
        if shares is None or column not in statistics.columns:
            found.append(_share(column, part, records, least))
        if column not in without_range:
            ranges.append(_range(column, part))
    told = _shares_frame(found) if shares is None else pl.concat([shares, _shares_frame(found)])
    marks = told.select(
        pl.col("column").alias("path"),
        "null_share",
        null_share_bound=~pl.col("exact"),
        null_share_mark=pl.col("mark"),
    )
    lacking = pl.DataFrame(schema={n: SCHEMA_TREE[n] for n in ("path", *names[11:14])}) if absent is None else absent
    return (
        tree.join(marks, on="path", how="left", maintain_order="left")
        .join(lacking, on="path", how="left", maintain_order="left")
        .join(
            pl.DataFrame(ranges, schema={n: SCHEMA_TREE[n] for n in ("path", *names[14:])}),
            on="path",
            how="left",
            maintain_order="left",
        )
        .select(names)
        .cast(SCHEMA_TREE)
    )


def null_shares(
    statistics: pl.DataFrame, files: pl.DataFrame, least: int | None = None, records: int | None = None
) -> pl.DataFrame:
    """NULL_SHARES from STATISTICS and FILES of one version, which has at least `least` live rows, or just `records`."""
    columns = [c for c in statistics.columns if c not in ("_path", "_deletion_vector")]
    return _shares_frame(
        [_share(column, part, records, least) for column, part in _by_file(statistics, files, columns)]
    )


def files_without_statistics(statistics: pl.DataFrame) -> pl.DataFrame:
    """The rows of STATISTICS whose files count the nulls of no column: they carry no statistics."""
    known = pl.Series([False], dtype=pl.Boolean).new_from_index(0, statistics.height)
    for column in statistics.columns:
        if column not in ("_path", "_deletion_vector"):
            known = known | statistic(statistics[column].struct.unnest(), "null_count", pl.Int64()).is_not_null()
    return statistics.filter(~known)


def spread_evenly(versions: Sequence[int], limit: int = 24) -> list[int]:
    """At most `limit` of the versions, evenly spread, the first and last among them."""
    if len(versions) <= limit:
        return list(versions)
    step = (len(versions) - 1) / (limit - 1)
    return [versions[round(i * step)] for i in range(limit)]


def _nodes(
    fields: Sequence[Field], above: tuple[str, ...], *, in_list: bool = False
) -> Iterator[tuple[tuple[str, ...], int, Field, bool]]:
    """Each field with path, depth and whether statistics can tell of it (a leaf reached through structs only)."""
    for f in fields:
        path = (*above, f.name)
        yield path, len(above), f, not in_list and not isinstance(f.type, StructType)
        match f.type:
            case StructType(inner):
                yield from _nodes(inner, path, in_list=in_list)
            case ArrayType() | MapType():
                yield from _nodes(_parts(f.type), path, in_list=True)
            case _:
                pass


def _parts(type_: DataType) -> list[Field]:
    match type_:
        case ArrayType(element, contains_null):
            return [Field("element", element, contains_null)]
        case MapType(key, value, contains_null):
            return [Field("key", key, nullable=False), Field("value", value, contains_null)]
        case _:
            return []


def _by_file(
    statistics: pl.DataFrame, files: pl.DataFrame | None, columns: Sequence[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """For each column one row a file: `records, deleted, null_count, null_count_exact, exact, min, max`.

    Columns are taken one by one, as series: their names are the user's and may be anything, and they are copied.
    """
    if files is None:
        unknown = pl.Series([None] * statistics.height, dtype=pl.Int64)
        counts = pl.DataFrame({"records": unknown, "deleted": unknown})
    else:
        counts = counts_of(statistics, files)
    for column in columns:
        said = statistics[column].struct.unnest()
        part = pl.DataFrame(
            {
                "records": counts["records"],
                "deleted": counts["deleted"],
                "null_count": statistic(said, "null_count", pl.Int64()),
                "null_count_exact": statistic(said, "null_count_exact", pl.Boolean()),
                "exact": statistic(said, "exact", pl.Boolean()),
                "min": statistic(said, "min", pl.Null()),
                "max": statistic(said, "max", pl.Null()),
            }
        )
        yield column, part


def _by_partition(
    statistics: pl.DataFrame, files: pl.DataFrame | None, leaves: Collection[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """As `_by_file`, of columns without statistics that have one value in each file: its partition's."""
    if files is None or "partition" not in files.columns:
        return
    live = files["records"] - files["deleted_records"]
    for values in files["partition"].struct.unnest():
        column = leaf_name((values.name,))
        if column in leaves and column not in statistics.columns:
            nulls = pl.select(pl.when(values.is_null()).then(live).otherwise(0)).to_series()
            part = pl.DataFrame({"records": live, "null_count": nulls, "min": values, "max": values})
            yield (
                column,
                part.with_columns(deleted=pl.lit(0), null_count_exact=pl.lit(value=True), exact=pl.lit(value=True)),
            )


def counts_of(statistics: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """`records` and `deleted` of each row of STATISTICS, null for a file that FILES does not have."""
    wanted = files.select("path", pl.col("deletion_vector").alias("dv"), "records", deleted="deleted_records")
    path, vector = statistics["_path"], statistics["_deletion_vector"]
    if path.equals(wanted["path"]) and vector.equals(wanted["dv"]):  # both are in the log's order as a rule
        return wanted
    keys = pl.DataFrame({"path": path, "dv": vector})
    once = wanted.unique(["path", "dv"])
    return keys.join(once, on=["path", "dv"], how="left", nulls_equal=True, maintain_order="left")


def _shares_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """NULL_SHARES of the rows that `_share` gives: made at once, a frame for each takes a millisecond."""
    return pl.DataFrame(rows, schema=NULL_SHARES, orient="row").with_columns(shown_bounds())


def _share(column: str, part: pl.DataFrame, records: int | None, least: int | None = None) -> dict[str, Any]:
    """One row of NULL_SHARES, its bounds not yet rounded; with `records` (live rows) nulls are a share of those where
    files do not count rows.

    Of a file with deleted rows only none and all are certain (Delta, "Per-file Statistics"): others have between as
    many nulls as were counted and so many fewer as rows are deleted. `least`: a bound of the live rows, where not all
    files tell how many of theirs are deleted.
    """
    if part["records"].null_count() == part.height and records is not None:
        part = part.with_columns(records=pl.lit(None, pl.Int64), deleted=pl.lit(0, pl.Int64))
        rows_of_files = False
    else:
        rows_of_files = True
    sums = part.select(_sums(rows_of_files)).row(0, named=True)
    share, mark = _bound(sums, records if not rows_of_files else sums["rows"], least)
    told = {"column": column, "null_share": share, "exact": mark == "" and share is not None}
    told |= {"null_count": sums["most"] if sums["files_known"] else None, "files": sums["files"]}
    over = records if not rows_of_files else sums["counted"]
    told |= {"records": over if sums["files_known"] else None, "files_known": sums["files_known"]}
    return told | {"mark": None if share is None else mark}


@cache
def _sums(rows_of_files: bool) -> tuple[pl.Expr, ...]:  # made once: of a wide table they are half the time
    """Sums of the files of `_by_file`; without `rows_of_files` those count no rows."""
    nulls, rows, deleted = pl.col("null_count"), pl.col("records"), pl.col("deleted")
    known = nulls.is_not_null() & (rows.is_not_null() | pl.lit(not rows_of_files))
    full = (nulls >= rows).fill_null(value=False)
    most = pl.when(full).then(rows - deleted.fill_null(0)).otherwise(nulls)
    surely = pl.when(pl.col("null_count_exact").fill_null(value=False) & (deleted == 0)).then(nulls)
    wholly = pl.when(full & deleted.is_not_null()).then(rows - deleted)
    fewest = pl.coalesce(surely, wholly, pl.when(deleted > 0).then((nulls - deleted).clip(0)), 0)
    return (
        pl.len().cast(pl.Int64).alias("files"),
        known.sum().cast(pl.Int64).alias("files_known"),
        fewest.filter(known).sum().alias("fewest"),
        most.filter(known).sum().alias("most"),
        pl.when(rows.is_not_null().all()).then((rows - deleted.fill_null(0)).sum()).alias("rows"),
        (rows - deleted.fill_null(0)).filter(known).sum().alias("counted"),
        deleted.is_not_null().all().alias("certain_rows"),
        (rows - deleted).sum().alias("least"),
    )


def _bound(sums: Mapping[str, Any], rows: int | None, least: int | None) -> tuple[float | None, str]:
    """The share of nulls and its mark: exact, else at most so large where all files count their nulls, else at least so
    large; an estimate where the number of rows is unknown, or bounded by less than the nulls that were counted."""
    if not sums["files_known"]:
        return None, ""
    complete = sums["files_known"] == sums["files"]
    if rows is None:
        return (min(sums["most"] / sums["counted"], 1.0) if sums["counted"] > 0 else None), "≈"
    if rows <= 0:
        return None, ""
    if complete and sums["fewest"] == sums["most"] and (sums["certain_rows"] or not sums["most"]):
        return min(sums["most"] / rows, 1.0), ""
    if complete:
        fewest_rows = rows if sums["certain_rows"] else max(least or 0, sums["least"])
        if sums["certain_rows"] or sums["most"] < fewest_rows:
            return min(sums["most"] / fewest_rows, 1.0), "≤"
        return min(sums["most"] / rows, 1.0), "≈"
    return min(sums["fewest"] / rows, 1.0), "≥"


def _range(column: str, part: pl.DataFrame) -> dict[str, Any]:
    """One row: coverage, and the smallest min and greatest max as text."""
    found = part.select(_ends())
    covered, ranged, exact = (found[name].item() for name in ("covered", "ranged", "exact"))
    return {
        "path": column,
        "coverage": None if part.is_empty() else covered / part.height,
        "min_text": bound_texts(found["low"], found["exact"]).item(),
        "max_text": bound_texts(found["high"], found["exact"]).item(),
        "range_is": None if not ranged else "partial" if covered < part.height else "exact" if exact else "bound",
    }


@cache
def _ends() -> tuple[pl.Expr, ...]:  # made once, as `_sums`
    """What `_range` is made of."""
    tells = pl.col("min").is_not_null() & pl.col("max").is_not_null()
    # a file in which every value is null has no range to tell
    empty = (pl.col("null_count") == pl.col("records")).fill_null(False)
    return (
        (tells | empty).sum().alias("covered"),
        tells.any().alias("ranged"),
        pl.col("exact").fill_null(False).filter(tells).all().alias("exact"),
        pl.col("min").filter(tells).min().alias("low"),
        pl.col("max").filter(tells).max().alias("high"),
    )
