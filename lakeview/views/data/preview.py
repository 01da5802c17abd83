"""A sample of rows to a profile of each column, and the filters of a form to SQL text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.printing import polars_literal, polars_name
from lakeview.views.units import counted
from lakeview.views.values import value_text

PROFILE = pl.Schema(
    {
        "column": pl.String(),
        "type": pl.String(),
        "nulls": pl.Int64(),
        "null_share": pl.Float64(),
        "distinct": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
    }
)
"""One row a column of the sample (nothing is said of the rest). `distinct` values without null, and `min_text` and
`max_text`, are null for lists, structs and maps."""

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = (*_COMPARISONS, "in", "contains", "starts with", "is null", "is not null")


_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter: a leaf column as STATISTICS name it, one of OPERATORS, and a value (a sequence for `in`)."""

    column: str
    operator: str
    value: object = None


def where_text(conditions: Sequence[Condition]) -> str | None:
    """The conditions as SQL text (as polars reads it) joined by AND; None without any."""
    return " AND ".join(_condition(c) for c in conditions) or None


def profile(sample: pl.DataFrame) -> pl.DataFrame:
    """PROFILE of a frame of rows."""
    # a series' methods take a name like ^x$ for a pattern: columns are looked at under a name of ours
    rows = [_column_profile(name, sample[name].alias("values")) for name in sample.columns]
    return pl.DataFrame(rows, schema=PROFILE, orient="row")


def _column_profile(name: str, values: pl.Series) -> tuple[object, ...]:
    nulls = values.null_count()
    share = nulls / values.len() if values.len() else None
    if values.dtype.is_nested() or values.dtype == pl.Null():
        return name, str(values.dtype), nulls, share, None, None, None
    known = values.drop_nulls()
    return name, str(values.dtype), nulls, share, known.n_unique(), value_text(known.min()), value_text(known.max())


def _condition(condition: Condition) -> str:
    column, operator, value = _quoted(condition.column), condition.operator, condition.value
    match operator:
        case "is null" | "is not null":
            return f"{column} {operator.upper()}"
        case "in" if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return f"{column} IN ({', '.join(polars_literal(v) for v in value)})" if value else "FALSE"
        case "contains" | "starts with" if isinstance(value, str):
            # LIKE has no escape in polars' SQL: a text with % in it would match too much
            text = polars_literal(value)
            return f"STRPOS({column}, {text}) > 0" if operator == "contains" else f"STARTS_WITH({column}, {text})"
        case _ if operator in _COMPARISONS and value is not None:
            return f"{column} {operator} {polars_literal(value)}"
    raise InvalidRequestError(
        f"{condition.column} {operator} {value!r} is no filter",
        fix=f"use one of {', '.join(OPERATORS)} with a value that fits",
        place=condition.column,
    )


def _quoted(name: str) -> str:
    """A leaf column's name (`a.b`, parts with dots back-quoted) in SQL."""
    parts = _PART.findall(name)
    return polars_name([part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts] or [""])


def plan_text(plan: pl.DataFrame) -> str:
    """How many files of PLAN a filter may read, and how many are skipped by what."""
    skipped = dict(plan.filter(~pl.col("kept"))["reason"].value_counts().iter_rows())
    reasons = ", ".join(f"{count:,} by {reason}" for reason, count in sorted(skipped.items()))
    text = f"{int(plan['kept'].sum()):,} of {counted(plan.height, 'file')} may hold such rows"
    return f"{text}; skipped: {reasons}" if reasons else text
