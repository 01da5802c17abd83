"""A metadata file and a new snapshot to the metadata file that follows it (iceberg spec, Table Metadata), with the
micro-batch of a stream that the snapshot is of."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lakeview.iceberg.metadata.locate import metadata_number
from lakeview.iceberg.metadata.refs import MAIN, ancestors
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import Metadata

_EARLIER_FILES = 100
"""Entries of the metadata log, where `write.metadata.previous-versions-max` does not say."""


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot that follows the current one on the branch main. `added_rows`: row ids that it gives out, from
    `first_row_id` on; None before version 3. `properties`: of the table, set with it."""

    snapshot_id: int
    parent: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str
    summary: Mapping[str, str]
    schema_id: int
    first_row_id: int | None
    added_rows: int | None
    properties: Mapping[str, str] = field(default_factory=dict)


def following_document(
    document: Mapping[str, Any], snapshot: NewSnapshot, recorded_path: str, earlier_files: str | None
) -> dict[str, Any]:
    """The document of a metadata file with a new current snapshot; every other field stays as recorded, those that are
    not known here too. `recorded_path`: of the file that it follows."""
    new = dict(document)
    version = new["format-version"]
    if version > 1:
        new["last-sequence-number"] = snapshot.sequence_number
    if snapshot.first_row_id is not None and snapshot.added_rows is not None:
        new["next-row-id"] = snapshot.first_row_id + snapshot.added_rows
    refs = dict(new.get("refs") or {})
    refs[MAIN] = {"type": "branch", **refs.get(MAIN, {}), "snapshot-id": snapshot.snapshot_id}
    step = {"timestamp-ms": snapshot.timestamp_ms, "snapshot-id": snapshot.snapshot_id}
    before = {"timestamp-ms": new.get("last-updated-ms") or snapshot.timestamp_ms, "metadata-file": recorded_path}
    most = int(earlier_files) if earlier_files and earlier_files.isdecimal() else _EARLIER_FILES
    if snapshot.properties:
        new["properties"] = {**(new.get("properties") or {}), **snapshot.properties}
    new |= {
        "last-updated-ms": snapshot.timestamp_ms,
        "current-snapshot-id": snapshot.snapshot_id,
        "snapshots": [*(new.get("snapshots") or ()), snapshot_entry(snapshot, version)],
        "refs": refs,
        "snapshot-log": [*(new.get("snapshot-log") or ()), step],
        "metadata-log": [*(new.get("metadata-log") or ()), before][-max(most, 1) :],
    }
    return new


def snapshot_entry(snapshot: NewSnapshot, version: int) -> dict[str, Any]:
    """A snapshot as metadata of a format version records it."""
    entry: dict[str, Any] = {"snapshot-id": snapshot.snapshot_id}
    if snapshot.parent is not None:
        entry["parent-snapshot-id"] = snapshot.parent
    if version > 1:
        entry["sequence-number"] = snapshot.sequence_number
    entry |= {
        "timestamp-ms": snapshot.timestamp_ms,
        "manifest-list": snapshot.manifest_list,
        "summary": dict(snapshot.summary),
        "schema-id": snapshot.schema_id,
    }
    if snapshot.first_row_id is not None and snapshot.added_rows is not None:
        entry |= {"first-row-id": snapshot.first_row_id, "added-rows": snapshot.added_rows}
    return entry


def encode_document(document: Mapping[str, Any], *, is_compressed: bool) -> bytes:
    """The bytes of a metadata file; of the same document the same."""
    data = msgspec.json.encode(document)
    return gzip.compress(data, mtime=0) if is_compressed else data


def following_name(name: str, *, is_compressed: bool) -> str | None:
    """The name of the file after one, which all writers of a folder give it; None where its own has no number.

    "1. Write to a temporary location. 2. ... rename to `v<V+1>.metadata.json`"  File System Tables
    """
    number = metadata_number(name)
    return None if number is None else f"v{number + 1}{'.gz' if is_compressed else ''}.metadata.json"


_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
"""As Iceberg's own Spark sink calls them (SparkWrite.java, BaseStreamingWrite), so that each knows the other's batches;
the specification names none."""

_PROPERTY = "lakeview.stream."
"""Before the query: the epoch that it committed last, `@` and the id of the snapshot."""


@dataclass(frozen=True)
class StreamBatch:
    """The number of a batch, which grows, and the id of the query that it is of."""

    query_id: str
    epoch: int

    @property
    def summary(self) -> Mapping[str, str]:
        """What the summary of its snapshot holds."""
        return {_QUERY: self.query_id, _EPOCH: str(self.epoch)}

    def properties(self, snapshot_id: int) -> Mapping[str, str]:
        """The table property that is set with its snapshot: a summary expires with its snapshot, a property stays."""
        return {f"{_PROPERTY}{self.query_id}": f"{self.epoch}@{snapshot_id}"}

    def is_committed(self, metadata: Metadata) -> bool:
        """Whether the table has this batch of the query, or a later one.

        The newest of the query's that the current snapshot or one before it has counts, and where those have expired,
        the table property. Batches that were rolled back are not committed, as long as their snapshots are there.
        """
        line = ancestors(metadata, metadata.current_snapshot_id)
        for snapshot in line:
            epoch = snapshot.summary.get(_EPOCH)
            number = whole(epoch, None) if isinstance(epoch, str) else None
            if snapshot.summary.get(_QUERY) == self.query_id and number is not None:
                return self.epoch <= number
        batch_text, _, snapshot_id = metadata.properties.get(f"{_PROPERTY}{self.query_id}", "").partition("@")
        number, at = whole(batch_text, None), whole(snapshot_id, None)
        entry = None if at is None else metadata.snapshots.get(at)
        # not of the line although later than where the line begins
        rolled_back = entry is not None and (not line or entry.timestamp_ms > line[-1].timestamp_ms)
        return number is not None and self.epoch <= number and not rolled_back
