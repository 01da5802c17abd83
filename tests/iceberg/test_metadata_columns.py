"""Where a row lies, whether it is deleted, and what identifies it: columns on request."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from tests.builders.iceberg import IcebergHistory

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
]


def rows(*numbers: int, month: int = 1) -> list[dict[str, Any]]:
    return [{"id": i, "day": date(2024, month, 1 + i % 28)} for i in numbers]


@pytest.fixture
def history(tmp_path: Path) -> IcebergHistory:
    return IcebergHistory(tmp_path / "t", FIELDS, [(2, "month", "day_month")], version=3)


def read(history: IcebergHistory, *names: str) -> pl.DataFrame:
    table: Any = lv.open_table(history.address)
    rows_read: pl.DataFrame = table.scan(metadata_columns=names).collect().sort("id")
    return rows_read


def test_every_row_says_its_file_and_its_place_there(history: IcebergHistory) -> None:
    first = history.append("a", rows(1, 2, 3))
    second = history.append("b", rows(4))
    history.delete_vectors("v", {first: [0]})
    rows_read = read(history, "_file", "_pos")
    assert rows_read.select("id", "_file", "_pos").rows() == [(2, first, 1), (3, first, 2), (4, second, 0)]


def test_deleted_rows_are_given_marked_where_that_is_asked_for(history: IcebergHistory) -> None:
    first = history.append("a", rows(1, 2, 3))
    history.append("b", rows(4))
    history.delete_vectors("v", {first: [0]})
    history.delete_equal("e", [history.fields["id"]], [{"id": 3}], partition={"day_month": 648})
    assert read(history, "_deleted").select("id", "_deleted").rows() == [(1, True), (2, False), (3, True), (4, False)]
    table: Any = lv.open_table(history.address)
    scanned = table.scan(metadata_columns=["_deleted"])
    assert scanned.filter("_deleted").select("id").collect().sort("id")["id"].to_list() == [1, 3]
    assert scanned.select(pl.len()).collect().item() == 4
    assert table.scan().collect().height == 2


def test_partitions_are_a_union_over_the_specs(history: IcebergHistory) -> None:
    history.append("a", rows(1))
    history.partition_by((1, "bucket[4]", "id_bucket"))
    history.append("b", rows(2, month=2))
    rows_read = read(history, "_spec_id", "_partition")
    assert rows_read.schema["_partition"] == pl.Struct({"day_month": pl.Int32(), "id_bucket": pl.Int32()})
    assert rows_read["_spec_id"].to_list() == [0, 1]
    assert rows_read["_partition"].to_list()[0] == {"day_month": 648, "id_bucket": None}
    assert rows_read["_partition"].to_list()[1]["day_month"] is None


def test_they_come_in_the_order_asked_and_mix_with_row_lineage(history: IcebergHistory) -> None:
    history.append("a", rows(1, 2))
    rows_read = read(history, "_row_id", "_pos", "_last_updated_sequence_number", "_file")
    assert rows_read.columns == ["id", "day", "_row_id", "_pos", "_last_updated_sequence_number", "_file"]
    assert rows_read.select("_row_id", "_pos", "_last_updated_sequence_number").rows() == [(0, 0, 1), (1, 1, 1)]


def test_filters_on_them_and_on_columns_meet(history: IcebergHistory) -> None:
    first = history.append("a", rows(1, 2, 3))
    history.append("b", rows(4, month=2))
    table: Any = lv.open_table(history.address)
    scanned = table.scan(metadata_columns=["_file", "_pos"])
    assert scanned.filter(pl.col("_file") == first, pl.col("id") > 1).collect()["_pos"].to_list() == [1, 2]
    assert scanned.filter(pl.col("_pos") == 0).select("id").collect().sort("id")["id"].to_list() == [1, 4]


REFUSED = {
    "one that is none": ("_hidden", "no metadata column _hidden", "choose from _file"),
    "row lineage of a table that keeps none": ("_row_id", "does not track its rows", "read without _row_id"),
    "the partition of a table without one": ("_partition", "not partitioned", "read without it"),
    "one the table has itself": ("_pos", "a column _pos of its own", "read without"),
}


@pytest.mark.parametrize(("name", "message", "fix"), REFUSED.values(), ids=REFUSED)
def test_what_a_table_cannot_give_is_refused(name: str, message: str, fix: str, tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [*FIELDS, {"id": 3, "name": "_pos", "required": False, "type": "long"}])
    table: Any = lv.open_table(history.address)
    with pytest.raises(InvalidRequestError, match=message) as error:
        table.scan(metadata_columns=[name])
    assert fix in str(error.value.fix)
