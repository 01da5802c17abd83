"""Rows to a profile of each column: nulls, distinct values, min and max, and how the values are distributed."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import polars as pl
import polars.selectors as cs

from lakeview.model.schema import quote_name
from lakeview.views.data.aggregates import Aggregates, Facts, Frequencies, PolarsAggregates, has_bins
from lakeview.views.data.preview import Condition, where_text
from lakeview.views.units import count_text
from lakeview.views.values import FEW_DIGITS, digits_of, value_text

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

_VALUES = pl.Schema({name: kind for name, kind in DISTRIBUTIONS.items() if name != "column"})

PROFILE = pl.Schema(
    {
        "column": pl.String(),
        "type": pl.String(),
        "nulls": pl.Int64(),
        "null_share": pl.Float64(),
        "distinct": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "distribution": pl.List(pl.Struct(_VALUES)),
    }
)
"""One row a column of the rows given. `distinct` values without null, and `min_text` and `max_text`, are null for
lists, structs and maps; `distribution`: the rows of DISTRIBUTIONS of this column."""

_CELLS = 1 << 26
"""Values of columns that are in memory at the same time."""


OnPart = Callable[[Sequence[pl.DataFrame], int], object]
"""Called with a PROFILE of as many frames as columns, as far as it is known, and how many rows there are."""


def profile(rows: pl.LazyFrame, on_part: OnPart = lambda *_: None) -> tuple[pl.DataFrame, int]:
    """PROFILE of all rows, and how many there are. Reads the first column, then as many at once as fit in memory.

    `on_part` gets it after each pass and then after each column: `distinct` and `distribution` come last, and a column
    that was not read yet has only its type.
    """
    unread = [
        pl.DataFrame([{"column": name, "type": str(kind)}], schema=PROFILE)
        for name, kind in rows.collect_schema().items()
    ]
    return profile_of(_groups(rows), lambda parts, height: on_part([*parts, *unread[len(parts) :]], height))


def profile_of(groups: Iterable[Aggregates], on_part: OnPart = lambda *_: None) -> tuple[pl.DataFrame, int]:
    """PROFILE of the columns that engines add up, group by group, and how many rows there are; `on_part` gets the
    columns of the groups so far, those of the last one with the frequencies that are known."""
    parts: list[pl.DataFrame] = []
    height = 0
    for group in groups:
        facts = group.facts()
        height = max([height, *(each.rows for each in facts)])
        positions = {each.name: position for position, each in enumerate(facts, len(parts))}
        parts += [_column(each, None) for each in facts]
        on_part(parts, height)
        of_group = dict(zip(positions, facts, strict=True))
        for name, frequencies in group.frequencies({each.name: each.edges for each in facts if each.is_countable}):
            parts[positions[name]] = _column(of_group[name], frequencies)
            on_part(parts, height)
    return pl.concat([pl.DataFrame(schema=PROFILE), *parts]), height


def _groups(rows: pl.LazyFrame) -> Iterator[PolarsAggregates]:
    names, at_once = rows.collect_schema().names(), 1
    while names:
        # by name: a name like ^x$ is no pattern
        columns = rows.select(cs.by_name(*names[:at_once])).collect(engine="streaming")
        yield PolarsAggregates(columns)
        names = names[at_once:]
        at_once = max(_CELLS // max(columns.height, 1), 1)


def distribution(profile: pl.DataFrame) -> pl.DataFrame:
    """DISTRIBUTIONS of the columns of PROFILE."""
    values = profile.select("column", "distribution").filter(pl.col("distribution").list.len() > 0)
    return values.explode("distribution").unnest("distribution").cast(DISTRIBUTIONS)


def _column(facts: Facts, frequencies: Frequencies | None) -> pl.DataFrame:
    """The row of PROFILE of one column; without frequencies its nulls alone."""
    only_nan = math.nan if facts.nans else None
    row = {
        "column": facts.name,
        "type": str(facts.dtype),
        "nulls": facts.nulls,
        "null_share": facts.nulls / facts.rows if facts.rows else None,
        # all NaN are one value
        "distinct": None if frequencies is None else frequencies.distinct + bool(facts.nans),
        "min_text": value_text(only_nan if facts.low is None else facts.low, digits_of(facts.dtype)),
        "max_text": value_text(only_nan if facts.high is None else facts.high, digits_of(facts.dtype)),
        "distribution": column_distribution(facts, frequencies).drop("column").to_dicts() or None,
    }
    return pl.DataFrame([row], schema=PROFILE)


def column_distribution(facts: Facts, frequencies: Frequencies | None) -> pl.DataFrame:
    """DISTRIBUTIONS of one column from what an engine added up; without frequencies its nulls and NaN alone."""
    rows: list[tuple[str, str, int, str | None]] = []
    if frequencies is not None and frequencies.distinct:
        is_measure = has_bins(facts, frequencies.distinct)
        rows = _bins(facts, frequencies.bins) if is_measure else _values(facts, frequencies)
    if facts.nans:
        rows.append(("nan", "NaN", facts.nans, None))
    if facts.nulls:
        rows.append(("null", "null", facts.nulls, _condition(facts.name, Condition(quote_name(facts.name), "is null"))))
    return pl.DataFrame(
        [(facts.name, kind, label, count, count / facts.rows, condition) for kind, label, count, condition in rows],
        schema=DISTRIBUTIONS,
        orient="row",
    )


def _bins(facts: Facts, counts: Sequence[int]) -> list[tuple[str, str, int, str | None]]:
    column, edges, rows = quote_name(facts.name), facts.edges, []
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
    return _condition(name, Condition(quote_name(name), "=", value))
