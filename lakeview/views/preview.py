"""Rows on a screen to what can be said of them: a profile of each column, and filters as SQL text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal

import polars as pl

from lakeview.errors import InvalidRequestError
from lakeview.views.columns import value_text

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

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = (*COMPARISONS, "in", "contains", "starts with", "is null", "is not null")


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter: a column, one of OPERATORS, and what it is compared with (a sequence for `in`)."""

    column: str
    operator: str
    value: object = None


def where_text(conditions: Sequence[Condition]) -> str | None:
    """The conditions as SQL text joined by AND; None without any. Names are back-quoted where they must be."""
    return " AND ".join(_condition(c) for c in conditions) or None


def profile(sample: pl.DataFrame) -> pl.DataFrame:
    """PROFILE of a frame of rows."""
    rows = [_column_profile(name, sample[name]) for name in sample.columns]
    return pl.DataFrame(rows, schema=PROFILE, orient="row")


def _column_profile(name: str, values: pl.Series) -> tuple[object, ...]:
    nulls = values.null_count()
    share = nulls / values.len() if values.len() else None
    if values.dtype.is_nested() or values.dtype == pl.Null():
        return name, str(values.dtype), nulls, share, None, None, None
    known = values.drop_nulls()
    return name, str(values.dtype), nulls, share, known.n_unique(), value_text(known.min()), value_text(known.max())


def _condition(condition: Condition) -> str:
    column, operator, value = quoted(condition.column), condition.operator, condition.value
    match operator:
        case "is null" | "is not null":
            return f"{column} {operator.upper()}"
        case "in" if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return f"{column} IN ({', '.join(_literal(v) for v in value)})" if value else "FALSE"
        case "contains" | "starts with" if isinstance(value, str):
            pattern = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            return f"{column} LIKE {_literal(f'%{pattern}%' if operator == 'contains' else f'{pattern}%')}"
        case _ if operator in COMPARISONS and value is not None:
            return f"{column} {operator} {_literal(value)}"
    raise InvalidRequestError(
        f"{condition.column} {operator} {value!r} is no filter",
        fix=f"use one of {', '.join(OPERATORS)} with a value that fits",
        place=condition.column,
    )


def quoted(name: str) -> str:
    """A column's name in SQL: plain where it can be, else in back-quotes, doubled inside."""
    return name if name.isascii() and name.isidentifier() and name.islower() else f"`{name.replace('`', '``')}`"


def _literal(value: object) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float() | Decimal():
            return str(value)
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    raise InvalidRequestError(f"a {type(value).__name__} cannot be written as SQL", fix="compare with a plain value")
