"""Avro data files: fields by their ids at every level, and by their names where files have no ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro

import lakeview as lv
from tests.builders.iceberg import IcebergHistory

MAPPING = "schema.name-mapping.default"


def optional(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"id": field_id, "name": name, "required": False, "type": type_}


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def rows(
    root: Path, columns: list[dict[str, Any]], stored: list[dict[str, Any]], row: dict[str, Any], mapping: Any = None
) -> list[Any]:
    """The rows of a table of one Avro file."""
    properties = {} if mapping is None else {MAPPING: json.dumps(mapping)}
    history = IcebergHistory(root / "t", columns, properties=properties)
    path = history.root / "data" / "a"
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(record("row", *stored)), [row])
    entry = {
        "content": 0, "file_path": f"{history.location}/data/a", "file_format": "AVRO", "partition": {},
        "record_count": 1, "file_size_in_bytes": path.stat().st_size,
    }  # fmt: skip
    history._commit("append", [entry], 0, {})
    return lv.open_table(history.address).scan().collect().rows()


def test_structs_in_maps_have_their_fields_by_id(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [optional("now", 4, "long")]}
    column = {"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": inner, "value-required": False}
    value = record("value", {"name": "before", "type": ["null", "int"], "field-id": 4})
    stored = {"type": "map", "values": ["null", value], "key-id": 2, "value-id": 3}
    row = {"m": {"a": {"before": 7}, "b": None}}
    rows_read = rows(tmp_path, [optional("m", 1, column)], [{"name": "m", "type": stored, "field-id": 1}], row)
    assert rows_read == [({"a": {"now": 7}, "b": None},)]


def test_structs_in_lists_have_their_fields_by_name_where_files_have_no_ids(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [optional("now", 3, "long")]}
    column = {"type": "list", "element-id": 2, "element": inner, "element-required": False}
    value = record("value", {"name": "before", "type": ["null", "int"]})
    fields = [{"field-id": 2, "names": ["element"], "fields": [{"field-id": 3, "names": ["before"]}]}]
    mapping = [{"field-id": 1, "names": ["l"], "fields": fields}]
    stored = [{"name": "l", "type": {"type": "array", "items": value}}]
    assert rows(tmp_path, [optional("l", 1, column)], stored, {"l": [{"before": 7}]}, mapping) == [([{"now": 7}],)]


def test_a_name_that_looks_like_an_id_is_a_name(tmp_path: Path) -> None:
    columns = [optional("f2", 1, "long"), optional("f1", 2, "string")]
    mapping = [{"field-id": 1, "names": ["f2"]}, {"field-id": 2, "names": ["f1"]}]
    stored = [{"name": "f1", "type": "string"}, {"name": "f2", "type": "long"}]
    assert rows(tmp_path, columns, stored, {"f1": "x", "f2": 5}, mapping) == [(5, "x")]
