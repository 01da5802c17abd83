"""What is kept of tables: one answer for many who ask, bounded in number and bytes, forgotten table by table."""

from __future__ import annotations

import ast
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from lakeview import app
from lakeview.app.cache import cache_values, memory
from lakeview.app.session import OpenTable
from lakeview.model.memory import Memory, memoize, size_of

FRAME = pl.DataFrame({"n": range(1_000)})
ARROW = pa.table({"n": pa.array(range(1_000), pa.int64())})


@dataclass(frozen=True, slots=True)
class Description:
    """As views give it: figures and frames."""

    figure: int
    frame: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Sides:
    """Values within a value."""

    left: Description
    right: Description | None = None


def computed_arguments(
    memory: Memory, address: str, argument: int, *, entries: int = 9, seconds: float | None = None
) -> list[int]:
    """The arguments for which something had to be made."""
    calls: list[int] = []

    def make() -> pl.DataFrame:
        calls.append(argument)
        return FRAME.with_columns(argument=argument)

    memory.get("f", address, (argument,), make, entries=entries, seconds=seconds)
    return calls


def test_what_is_kept_is_not_made_again() -> None:
    memory = Memory()
    assert computed_arguments(memory, "a", 1) == [1]
    assert computed_arguments(memory, "a", 1) == []
    assert computed_arguments(memory, "b", 1) == [1]


def test_the_longest_unused_is_forgotten_when_there_are_too_many() -> None:
    memory = Memory()
    for argument in (1, 2, 1, 3):
        computed_arguments(memory, "a", argument, entries=2)
    assert computed_arguments(memory, "a", 1, entries=2) == []
    assert computed_arguments(memory, "a", 2, entries=2) == [2]


def test_bytes_are_bounded_and_the_newest_values_stay() -> None:
    memory = Memory(max_bytes=int(3.5 * size_of(FRAME.with_columns(argument=1))))
    for argument in range(6):
        computed_arguments(memory, "a", argument)
    assert memory.size <= memory.max_bytes
    assert [computed_arguments(memory, "a", argument) for argument in (5, 4, 3)] == [[], [], []]


def test_what_would_drive_out_the_rest_is_not_kept() -> None:
    memory = Memory(max_bytes=int(3.5 * size_of(FRAME.with_columns(argument=1))))
    computed_arguments(memory, "a", 1)
    large = memory.get("large", "a", (), lambda: FRAME.vstack(FRAME).rechunk(), entries=9)
    assert large.height == 2 * FRAME.height
    assert computed_arguments(memory, "a", 1) == []
    assert memory.get("large", "a", (), lambda: FRAME, entries=9) is FRAME


def test_one_table_is_forgotten_and_the_others_are_not() -> None:
    memory = Memory()
    computed_arguments(memory, "a", 1)
    computed_arguments(memory, "b", 1)
    memory.forget("a")
    assert computed_arguments(memory, "b", 1) == []
    assert computed_arguments(memory, "a", 1) == [1]


def test_what_grows_old_is_made_again() -> None:
    now = [0.0]
    memory = Memory(clock=lambda: now[0])
    computed_arguments(memory, "a", 1, seconds=60)
    now[0] = 59.0
    assert computed_arguments(memory, "a", 1, seconds=60) == []
    now[0] = 61.0
    assert computed_arguments(memory, "a", 1, seconds=60) == [1]


def test_errors_are_not_kept() -> None:
    memory = Memory()
    with pytest.raises(ZeroDivisionError):
        memory.get("f", "a", (1,), lambda: 1 / 0, entries=9)
    assert computed_arguments(memory, "a", 1) == [1]


def test_those_who_ask_for_the_same_wait_for_one_answer_and_others_do_not_wait() -> None:
    memory = Memory()
    begun, go_on = threading.Event(), threading.Event()
    calls = []

    def slow() -> int:
        calls.append(1)
        begun.set()
        assert go_on.wait(30)
        return 7

    with ThreadPoolExecutor(8) as pool:
        same = [pool.submit(memory.get, "f", "a", (1,), slow, entries=9) for _ in range(6)]
        assert begun.wait(30)
        assert computed_arguments(memory, "b", 1) == [1], "another table does not wait"
        go_on.set()
        assert [one.result(30) for one in same] == [7] * 6
    assert calls == [1]


