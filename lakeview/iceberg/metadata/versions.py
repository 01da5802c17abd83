"""The snapshots of a metadata file to VERSIONS, to the SCHEMAS that they were written with, and with their summaries to
COMMITS: what each of them did, by its writer's own word."""

from collections.abc import Iterator, Sequence
from functools import cache
from operator import attrgetter

import polars as pl

from lakeview.iceberg.metadata.refs import ancestors, names_by_snapshot
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.metadata.summaries import counts, summaries_frame
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import frame_with_moments, moments
from lakeview.model.frames import COMMITS, SCHEMAS, VERSIONS

VersionRow = tuple[int, int, bool | None, str | None]
"""A row of VERSIONS, its time in milliseconds."""


def in_order(metadata: Metadata) -> list[SnapshotEntry]:
    """All snapshots, oldest first: by sequence number, which version 1 has not, then by time, then as recorded."""
    return sorted(metadata.snapshots.values(), key=attrgetter("sequence_number", "timestamp_ms"))


def listed_versions(metadata: Metadata) -> pl.DataFrame:
    """VERSIONS, newest first, without a look whether they can be read."""
    return version_frame([(s.snapshot_id, s.timestamp_ms, None, None) for s in reversed(in_order(metadata))])


def version_frame(rows: Sequence[VersionRow]) -> pl.DataFrame:
    """VERSIONS of rows."""
    return frame_with_moments(rows, VERSIONS, "timestamp")


def schemas(metadata: Metadata, head: int) -> pl.DataFrame:
    """SCHEMAS: each snapshot up to `head` written with another schema than the one before it, oldest first."""
    rows: list[tuple[int, int, str]] = []
    last: int | None = None
    for snapshot in reversed(ancestors(metadata, head)):
        recorded_schema = metadata.schema_of(snapshot)
        if recorded_schema.schema_id != last:
            rows.append((snapshot.snapshot_id, snapshot.timestamp_ms, recorded_schema.text))
            last = recorded_schema.schema_id
    if not rows:
        current = metadata.schemas[metadata.current_schema_id]
        rows.append((NO_SNAPSHOT, metadata.last_updated_ms or 0, current.text))
    return frame_with_moments(rows, SCHEMAS, "timestamp")


OWN_COMMITS = pl.Schema({**COMMITS, "on_main": pl.Boolean(), "refs": pl.List(pl.String())})
"""COMMITS with `on_main`: whether the snapshot is the current one or one it grew from; and `refs` that point at it."""
_COUNTS = {
    "files_added": "added-data-files", "files_removed": "deleted-data-files", "bytes_added": "added-files-size",
    "bytes_removed": "removed-files-size", "records_added": "added-records", "records_removed": "deleted-records",
}  # fmt: skip
_DELETES = ("added-delete-files", "removed-delete-files")
_TEXTS = ("operation", "engine-name", "engine-version", "iceberg-version", "total-data-files")


def commits(metadata: Metadata, limit: int | None = None, before: int | None = None) -> pl.DataFrame:
    """OWN_COMMITS, newest first: every snapshot of the table, those of branches included; at most `limit`, those older
    than the snapshot `before`, of which there are none where it is not there."""
    entries = in_order(metadata)
    entries.reverse()
    if before is not None:
        ids = [s.snapshot_id for s in entries]
        entries = entries[ids.index(before) + 1 :] if before in metadata.snapshots else []
    newest = len(entries) - 1
    if limit is not None:
        entries = entries[:limit]
    ids = [s.snapshot_id for s in entries]
    main = {s.snapshot_id for s in ancestors(metadata, metadata.current_snapshot_id)}
    names = names_by_snapshot(metadata)
    places = {snapshot_id: place for place, snapshot_id in enumerate(names, 1)}
    lists = pl.Series([[], *names.values()], dtype=pl.List(pl.String()))  # one for each row is ten times slower
    summaries = summaries_frame(entries, (*_TEXTS, *_DELETES, *_COUNTS.values()))
    columns = {
        "version": pl.Series(ids, dtype=pl.Int64),
        "position": pl.int_range(newest, newest - len(ids), -1, dtype=pl.Int64, eager=True),
        "parent": pl.Series([s.parent_snapshot_id for s in entries], dtype=pl.Int64),
        "timestamp": pl.Series([s.timestamp_ms for s in entries], dtype=pl.Int64),
        "schema_changed": pl.Series(_schema_changes(metadata, entries), dtype=pl.Boolean),
        "on_main": pl.Series([i in main for i in ids], dtype=pl.Boolean),
        "refs": lists[pl.Series([places.get(i, 0) for i in ids], dtype=pl.UInt32)],
        **{s.name: s for s in summaries},
        **{f"whole {key}": counts(summaries[key]) for key in (*_DELETES, *_COUNTS.values())},
    }
    return pl.DataFrame(columns).select_seq(_columns())


@cache
def _columns() -> tuple[pl.Expr, ...]:  # made once: of a short history they are half the time
    expressions = {
        "parent": pl.when(pl.col("parent") != NO_SNAPSHOT).then("parent"),
        "timestamp": moments("timestamp"),
        "recorded_timestamp": moments("timestamp"),
        "timestamp_source": pl.lit("snapshot"),
        "engine": pl.concat_str("engine-name", "engine-version", separator=" ", ignore_nulls=True).replace("", None),
        "client_version": pl.col("iceberg-version"),
        "user": pl.lit(None, pl.String()),
        "protocol_changed": pl.lit(value=False),
        "data_change": pl.col("operation").ne_missing("replace"),
        **dict(_count_columns()),
    }
    return tuple(expressions.get(name, pl.col(name)).alias(name) for name in OWN_COMMITS)


def _count_columns() -> Iterator[tuple[str, pl.Expr]]:
    """Counts of data; null where a summary does not tell, or counts delete files in."""
    # writers leave zeros out: with totals there, a count that is missing is none
    absent = pl.when(pl.col("total-data-files").is_not_null()).then(pl.lit(0, pl.Int64()))
    every = {
        name: pl.when(pl.col(key).is_null()).then(absent).otherwise(f"whole {key}") for name, key in _COUNTS.items()
    }
    for name, count in every.items():
        if name.startswith("bytes"):  # summaries count delete files in: beside data files their bytes are unknown
            deletes = _DELETES[name == "bytes_removed"]
            without = pl.col(deletes).is_null() | (pl.col(f"whole {deletes}") == 0)
            none = every[name.replace("bytes", "files")] == 0
            count = pl.when(without).then(count).when(none).then(pl.lit(0, pl.Int64()))
        if name == "records_removed":  # exact from removed files; row-level deletes may name a row twice
            count = pl.when(~pl.col("touched")).then(count)
        yield name, count


def _schema_changes(metadata: Metadata, entries: Sequence[SnapshotEntry]) -> list[bool]:
    """Whether each was written with another schema than the snapshot before it on its branch."""
    if len(metadata.schemas) < 2:
        return [False] * len(entries)
    snapshots = metadata.snapshots
    own = [metadata.schema_of(s).schema_id for s in entries]
    parents = [snapshots.get(s.parent) if s.parent is not None else None for s in entries]
    return [p is not None and metadata.schema_of(p).schema_id != i for i, p in zip(own, parents, strict=True)]
