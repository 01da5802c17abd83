"""The snapshots of a metadata file to VERSIONS, and to the SCHEMAS that they were written with."""

from collections.abc import Sequence
from operator import attrgetter

import polars as pl

from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import moments
from lakeview.model.frames import SCHEMAS, VERSIONS

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
    plain = pl.Schema({**VERSIONS, "timestamp": pl.Int64()})
    return pl.DataFrame(rows, schema=plain, orient="row").with_columns(moments("timestamp")).cast(VERSIONS)


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
    frame = pl.DataFrame(
        rows, schema={"version": pl.Int64(), "timestamp": pl.Int64(), "schema": pl.String()}, orient="row"
    )
    return frame.with_columns(moments("timestamp")).cast(SCHEMAS)
