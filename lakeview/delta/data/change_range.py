"""A log and two versions to a ChangeScan: which commits, what held when, what is a change, and may they be read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise

import polars as pl

from lakeview.delta.data.changes import ChangeScan, Columns, change_files
from lakeview.delta.data.schemas import as_before, table_schema
from lakeview.delta.data.type_widening import incompatibility
from lakeview.delta.features import LEGACY_WRITER_FEATURES, MAX_WRITER_VERSION, ColumnMappingMode, column_mapping_mode
from lakeview.delta.log.actions import Metadata, table_protocol
from lakeview.delta.log.commits import Commit
from lakeview.delta.log.file_actions import file_actions, text_maps
from lakeview.delta.log.paths import canonical
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import CommitTimes, first_version_from, in_commit_start, version_at
from lakeview.delta.properties import is_true
from lakeview.model.errors import CorruptTableError, InvalidRequestError, VersionNotFoundError
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableProtocol

StateOf = Callable[[int], Replay]
_FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True, slots=True)
class Layout:
    """What holds from a version on: its schema, how columns are mapped, whether it is partitioned, and whether it
    records a change feed."""

    version: int
    schema: Schema
    mapping: ColumnMappingMode
    is_partitioned: bool
    feed: bool


def commit_range(
    start: int | datetime, end: int | datetime | None, latest: int, times: Callable[[], pl.DataFrame], address: str
) -> tuple[int, int]:
    """The first and the last commit of a range; the last is one before the first where none lies between two moments.

    `times` gives TIMES. InvalidRequestError for a naive moment and a range that ends before it starts;
    VersionNotFoundError for a version that the table has not.
    """
    first = first_version_from(times(), start) if isinstance(start, datetime) else start
    last = latest if end is None else version_at(times(), end, address) if isinstance(end, datetime) else end
    for point in (start, latest if end is None else end):
        if isinstance(point, datetime):
            continue
        if not 0 <= point <= latest:
            raise VersionNotFoundError(
                f"{address} has no version {point}: it is at {latest}", fix=f"ask for changes within 0 to {latest}"
            )
    backwards = isinstance(start, datetime) and isinstance(end, datetime) and start > end
    if backwards or last < first - isinstance(start, datetime):
        raise InvalidRequestError(
            f"changes from {start} to {end} end before they start", fix="give the earlier one first"
        )
    return first, last


def change_scan(log: TableLog, state_of: StateOf, start: int, end: int) -> ChangeScan:
    """The changes of commits `start` to `end`, both included; none if `start` is `end + 1`.

    The commits are read once; no data file is. VersionNotFoundError names commits that are gone,
    InvalidRequestError (kind incompatible-schema-change) the version after which rows cannot be read as those of `end`.
    """
    _check_there(log, start, end)
    last = state_of(end)
    layout = _layout(log, end, last.table_protocol, last.metadata)
    layouts: list[Layout] = []
    in_commit: dict[int, int | None] = {}
    files = change_files(_walk(log, state_of(min(start, end)), start, end, layouts, in_commit), log.storage.root)
    if start > 0 and _restructures(log, start, files):
        before = state_of(start - 1)
        layouts.insert(0, _layout(log, start - 1, before.table_protocol, before.metadata))
    _check_schemas(log, layouts, layout.schema, start, end)
    first_in_commit = in_commit_start(last.table_protocol, last.properties)
    times = CommitTimes(log, first_in_commit).frame(in_commit).select("version", "timestamp")
    files = files.join(times, on="version", how="left", maintain_order="left")
    feeds = pl.DataFrame({"from": [x.version for x in layouts], "feed": [x.feed for x in layouts]})
    files = files.join_asof(feeds.set_sorted("from"), left_on="version", right_on="from", check_sortedness=False)
    if any(layout.is_partitioned for layout in layouts):
        files = _fill_partition_values(log, state_of, files, start, end)
    return scan_of(files, layouts, layout, log.storage.root)


def scan_of(files: pl.DataFrame, layouts: Sequence[Layout], last: Layout, root: str) -> ChangeScan:
    """The changes in `files` as `ChangeScan` takes them, but for `era`; rows are read with the columns of `last`, which
    files have under other names until column mapping ends, or begins."""
    columns = [*_columns_before(layouts, last.schema), _columns(last, last.schema, None)]
    return ChangeScan(_with_last_names(files, columns), columns, root)


def _check_there(log: TableLog, start: int, end: int) -> None:
    every = log.commit_files()["version"]
    there = every.filter(every.is_between(start, end))
    missing = end + 1 - start - there.len()
    if not missing:
        return
    # a log may claim version 10^18: what is missing is found by what is there, not by counting through the range
    first = start + next((i for i, v in enumerate(there) if v != start + i), there.len())
    last = end - next((i for i, v in enumerate(there.reverse()) if v != end - i), there.len())
    gap = f"commit {first}" if missing == 1 else f"{missing:,} commits from {first} to {last}"
    later = every.filter(every > last)
    raise VersionNotFoundError(
        f"the log of {log.storage.root} no longer has {gap}: what changed there is unknown",
        fix=f"ask for changes from version {later[0]} on" if later.len() else "compare two versions by their rows",
    )


def _walk(
    log: TableLog, state: Replay, start: int, end: int, layouts: list[Layout], in_commit: dict[int, int | None]
) -> Iterator[Commit]:
    """The commits of a range, in whose first version `state` is in force. `layouts` get what holds from when on,
    `in_commit` the times that commits carry."""
    protocol, metadata = state.table_protocol, state.metadata
    layouts.append(_layout(log, start, protocol, metadata))
    for commit in log.commits(range(start, end + 1)):
        version = commit.version
        in_commit[version] = commit.info.in_commit_timestamp
        new_protocol, new_metadata = commit.definition
        if version > start and (new_protocol, new_metadata) != (None, None):
            protocol = protocol if new_protocol is None else table_protocol(new_protocol)
            metadata = new_metadata or metadata
            layouts.append(_layout(log, version, protocol, metadata))
        yield commit


def _restructures(log: TableLog, version: int, files: pl.DataFrame) -> bool:
    """Whether a commit changes the metadata and removes rows that are older than it."""
    if files.filter(pl.col("version") == version, pl.col("change_type") == "delete").is_empty():
        return False
    return log.definition(version)[1] is not None


def _layout(log: TableLog, version: int, protocol: TableProtocol, metadata: Metadata) -> Layout:
    depth = log.storage.config.max_schema_depth
    schema = table_schema(metadata.schema_string, protocol, metadata.properties, max_depth=depth)
    mapping = column_mapping_mode(protocol, metadata.properties)
    return Layout(version, schema, mapping, bool(metadata.partition_columns), _feed(protocol, metadata))


def _feed(protocol: TableProtocol, metadata: Metadata) -> bool:
    """Whether writers have to record changes.

    "For Writer Version 7, all writers must respect the delta.enableChangeDataFeed configuration flag in the metadata of
    the table only if the feature changeDataFeed exists in the table protocol's writerFeatures", below 4 none need to.
    """
    version = protocol.min_writer_version or 0
    first = next(v for v, features in LEGACY_WRITER_FEATURES.items() if "changeDataFeed" in features)
    has_feature = (
        "changeDataFeed" in (protocol.writer_features or ()) if version >= MAX_WRITER_VERSION else version >= first
    )
    return has_feature and is_true(metadata.properties, _FEED)


def _check_schemas(log: TableLog, layouts: Sequence[Layout], schema: Schema, start: int, end: int) -> None:
    turns, last = mapping_turns(layouts), len(layouts) - 1
    for i, layout in enumerate(layouts):
        # "as we won't be reading any data prior to it": Spark checks no schema before that of the first version
        # (CDCReader.changesToDF), and what that version removes has the columns that are left
        compare = partial(incompatibility, common=layout.version < start)
        if (why := compare(layout.schema, schema_seen_from(layouts, turns, i, last, schema))) is None:
            continue
        later = (
            x.version
            for j, x in enumerate(layouts[i + 1 :], i + 1)
            if compare(layout.schema, schema_seen_from(layouts, turns, i, j, x.schema)) is not None
        )
        since = next(later, end)
        raise InvalidRequestError(
            f"changes {start} to {end} of {log.storage.root} cannot be read with one schema: in version {since} {why}",
            fix=f"ask for changes up to version {since - 1}, and then from {since + (since == start)} on",
            place="metaData.schemaString",
            kind="incompatible-schema-change",
        )


def mapping_turns(layouts: Sequence[Layout]) -> list[int]:
    """The places of the layouts after which column mapping ends or begins, looked for once: there may be thousands."""
    pairs = pairwise(layout.mapping == "none" for layout in layouts)
    return [i for i, (before, after) in enumerate(pairs) if before != after]


def schema_seen_from(layouts: Sequence[Layout], turns: Sequence[int], first: int, last: int, schema: Schema) -> Schema:
    """The schema of the last of these layouts as files have it while the first holds."""
    for i in reversed(turns):
        if first <= i < last:
            schema = as_before(schema, layouts[i].schema, layouts[i + 1].schema)
    return schema


def _columns_before(layouts: Sequence[Layout], schema: Schema) -> Iterator[Columns]:
    """The columns of the last layout as files have them until column mapping ends, or begins, each time."""
    turns = mapping_turns(layouts)
    for i in turns:
        own = schema_seen_from(layouts, turns, i, len(layouts) - 1, schema)
        yield _columns(layouts[i], own, layouts[i + 1].version)


def _columns(layout: Layout, schema: Schema, until: int | None) -> Columns:
    return Columns(schema, "id" if layout.mapping == "id" else "name", until)


def _with_last_names(files: pl.DataFrame, columns: Sequence[Columns]) -> pl.DataFrame:
    """With `era`, the place of each file's Columns, and partition values by the names that the last of these have."""
    ends = [c.until for c in columns[:-1]]
    newest = pl.col("version") - (pl.col("change_type") == "delete").fill_null(value=False)  # what it was before
    files = files.with_columns(pl.sum_horizontal(pl.lit(0), *(newest >= end for end in ends)).alias("era"))
    if not ends:
        return files
    last = [field.stored_name for field in columns[-1].schema]
    names = [dict(zip((field.stored_name for field in c.schema), last, strict=True)) for c in columns]
    values = [
        {names[era].get(name, name): text for name, text in dict(own or {}).items()}
        for era, own in files.select("era", "partition_values").rows()
    ]
    return files.with_columns(text_maps(values).alias("partition_values"))


