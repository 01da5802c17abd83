"""Files written again: the same rows in fewer files, ordered on request, whatever happens meanwhile."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, ClassVar, cast

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write import curve
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.optimize import groups_of
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CommitConflictError, CorruptTableError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.open_files import ROWS_PER_FILE
from lakeview.rows.tasks import FileTask
from tests.builders.findings import GRAVE
from tests.builders.opening import open_delta_table

SCHEMA = Schema(
    (
        Field("id", PrimitiveType("long")),
        Field("part", PrimitiveType("integer")),
        Field("x", PrimitiveType("double")),
        Field("s", PrimitiveType("string")),
        Field("flag", PrimitiveType("boolean")),
    )
)
VECTORS = {"delta.enableDeletionVectors": "true"}
EVERYTHING = VECTORS | {
    "delta.enableRowTracking": "true", "delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true",
}  # fmt: skip


def rows(first: int, count: int) -> pl.DataFrame:
    numbers = range(first, first + count)
    return pl.DataFrame(
        {
            "id": numbers,
            "part": [n % 2 for n in numbers],
            "x": [None if n % 11 == 0 else float(n * 7919 % 1000) for n in numbers],
            "s": [f"s{n * 31 % 100:03d}" for n in numbers],
            "flag": [n % 3 == 0 for n in numbers],
        },
        schema=SCHEMA.to_polars(),
    )


def make_table(
    address: Path, properties: dict[str, str] | None = None, partition_by: tuple[str, ...] = ()
) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties, partition_by=partition_by)
    assert isinstance(table, DeltaTable)
    for first in range(0, 60, 10):
        table.append(rows(first, 10))
    return table


def all_rows(table: lv.Table) -> pl.DataFrame:
    return open_delta_table(table).scan().collect().sort("id")


def metrics(table: DeltaTable) -> dict[str, Any]:
    kinds = open_delta_table(table).commit(open_delta_table(table).latest_version).select("kind", "action").iter_rows()
    metrics_found: dict[str, Any] = next(json.loads(a) for k, a in kinds if k == "commitInfo")["operationMetrics"]
    return metrics_found


@pytest.mark.parametrize("partition_by", [(), ("part",)], ids=["whole", "partitioned"])
@pytest.mark.parametrize("properties", [{}, VECTORS, EVERYTHING], ids=["plain", "vectors", "everything"])
@pytest.mark.parametrize("order", [(), ("x", "s")], ids=["packed", "ordered"])
def test_the_rows_stay_in_fewer_files_without_deletion_vectors(
    tmp_path: Path, properties: dict[str, str], partition_by: tuple[str, ...], order: tuple[str, ...]
) -> None:
    table = make_table(tmp_path, properties, partition_by)
    table.delete("id % 9 = 4 AND id < 50")
    before = all_rows(table)
    tracked = "delta.enableRowTracking" in properties
    ids = open_delta_table(table).scan(row_tracking=True).collect().sort("id") if tracked else None
    version = table.optimize(z_order_by=order)
    assert all_rows(table).equals(before)
    snapshot = open_delta_table(table).snapshot()
    assert snapshot.num_files == (2 if partition_by else 1)
    assert snapshot.files["deletion_vector"].null_count() == snapshot.num_files
    assert open_delta_table(table).history(1)["data_change"].to_list() == [False]
    if ids is not None:
        assert open_delta_table(table).scan(row_tracking=True).collect().sort("id").equals(ids)
        assert version is not None
        assert open_delta_table(table).changes(version).collect().is_empty()
    assert int(metrics(table)["numAddedFiles"]) == snapshot.num_files
    assert [f for f in open_delta_table(table).check() if f.severity in GRAVE] == []


def test_files_are_packed_to_about_the_size_asked_for_and_large_ones_left(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    sizes = open_delta_table(table).snapshot().files["size"]
    size = max(sizes)
    groups: list[tuple[int, int]] = []
    table.optimize(target_bytes=size * 2 + 10, progress=lambda done, total: groups.append((done, total)))
    assert open_delta_table(table).snapshot().num_files == 3
    assert [done for done, _ in groups] == sorted(done for done, _ in groups)
    assert groups[-1][0] == groups[-1][1]
    assert table.optimize(target_bytes=1) is None


def test_only_the_partitions_asked_for_are_written_again(tmp_path: Path) -> None:
    table = make_table(tmp_path, {}, ("part",))
    table.optimize("part = 1")
    files = open_delta_table(table).snapshot().files
    counts = files.select(pl.col("partition").struct.field("part")).to_series().value_counts()
    assert dict(counts.iter_rows()) == {0: 6, 1: 1}


def test_small_files_of_many_rows_become_one_that_is_left(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), Schema((Field("v", PrimitiveType("byte")),)))
    assert isinstance(table, DeltaTable)
    for _ in range(2):
        table.append(pl.DataFrame({"v": pl.repeat(1, ROWS_PER_FILE // 2 + 1, dtype=pl.Int8, eager=True)}))
    assert table.optimize() is not None
    assert open_delta_table(table).snapshot().num_files == 1
    assert table.optimize() is None


def test_a_partition_that_cannot_be_written_leaves_no_files_of_the_others(tmp_path: Path) -> None:
    table = make_table(tmp_path, {}, ("part",))
    broken = next(tmp_path.glob("part=1/*.parquet"))
    broken.write_bytes(b"no file of rows")
    files = set(tmp_path.glob("part=*/*"))
    with pytest.raises(CorruptTableError, match=broken.name):
        table.optimize()
    assert set(tmp_path.glob("part=*/*")) == files
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lakeview-write")]


@pytest.mark.parametrize("memory", [1 << 30, 2_000], ids=["in memory", "in parts on disk"])
def test_rows_near_each_other_in_every_column_share_files(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "_MEMORY_BYTES", memory)
    table = lv.create_table(str(tmp_path), SCHEMA)
    assert isinstance(table, DeltaTable)
    every = rows(0, 4_000)
    table.append(every)
    with table.transaction("OPTIMIZE") as txn:
        txn.optimize(z_order_by=["x", "s"], target_bytes=1_500)
    assert all_rows(table).equals(every)
    files = open_delta_table(table).snapshot().num_files
    assert files > 8
    for where in ("x BETWEEN 100 AND 120", "s = 's050'"):
        count = open_delta_table(table).plan(where)["kept"].sum()
        assert count < files / 2, f"{where} reads {count} of {files} files"


def delete(where: str) -> Any:
    return lambda table: table.delete(where)


FOLLOWED: list[tuple[str, list[Any], str]] = [
    ("rows deleted from files that are written again", [delete("id IN (3, 17, 42)")], "id IN (3, 17, 42)"),
    ("rows deleted twice", [delete("id = 3"), delete("id IN (5, 14)")], "id IN (3, 5, 14)"),
    ("most rows of a file and one", [delete("id BETWEEN 11 AND 19"), delete("id = 59")],
     "id BETWEEN 11 AND 19 OR id = 59"),
    ("most rows of all", [delete("id % 10 > 1")], "id % 10 > 1"),
]  # fmt: skip


@pytest.mark.parametrize(("meanwhile", "delete_condition"), [f[1:] for f in FOLLOWED], ids=[f[0] for f in FOLLOWED])
def test_deletes_meanwhile_follow_the_rows_to_their_new_files(
    tmp_path: Path, meanwhile: list[Any], delete_condition: str
) -> None:
    table = make_table(tmp_path, VECTORS)
    table.delete("id % 7 = 1")
    before = all_rows(table)
    mine = open_delta_table(table).transaction("OPTIMIZE")
    mine.optimize()
    for change in meanwhile:
        change(open_delta_table(table))
    mine.commit()
    assert all_rows(table).equals(before.filter(~pl.sql_expr(delete_condition)))
    assert open_delta_table(table).snapshot().num_files == 1
    assert [f for f in open_delta_table(table).check() if f.severity in GRAVE] == []


def test_rows_in_another_order_and_files_that_went_conflict(tmp_path: Path) -> None:
    table = make_table(tmp_path, VECTORS)
    mine = open_delta_table(table).transaction("OPTIMIZE")
    mine.optimize(z_order_by=["x"])
    table.delete("id = 3")
    with pytest.raises(CommitConflictError), mine:
        pass
    mine = open_delta_table(table).transaction("OPTIMIZE")
    mine.optimize()
    table.delete("id < 10")
    with pytest.raises(CommitConflictError, match="both remove the file"), mine:
        pass
    assert all_rows(table)["id"].to_list() == list(range(10, 60))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("an unknown column", {"z_order_by": ["planet"]}, "no column planet"),
    ("a partition column", {"z_order_by": ["part"]}, "is a partition column"),
    ("too many columns", {"z_order_by": ["id"] * 7}, "more than a curve"),
    ("a condition on rows", {"where": "id = 1"}, "no partition column"),
    ("files without a byte", {"target_bytes": 0}, "files have one byte at least"),
    ("files of less", {"target_bytes": -1}, "files have one byte at least"),
]


@pytest.mark.parametrize(("arguments", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused(tmp_path: Path, arguments: dict[str, Any], words: str) -> None:
    table = make_table(tmp_path, {}, ("part",))
    with pytest.raises(InvalidRequestError, match=words):
        table.optimize(**arguments)


def test_to_group_many_files_takes_a_few_looks_at_each() -> None:
    class CountedFile:
        partition = ()
        row: ClassVar = {"vector": None, "stats": None}
        looks = 0

        @property
        def task(self) -> FileTask:
            CountedFile.looks += 1
            return FileTask("/t", "f", Schema(()), size=10)

    files = [cast(LiveFile, CountedFile()) for _ in range(2_000)]
    assert [len(group) for group in groups_of(files, 10_000, ())] == [1_000, 1_000]
    assert CountedFile.looks < 10 * len(files), "else the time grows with the square of the files"
