"""Data files to rows: which rows of a file are given, whatever its row groups."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest

from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage

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
    ids_read = ids(FileTask(task.root, task.path, IDS, deleted=Positions(deleted)), batch_rows)
    assert ids_read == [n for n in range(ROWS) if n not in deleted]


def test_only_selected_rows_are_given_and_of_them_those_not_deleted(task: FileTask) -> None:
    both = FileTask(task.root, task.path, IDS, deleted=Positions((3, 4, 300)), selected=Positions((3, 5, 300, 777)))
    assert ids(both) == [5, 777]


@pytest.mark.parametrize("wrong_by", [-1, 0, 1, 10**9])
def test_a_small_file_is_read_whole_whatever_size_the_log_records(task: FileTask, wrong_by: int) -> None:
    size = (Path(task.root) / task.path).stat().st_size + wrong_by
    assert ids(FileTask(task.root, task.path, IDS, {}, size)) == list(range(ROWS))


def test_rows_are_counted_without_their_columns_too(task: FileTask) -> None:
    nothing = FileTask(task.root, task.path, IDS, deleted=Positions((1, 2))).select([])
    assert sum(batch.num_rows for batch in read_task(nothing, batch_rows=300)) == ROWS - 2


def test_a_task_travels_with_its_positions(task: FileTask) -> None:
    there = pickle.loads(pickle.dumps(FileTask(task.root, task.path, IDS, deleted=Positions((0,)), match="id")))
    assert (there.deleted, there.match) == (Positions((0,)), "id")
    assert there.select(["id"]).deleted == Positions((0,))
