"""Tables that this writer changes in every way it has, as other engines read them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema
from tests.builders.findings import GRAVE
from tests.differential.iceberg_oracles import sail_answers
from tests.differential.oracles import ORACLES

SCHEMA = Schema(
    (
        Field("part", PrimitiveType("integer")),  # first: DuckDB 1.5.5 reads null from one behind other mapped columns
        Field("id", PrimitiveType("long")),
        Field("name", PrimitiveType("string")),
        Field("day", PrimitiveType("date")),
    )
)
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TABLES: dict[str, dict[str, str]] = {
    "plain": {},
    "with deletion vectors": VECTORS,
    "mapped": MAPPED,
    "with all that is written": VECTORS
    | MAPPED
    | {
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpoint.writeStatsAsStruct": "true",
    },
}


def rows(first: int, count: int) -> pl.DataFrame:
    numbers = range(first, first + count)
    return pl.DataFrame(
        {"id": numbers, "part": [n % 3 for n in numbers], "name": [f"n{n}" for n in numbers],
         "day": [date(2026, 1, 1 + n % 28) for n in numbers]},
        SCHEMA.to_polars(),
    )  # fmt: skip


def story(address: Path, properties: dict[str, str]) -> DeltaTable:
    """A table with a story of every operation, a checkpoint in its midst."""
    table = lv.create_table(str(address), SCHEMA, partition_by=["part"], properties=properties)
    table.append(rows(0, 60))
    table.append(rows(60, 60))
    table.delete("id % 10 = 3")
    table.update({"name": "'even ' || name"}, "id % 20 = 4")
    table.merge(rows(100, 40), ["id"]).when_matched_update().when_not_matched_insert().execute()
    table.overwrite_partitions(rows(300, 4).filter(pl.col("part") == 0))
    table.checkpoint()
    table.add_constraint("small", "id < 1000000")
    table.delete("id = 7")
    table.optimize("part = 1")
    table.optimize("part = 2", z_order_by=["name"])
    table.delete("id = 8")
    return table


def sorted_rows(rows_read: pa.Table) -> list[tuple[object, ...]]:
    return sorted(pl.DataFrame(rows_read).select(SCHEMA.names).rows())


@pytest.mark.parametrize("properties", TABLES.values(), ids=list(TABLES))
def test_every_reader_finds_the_rows_that_ours_does(tmp_path: Path, properties: dict[str, str]) -> None:
    table = story(tmp_path, properties)
    expected = sorted(lv.open_table(table.address).scan().collect().rows())
    assert len(expected) > 60
    for name, read in ORACLES.items():
        assert sorted_rows(read(table.address, table.latest_version)) == expected, name
    assert [f for f in table.check() if f.severity in GRAVE] == []
    verdicts = table.audit()["verdict"].to_list()
    assert "violated" not in verdicts
    assert "proven" in verdicts


@pytest.mark.slow
def test_sail_reads_them_too(tmp_path: Path) -> None:
    tables = [story(tmp_path / str(number), properties) for number, properties in enumerate(TABLES.values())]
    answers = sail_answers([("delta", table.address, {}) for table in tables], tmp_path / "rows")
    for name, table, answer in zip(TABLES, tables, answers, strict=True):
        assert isinstance(answer, pa.Table), f"{name}: {answer}"
        assert sorted_rows(answer) == sorted(table.scan().collect().rows()), name
