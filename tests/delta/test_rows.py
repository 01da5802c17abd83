"""Data files to rows: which rows of a file are given, whatever its row groups."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest

from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import Fallback, FileTask
from lakeview.rows.together import Portion, read_together
from lakeview.storage import Storage, open_storage

ROWS = 1_000
IDS = Schema((Field("id", PrimitiveType("long")),))


@dataclass(frozen=True)
class Positions:
    """Positions as they are."""

    rows: tuple[int, ...]

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:
        return pyroaring.BitMap64(self.rows)


@pytest.fixture
def task(tmp_path: Path) -> FileTask:
    """A file of a thousand rows in row groups of 150: `id` is the position of its row."""
    table = pa.table({"id": list(range(ROWS)), "other": ["x"] * ROWS})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=150)
    return FileTask(str(tmp_path), "f.parquet", IDS)


def ids(task: FileTask, batch_rows: int = 64) -> list[int]:
    return [n for batch in read_task(task, batch_rows=batch_rows) for n in batch.column(0).to_pylist()]


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 150, 5_000])
@pytest.mark.parametrize(
    "deleted",
    [
        pytest.param((), id="none"),
        pytest.param((0, 149, 150, 151, 999), id="at the ends of row groups"),
        pytest.param(tuple(range(100, 400)), id="whole batches"),
        pytest.param(tuple(range(ROWS)), id="all"),
    ],
)
def test_deleted_rows_are_left_out(task: FileTask, deleted: tuple[int, ...], batch_rows: int) -> None:
    ids_read = ids(FileTask(task.root, task.path, IDS, deleted_rows=Positions(deleted)), batch_rows)
    assert ids_read == [n for n in range(ROWS) if n not in deleted]


def test_only_selected_rows_are_given_and_of_them_those_not_deleted(task: FileTask) -> None:
    both = FileTask(
        task.root, task.path, IDS, deleted_rows=Positions((3, 4, 300)), selected_rows=Positions((3, 5, 300, 777))
    )
    assert ids(both) == [5, 777]


@pytest.mark.parametrize("wrong_by", [-1, 0, 1, 10**9])
def test_a_small_file_is_read_whole_whatever_size_the_log_records(task: FileTask, wrong_by: int) -> None:
    size = (Path(task.root) / task.path).stat().st_size + wrong_by
    assert ids(FileTask(task.root, task.path, IDS, {}, size)) == list(range(ROWS))


def test_rows_are_counted_without_their_columns_too(task: FileTask) -> None:
    nothing = FileTask(task.root, task.path, IDS, deleted_rows=Positions((1, 2))).select([])
    assert sum(batch.num_rows for batch in read_task(nothing, batch_rows=300)) == ROWS - 2


def test_a_task_travels_with_its_positions(task: FileTask) -> None:
    there = pickle.loads(pickle.dumps(FileTask(task.root, task.path, IDS, deleted_rows=Positions((0,)), match="id")))
    assert (there.deleted_rows, there.match) == (Positions((0,)), "id")
    assert there.select(["id"]).deleted_rows == Positions((0,))


MANY = Schema((*IDS, Field("x", PrimitiveType("double"))))
GONE = (None, Positions((0, 1, 2, 3, 4)), Positions((0, 2)))
TRACKED = Schema((*IDS, Field("new", PrimitiveType("long"))))


def small_files(folder: Path, *columns: Mapping[str, Any]) -> list[FileTask]:
    """A file for each, of the rows 0 to 4 and other columns."""
    for number, others in enumerate(columns):
        pq.write_table(pa.table({"id": pa.array(range(5), pa.int64()), **others}), folder / f"{number}.parquet")
    return [FileTask(str(folder), f"{number}.parquet", MANY) for number in range(len(columns))]


def files_of(portion: Portion) -> list[int]:
    """The number of the task of each row."""
    return [n for n, part in portion.by_file(np.arange(portion.rows.num_rows)) for _ in range(part.start, part.stop)]


def test_of_some_rows_of_a_portion_those_of_each_file_are_known(tmp_path: Path) -> None:
    tasks = [
        replace(task, deleted_rows=gone) for task, gone in zip(small_files(tmp_path, {}, {}, {}), GONE, strict=True)
    ]
    (portion,) = read_together(tasks, open_storage(str(tmp_path)))
    assert portion.rows["id"].to_pylist() == [0, 1, 2, 3, 4, 1, 3, 4]
    assert list(portion.by_file(np.array([2, 2, 4, 7]))) == [(0, slice(0, 3)), (2, slice(3, 4))]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([{}, {}, {}, {}], id="alike"),
        pytest.param(
            [{}, {"deleted_rows": Positions((0, 4))}, {"deleted_rows": Positions((0, 1, 2, 3, 4))}, {}], id="deleted"
        ),
        pytest.param([{"constants": {"x": value}} for value in (0.0, -0.0, 1.0, None)], id="recorded"),
        pytest.param(
            [{"schema": TRACKED, "fallbacks": {"new": Fallback(n, plus_position=True)}} for n in range(4)],
            id="fallbacks",
        ),
    ],
)
@pytest.mark.parametrize("stored", [{}, {"x": [0.5] * 5}, {"x": pa.array([1] * 5, pa.int32())}])
@pytest.mark.parametrize("batch_rows", [1, 7, 65_536])
def test_files_that_are_read_together_give_the_rows_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: list[dict[str, Any]], stored: Any, batch_rows: int
) -> None:
    monkeypatch.setattr("lakeview.rows.together.BATCH_ROWS", batch_rows)
    tasks = [replace(t, **c) for t, c in zip(small_files(tmp_path, {}, stored, stored, {}), changes, strict=True)]
    alone = [(n, str(row)) for n, task in enumerate(tasks) for b in read_task(task) for row in b.to_pylist()]
    portions = list(read_together(tasks, open_storage(str(tmp_path))))
    together = [
        (number, str(row)) for p in portions for number, row in zip(files_of(p), p.rows.to_pylist(), strict=True)
    ]
    assert together == alone
    positions = [(n, row["id"]) for n, task in enumerate(tasks) for b in read_task(task) for row in b.to_pylist()]
    assert [pair for p in portions for pair in zip(files_of(p), p.positions.tolist(), strict=True)] == positions
    assert all(p.rows.num_rows <= max(batch_rows, 5) for p in portions)


@pytest.mark.parametrize(
    ("stored", "error"),
    [({"x": ["a"] * 5}, UnsupportedTableError), ({"x": [[1]] * 5}, UnsupportedTableError), (None, CorruptTableError)],
    ids=["texts", "lists", "no Parquet"],
)
def test_an_error_names_the_file_among_those_that_are_read_together(tmp_path: Path, stored: Any, error: Any) -> None:
    tasks = small_files(tmp_path, {"x": [0.5] * 5}, {"x": [0.5] * 5}, stored or {}, {})
    if stored is None:
        (tmp_path / tasks[2].path).write_bytes(b"PAR1")
    with pytest.raises(error, match=r"data file 2\.parquet"):
        list(read_together(tasks, open_storage(str(tmp_path))))


def test_a_value_that_does_not_fit_is_named_with_its_file(tmp_path: Path) -> None:
    bad = pa.array([2**40] * 5, pa.int64())
    tasks = small_files(tmp_path, *({"x": pa.array([1] * 5, pa.int64())} if n != 3 else {"x": bad} for n in range(5)))
    narrow = Schema((*IDS, Field("x", PrimitiveType("integer"))))
    with pytest.raises(UnsupportedTableError, match=r"data file 3\.parquet"):
        list(read_together([replace(t, schema=narrow) for t in tasks], open_storage(str(tmp_path))))


@pytest.mark.parametrize("nested", [False, True])
def test_files_that_differ_in_field_ids_alone_are_not_alike(tmp_path: Path, nested: bool) -> None:
    fields = tuple(Field(name, PrimitiveType("long"), id=number) for number, name in enumerate("ab", start=1))
    schema = Schema((Field("s", StructType(fields), id=3),)) if nested else Schema(fields)
    tasks = []
    for numbers in ([1, 2], [2, 1]):  # a foreign writer gave the columns each other's names
        stored = [
            pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
            for name, number in zip("ab", numbers, strict=True)
        ]
        columns = [pa.array([number], pa.int64()) for number in numbers]
        if nested:
            columns = [pa.StructArray.from_arrays(columns, fields=stored)]
            stored = [pa.field("s", columns[0].type, metadata={"PARQUET:field_id": "3"})]
        pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(stored)), tmp_path / f"{numbers[0]}")
        tasks.append(FileTask(str(tmp_path), f"{numbers[0]}", schema, match="id"))
    (portion,) = read_together(tasks, open_storage(str(tmp_path)))
    row = {"a": 1, "b": 2}
    assert portion.rows.to_pylist() == [{"s": row} if nested else row] * 2


def test_files_of_long_rows_are_read_in_small_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.rows.together._BYTES", 100)  # 5 rows of 16 bytes are 80
    tasks = small_files(tmp_path, *[{"x": [0.5] * 5}] * 3)
    portions = list(read_together(tasks, open_storage(str(tmp_path))))
    assert [files_of(p) for p in portions] == [[n] * 5 for n in range(3)]
    assert [p.positions.tolist() for p in portions] == [list(range(5))] * 3


def test_files_with_dictionaries_are_portions_of_their_own(tmp_path: Path) -> None:
    texts = pa.array(["long" * 1_000] * 5).dictionary_encode()  # in the file once, in the table five times
    for number in range(2):
        pq.write_table(pa.table({"x": texts}), tmp_path / str(number))
    schema = Schema((Field("x", PrimitiveType("string")),))
    tasks = [FileTask(str(tmp_path), name, schema) for name in "01"]
    portions = list(read_together(tasks, open_storage(str(tmp_path))))
    assert [files_of(p) for p in portions] == [[0] * 5, [1] * 5]
    assert all(p.rows.column("x").to_pylist() == texts.to_pylist() for p in portions)
