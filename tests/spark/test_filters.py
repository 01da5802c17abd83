"""Pushed filters: which skip files, and as what."""

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from pyspark.sql import datasource as ds

from lakeview.spark.filters import to_polars

MOMENT = datetime(2013, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (ds.EqualTo(("a",), 3), pl.col("a") == 3),
        (ds.EqualNullSafe(("a",), 3), pl.col("a") == 3),
        (ds.GreaterThan(("a",), MOMENT), pl.col("a") > pl.lit(MOMENT)),
        (ds.GreaterThanOrEqual(("a",), date(2013, 1, 1)), pl.col("a") >= date(2013, 1, 1)),
        (ds.LessThan(("a",), Decimal("1.50")), pl.col("a") < Decimal("1.50")),
        (ds.LessThanOrEqual(("a",), "it's"), pl.col("a") <= pl.lit("it's")),
        (ds.In(("a",), (1, None, 2)), pl.col("a").is_in([1, 2])),
        (ds.IsNull(("a",)), pl.col("a").is_null()),
        (ds.IsNotNull(("a", "b.c")), pl.col("a").struct.field("b.c").is_not_null()),
        (ds.StringStartsWith(("a",), "N1"), pl.col("a").str.starts_with("N1")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ds.Filter) else "",
)
def test_pushed_filters_become_expressions(pushed: ds.Filter, expected: pl.Expr) -> None:
    made = to_polars(pushed)
    assert made is not None
    assert made.meta.eq(expected)


@pytest.mark.parametrize(
    "pushed",
    [
        ds.GreaterThan(("a",), 1.5),
        ds.In(("a",), (None,)),
        ds.In(("a",), (1.5,)),
        ds.Not(ds.EqualTo(("a",), 1)),
        ds.StringContains(("a",), "x"),
        ds.EqualTo(("^a$",), 1),
        ds.EqualTo(("*",), 1),
    ],
    ids=["floats", "nulls only", "list of floats", "negation", "contains", "a name like a pattern", "a star as name"],
)
def test_other_filters_skip_nothing(pushed: ds.Filter) -> None:
    assert to_polars(pushed) is None
