"""A version, a moment or a ref to one snapshot, the schema it is read with, and what is known of it at once."""

from datetime import datetime

from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata import refs
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import moment
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.printable import count_text
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.model.table import check_point
from lakeview.model.table_metadata import TableMetadata, TableProtocol


def at_moment(metadata: Metadata, at: datetime, address: str) -> int:
    """The snapshot that was current at a moment, by the snapshot log; without one, by the main branch.

    "Last in list order": entries may tie, and run backwards after a rollback or with clocks that disagree.
    VersionNotFoundError before the first entry, and where the snapshot has expired since.
    """
    at_ms = milliseconds(at)
    log = [(e.timestamp_ms, e.snapshot_id) for e in metadata.snapshot_log]
    if not log:
        log = [
            (s.timestamp_ms, s.snapshot_id) for s in reversed(refs.ancestors(metadata, metadata.current_snapshot_id))
        ]
    if not log:
        raise VersionNotFoundError(f"{address} has no snapshot yet", fix="ask for the table as it is now")
    earlier = [snapshot_id for when, snapshot_id in log if when <= at_ms]
    if not earlier:
        raise VersionNotFoundError(
            f"{address} has no snapshot at {at.isoformat(sep=' ')}: its log begins later",
            fix="ask for a later moment, or for a snapshot by its id",
        )
    if earlier[-1] not in metadata.snapshots:
        raise VersionNotFoundError(
            f"the snapshot {earlier[-1]}, current at {at.isoformat(sep=' ')}, has expired",
            fix="ask for a later moment: the table's versions show what is there",
        )
    return earlier[-1]


def entry_of(metadata: Metadata, address: str, version: int) -> SnapshotEntry:
    """A snapshot by its id; VersionNotFoundError."""
    entry = metadata.snapshots.get(version)
    if entry is None:
        raise VersionNotFoundError(
            f"{address} has no snapshot {version}; it holds {count_text(len(metadata.snapshots), 'snapshot')}",
            fix="choose one from the table's history",
        )
    return entry


def snapshot_and_schema(
    metadata: Metadata, address: str, version: int | None, at: datetime | None, ref: str | None
) -> tuple[SnapshotEntry | None, Schema]:
    """A snapshot and the schema to read it with; no snapshot where the table never had one.

    The current one and branches have the table's current schema, ids, moments and tags the schema they were written
    with. VersionNotFoundError, InvalidRequestError.
    """
    check_point(version, at, ref)
    if ref is not None:
        reference = refs.ref_named(metadata, ref, address)
        entry = entry_of(metadata, address, reference.snapshot_id)
        return entry, metadata.schema if reference.type == "branch" else metadata.schema_of(entry).schema
    if at is not None:
        version = at_moment(metadata, at, address)
    if version is None:
        return metadata.snapshots.get(metadata.current_snapshot_id), metadata.schema
    if version == NO_SNAPSHOT == metadata.current_snapshot_id:
        return None, metadata.schema
    entry = entry_of(metadata, address, version)
    return entry, metadata.schema_of(entry).schema


def describe_snapshot(
    metadata: Metadata, address: str, entry: SnapshotEntry | None, schema: Schema, columns: tuple[PartitionColumn, ...]
) -> TableMetadata:
    """What a snapshot tells before any manifest is read. `columns`: the parts of all partition specs."""
    mine = {f.field_id for f in metadata.spec.fields}
    return TableMetadata(
        address=address,
        format="iceberg",
        version=NO_SNAPSHOT if entry is None else entry.snapshot_id,
        timestamp=moment(metadata.last_updated_ms if entry is None else entry.timestamp_ms),
        schema=schema,
        partition_columns=tuple(c.name for c in columns if c.field.field_id in mine),
        properties=metadata.properties,
        protocol=TableProtocol(format_version=metadata.format_version),
        id=metadata.table_uuid,
        description=metadata.properties.get("comment"),
        data_format=metadata.properties.get("write.format.default", "parquet").lower(),
    )
