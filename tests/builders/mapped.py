"""Tables with column mapping: fields with ids and physical names, in the log and in data files."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from tests.builders.actions import Action, metadata, protocol

Json = dict[str, Any]


def physical(number: int) -> str:
    """The physical name of the column with this id."""
    return f"col-{number}"


def field(name: str, type_: Any, number: int, **more: Any) -> Json:
    """A field of a schemaString, by its logical name."""
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical(number)}
    return {"name": name, "type": type_, "nullable": True, "metadata": ids | more}


def struct(*fields: Json) -> Json:
    """A struct type."""
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> Json:
    """An array type."""
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> Json:
    """A map type."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def stored_field(type_: pa.DataType, number: int, name: str | None = None) -> pa.Field:
    """A field of a data file: its id, and its physical name or another."""
    return pa.field(physical(number) if name is None else name, type_, metadata={"PARQUET:field_id": str(number)})


def mapped(mode: str, *fields: Json, partition_by: tuple[str, ...] = ()) -> tuple[Action, Action]:
    """protocol and metaData of a table whose columns are mapped."""
    properties: dict[str, str | None] = {"delta.columnMapping.mode": mode}
    schema = json.dumps(struct(*fields))
    return protocol(2, 5), metadata(schema=schema, properties=properties, partition_by=partition_by)
