"""Rows of new files are encoded before many of them are in memory."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from threading import Barrier

import polars as pl
import pyarrow as pa
import pytest

from lakeview.rows.open_files import OpenFiles, split_rows


class Recorded:
    """A file that records its row groups."""

    size = 1

    def __init__(self) -> None:
        self.groups: list[int] = []

    @property
    def rows(self) -> int:
        return sum(self.groups)

    def write(self, rows: pa.Table) -> None:
        self.groups.append(rows.num_rows)

    def close(self) -> list[int]:
        return self.groups

    def discard(self) -> None:
        raise AssertionError("no file is dropped")


def test_two_batches_of_a_data_file_are_a_row_group() -> None:
    batches = [pa.record_batch({"id": pa.nulls(65_536)})] * 5
    files: OpenFiles[None, list[int]] = OpenFiles(lambda _: Recorded(), lambda rows: [((), None, rows)])
    assert files.write_all(batches) == [[131_072, 131_072, 65_536]]


def test_rows_of_one_partition_are_not_copied() -> None:
    rows = pa.table({"id": [1, 2, 3]})
    ((values, part),) = split_rows(rows, pl.DataFrame({"^x$": [float("nan")] * 3, "day": [None] * 3}))
    assert (str(values), part["id"].chunk(0).buffers()[1].address) == (
        "{'^x$': nan, 'day': None}",
        rows["id"].chunk(0).buffers()[1].address,
    )


def test_rows_of_two_zeros_are_two_partitions() -> None:
    rows = pa.table({"id": [1, 2]})
    assert [str(values) for values, _ in split_rows(rows, pl.DataFrame({"x": [-0.0, 0.0]}))] == [
        "{'x': -0.0}",
        "{'x': 0.0}",
    ]


class Put(Recorded):
    """A file whose store answers when two are put at once, or not at all."""

    def __init__(self, partition: int, at_once: Barrier, drops: list[int]) -> None:
        super().__init__()
        self.partition = partition
        self.at_once = at_once
        self.drops = drops

    def close(self) -> list[int]:
        self.at_once.wait(timeout=30)
        if self.partition == 1:
            raise OSError("no answer")
        return [self.partition]

    def discard(self) -> None:
        self.drops.append(self.partition)


@pytest.mark.parametrize(("partitions", "results", "drops"), [((0, 2), [[0], [2]], []), ((0, 1), [[0]], [1])])
def test_files_are_put_into_a_remote_store_at_once(
    partitions: tuple[int, ...], results: list[list[int]], drops: list[int]
) -> None:
    at_once, gone = Barrier(len(partitions)), list[int]()
    files: OpenFiles[int, list[int]] = OpenFiles(
        lambda partition: Put(partition, at_once, gone), lambda rows: [(p, p, rows) for p in partitions], remote=True
    )
    fails = pytest.raises(OSError, match="no answer") if drops else nullcontext()
    with fails:
        files.write_all([pa.record_batch({"id": [1]})])
    assert (files.results, gone) == (results, drops)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lakeview-put")]


def test_a_file_that_waits_for_a_put_that_fails_is_dropped() -> None:
    class Large(Put):
        size = 20 << 20  # two are more than are put at once

    drops: list[int] = []
    files: OpenFiles[int, list[int]] = OpenFiles(
        lambda partition: Large(partition, Barrier(1), drops), lambda rows: [(p, p, rows) for p in (1, 2)], remote=True
    )
    with pytest.raises(OSError, match="no answer"):
        files.write_all([pa.record_batch({"id": [1]})])
    assert (files.results, drops) == ([], [1, 2])


def test_few_files_are_put_into_a_remote_store_after_one_that_failed() -> None:
    failed, puts, drops = threading.Event(), list[int](), list[int]()

    class Late(Put):
        def close(self) -> list[int]:
            if self.partition != 1:
                failed.wait(timeout=30)
            puts.append(self.partition)
            return super().close()

        def discard(self) -> None:
            super().discard()
            failed.set()

    partitions = range(1, 40)
    files: OpenFiles[int, list[int]] = OpenFiles(
        lambda partition: Late(partition, Barrier(1), drops),
        lambda rows: [(p, p, rows) for p in partitions],
        remote=True,
    )
    with pytest.raises(OSError, match="no answer"):
        files.write_all([pa.record_batch({"id": [1]})])
    assert len(puts) <= 8
    assert sorted([*(p for (p,) in files.results), *drops]) == list(partitions)
