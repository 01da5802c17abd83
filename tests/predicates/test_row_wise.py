"""Expressions that users give for rows: those whose result needs other rows are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import ArrayType, Field, PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.row_wise import check_row_wise, row_wise

A, B, HIGHEST = pl.col("a"), pl.col("b"), pl.col("a").max()
USERS = A.map_elements(bool, return_dtype=pl.Boolean)
OF_ONE_ROW = {
    "a comparison": A == 1,
    "a literal": pl.lit(value=True),
    "one of a list": A.is_in([1, 2]),
    "one of a series": A.is_in(pl.Series([1, 2]).implode()),
    "one of a plain series": A.is_in(pl.Series([1, 2])),
    "one of a column of another frame": A.is_in(pl.Series("k [x](y)", [1, 2])),
    "a value looked up in series": A.replace_strict(pl.Series([1, 2]), pl.Series([3, 4]), default=None),
    "a series of one value": A.eq_missing(pl.Series([1])),
    "a constant": pl.lit(1) + pl.lit(2) > 1,
    "a moment": pl.datetime(2026, 1, 1) > B,
    "parts": pl.concat_str(pl.coalesce(A, B), pl.lit("x")).str.split("x").list.first() == "1",
    "a case": pl.when(A > 1).then(2).otherwise(B),
    "a text": A.cast(pl.String).str.to_uppercase() == "X",
    "a field": B.struct.field("x") > 1,
    "a sum within a list": B.list.sum() > 3,
    "an expression over a list": B.list.eval(pl.element().max()).list.first() > 3,
    "the larger of two columns": pl.max_horizontal(A, B) > 1,
    "a function of the user's": USERS,
    "a function over one of the user's": pl.when(USERS.is_in(pl.Series([1]))).then(-USERS.cast(pl.Int64)).otherwise(A),
    "an angle of the user's": pl.arctan2(USERS.cast(pl.Int64).sin(), A).degrees().truncate() > 1,
    "bits of the user's": USERS.cast(pl.Int64).bitwise_count_ones().hash() > 1,
    "a field that is added": B.struct.with_fields(pl.field("x").abs() + 1).struct.field("x") > 1,
}
OF_MORE = {
    "a maximum": HIGHEST == A,
    "a maximum, deep": (A + 1).abs() > (A - A.mean()).abs(),
    "a running sum": A.cum_sum(),
    "the row before": A.shift(1) == A,
    "a window": A.max().over("b"),
    "a rank": A.rank() == 1,
    "doubles": A.is_duplicated(),
    "how many rows": pl.len() > 2,
    "the mean for null": A.fill_null(strategy="mean"),
    "a count of nulls": A.null_count() == 0,
    "values of a series": pl.lit(pl.Series([True, False])),
    "sums with a series": A + pl.Series([1, 2]),
    "a series that is looked up": pl.lit(pl.Series([1, 2])).is_in([1]),
    "a series where nothing is found": A.replace_strict([1], [2], default=pl.Series([1, 2])),
    "a maximum beside a function of the user's": USERS & HIGHEST,
    "a maximum within lists' values": B.list.eval(pl.element()).list.contains(HIGHEST),
    "a sum of a function of the user's": USERS.sum() > 0,
    "common bits of the user's": USERS.bitwise_and() > 0,
    "the value of the user's function before": USERS.shift(1),
    "a sum of lists": B.list.eval(pl.element()).list.sum().sum() > 3,
    "a sum of a field": B.struct.with_fields(pl.field("x").sum()),
    "the rows that are left": A.filter(A == 2) > 1,
    "values that are not null": A.drop_nulls(),
    "values of lists": B.explode() > 1,
}


@pytest.mark.parametrize("expression", OF_ONE_ROW.values(), ids=list(OF_ONE_ROW))
def test_what_depends_on_one_row_is_taken(expression: pl.Expr) -> None:
    check_row_wise(expression)


@pytest.mark.parametrize("expression", OF_MORE.values(), ids=list(OF_MORE))
def test_what_depends_on_other_rows_is_refused(expression: pl.Expr) -> None:
    with pytest.raises(InvalidRequestError, match=r"depends? on more than one row") as caught:
        check_row_wise(expression)
    assert caught.value.kind == "not-row-wise"


@pytest.mark.parametrize(
    "selected",
    [
        cs.integer(),
        pl.all(),
        pl.col("*"),
        pl.col("^a$"),
        pl.col(pl.Int64),
        pl.col("a", "b"),
        pl.exclude("a"),
        pl.nth(0),
    ],
    ids=str,
)
def test_columns_that_are_selected_and_not_named_are_refused(selected: pl.Expr) -> None:
    """No column would be read for them, and `all_horizontal` of none is true: a delete took every row."""
    schema = Schema((Field("a", PrimitiveType("long")), Field("b", PrimitiveType("long"))))
    for expression in (selected > 1000, pl.all_horizontal(selected > 1000) & (A > 0)):
        with pytest.raises(InvalidRequestError, match="does not name its columns") as caught:
            row_wise(expression, schema)
        assert caught.value.kind == "columns-not-named"


def test_the_filter_of_a_list_is_refused_with_what_to_write() -> None:
    with pytest.raises(InvalidRequestError, match=r"list\.filter is not taken") as caught:
        row_wise(
            B.list.filter(pl.element() > 1).list.len() > 0,
            Schema((Field("b", ArrayType(PrimitiveType("long"), True)),)),
        )
    assert caught.value.fix == "write list.eval(pl.element().filter(...))"


def test_a_function_of_the_users_selects_rows(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"a": pl.Int64})
    table.append(pl.DataFrame({"a": [1, 2]}))
    table.delete(A.map_elements({1: False, 2: True}.get, return_dtype=pl.Boolean))
    assert table.scan().collect()["a"].to_list() == [1]


def test_operations_refuse_such_expressions_and_change_nothing(tmp_path: Path) -> None:
    schema = Schema((Field("a", PrimitiveType("long")), Field("b", PrimitiveType("long"))))
    table = lv.create_table(str(tmp_path), schema)
    assert isinstance(table, DeltaTable)
    rows = pl.DataFrame({"a": [1, 2], "b": [0, 0]})
    table.append(rows)
    highest = HIGHEST == A
    calls: list[Callable[[], object]] = [
        lambda: table.delete(highest),
        lambda: table.delete(pl.lit(pl.Series([True, False]))),
        lambda: table.update({"b": "1"}, highest),
        lambda: table.update({"b": A.max()}),
        lambda: table.overwrite(rows, highest),
        lambda: table.merge(rows, ["a"]).when_matched_delete(where=highest).execute(),
        lambda: table.merge(rows, ["a"]).when_matched_update({"b": A.max()}).execute(),
    ]
    for call in calls:
        with pytest.raises(InvalidRequestError) as caught:
            call()
        assert caught.value.kind == "not-row-wise"
    with pytest.raises(InvalidRequestError, match="values for 2 rows"):
        table.delete((A > 5).map_batches(lambda values: values.head(0)))
    assert table.latest_version == 1
