"""Filters to rows: whatever is spared, no row is ever lost."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.table import DeltaTable

FIRST = date(2026, 1, 1)
TEXTS = st.one_of(st.sampled_from(["", "a", "ab", "b", "B", "\u00e9", "\U0010ffff", "a" * 40]), st.text(max_size=3))
COLUMNS: dict[str, tuple[pl.DataType, st.SearchStrategy[Any]]] = {
    "i": (pl.Int32(), st.integers(-5, 5)),
    "l": (pl.Int64(), st.sampled_from([-(2**63), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**63 - 1])),
    "d": (pl.Float64(), st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.1, -1.5, 1e300])),
    "s": (pl.String(), TEXTS),
    "b": (pl.Boolean(), st.booleans()),
    "day": (pl.Date(), st.sampled_from([FIRST - timedelta(days=1), FIRST, date(1, 1, 1), date(9999, 12, 31)])),
    "t": (
        pl.Datetime("us", "UTC"),
        st.sampled_from([datetime(2026, 1, 1, 0, 0, 0, us, tzinfo=UTC) for us in (0, 1, 999, 1000, 1001, 999_999)]),
    ),
    "p": (pl.Int32(), st.integers(1, 2)),
    "q": (pl.String(), st.sampled_from(["x", "y=/%", "\u00e9 "])),
}
PARTITIONS = ["p", "q"]


@st.composite
def frames(draw: st.DrawFn) -> list[pl.DataFrame]:
    """A few batches of rows, each written as a commit of its own."""
    batches = []
    for _ in range(draw(st.integers(1, 3))):
        height = draw(st.integers(1, 4))
        batches.append(
            pl.DataFrame(
                {
                    name: pl.Series(draw(st.lists(st.none() | values, min_size=height, max_size=height)), dtype=dtype)
                    for name, (dtype, values) in COLUMNS.items()
                }
            )
        )
    return batches


def literal(value: Any, dtype: pl.DataType) -> str:
    """A value as SQL text."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    return str(value).upper() if isinstance(value, bool) else str(value)


@st.composite
def sql(draw: st.DrawFn) -> str:
    """A condition in SQL."""
    name = draw(st.sampled_from(["i", "l", "s", "p", "q", "i", "p"]))
    dtype, values = COLUMNS[name]
    kind = draw(st.sampled_from(["compare", "in", "between", "null", "like", "mirror", "not", "and", "or"]))
    one, other = (literal(draw(values.filter(_plain)), dtype) for _ in range(2))
    match kind:
        case "compare":
            return f"{name} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {one}"
        case "mirror":
            return f"{one} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {name}"
        case "in":
            return f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({one}, {other})"
        case "between":
            return f"{name} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {one} AND {other}"
        case "null":
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case "like":
            text = draw(st.sampled_from(["a%", "%", "ab", "_", "%b", "\u00e9%", "x%", "y=/%"]))
            return f"{draw(st.sampled_from(['s', 'q']))} {draw(st.sampled_from(['', 'NOT ']))}LIKE '{text}'"
        case "not":
            return f"NOT ({draw(sql())})"
    return f"({draw(sql())}) {kind.upper()} ({draw(sql())})"


def _plain(value: Any) -> bool:
    """Whether SQL text can carry it: polars reads an integer below -(2**63) + 1 as a fraction."""
    return value != -(2**63) and not (isinstance(value, str) and "\0" in value)


