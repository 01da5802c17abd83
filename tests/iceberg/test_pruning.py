"""Filters: what they spare, and that they never spare a row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.iceberg.table import IcebergTable
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "n", "required": False, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
    {"id": 3, "name": "d", "required": False, "type": "date"},
    {"id": 4, "name": "t", "required": False, "type": "timestamp"},
]
DAY = datetime(1969, 11, 20)  # noqa: DTZ001  # a column without a zone
WORDS = ["", "ice", "iceberg", "🧊🧊🧊🧊", "zebra", "Zoë"]
ROWS = [
    {"n": 7 * i - 30, "s": WORDS[i % 6], "d": (DAY + timedelta(days=9 * i)).date(), "t": DAY + timedelta(hours=31 * i)}
    for i in range(12)
] + [dict.fromkeys("nsdt")]  # fmt: skip

SPECS: dict[str, list[tuple[int, str, str]]] = {
    "unpartitioned": [],
    "identity": [(1, "identity", "n")],
    "identity of a text": [(2, "identity", "s")],
    "bucket": [(1, "bucket[5]", "b")],
    "buckets of two columns": [(2, "bucket[3]", "b"), (3, "bucket[4]", "c")],
    "truncated number": [(1, "truncate[10]", "p")],
    "truncated text": [(2, "truncate[3]", "p")],
    "month of a date": [(3, "month", "m")],
    "year of a time": [(4, "year", "y")],
    "day of a time": [(4, "day", "y")],
    "hour and bucket": [(4, "hour", "h"), (1, "bucket[4]", "b")],
    "void": [(1, "void", "v"), (3, "year", "y")],
    "unknown": [(1, "zorder[3]", "z")],
}


def make_table(place: Path, spec: list[tuple[int, str, str]]) -> IcebergTable:
    history = IcebergHistory(place, FIELDS, [p for p in spec if not p[1].startswith("zorder")])
    for number, row in enumerate(ROWS):
        history.append(f"f{number}", [row])
    return open_iceberg_table(history.address)


@pytest.fixture(scope="module")
def table_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], IcebergTable]:
    """The table of a spec, to be read only: each is made once."""
    return cache(lambda spec: make_table(tmp_path_factory.mktemp("t") / "t", SPECS[spec]))


@pytest.fixture(params=SPECS, ids=list(SPECS))
def table(request: pytest.FixtureRequest, table_of: Callable[[str], IcebergTable]) -> IcebergTable:
    return table_of(request.param)


NUMBERS = st.integers(-40, 60)
DATES = st.dates(date(1969, 11, 1), date(1970, 4, 1))
TIMES = st.datetimes(datetime(1969, 11, 1), datetime(1970, 1, 1))  # noqa: DTZ001
TEXTS = st.sampled_from([*WORDS, "ic", "icec", "a", "🧊"])
OPERATORS = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> pl.Expr:
    kind = draw(st.integers(0, 7 if depth else 5))
    name, values = draw(st.sampled_from([("n", NUMBERS), ("s", TEXTS), ("d", DATES), ("t", TIMES)]))
    column = pl.col(name)
    if kind <= 2:
        condition: pl.Expr = getattr(column, draw(OPERATORS))(pl.lit(draw(values)))
        return condition
    if kind == 3:
        return column.is_in(draw(st.lists(values, min_size=1, max_size=3)))
    if kind == 4:
        return column.is_null() if draw(st.booleans()) else column.is_not_null()
    if kind == 5:
        return pl.col("s").str.starts_with(draw(TEXTS))
    left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    both = left & right if kind == 6 else left | right
    return ~both if draw(st.booleans()) else both


@pytest.mark.slow
@given(where=conditions())
@settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_no_filter_loses_a_row(table: IcebergTable, where: pl.Expr) -> None:
    expected = pl.DataFrame(ROWS, schema=table.snapshot().schema.to_polars()).filter(where).sort("n")
    rows = table.scan().filter(where).collect().sort("n")
    assert rows.equals(expected)
    spared = table.plan(where).filter(~pl.col("kept"))["path"]
    assert rows.height <= len(ROWS) - spared.len()


SPARED: list[tuple[str, pl.Expr, int, str]] = [
    ("identity", pl.col("n") == -30, 1, "partition"),
    ("identity", pl.col("n") != -30, 11, "partition"),
    ("identity", pl.col("n").is_null(), 1, "partition"),
    ("bucket", pl.col("n") == 5, 1, "partition"),
    ("bucket", pl.col("n").is_in([5, 12]), 2, "partition"),
    ("truncated number", pl.col("n") < -20, 2, "partition"),
    ("truncated text", pl.col("s").str.starts_with("iceb"), 2, "partition"),
    ("month of a date", pl.col("d") >= date(1970, 2, 1), 3, "partition"),
    ("year of a time", pl.col("t") < DAY, 0, "statistics"),
    ("hour and bucket", pl.col("t") == DAY, 1, "partition"),
    ("unpartitioned", pl.col("n") > 40, 1, "statistics"),
    ("unpartitioned", (pl.col("n") == 5) | (pl.col("s") == "zebra"), 3, "statistics"),
]


@pytest.mark.parametrize(("spec", "where", "files_read", "reason"), SPARED)
def test_what_is_spared_and_by_what(
    table_of: Callable[[str], IcebergTable], spec: str, where: pl.Expr, files_read: int, reason: str
) -> None:
    plan = table_of(spec).plan(where)
    assert plan.filter("kept").height == files_read
    assert reason in plan.filter(~pl.col("kept"))["reason"].to_list()


NAN = float("nan")
FLOATS: list[tuple[pl.Expr, list[bool]]] = [
    (pl.col("x") > 5, [False, True, True]),
    (pl.col("x") >= 5, [False, True, True]),
    (pl.col("x") < 0, [False, False, False]),
    (pl.col("x") > NAN, [True, True, True]),
    (pl.col("x") != 1, [True, True, True]),
    (~pl.col("x").is_in([7.0]), [True, True, True]),
]


@pytest.mark.parametrize(("where", "verdicts"), FLOATS)
def test_a_file_is_spared_by_its_greatest_number_only_where_it_holds_no_nan(
    tmp_path: Path, where: pl.Expr, verdicts: list[bool]
) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "x", "required": False, "type": "double"}])
    for name, values in {"a": [1.0, 2.0], "b": [1.0, NAN], "c": [1.0, 7.0]}.items():
        history.append(name, [{"x": v} for v in values])
    table = lv.open_table(history.address)
    assert table.plan(where).sort("path")["kept"].to_list() == verdicts
    everything = table.scan().collect().filter(where)
    assert table.scan().filter(where).collect().height == everything.height


def test_manifests_that_cannot_matter_are_not_opened(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SPECS["identity"])
    before = table.storage.requests["read"]
    rows = table.scan().filter(pl.col("n") == -30).collect()
    assert rows.height == 1
    assert table.storage.requests["read"] - before == 2  # the manifest list, and one manifest of thirteen


def test_a_filter_on_files_of_several_specs_uses_each_ones_own(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, [(1, "identity", "n")])
    history.append("a", [ROWS[0]])
    history.partition_by((1, "bucket[4]", "b"))
    history.append("b", [ROWS[0]])
    history.append("c", [ROWS[1]])
    history.partition_by()
    history.append("d", [ROWS[0]])
    opened = lv.open_table(history.address)
    assert opened.scan().filter(pl.col("n") == -30).collect().height == 3
    plan = opened.plan("n = -30")
    assert plan.sort("path")["kept"].to_list() == [True, True, False, True]
    texts = opened.snapshot().files.sort("path")["partition_text"].to_list()
    assert (texts[0], texts[1], texts[3]) == ("n=-30", "b=bucket 1 of 4", None)


def test_no_two_partitions_share_a_text(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, [(1, "identity", "n"), (2, "identity", "s")])
    history.append("a", [{"n": 1, "s": "x/y"}])
    history.append("b", [{"n": 1, "s": "x%2Fy"}])
    texts = lv.open_table(history.address).snapshot().files.sort("path")["partition_text"].to_list()
    assert texts == ["n=1/s=x%2Fy", "n=1/s=x%252Fy"]


def test_the_text_null_is_another_partition_than_null(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, [(2, "identity", "s")])
    for name, value in (("a", None), ("b", "null"), ("c", '"null"')):
        history.append(name, [{"n": 1, "s": value}])
    texts = lv.open_table(history.address).snapshot().files.sort("path")["partition_text"].to_list()
    assert texts == ["s=null", 's="null"', 's=""null""']


def test_a_field_id_that_specs_share_for_different_columns_prunes_nothing(tmp_path: Path) -> None:
    """Specs of version 1 count their fields from 1000 each."""
    history = IcebergHistory(tmp_path / "t", FIELDS, [(1, "identity", "n")], version=1)
    history.append("a", [{"n": 5, "s": "x"}])
    history.partition_by((2, "identity", "s"))
    history.document["partition-specs"][1]["fields"][0]["field-id"] = 1000
    history.append("b", [{"n": 7, "s": "x"}])
    opened = lv.open_table(history.address)
    assert opened.scan().filter(pl.col("s") == "x").collect().height == 2
    assert opened.plan("s = 'x'")["kept"].to_list() == [True, True]


def test_text_conditions_and_unknown_columns(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", [])
    assert table.plan("n > 40 AND s IS NOT NULL").filter("kept").height == 1
    with pytest.raises(lv.errors.InvalidRequestError, match="no column nothing"):
        table.plan("nothing = 1")


def test_nulls_of_a_file_with_deleted_rows_are_those_it_was_written_with(tmp_path: Path) -> None:
    """Some of the four nulls are gone, so the count is no exact one: the log does not say which rows were deleted."""
    fields = [{"id": i, "name": name, "required": False, "type": "long"} for i, name in enumerate(("id", "n"), 1)]
    history = IcebergHistory(tmp_path / "t", fields, version=3)
    path = history.append("a", [{"id": i, "n": None} for i in range(4)])
    before = lv.open_table(history.address).statistics().row(0, named=True)
    assert (before["n"]["null_count"], before["n"]["null_count_exact"]) == (4, True)
    history.delete_vectors("v", {path: [0, 1]})
    after = lv.open_table(history.address).statistics().row(0, named=True)
    assert (after["n"]["null_count"], after["n"]["null_count_exact"]) == (4, False)
    assert (after["id"]["null_count"], after["id"]["null_count_exact"]) == (0, True)


CHANGED: dict[str, tuple[str, str, Any, Any]] = {
    "long to double": ("long", "double", 7, 7.0),
    "long to decimal": ("long", "decimal(20,2)", 7, Decimal(7)),
    "microseconds to nanoseconds": ("timestamp", "timestamp_ns", DAY, DAY),
}


@pytest.mark.parametrize("spec", [(), ((1, "identity", "p"),)], ids=["unpartitioned", "identity"])
@pytest.mark.parametrize(("before", "after", "written", "read"), CHANGED.values(), ids=list(CHANGED))
def test_bounds_of_a_type_that_no_schema_may_change_lose_no_row(
    tmp_path: Path, before: str, after: str, written: Any, read: Any, spec: tuple[tuple[int, str, str], ...]
) -> None:
    history = IcebergHistory(
        tmp_path / "t", [{"id": 1, "name": "x", "required": False, "type": before}], spec, version=3
    )
    history.append("a", [{"x": written}])
    history.evolve([{"id": 1, "name": "x", "required": False, "type": after}])
    table = lv.open_table(history.address)
    assert table.scan().filter(pl.col("x") == read).collect()["x"].to_list() == [read]
    statistics = table.statistics()["x"][0]
    assert (statistics["min"], statistics["max"], statistics["null_count"]) == (None, None, 0)


def test_buckets_of_dates_lose_no_row_once_they_are_moments(tmp_path: Path) -> None:
    history = IcebergHistory(
        tmp_path / "t", [{"id": 1, "name": "d", "required": False, "type": "date"}], [(1, "bucket[4]", "b")], version=3
    )
    history.append("a", [{"d": DAY.date()}])
    history.evolve([{"id": 1, "name": "d", "required": False, "type": "timestamp"}])
    table = lv.open_table(history.address)
    assert table.scan().filter(pl.col("d") == DAY).collect()["d"].to_list() == [DAY]
    assert table.scan().filter(pl.col("d").is_in([DAY])).collect().height == 1


def test_buckets_of_a_column_whose_type_was_unknown_leave_files_out(tmp_path: Path) -> None:
    column = {"id": 1, "name": "x", "required": False}
    history = IcebergHistory(tmp_path / "t", [column | {"type": "unknown"}], [(1, "bucket[4]", "b")], version=3)
    history.evolve([column | {"type": "long"}])
    for number in range(8):
        history.append(f"a{number}", [{"x": number}])
    plan = lv.open_table(history.address).plan(pl.col("x").is_in([3]))
    assert "partition" in plan["reason"].to_list()
