"""Files with columns of a type that they were widened from, written again before typeWidening is dropped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.log.actions import AddFile
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.feature_files import files_of
from tests.delta.test_feature_drops import days_later
from tests.delta.test_feature_files import ALL_ELSE, COLUMNS, MAPPED, check_others, drop_while, rows_of, turn_off
from tests.differential.iceberg_oracles import sail_answers
from tests.golden.rows import differences

WIDENING = {"delta.enableTypeWidening": "true"}
TYPES: dict[str, tuple[pa.DataType, list[Any], str, str]] = {
    "byte": (pa.int8(), [1, None], "c", "integer"),
    "float": (pa.float32(), [0.1, None], "c", "double"),
    "short to double": (pa.int16(), [7, None], "c", "double"),
    "date": (pa.date32(), [date(2026, 1, 1), None], "c", "timestamp_ntz"),
    "decimal": (pa.decimal128(4, 1), [Decimal("9.5"), None], "c", "decimal(12,3)"),
    "integer to decimal": (pa.int32(), [2**31 - 1, None], "c", "decimal(12,2)"),
    "struct": (pa.struct({"x": pa.int16(), "y": pa.string()}), [{"x": 1, "y": "y"}, None], "c.x", "integer"),
    "array": (pa.list_(pa.int32()), [[1, None], None], "c.element", "long"),
    "key": (pa.map_(pa.int16(), pa.int8()), [[(1, 2)], None], "c.key", "long"),
    "value": (pa.map_(pa.int16(), pa.int8()), [[(1, 2)], None], "c.value", "short"),
}
"""Types of a column `c` with two values, and what is widened, to which type."""


def widened(address: Path, case: str, **arguments: Any) -> DeltaTable:
    """A table with one file from before `c` was widened, and one from after."""
    type_, values, column, wider = TYPES[case]
    table = lv.create_table(str(address), {"id": "long", "c": type_}, **{"properties": WIDENING, **arguments})
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "c": pa.array(values, type_)}))
    table.widen_column(column, wider)
    table.append(table.scan().collect().with_columns(id=pl.col("id") + 2))
    return table


@pytest.mark.parametrize("case", TYPES)
def test_a_file_of_an_older_type_is_known_by_its_footer(tmp_path: Path, case: str) -> None:
    table = widened(tmp_path / "t", case)
    (file,) = files_of("typeWidening", table.transaction())
    assert [file.task.path] == table.snapshot(1).files["path"].to_list()


@pytest.mark.parametrize(
    ("case", "mapped"), [("float", {}), ("struct", {}), ("array", {"delta.columnMapping.mode": "id"})]
)
def test_files_of_an_older_type_are_written_again(tmp_path: Path, case: str, mapped: dict[str, str]) -> None:
    table = widened(tmp_path / "t", case, properties=WIDENING | mapped)
    rows = table.scan().collect().sort("id")
    young = set(table.files()["path"]) - set(table.snapshot(1).files["path"])
    turn_off(table, "typeWidening")
    assert table.history(3)["operation"].to_list() == ["REORG", "REORG", "UNSET TBLPROPERTIES"]
    assert table.scan().collect().sort("id").equals(rows)
    assert "typeChanges" not in (table.state().metadata.schema_string or "")
    paths = table.files()["path"]
    assert len(paths) == 2
    assert young < set(paths), "a file of the wider type stays"
    one, other = ([field.type for field in pq.read_schema(str(tmp_path / "t" / path))] for path in paths)
    assert one == other
    assert "violated" not in table.audit()["verdict"].to_list()
    turn_off(table, "typeWidening")
    assert table.history(1)["operation"].to_list() == ["REORG"], "nothing was left to do"
    assert table.drop_feature("typeWidening", truncate_history=True, clock=days_later(1.1)) == table.latest_version
    assert "typeWidening" not in (table.state().protocol.writer_features or ())
    check_others(table)


def test_partition_values_of_an_older_type_are_written_again(tmp_path: Path) -> None:
    table = widened(tmp_path / "t", "date", partition_by=["c"])
    rows = table.scan().collect().sort("id")
    turn_off(table, "typeWidening")
    values = [dict(parts) for parts in table.state().adds(["partition_values"])["partition_values"]]
    assert sorted(str(parts["c"]) for parts in values) == ["2026-01-01 00:00:00.000000"] * 2 + ["None"] * 2
    assert table.scan().collect().sort("id").equals(rows)
    table.drop_feature("typeWidening", truncate_history=True, clock=days_later(1.1))
    check_others(table)


def test_rows_that_come_while_files_are_written_again_do_not_stop_it(tmp_path: Path) -> None:
    table = widened(tmp_path / "t", "byte", properties=WIDENING | ALL_ELSE)
    more = table.scan().collect().with_columns(id=pl.col("id") + 10)
    operations = drop_while(table, "typeWidening", 1, lambda other: other.append(more))
    assert operations == ["UNSET TBLPROPERTIES", "WRITE", "REORG", "REORG"]
    assert sorted(table.scan().collect()["id"]) == [1, 2, 3, 4, 11, 12, 13, 14]


def test_a_file_of_an_older_type_that_comes_late_is_written_again(tmp_path: Path) -> None:
    table = widened(tmp_path / "t", "byte")
    (old,) = table.snapshot(1).files["path"]
    (tmp_path / "t" / "late.parquet").write_bytes((tmp_path / "t" / old).read_bytes())

    def add_late(other: DeltaTable) -> None:
        size = (tmp_path / "t" / "late.parquet").stat().st_size
        with other.transaction("WRITE") as txn:
            txn.add([AddFile("late.parquet", size, {}, 0, data_change=True)])

    operations = drop_while(table, "typeWidening", 2, add_late)
    assert operations == ["UNSET TBLPROPERTIES", "REORG", "WRITE", "REORG", "REORG"]
    assert {pq.read_schema(str(tmp_path / "t" / path)).field("c").type for path in table.files()["path"]} == {
        pa.int32()
    }


@pytest.mark.parametrize("kind", [pa.large_list, pa.list_view], ids=["large", "view"])
def test_lists_of_any_kind_have_elements_of_an_older_type(
    tmp_path: Path, kind: Callable[[pa.DataType], pa.DataType]
) -> None:
    table = lv.create_table(str(tmp_path), {"c": pa.list_(pa.int32())}, properties=WIDENING)
    pq.write_table(pa.table({"c": pa.array([[1], None], kind(pa.int32()))}), tmp_path / "f.parquet")
    with table.transaction("WRITE") as txn:
        txn.add([AddFile("f.parquet", (tmp_path / "f.parquet").stat().st_size, {}, 0, data_change=True)])
    table.widen_column("c.element", "long")
    assert [file.task.path for file in files_of("typeWidening", table.transaction())] == ["f.parquet"]


@pytest.mark.slow
def test_sail_reads_what_is_left(tmp_path: Path) -> None:
    mapped = lv.create_table(str(tmp_path / "mapped"), COLUMNS, properties=MAPPED)
    mapped.append(rows_of(*range(20)))
    mapped.rename_column("a", "b")
    tables = {"columnMapping": mapped, "typeWidening": widened(tmp_path / "widened", "byte")}
    for feature, table in tables.items():
        turn_off(table, feature)
        table.drop_feature(feature, truncate_history=True, clock=days_later(1.1))
    requests: list[tuple[str, str, dict[str, str]]] = [("delta", table.address, {}) for table in tables.values()]
    for table, answer in zip(tables.values(), sail_answers(requests, tmp_path / "rows"), strict=True):
        assert isinstance(answer, pa.Table), answer
        assert differences(answer, table.scan().collect()) == []
