"""A metadata file and a new snapshot to the metadata file that follows it (iceberg spec, Table Metadata)."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lakeview.iceberg.metadata.locate import metadata_number
from lakeview.iceberg.metadata.refs import MAIN

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


def encode_document(document: Mapping[str, Any], *, compressed: bool) -> bytes:
    """The bytes of a metadata file; of the same document the same."""
    data = msgspec.json.encode(document)
    return gzip.compress(data, mtime=0) if compressed else data


def following_name(name: str, *, compressed: bool) -> str | None:
    """The name of the file after one, which all writers of a folder give it; None where its own has no number.

    "1. Write to a temporary location. 2. ... rename to `v<V+1>.metadata.json`"  File System Tables
    """
    number = metadata_number(name)
    return None if number is None else f"v{number + 1}{'.gz' if compressed else ''}.metadata.json"
