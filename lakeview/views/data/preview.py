"""What a preview reads: the filters of a form as SQL text, what such a filter would read as one line, and a seed to the
same sample again: of a version's files, and of rows as they pass."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.model.column_values import live_records
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


def first_files(files: pl.DataFrame, count: int) -> pl.DataFrame:
    """The first of FILES, as many as hold `count` rows for certain; all where too few files record their rows."""
    least = files.select(live_records().fill_null(0).cum_sum()).to_series()
    enough = least.search_sorted(count) + 1
    return files.head(enough)


def sample_files(files: pl.DataFrame, most_bytes: int, seed: int) -> pl.DataFrame:
    """Rows of `files` (path, size) in an order drawn by the seed, those that fit into `most_bytes` together: one that
    does not is left out. Files of unknown size are left out too; there may be none.
    """
    candidates = files.drop_nulls("size").filter(pl.col("size") <= most_bytes).sort(pl.col("path").hash(seed), "path")
    budget, fits = most_bytes, []
    for size in candidates["size"]:
        fits.append(size <= budget)
        budget -= size if size <= budget else 0
    return candidates.filter(pl.Series(fits, dtype=pl.Boolean))


def sample_rows(rows: pl.LazyFrame, count: int, seed: int) -> pl.DataFrame:
    """At most `count` rows, each of all as likely; all columns of `rows`, in the order of the draw.

    No more than `count` rows of a batch are kept in memory. The same rows in the same order give the same sample.
    """
    lock, rows_before = threading.Lock(), 0
    key = "sample key"
    while key in rows.collect_schema():
        key += "_"

    def thin(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal rows_before
        with lock:
            first, rows_before = rows_before, rows_before + batch.height
        keys = pl.int_range(first, first + batch.height, eager=True).hash(seed).alias(key)
        return batch.with_columns(keys).bottom_k(count, by=key)

    schema = pl.Schema({**rows.collect_schema(), key: pl.UInt64()})
    sample = rows.map_batches(thin, schema=schema, streamable=True).collect(engine="streaming")
    return sample.sort(key).head(count).drop(key)
