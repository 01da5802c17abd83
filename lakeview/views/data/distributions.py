"""Rows on a screen to how the values of each column lie: bins of numbers and times, top values of everything else."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from lakeview.views.data.preview import Condition, where_text
from lakeview.views.units import counted
from lakeview.views.values import value_text

DISTRIBUTIONS = pl.Schema(
    {
        "column": pl.String(),
        "kind": pl.String(),
        "label": pl.String(),
        "count": pl.Int64(),
        "share": pl.Float64(),
        "condition": pl.String(),
    }
)
"""Some rows a column of the sample, in the order they are drawn. `kind`: bin (of equal width, from its label's value up
to the next one's), value (one value, most frequent first), others (all further values), nan, null. `share` of the
sample's rows, one of all; `condition`: SQL text that keeps these rows, null where one condition cannot say it."""

_BINS = 20
_TOP = 10
_FEW = 10
"""Whole numbers of so few values are told value by value."""


def distributions(sample: pl.DataFrame) -> pl.DataFrame:
    """DISTRIBUTIONS of the columns of a frame; nested ones tell their nulls alone."""
    # a series' methods take a name like ^x$ for a pattern: columns are looked at under a name of ours
    parts = [_column(name, sample[name].alias("values")) for name in sample.columns]
    return pl.concat(parts) if parts else pl.DataFrame(schema=DISTRIBUTIONS)


def _column(name: str, values: pl.Series) -> pl.DataFrame:
    known = values.drop_nulls()
    rows: list[tuple[str, str, int, str | None]] = []
    nans = 0
    if known.dtype.is_float():
        nans = int(known.is_nan().sum())
        known = known.filter(known.is_not_nan())
    if known.len() and not known.dtype.is_nested():
        rows = _bins(name, known) if _is_measured(known) else _values(name, known)
    if nans:
        rows.append(("nan", "NaN", nans, None))
    if values.null_count():
        rows.append(("null", "null", values.null_count(), _condition(name, Condition(_quoted(name), "is null"))))
    all_rows = values.len()
    return pl.DataFrame(
        [(name, kind, label, count, count / all_rows, condition) for kind, label, count, condition in rows],
        schema=DISTRIBUTIONS,
        orient="row",
    )


def _is_measured(values: pl.Series) -> bool:
    """Whether values are told by bins: numbers and times, but for whole numbers of few values and what is endless."""
    if values.dtype.is_float():
        return bool(values.is_finite().all()) and values.n_unique() > 1
    if values.dtype.is_integer() or isinstance(values.dtype, pl.Date | pl.Datetime | pl.Decimal):
        return values.n_unique() > _FEW
    return False


def _bins(name: str, values: pl.Series) -> list[tuple[str, str, int, str | None]]:
    low, high = values.min(), values.max()
    edges = _edges(low, high)
    # how many values lie below each edge, in sorted order
    ordered = values.sort()
    below = [0, *(ordered.search_sorted(edge, side="left") for edge in edges[1:]), ordered.len()]
    rows = []
    for i, edge in enumerate(edges):
        # the last bin ends with the largest value: NaN is above every number
        last = i + 1 == len(edges)
        end = Condition(_quoted(name), "<=", high) if last else Condition(_quoted(name), "<", edges[i + 1])
        condition = _condition(name, Condition(_quoted(name), ">=", edge), end)
        rows.append(("bin", value_text(edge) or "", int(below[i + 1]) - int(below[i]), condition))
    return rows


def _edges(low: Any, high: Any) -> list[Any]:
    """Where bins begin: equal steps from the smallest value; whole numbers and days step by whole ones."""
    if isinstance(low, datetime):
        step = max((high - low) / _BINS, timedelta(microseconds=1))
        return [low + step * i for i in range(_BINS) if low + step * i <= high]
    if isinstance(low, date):
        days = max(math.ceil(((high - low).days + 1) / _BINS), 1)
        return [low + timedelta(days=i) for i in range(0, (high - low).days + 1, days)]
    if isinstance(low, int):
        width = max(-(-(high - low + 1) // _BINS), 1)
        return list(range(low, high + 1, width))
    # weighed ends: the span of two large numbers may be infinite
    return sorted({low / _BINS * (_BINS - i) + high / _BINS * i for i in range(1, _BINS)} - {high} | {low})


def _values(name: str, values: pl.Series) -> list[tuple[str, str, int, str | None]]:
    counts = values.value_counts(sort=True, name="count")
    counts = counts.sort("count", "values", descending=[True, False])
    rows = []
    for value, count in counts.head(_TOP).iter_rows():
        rows.append(("value", value_text(value) or "", count, _equal(name, value)))
    rest = int(counts["count"][_TOP:].sum())
    if rest:
        rows.append(("others", counted(counts.height - _TOP, "other"), rest, None))
    return rows


def _condition(name: str, *conditions: Condition) -> str | None:
    # polars' SQL takes a name like ^x$ for a pattern, in back-quotes too
    return None if name.startswith("^") and name.endswith("$") else where_text(conditions)


def _equal(name: str, value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, timedelta):
        return None
    return _condition(name, Condition(_quoted(name), "=", value))


def _quoted(name: str) -> str:
    """A top-level column's name as a path of one part."""
    return f"`{name.replace('`', '``')}`"
