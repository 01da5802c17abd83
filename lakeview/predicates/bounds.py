"""A tree and the bounds of its columns to the files it can match. Evaluation is three-valued: unknown files match.

Serves data skipping in every format, and the proofs of constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.predicates import limits
from lakeview.predicates.tree import And, Comparison, Constant, IsIn, IsNull, Node, Or, Path, StartsWith, Unknown


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the log records of one column, a value a file: all series have one length, null means unknown.

    `low <= every value that is not null <= high`; `exact`: both occur; `nulls` of `records` values are null. NaN lies
    outside the bounds of floats: `nans` are how many of them there are, None where none is recorded.
    """

    low: pl.Series
    high: pl.Series
    exact: pl.Series
    nulls: pl.Series
    records: pl.Series
    nans: pl.Series | None = None

    @classmethod
    def of_values(cls, values: pl.Series, is_known: pl.Series | None = None) -> Bounds:
        """Bounds of a column that has one value in all rows of each file, as a partition column has.

        `is_known`: where that value is known, everywhere if None. Rows are counted as one.
        """
        values, height = values.alias("values"), values.len()  # a series called ^x$ would be a pattern to polars
        one = repeat(1, height)
        nulls = values.is_null().cast(pl.Int64) if values.null_count() else one - 1
        nans = values.is_nan().cast(pl.Int64).fill_null(0) if values.dtype.is_float() else one - 1
        if is_known is not None:
            values, nulls, nans = (series.set(~is_known, None) for series in (values, nulls, nans))
        return cls(values, values, values.is_not_null(), nulls, one, nans)

    @classmethod
    def of_statistics(cls, column: pl.Series, records: pl.Series) -> Bounds | None:
        """Bounds of a column of STATISTICS in files of so many rows as written; None for a type without an order."""
        statistics = column.struct.unnest()
        if "min" not in statistics.columns or statistics["min"].dtype == pl.Null():
            return None
        # of a file that was written with nulls alone every row is null, whichever are deleted
        is_exact = statistics["null_count_exact"] | (statistics["null_count"] == records)
        nulls = statistics["null_count"].set(~fill_unknown(is_exact, False), None)
        return cls(statistics["min"], statistics["max"], statistics["exact"], nulls, records)


def repeat(value: bool | int | None, height: int) -> pl.Series:
    """Returns one value so many times: numbers as 64-bit integers, the others as Booleans."""
    return pl.Series([value], dtype=pl.Int64 if type(value) is int else pl.Boolean).new_from_index(0, height)


def fill_unknown(verdict: pl.Series, value: bool) -> pl.Series:
    """A verdict, with this value where it is null: a query of polars, which none needs that is known throughout, or
    nowhere."""
    nulls = verdict.null_count()
    if nulls and nulls == verdict.len():
        return pl.Series(verdict.name, [value]).new_from_index(0, nulls)
    return verdict.fill_null(value) if nulls else verdict


def narrowest(several: Sequence[Bounds]) -> Bounds | None:
    """Several bounds of one column as one: the highest low, the lowest high, and the nulls where they are recorded."""
    if len(several) < 2:
        return several[0] if several else None
    frame = pl.DataFrame(
        {f"low{i}": b.low for i, b in enumerate(several)}
        | {f"high{i}": b.high for i, b in enumerate(several)}
        | {f"exact{i}": b.exact for i, b in enumerate(several)}
    )
    numbers = range(len(several))
    bounds = frame.select(
        pl.max_horizontal(f"low{i}" for i in numbers).alias("low"),
        pl.min_horizontal(f"high{i}" for i in numbers).alias("high"),
        pl.any_horizontal(f"exact{i}" for i in numbers).fill_null(False).alias("exact"),
    )
    first = next((b for b in several if b.nulls.null_count() == 0), several[-1])
    nans = next((b.nans for b in several if b.nans is not None), None)
    return Bounds(bounds["low"], bounds["high"], bounds["exact"], first.nulls, first.records, nans)


