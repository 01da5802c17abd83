"""Filters: what Spark pushes into a reader, to the polars expression that files are skipped by."""

import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
from pyspark.sql import datasource as ds

_COMPARISONS: Mapping[type[ds.Filter], Callable[[pl.Expr, pl.Expr], Any]] = {
    ds.EqualTo: operator.eq,
    ds.EqualNullSafe: operator.eq,  # its value is no null: Spark writes that as IsNull
    ds.GreaterThan: operator.gt,
    ds.GreaterThanOrEqual: operator.ge,
    ds.LessThan: operator.lt,
    ds.LessThanOrEqual: operator.le,
}
# Floats are left out: Spark orders NaN above every number, statistics leave it out.
_VALUES = (bool, int, str, Decimal, date, datetime)


def to_polars(one: ds.Filter) -> pl.Expr | None:
    """The filter as an expression; None for one that skips no files (suffixes, negations, floats, unknown kinds)."""
    column = _column(getattr(one, "attribute", ()))
    if column is None:
        return None
    match one:
        case ds.IsNull():
            return column.is_null()
        case ds.IsNotNull():
            return column.is_not_null()
        case ds.StringStartsWith():
            return column.str.starts_with(one.value)
        case ds.In():
            # `x IN (1, NULL)` is true for the same rows as `x IN (1)`
            values = [value for value in one.value if value is not None]
            return column.is_in(values) if values and all(isinstance(value, _VALUES) for value in values) else None
        case _:
            return _comparison(column, one)


def _comparison(column: pl.Expr, one: ds.Filter) -> pl.Expr | None:
    compare = _COMPARISONS.get(type(one))
    value = getattr(one, "value", None)
    if compare is None or not isinstance(value, _VALUES):
        return None
    compared: pl.Expr = compare(column, pl.lit(value))
    return compared


def _column(path: tuple[str, ...]) -> pl.Expr | None:
    """The column of that path; None where polars would read the name as a pattern."""
    if not path or any(name == "*" or name.startswith("^") for name in path):
        return None
    column = pl.col(path[0])
    for name in path[1:]:
        column = column.struct.field(name)
    return column
