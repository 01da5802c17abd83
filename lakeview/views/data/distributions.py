"""Rows on a screen to how the values of each column lie: bins of numbers and times, top values of everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import polars as pl

from lakeview.model.schema import quoted
from lakeview.views.data.aggregates import Facts, Frequencies, has_bins
from lakeview.views.data.preview import Condition, where_text
from lakeview.views.units import count_text
from lakeview.views.values import FEW_DIGITS, value_text

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
to the next one's), value (one value, most frequent first), others (all further values), nan, null. `label`: a blank
text is in quotes. `share` of the sample's rows, one of all; `condition`: SQL text that keeps these rows, null where one
condition cannot say it."""


def column_distribution(facts: Facts, frequencies: Frequencies | None) -> pl.DataFrame:
    """DISTRIBUTIONS of one column from what an engine added up; without frequencies its nulls and NaN alone."""
    rows: list[tuple[str, str, int, str | None]] = []
    if frequencies is not None and frequencies.distinct:
        is_measure = has_bins(facts, frequencies.distinct)
        rows = _bins(facts, frequencies.bins) if is_measure else _values(facts, frequencies)
    if facts.nans:
        rows.append(("nan", "NaN", facts.nans, None))
    if facts.nulls:
        rows.append(("null", "null", facts.nulls, _condition(facts.name, Condition(quoted(facts.name), "is null"))))
    return pl.DataFrame(
        [(facts.name, kind, label, count, count / facts.rows, condition) for kind, label, count, condition in rows],
        schema=DISTRIBUTIONS,
        orient="row",
    )


def _bins(facts: Facts, counts: Sequence[int]) -> list[tuple[str, str, int, str | None]]:
    column, edges, rows = quoted(facts.name), facts.edges, []
    for edge, following, count in zip(edges, [*edges[1:], None], counts, strict=True):
        # the last bin ends with the largest value: NaN is above every number
        end = Condition(column, "<=", facts.high) if following is None else Condition(column, "<", following)
        condition = _condition(facts.name, Condition(column, ">=", edge), end)
        rows.append(("bin", value_text(edge, FEW_DIGITS) or "", count, condition))
    return rows


def _values(facts: Facts, frequencies: Frequencies) -> list[tuple[str, str, int, str | None]]:
    rows = [("value", _label(value), count, _equal(facts.name, value)) for value, count in frequencies.top]
    rest = facts.rows - facts.nulls - facts.nans - sum(count for _, count in frequencies.top)
    if rest:
        rows.append(("others", count_text(frequencies.distinct - len(frequencies.top), "other"), rest, None))
    return rows


def _label(value: Any) -> str:
    """A value as text; one of spaces, or of nothing, between quotes: it would not be seen."""
    text = value_text(value, FEW_DIGITS) or ""
    return text if text.strip() else f"'{text}'"


def _condition(name: str, *conditions: Condition) -> str | None:
    # polars' SQL takes a name like ^x$ for a pattern, in back-quotes too
    return None if name.startswith("^") and name.endswith("$") else where_text(conditions)


def _equal(name: str, value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, timedelta):
        return None
    return _condition(name, Condition(quoted(name), "=", value))
