"""Live files: their paths, partition values and deletion vectors, and whether the store has them."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from lakeview.delta.data.deletion_vectors import DeletionVector, vector_keys
from lakeview.delta.data.partition_values import parse_values, partition_fields
from lakeview.delta.features import CATALOG_FEATURES
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, of_files, some
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.paths import LOG_FOLDER, canonical
from lakeview.model import limits
from lakeview.model.addresses import is_absolute
from lakeview.model.data_types import Field
from lakeview.model.errors import CorruptTableError
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text
from lakeview.storage.leftovers import age, leftovers


def paths(facts: LogFacts) -> Iterator[Finding]:
    """Live files outside the table's folder."""
    live = facts.live
    outside = live.filter(pl.Series([_outside(key) for key in live["key"]], dtype=pl.Boolean))
    is_clone = any((commit.info.operation or "").upper() == "CLONE" for commit in facts.records)
    claim = f"{count_text(outside.height, 'live file lies', 'live files lie')} outside the table"
    for own in of_files("files-outside-table", outside, claim, "; the table is a clone" if is_clone else ""):
        yield replace(own, severity=Severity.NOTE, remedy=None) if is_clone else own


def _outside(key: str) -> bool:
    return is_absolute(key) or key == ".." or key.startswith("../")


def files_in_store(facts: LogFacts) -> Iterator[Finding]:
    """Live files and deletion vectors are in the store, with the size the log says."""
    live = facts.live
    inside = live.filter(pl.Series([not _outside(key) for key in live["key"]], dtype=pl.Boolean))
    present = facts.data.select(pl.col("name").alias("key"), pl.col("size").alias("stored"))
    files = inside.select("key", "path", "size").unique("key").join(present, on="key", how="left")
    missing = files.filter(pl.col("stored").is_null()).sort("path")
    claim = f"{count_text(missing.height, 'live file is', 'live files are')} missing from the store"
    yield from of_files("live-files-missing", missing, claim, f"; of {live.height:,} live files")
    impossible = live.filter(~pl.col("size").is_between(0, limits.FILE_BYTES))
    for what, those in (
        ("a negative size", impossible.filter(pl.col("size") < 0)),
        ("a size that no store lets a file have", impossible.filter(pl.col("size") > 0)),
    ):
        yield from of_files("live-files-without-size", those, f"{count_text(those.height, 'live file')} of {what}")
    other = files.filter(pl.col("size").is_between(0, limits.FILE_BYTES)).filter(pl.col("stored") != pl.col("size"))
    if other.height:
        row = other.sort("path").row(0, named=True)
        yield finding(
            "live-files-other-size",
            f"{count_text(other.height, 'live file has', 'live files have')} another size than the log says",
            f"{row['path']}: {row['stored']:,} bytes stored, {row['size']:,} recorded",
            row["path"],
        )
    yield from _vector_files(live, present, facts.storage.root)


def _vector_files(live: pl.DataFrame, present: pl.DataFrame, root: str) -> Iterator[Finding]:
    data_files: dict[str, str] = {}
    messages: list[str] = []
    for path, vector in live.filter(pl.col("deletion_vector").is_not_null()).select("path", "vector").iter_rows():
        try:
            descriptor = DeletionVector.of(vector)
            where = None if descriptor is None else descriptor.path
        except CorruptTableError as error:
            messages.append(error.message)
            continue
        if where is not None:
            data_files[where] = path
    keys = dict(zip(data_files, canonical(pl.Series("key", list(data_files), dtype=pl.String), root), strict=True))
    there = set(present["key"].to_list()) if data_files else set()
    # one outside the table cannot be looked up in its listing, unless no store can hold it
    elsewhere = {w for w, key in keys.items() if is_absolute(key)}
    missing = {where: path for where, path in data_files.items() if keys[where] not in there and where not in elsewhere}
    if missing:
        first = min(missing)
        yield finding(
            "deletion-vector-files-missing",
            f"{count_text(len(missing), 'deletion vector file is', 'deletion vector files are')} missing from the"
            " store",
            f"{some(sorted(missing))}; for {missing[first]}",
            first,
        )
    if messages:
        claim = f"{count_text(len(messages), 'deletion vector descriptor')} cannot be read"
        yield finding("deletion-vector-unreadable", claim, messages[0], "deletionVector")


