"""What is kept of tables: one answer for many who ask, bounded in number and bytes, forgotten table by table."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from lakeview.ui.kept import Memory

FRAME = pl.DataFrame({"n": range(1_000)})


def got(memory: Memory, address: str, argument: int, *, entries: int = 9, seconds: float | None = None) -> list[int]:
    """The arguments for which something had to be made."""
    made: list[int] = []

    def make() -> pl.DataFrame:
        made.append(argument)
        return FRAME.with_columns(argument=argument)

    memory.get("f", address, (argument,), make, entries=entries, seconds=seconds)
    return made


def test_what_is_kept_is_not_made_again() -> None:
    memory = Memory()
    assert got(memory, "a", 1) == [1]
    assert got(memory, "a", 1) == []
    assert got(memory, "b", 1) == [1]


def test_the_longest_unused_is_forgotten_when_there_are_too_many() -> None:
    memory = Memory()
    for argument in (1, 2, 1, 3):
        got(memory, "a", argument, entries=2)
    assert got(memory, "a", 1, entries=2) == []
    assert got(memory, "a", 2, entries=2) == [2]


def test_bytes_are_bounded_and_the_last_value_stays() -> None:
    memory = Memory(most_bytes=int(2.5 * FRAME.with_columns(argument=1).estimated_size()))
    for argument in range(5):
        got(memory, "a", argument)
    assert memory.size <= memory.most_bytes
    assert [got(memory, "a", argument) for argument in (4, 3)] == [[], []]
    tight = Memory(most_bytes=1)
    got(tight, "a", 1)
    assert got(tight, "a", 1) == []


def test_one_table_is_forgotten_and_the_others_are_not() -> None:
    memory = Memory()
    got(memory, "a", 1)
    got(memory, "b", 1)
    memory.forget("a")
    assert got(memory, "b", 1) == []
    assert got(memory, "a", 1) == [1]


def test_what_grows_old_is_made_again() -> None:
    now = [0.0]
    memory = Memory(clock=lambda: now[0])
    got(memory, "a", 1, seconds=60)
    now[0] = 59.0
    assert got(memory, "a", 1, seconds=60) == []
    now[0] = 61.0
    assert got(memory, "a", 1, seconds=60) == [1]


def test_errors_are_not_kept() -> None:
    memory = Memory()
    with pytest.raises(ZeroDivisionError):
        memory.get("f", "a", (1,), lambda: 1 / 0, entries=9)
    assert got(memory, "a", 1) == [1]


def test_those_who_ask_for_the_same_wait_for_one_answer_and_others_do_not_wait() -> None:
    memory = Memory()
    begun, go_on = threading.Event(), threading.Event()
    made = []

    def slow() -> int:
        made.append(1)
        begun.set()
        assert go_on.wait(30)
        return 7

    with ThreadPoolExecutor(8) as pool:
        same = [pool.submit(memory.get, "f", "a", (1,), slow, entries=9) for _ in range(6)]
        assert begun.wait(30)
        assert got(memory, "b", 1) == [1], "another table does not wait"
        go_on.set()
        assert [one.result(30) for one in same] == [7] * 6
    assert made == [1]


def test_what_was_begun_before_a_table_was_forgotten_is_not_handed_out_after() -> None:
    memory = Memory()

    def make() -> str:
        memory.forget("a")
        return "old"

    assert memory.get("f", "a", (1,), make, entries=9) == "old"
    assert memory.get("f", "a", (1,), lambda: "new", entries=9) == "new"