def _fill_partition_values(log: TableLog, state_of: StateOf, files: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """With the partition values that removes leave out, as the first writers' did: those of the adds they undo."""
    lacking = pl.col("partition_values").is_null() & (pl.col("change_type") == "delete")
    if not files.select(lacking.any()).item():
        return files
    actions = file_actions(log.commits(range(start, end + 1)), log.storage.root, ["partition_values"])
    frames = [actions.filter("added"), *([state_of(start - 1).adds(["partition_values"])] if start > 0 else [])]
    adds = [frame.select("key", "partition_values") for frame in reversed(frames)]
    of_key = pl.concat(adds).unique("key", keep="last").rename({"partition_values": "known"})
    with_keys = files.with_columns(canonical(files["path"], log.storage.root).alias("key"))
    changes = with_keys.join(of_key, on="key", how="left", maintain_order="left").with_columns(
        pl.when(lacking).then("known").otherwise("partition_values").alias("partition_values")
    )
    unknown = changes.filter(lacking)
    if unknown.height:
        path, version = unknown["path"][0], unknown["version"][0]
        raise CorruptTableError(
            f"the remove of {path} in version {version} does not say in which partition it lay, and no add is left",
            fix=f"ask for changes from version {version + 1} on",
            place=path,
            kind="missing-partition-values",
        )
    return changes.select(files.columns)