def test_what_was_begun_before_a_table_was_forgotten_is_not_handed_out_after() -> None:
    memory = Memory()

    def make() -> str:
        memory.forget("a")
        return "old"

    assert memory.get("f", "a", (1,), make, entries=9) == "old"
    assert memory.get("f", "a", (1,), lambda: "new", entries=9) == "new"


@pytest.mark.parametrize(
    ("value", "thousands"),
    [
        pytest.param(FRAME, 1, id="a frame"),
        pytest.param(FRAME["n"], 1, id="a column"),
        pytest.param((1, FRAME, FRAME), 2, id="frames in a tuple"),
        pytest.param([[FRAME], []], 1, id="a frame in a list in a list"),
        pytest.param({"a": FRAME, "b": (FRAME,)}, 2, id="frames by name"),
        pytest.param(MappingProxyType({"a": FRAME}), 1, id="a mapping that is no dictionary"),
        pytest.param({FRAME.height, "x"}, 0, id="a set of small things"),
        pytest.param(Sides(Description(1, FRAME), Description(2, FRAME)), 2, id="data classes within one"),
        pytest.param(Sides(Description(1, FRAME)), 1, id="one that is not there"),
        pytest.param(Description, 0, id="a data class itself"),
        pytest.param(ARROW, 1, id="an Arrow table"),
        pytest.param(ARROW.slice(10, 1), 1, id="a slice, which holds on to the whole"),
        pytest.param(ARROW.to_batches()[0], 1, id="an Arrow batch"),
        pytest.param(ARROW["n"], 1, id="an Arrow column"),
        pytest.param(ARROW["n"].chunk(0), 1, id="an Arrow array"),
        pytest.param("x" * 8_000, 1, id="a text"),
        pytest.param(["x" * 4_000, b"x" * 4_000], 1, id="texts and bytes"),
        pytest.param(None, 0, id="nothing"),
    ],
)
def test_a_value_is_as_large_as_all_that_is_in_it(value: object, thousands: int) -> None:
    """`thousands` of 64-bit numbers; beside them a little for what holds them."""
    assert 8_000 * thousands < size_of(value) < 8_000 * thousands + 5_000


def test_a_function_remembers_by_its_arguments_until_its_table_is_forgotten() -> None:
    calls: list[tuple[int, str, str | None]] = []

    @cache_values(2)
    def describe(address: str, version: int, column: str | None = None) -> Description:
        calls.append((version, address, column))
        return Description(version, FRAME)

    first = describe("a", 1)
    assert describe("a", 1) is first, "what is kept is handed out as it is"
    describe("a", 1, column="x")
    assert describe("a", 1) is first
    memory().forget("a")
    assert describe("a", 1) is not first
    assert calls == [(1, "a", None), (1, "a", "x"), (1, "a", None)]


def test_a_function_of_an_open_table_remembers_by_what_its_answer_depends_on() -> None:
    @cache_values(2, of=("version",))
    def describe(now: OpenTable, column: str) -> tuple[int, str]:
        return now.version, column

    now = OpenTable("name", "open", 1, None, 1, datetime(2026, 1, 1, tzinfo=UTC))
    first = describe(now, "x")
    assert describe(replace(now, latest=2, name="other"), "x") is first
    assert describe(replace(now, version=2), "x") == (2, "x")
    assert describe(now, "y") == (1, "y")
    memory().forget("open")
    assert describe(now, "x") is not first


def test_what_is_not_about_a_table_is_kept_in_bounds_too() -> None:
    """Streamlit's own caches never forget unless told to: each function with arguments names a number of entries."""
    unbounded = [
        f"{path.name}: {function.name}"
        for path in sorted(Path(app.__file__).parent.glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and function.args.args
        for decorator in map(ast.unparse, function.decorator_list)
        if decorator.startswith(("st.cache_data", "st.cache_resource")) and "max_entries=" not in decorator
    ]
    assert unbounded == []


def test_a_misspelt_argument_is_refused_though_the_answer_without_it_is_in_memory() -> None:
    memory = Memory()

    @memoize(lambda first: (memory, first, ()), entries=9)
    def scale(_address: str, by: int = 1) -> int:
        return 10 * by

    assert (scale("a"), scale("a", 1), scale("a", by=1), scale(_address="a", by=2)) == (10, 10, 10, 20)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {"yb": 2}),
        (("a", 1), {"by": 1}),
        (("a", 1, 1), {}),
    ]
    for arguments, by_name in calls:
        with pytest.raises(TypeError):
            scale(*arguments, **by_name)