def may_match(node: Node, bounds: Callable[[Path], Bounds | None], height: int) -> pl.Series:
    """Whether each of `height` files can hold a row for which the filter is true. What is unknown can."""
    match node:
        case And(left, right):
            return may_match(left, bounds, height) & may_match(right, bounds, height)
        case Or(left, right):
            return may_match(left, bounds, height) | may_match(right, bounds, height)
        case Constant(value):
            return repeat(bool(value), height)
        case Unknown():
            return repeat(True, height)
    column = bounds(node.path)
    if column is None:
        return repeat(True, height)
    try:
        verdict = _leaf(node, column)
    except (pl.exceptions.PolarsError, TypeError):  # constant and column do not compare: the scan itself will say so
        return repeat(True, height)
    return fill_unknown(verdict, True)


def _leaf(node: Comparison | IsNull | IsIn | StartsWith, column: Bounds) -> pl.Series:
    all_null = fill_unknown(column.nulls == column.records, False)
    if isinstance(node, IsNull):
        return ~all_null if node.is_negated else column.nulls > 0
    if isinstance(node, StartsWith):
        length = len(node.prefix)
        low, high = column.low.str.head(length), column.high.str.head(length)
        return (low <= node.prefix) & (high >= node.prefix) & ~all_null
    if isinstance(node, IsIn):
        return _membership(node, column) & ~all_null
    return _compare(node.op, column, node.value) & ~all_null


def _compare(op: str, column: Bounds, value: pl.Series) -> pl.Series:
    unknown = repeat(None, column.low.len())
    # NaN is above every number for polars, and statistics leave it out: a maximum says nothing about it
    if column.low.dtype.is_float() and value.dtype.is_float() and value.is_nan().any():
        return unknown
    if column.low.dtype == pl.Float32 and value.dtype.is_numeric() and value.dtype != pl.Float32:
        # polars compares rows with the nearest 32-bit float of a number that is given without a type, else as doubles
        return _as_recorded(op, column, value) | _as_recorded(op, column, value.cast(pl.Float32))
    return _as_recorded(op, column, value)


def _as_recorded(op: str, column: Bounds, value: pl.Series) -> pl.Series:
    tests: Mapping[str, Callable[[pl.Expr, pl.Expr, pl.Expr], pl.Expr]] = {
        "=": lambda low, high, v: (low <= v) & (high >= v),
        "!=": lambda low, high, v: ~((low == v) & (high == v) & pl.col("exact")),
        "<": lambda low, _, v: low < v,
        "<=": lambda low, _, v: low <= v,
        ">": lambda _, high, v: high > v,
        ">=": lambda _, high, v: high >= v,
    }
    frame = pl.DataFrame([column.low.alias("low"), column.high.alias("high"), column.exact.alias("exact")])
    met = frame.select(tests[op](pl.col("low"), pl.col("high"), pl.lit(value.alias("value"))).alias("m")).to_series()
    return _unless_nan(met, column) if column.low.dtype.is_float() and op in (">", ">=", "!=") else met


def _unless_nan(verdict: pl.Series, column: Bounds) -> pl.Series:
    """A verdict that holds only where no value is NaN: unknown elsewhere."""
    without = repeat(False, verdict.len()) if column.nans is None else column.nans == 0
    return verdict.set(~without.fill_null(False), None)


def _membership(node: IsIn, column: Bounds) -> pl.Series:
    values = node.values.drop_nulls()
    unknown = repeat(None, column.low.len())
    if node.is_widened and not (column.low.dtype.is_signed_integer() and values.dtype == pl.Int64):
        return unknown
    if node.is_negated:
        # a null in the list is no reason: polars, which filters the rows, passes it over
        one = (column.low == column.high) & column.exact
        verdict = ~(one & column.low.is_in(values.implode()))
        # bounds leave NaN out, and NaN is in no list without it
        return _unless_nan(verdict, column) if column.low.dtype.is_float() else verdict
    verdict = repeat(False, column.low.len())
    for i in range(min(values.len(), limits.COMPARED_VALUES)):
        verdict = verdict | _compare("=", column, values.slice(i, 1))
    return verdict if values.len() <= limits.COMPARED_VALUES else unknown
