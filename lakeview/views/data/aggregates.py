"""What an engine adds up of columns for their profile, and polars as such an engine.

An engine is asked twice of the same rows: for facts in one pass, then for frequencies, with the edges of bins that
follow from the facts. All else (which columns have bins, labels, conditions) is decided here, once for all engines.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any, Protocol

import polars as pl

BINS = 20
TOP = 10
FEW = 10
"""Whole numbers of so few values are shown value by value."""
_DECIMAL_DIGITS = 38
"""Of the widest decimals that tables hold; Python calculates with 28 unless it is set."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What one pass over a column gives. `low` and `high`: min and max of the values that are neither null nor NaN;
    None without any, and of nested columns."""

    name: str
    dtype: pl.DataType
    rows: int
    nulls: int
    nans: int
    low: Any
    high: Any

    @property
    def is_countable(self) -> bool:
        """False for lists, structs, maps and columns without a type: of those only nulls are counted."""
        return not self.dtype.is_nested() and self.dtype != pl.Null()

    @property
    def edges(self) -> list[Any]:
        """Where bins of equal width begin, ascending, the first at `low`; empty where values are no measure."""
        if self.low is None or not (self.dtype.is_numeric() or isinstance(self.dtype, pl.Date | pl.Datetime)):
            return []
        if self.dtype.is_float() and not (math.isfinite(self.low) and math.isfinite(self.high)):
            return []
        return _edges(self.low, self.high, self.dtype)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How the values of a column that are neither null nor NaN lie: how many distinct ones; rows in each bin (the last
    holds `high` as well); the TOP most frequent values with their rows, on a tie the smaller one first.

    `top` may be empty where the column has bins, `bins` where it has none.
    """

    distinct: int
    bins: Sequence[int]
    top: Sequence[tuple[Any, int]]


class Aggregates(Protocol):
    """The columns of some rows, as an engine adds them up."""

    def facts(self) -> list[Facts]:
        """The facts of each column, in the order of the columns: one pass over the rows."""

    def frequencies(self, edges: Mapping[str, Sequence[Any]]) -> Iterable[tuple[str, Frequencies]]:
        """The frequencies of these columns, each as soon as it is known, with its name, and with the edges of their
        bins (empty where values have none)."""


def has_bins(facts: Facts, distinct: int) -> bool:
    """True if a column of so many distinct values is shown by bins: numbers and times, but for few whole numbers."""
    return bool(facts.edges) and distinct > (1 if facts.dtype.is_float() else FEW)


class PolarsAggregates:
    """The columns of a frame in memory."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._rows = rows
        self._facts = {name: self._column_facts(name) for name in rows.columns}

    def facts(self) -> list[Facts]:
        """As `Aggregates.facts`."""
        return list(self._facts.values())

    def frequencies(self, edges: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Frequencies]]:
        """As `Aggregates.frequencies`; each column has bins or top values, as it is shown."""
        return ((name, self._column_frequencies(self._facts[name], edges[name])) for name in edges)

    def _column_facts(self, name: str) -> Facts:
        values = self._rows[name]
        comparable, nans = _measurable(values)
        facts = Facts(name, values.dtype, values.len(), values.null_count(), nans, None, None)
        if not facts.is_countable or comparable.is_empty():
            return facts
        return Facts(name, values.dtype, values.len(), values.null_count(), nans, comparable.min(), comparable.max())

    def _column_frequencies(self, facts: Facts, edges: Sequence[Any]) -> Frequencies:
        values, _ = _measurable(self._rows[facts.name])
        distinct = values.n_unique()
        if has_bins(facts, distinct):
            sorted_values = values.sort()
            # how many values lie below each edge
            below = [0, *(sorted_values.search_sorted(edge, side="left") for edge in edges[1:]), sorted_values.len()]
            return Frequencies(distinct, [int(b) - int(a) for a, b in pairwise(below)], ())
        counts = values.value_counts(name="count").sort("count", "values", descending=[True, False])
        return Frequencies(distinct, (), counts.head(TOP).rows())


def _measurable(values: pl.Series) -> tuple[pl.Series, int]:
    """The values that are neither null nor NaN, and the number of NaN."""
    # a series' methods take a name like ^x$ for a pattern: columns are looked at under a name of ours
    values = values.alias("values").drop_nulls()
    if not values.dtype.is_float():
        return values, 0
    numbers = values.filter(values.is_not_nan()) + 0.0  # -0.0 is 0.0, whichever of them an engine comes upon first
    return numbers, values.len() - numbers.len()


def _edges(low: Any, high: Any, dtype: pl.DataType) -> list[Any]:
    """Where bins begin: equal steps from the smallest value; whole numbers and days step by whole ones. Each edge is a
    value of the column's type, so that all engines compare alike."""
    if isinstance(low, datetime):
        step = max((high - low) / BINS, timedelta(microseconds=1))
        return [low + step * i for i in range(BINS) if low + step * i <= high]
    if isinstance(low, date):
        days = max(math.ceil(((high - low).days + 1) / BINS), 1)
        return [low + timedelta(days=i) for i in range(0, (high - low).days + 1, days)]
    if isinstance(low, int):
        width = max(-(-(high - low + 1) // BINS), 1)
        return list(range(low, high + 1, width))
    # weighed ends: the span of two large numbers may be infinite
    with localcontext(prec=2 * _DECIMAL_DIGITS):
        inner = [low / BINS * (BINS - i) + high / BINS * i for i in range(1, BINS)]
        if isinstance(dtype, pl.Decimal):
            unit = Decimal(1).scaleb(-dtype.scale)
            inner = [edge.quantize(unit) for edge in inner]
    if dtype == pl.Float32:
        inner = pl.Series(inner, dtype=pl.Float64).cast(pl.Float32).to_list()
    return sorted({edge for edge in inner if low < edge < high} | {low})
