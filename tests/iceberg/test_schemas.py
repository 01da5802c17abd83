"""Which schema a snapshot is read with, and schemas with types that nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import UnsupportedTableError
from tests.builders.iceberg import IcebergHistory

FIELDS = [{"id": 1, "name": "id", "required": False, "type": "long"}]
NOTE = {"id": 3, "name": "note", "required": False, "type": "string"}
WISH = {"id": 9, "name": "x", "required": False, "type": "wish(4326)"}
NESTED = {"id": 9, "name": "x", "required": False, "type": {"type": "list", "element-id": 10, "element": "wish(4326)"}}


@pytest.mark.parametrize("field", [WISH, NESTED], ids=["itself", "inside a list"])
def test_a_column_of_a_type_no_one_knows_costs_the_others_nothing(field: dict[str, Any], tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [*FIELDS, field])
    history.append("a", [{"id": 1}, {"id": 2}], leave_out=["x"])
    table = lv.open_table(history.address)
    assert table.snapshot().schema.unreadable == ("x",)
    assert table.statistics().height == 1
    assert table.schemas().height == 1
    rows = table.scan()
    assert rows.filter(pl.col("id") > 1).drop("x").collect()["id"].to_list() == [2]
    assert rows.select("id").collect().height == 2
    for ask in (rows, rows.select("x"), rows.filter(pl.col("x").is_null()).select("id")):
        with pytest.raises(UnsupportedTableError, match=r"in column x values of type wish\(4326\) cannot be read"):
            ask.collect()


def test_an_unknown_type_keeps_its_own_word(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [*FIELDS, WISH])
    assert lv.open_table(history.address).snapshot().schema["x"].type == PrimitiveType("wish(4326)")


def test_a_schema_that_is_not_yet_written_with_is_the_latest_s_alone(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    history.evolve([*FIELDS, NOTE])
    table = lv.open_table(history.address)
    assert table.snapshot().schema.names == ["id", "note"]
    assert table.snapshot(ref="main").schema.names == ["id", "note"]
    assert table.snapshot(1001).schema.names == ["id"]
    assert table.scan().collect().columns == ["id", "note"]
    assert table.scan(1001).collect().columns == ["id"]