def orphans(facts: LogFacts) -> Iterator[Finding]:
    """Data files that no add or remove names: leavings of failed writes, or of commits that were cleaned up; and what a
    killed writer had begun in the log."""
    if facts.replay is None or not facts.knows_files or facts.features & CATALOG_FEATURES:
        return  # unpublished commits name some
    try:
        removes = facts.replay.removes().select(IDENTITY)
    except CorruptTableError:
        return
    actions = pl.concat([facts.live.select(IDENTITY), removes, facts.events.select(IDENTITY)])
    names = pl.concat(
        [
            actions["key"],
            facts.change_files,
            vector_keys(actions["deletion_vector"], facts.storage.root, strict=False),
        ]
    ).unique()
    alone = leftovers(facts.folder.filter(~pl.col("name").is_in(names.implode())), facts.now)
    alone = alone.sort(pl.col("name").str.starts_with(f"{LOG_FOLDER}/"), maintain_order=True)  # data is named first
    in_log = alone["name"].str.starts_with(f"{LOG_FOLDER}/")
    if alone.height:
        yield finding(
            "orphan-files",
            f"{count_text(alone.height, 'file')} in the folder {'is' if alone.height == 1 else 'are'} named by no"
            " commit",
            f"{int(alone['size'].sum()):,} bytes; {age(facts.now)}: "
            f"{some(alone['name'].head(3).to_list(), alone.height)}",
            alone["name"][0],
            remedy=_REMEDIES[bool(in_log.any()), bool(in_log.all())],
        )


_REMEDIES = {
    (False, False): "VACUUM removes them",
    (True, False): "VACUUM removes them, and a cleanup of the log those in its folder",
    (True, True): "a cleanup of the log removes them",
}
"""By whether some and all of them lie in the log's folder."""


def partition_values(facts: LogFacts) -> Iterator[Finding]:
    """Every live file has a value for each partition column, no others, and they can be read as their types."""
    live, schema = facts.live, facts.schema
    if schema is None or not live.height:
        return
    try:
        fields = partition_fields(schema, facts.partition_columns)
    except CorruptTableError:  # the schema's own check says so
        return
    names = {f.stored_name for f in fields}
    keys = live.select(
        "path", pl.col("partition_values").cast(_PAIRS).list.eval(pl.element().struct.field("key")).alias("keys")
    )
    lacking = keys.filter(
        ~pl.all_horizontal(pl.lit(value=True), *[pl.col("keys").list.contains(k) for k in sorted(names)]).fill_null(
            not names
        )
    )
    claim = f"{count_text(lacking.height, 'live file lacks', 'live files lack')} a partition value"
    yield from of_files("partition-value-missing", lacking, claim, f"; partition columns: {some(sorted(names))}")
    extra = keys.explode("keys").drop_nulls("keys").filter(~pl.col("keys").is_in(sorted(names)))
    if extra.height:
        yield finding(
            "partition-value-superfluous",
            f"{count_text(extra['path'].n_unique(), 'live file has', 'live files have')} values for columns that are no"
            " partition columns",
            f"{some(extra['keys'].unique().sort().to_list())}: {some(extra['path'].head(2).to_list(), extra.height)}",
            extra["path"][0],
        )
    for field in fields:
        yield from _unreadable(live, field)


_PAIRS = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))


def _unreadable(live: pl.DataFrame, field: Field) -> Iterator[Finding]:
    text = live.select(pl.col("partition_values").map.get(field.stored_name).alias("t")).to_series()
    distinct = text.unique().drop_nulls()
    distinct = distinct.filter(distinct != "")
    bad = distinct.filter(parse_values(distinct, field.type).is_null())
    if bad.len():
        files = live.filter(text.is_in(bad.implode()))
        yield finding(
            "partition-value-of-other-type",
            f"{count_text(bad.len(), 'partition value')} of {field.name} {'is' if bad.len() == 1 else 'are'} no"
            f" {field.type}",
            f"{some([repr(v) for v in bad.sort().head(3)], bad.len())}; in {count_text(files.height, 'file')}",
            files["path"][0],
        )


def keys_once(facts: LogFacts) -> Iterator[Finding]:
    """A path that is live with two deletion vectors at once gives its rows twice."""
    twice = facts.live.unique(IDENTITY, maintain_order=True).filter(pl.col("key").is_duplicated())
    files = twice.unique("path", maintain_order=True)
    claim = f"{count_text(files.height, 'file is', 'files are')} live with two deletion vectors at once"
    yield from of_files("file-live-twice", files, claim)
