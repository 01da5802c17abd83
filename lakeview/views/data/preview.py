"""The filters of a form to SQL text, and what such a filter would read as one line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.printing import polars_literal, polars_name
from lakeview.views.units import count_text

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


def _condition(condition: Condition) -> str:
    column, operator, value = _quote(condition.column), condition.operator, condition.value
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


def _quote(name: str) -> str:
    """A leaf column's name (`a.b`, parts with dots back-quoted) in SQL."""
    parts = _PART.findall(name)
    return polars_name([part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts] or [""])


def plan_text(plan: pl.DataFrame) -> str:
    """How many files of PLAN a filter may read, and how many are skipped by what."""
    counts = dict(plan.filter(~pl.col("kept"))["reason"].value_counts().iter_rows())
    reasons = ", ".join(f"{count:,} by {reason}" for reason, count in sorted(counts.items()))
    text = f"{int(plan['kept'].sum()):,} of {count_text(plan.height, 'file')} may hold such rows"
    return f"{text}; skipped: {reasons}" if reasons else text