@st.composite
def expressions(draw: st.DrawFn) -> pl.Expr:
    """A condition as a polars expression."""
    name = draw(st.sampled_from(list(COLUMNS)))
    dtype, values = COLUMNS[name]
    column = pl.col(name)
    one, other = (pl.lit(draw(values), dtype) for _ in range(2))
    kind = draw(st.integers(0, 15))
    match kind:
        case 0 | 1 | 2 | 3 | 4 | 5:
            sides = (column, one) if draw(st.booleans()) else (one, column)
            return [
                sides[0] == sides[1], sides[0] != sides[1], sides[0] < sides[1],
                sides[0] <= sides[1], sides[0] > sides[1], sides[0] >= sides[1],
            ][kind]  # fmt: skip
        case 6:
            bounds = pl.Series(draw(st.lists(st.none() | values, max_size=3)), dtype=dtype)
            return column.is_in(bounds.implode(), nulls_equal=draw(st.booleans()))
        case 7:
            ends: list[Literal["both", "left", "right", "none"]] = ["both", "left", "right", "none"]
            return column.is_between(one, other, closed=draw(st.sampled_from(ends)))
        case 8:
            return column.is_null() if draw(st.booleans()) else column.is_not_null()
        case 9:
            return pl.col("s").str.starts_with(draw(TEXTS))
        case 10:
            return column.eq_missing(one) if draw(st.booleans()) else column.ne_missing(one)
        case 11:
            return ~draw(expressions())
        case 12:
            return draw(expressions()) & draw(expressions())
        case 13:
            return draw(expressions()) | draw(expressions())
        case 14:
            return pl.col("b") if draw(st.booleans()) else pl.col("d").is_nan() ^ pl.col("b")
    return draw(expressions()).alias("renamed") if draw(st.booleans()) else (pl.col("i") + 1 > pl.col("p"))


def _table(folder: Path, batches: list[pl.DataFrame]) -> DeltaTable:
    schema = batches[0].to_arrow().schema
    table = lv.create_table(str(folder), schema, partition_by=PARTITIONS)
    assert isinstance(table, DeltaTable)
    for batch in batches:
        table.append(batch)
    return table


def _same(actual: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert sorted(map(repr, actual.rows())) == sorted(map(repr, expected.rows()))


@given(batches=frames(), conditions=st.lists(sql(), min_size=8, max_size=8))
@settings(max_examples=8)
@pytest.mark.slow
def test_a_filter_in_sql_never_loses_a_row(
    tmp_path_factory: pytest.TempPathFactory, batches: list[pl.DataFrame], conditions: list[str]
) -> None:
    table = _table(tmp_path_factory.mktemp("t"), batches)
    everything = pl.concat(batches)
    for where in conditions:
        expected = everything.filter(pl.sql_expr(where))
        _same(table.scan().filter(pl.sql_expr(where)).collect(), expected)
        paths = table.plan(where).filter("kept")["path"].to_list()
        assert paths or expected.is_empty(), where


@given(batches=frames(), conditions=st.lists(expressions(), min_size=12, max_size=12))
@settings(max_examples=10)
@pytest.mark.slow
def test_a_filter_in_polars_never_loses_a_row(
    tmp_path_factory: pytest.TempPathFactory, batches: list[pl.DataFrame], conditions: list[pl.Expr]
) -> None:
    table = _table(tmp_path_factory.mktemp("t"), batches)
    everything = pl.concat(batches)
    for where in conditions:
        _same(table.scan().filter(where).collect(), everything.filter(where))


MISMATCHES = [
    "i = 1.5",
    "i > 0.5",
    "l > 1.5",
    "p < 1.5",
    "i = 3000000000",
    "p IN (1.5, 2)",
    "d > 1",
    "i IN (9999999999)",
]


@given(batches=frames())
@settings(max_examples=6)
@pytest.mark.slow
def test_a_constant_of_another_type_never_loses_a_row(
    tmp_path_factory: pytest.TempPathFactory, batches: list[pl.DataFrame]
) -> None:
    table = _table(tmp_path_factory.mktemp("t"), batches)
    everything = pl.concat(batches)
    for where in MISMATCHES:
        _same(table.scan().filter(pl.sql_expr(where)).collect(), everything.filter(pl.sql_expr(where)))


@pytest.mark.parametrize("nulls_equal", [True, False])
def test_a_null_in_a_list_spares_no_file_that_polars_would_find_rows_in(tmp_path: Path, nulls_equal: bool) -> None:
    rows = pl.DataFrame({"i": [0]}, schema={"i": pl.Int32()})
    table = lv.create_table(str(tmp_path / "t"), rows.to_arrow().schema)
    assert isinstance(table, DeltaTable)
    table.append(rows)
    for bounds in ([None], [1, None], [0, None]):
        where = ~pl.col("i").is_in(pl.Series(bounds, dtype=pl.Int32).implode(), nulls_equal=nulls_equal)
        _same(table.scan().filter(where).collect(), rows.filter(where))
