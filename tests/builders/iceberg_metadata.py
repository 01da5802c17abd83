"""Table metadata in words: a small valid document of version 2, and what a test changes of it."""

from __future__ import annotations

import json
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
    ],
}
ABSENT = object()
"""As a change: the key is left out."""


def document(**changes: Any) -> dict[str, Any]:
    """Metadata of version 2 without snapshots. Keys with `_` for `-`; ABSENT leaves one out."""
    body: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:///lake/orders",
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [SCHEMA],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }
    body |= {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in body.items() if value is not ABSENT}


def version_1(**changes: Any) -> dict[str, Any]:
    """Metadata of version 1 as the first writers wrote it: one schema, one spec without ids, nothing else."""
    schema = {"type": "struct", "fields": SCHEMA["fields"]}
    spec = [
        {"name": "day", "transform": "identity", "source-id": 2},
        {"name": "b", "transform": "bucket[4]", "source-id": 1},
    ]
    body = {"format-version": 1, "location": "/lake/orders", "last-updated-ms": 0, "last-column-id": 2}
    return body | {"schema": schema, "partition-spec": spec} | {k.replace("_", "-"): v for k, v in changes.items()}


def snapshot(snapshot_id: int, at: int = 1_700_000_000_000, **more: Any) -> dict[str, Any]:
    """A snapshot. Keys with `_` for `-`."""
    body = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": at,
        "manifest-list": f"file:///lake/orders/metadata/{snapshot_id}.avro",
    }
    return body | {key.replace("_", "-"): value for key, value in more.items()}


def text(content: dict[str, Any]) -> bytes:
    """A document as a file holds it."""
    return json.dumps(content).encode()
