"""Plain requirements of the Iceberg specification that no other test of the Iceberg reader shows."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.errors import CorruptTableError
from tests.builders.iceberg import IcebergHistory

ID: dict[str, Any] = {"id": 1, "name": "id", "required": False, "type": "long"}


def column(type_: Any, **more: Any) -> dict[str, Any]:
    return {"id": 3, "name": "c", "required": False, "type": type_, **more}


@pytest.mark.parametrize(
    ("stored", "type_", "value", "expected"),
    [
        ("binary", "geometry(srid:4326)", b"\x01\x02", b"\x01\x02"),
        ("binary", "geography", b"\x01\x02", b"\x01\x02"),
        ("long", "unknown", 7, None),
        ("date", "timestamp", date(1970, 1, 2), datetime(1970, 1, 2)),  # noqa: DTZ001 (has no zone)
    ],
)
def test_types_of_version_3(tmp_path: Path, stored: str, type_: str, value: Any, expected: Any) -> None:
    history = IcebergHistory(tmp_path / "t", [ID, column(stored)], version=3)
    history.append("a", [{"id": 1, "c": value}])
    history.evolve([ID, column(type_)])
    assert lv.open_table(history.address).scan().collect()["c"].to_list() == [expected]


def test_fields_of_structs_in_lists_have_defaults(tmp_path: Path) -> None:
    def listed(*fields: dict[str, Any]) -> dict[str, Any]:
        return column({"type": "list", "element-id": 4, "element-required": False,
                       "element": {"type": "struct", "fields": list(fields)}})  # fmt: skip

    x, y = ({"id": i, "name": name, "required": False, "type": "int"} for i, name in ((5, "x"), (6, "y")))
    history = IcebergHistory(tmp_path / "t", [ID, listed(x)], version=3)
    history.append("a", [{"id": 1, "c": [{"x": 1}, None]}])
    history.evolve([ID, listed(x, {**y, "initial-default": 9})])
    assert lv.open_table(history.address).scan().collect()["c"].to_list() == [[{"x": 1, "y": 9}, None]]


@pytest.mark.parametrize("type_", ["unknown", "variant", "geometry", "geography"])
def test_types_without_defaults_have_none(tmp_path: Path, type_: str) -> None:
    history = IcebergHistory(tmp_path / "t", [ID], version=3)
    history.append("a", [{"id": 1}])
    history.evolve([ID, column(type_, **{"initial-default": "00"})])
    with pytest.raises(CorruptTableError, match="initial default of column c"):
        lv.open_table(history.address).scan().collect()


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("{", "the table's name mapping, which is no JSON"),
        (json.dumps([{"field-id": 1, "names": ["id", "c"]}]), "two columns with the field id 1"),
    ],
    ids=["no JSON", "two columns of one id"],
)
def test_a_name_mapping_that_cannot_be_meant_is_refused(tmp_path: Path, mapping: str, words: str) -> None:
    history = IcebergHistory(tmp_path / "t", [ID, column("long")], properties={"schema.name-mapping.default": mapping})
    history.append("a", [{"id": 1, "c": 2}], ids=False)
    with pytest.raises(CorruptTableError, match=words):
        lv.open_table(history.address).scan().collect()
