"""Avro data files: fields by their ids at every level, and by their names where files have no ids."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

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


def _fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "value", "size": size, **more}


def _long(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "long", "logicalType": name, **more}


_MIDNIGHT = datetime(1970, 1, 1, 0, 0, 0, 1, UTC)
TYPES: dict[str, tuple[Any, Any, Any]] = {
    "boolean": ("boolean", True, True),
    "int": ("int", -1, -1),
    "long": ("long", 2**40, 2**40),
    "float": ("float", 0.5, 0.5),
    "double": ("double", -0.5, -0.5),
    "decimal(9,2)": (_fixed(4, logicalType="decimal", precision=9, scale=2), b"\xff\xff\xff\x72", Decimal("-1.42")),
    "date": ({"type": "int", "logicalType": "date"}, -1, date(1969, 12, 31)),
    "time": (_long("time-micros"), 1, time(0, 0, 0, 1)),
    "timestamp": (_long("timestamp-micros", **{"adjust-to-utc": False}), 1, _MIDNIGHT.replace(tzinfo=None)),
    "timestamptz": (_long("timestamp-micros", **{"adjust-to-utc": True}), 1, _MIDNIGHT),
    "timestamp_ns": (_long("timestamp-nanos"), 1_000, _MIDNIGHT.replace(tzinfo=None)),
    "timestamptz_ns": (_long("timestamp-nanos", **{"adjust-to-utc": True}), 1_000, _MIDNIGHT),
    "string": ("string", "ü", "ü"),
    "uuid": (_fixed(16, logicalType="uuid"), bytes(range(16)), bytes(range(16))),
    "fixed[3]": (_fixed(3), b"abc", b"abc"),
    "binary": ("bytes", b"\xff", b"\xff"),
    "geometry": ("bytes", b"\x01", b"\x01"),
}
"""Each type with what Avro stores it as, a value as it is stored, and the value (Appendix A: Avro)."""


@pytest.mark.parametrize(
    ("type_", "stored", "recorded", "value"), [(t, *facts) for t, facts in TYPES.items()], ids=TYPES
)
def test_every_type(tmp_path: Path, type_: str, stored: Any, recorded: Any, value: Any) -> None:
    again = stored.get("name", stored) if isinstance(stored, dict) else stored
    types = [["null", stored], [again, "null"], "null"]
    fields = [{"name": name, "type": t, "field-id": i} for i, (name, t) in enumerate(zip("abc", types, strict=True), 1)]
    columns = [optional(name, i, type_) for i, name in enumerate("abc", 1)]
    assert rows(tmp_path, columns, fields, {"a": recorded, "b": None, "c": None}) == [(value, None, None)]
