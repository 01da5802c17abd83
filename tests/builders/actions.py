"""Actions of a Delta log as literals: the words a history is told in."""

from __future__ import annotations

import json
from typing import Any

Action = dict[str, Any]

NUMBERS = {"id": "long", "city": "string"}
"""The schema a history has unless it says otherwise."""


def schema_string(columns: dict[str, Any], required: tuple[str, ...] = ()) -> str:
    """{"id": "long", "when": {...}} as schemaString."""
    fields = [{"name": n, "type": t, "nullable": n not in required, "metadata": {}} for n, t in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def struct(**columns: Any) -> dict[str, Any]:
    """A struct type with these columns."""
    return {
        "type": "struct",
        "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns.items()],
    }


def protocol(reader: int = 1, writer: int = 2, **features: list[str]) -> Action:
    """A protocol action; features as readerFeatures=[...], writerFeatures=[...]."""
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


def metadata(
    columns: dict[str, Any] | None = None,
    *,
    partition_by: tuple[str, ...] = (),
    properties: dict[str, str | None] | None = None,
    schema: str | None = None,
    provider: str = "parquet",
    **more: Any,
) -> Action:
    """A metaData action; `schema` is schemaString as it is, instead of `columns`."""
    return {
        "metaData": {
            "id": "7f3a6b1e-0d0f-4a54-9a1f-2b1c5f9d6e01",
            "format": {"provider": provider, "options": {}},
            "schemaString": schema_string(columns or NUMBERS) if schema is None else schema,
            "partitionColumns": list(partition_by),
            "configuration": properties or {},
            "createdTime": 1_700_000_000_000,
            **more,
        }
    }


def add(path: str, *, size: int = 100, records: int | None = None, **more: Any) -> Action:
    """An add action; `records` makes statistics that hold nothing else, `stats` gives them whole (text or a dict)."""
    stats = more.pop("stats", None)
    if records is not None:
        stats = {"numRecords": records}
    if isinstance(stats, dict):
        stats = json.dumps(stats)
    body = {
        "path": path,
        "partitionValues": more.pop("partition", {}),
        "size": size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": more.pop("data_change", True),
        **more,
    }
    return {"add": body if stats is None else {**body, "stats": stats}}


def remove(path: str, *, at: int | None = 1_700_000_100_000, **more: Any) -> Action:
    """A remove action; `at` is its deletionTimestamp in milliseconds."""
    body = {"path": path, "dataChange": more.pop("data_change", True), **more}
    return {"remove": body if at is None else {**body, "deletionTimestamp": at}}


def cdc(file: Action, **more: Any) -> Action:
    """A cdc action for the file of an add action."""
    body = {name: file["add"][name] for name in ("path", "partitionValues", "size")}
    return {"cdc": {**body, "dataChange": False, **more}}


def txn(app_id: str, version: int, updated: int | None = None) -> Action:
    """A txn action."""
    body: dict[str, Any] = {"appId": app_id, "version": version}
    return {"txn": body if updated is None else {**body, "lastUpdated": updated}}


def info(**body: Any) -> Action:
    """A commitInfo action."""
    return {"commitInfo": body}
