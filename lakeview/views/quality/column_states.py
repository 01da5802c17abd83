"""Lifetimes of files to the state of every column at every version: rows, nulls, range, in one pass."""

from __future__ import annotations

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.sums import shown_bounds
from lakeview.views.timeline.commits import on_branch
from lakeview.views.timeline.trend import states
from lakeview.views.values import bound_texts

COLUMN_STATES = pl.Schema(
    {
        "column": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "records": pl.Int64(),
        "null_count": pl.Int64(),
        "null_share": pl.Float64(),
        "exact": pl.Boolean(),
        "mark": pl.String(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "range_is": pl.String(),
    }
)
"""One row a column and version, oldest first: the whole table as it was. `mark`: "" exact, "≤" or "≥" a bound,
null unknown;
`low`, `high`: of numbers; `range_is` as in SCHEMA_TREE: exact, bound, partial (of the files with a range), or null."""


def column_states(lifetimes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_STATES from LIFETIMES with `statistics` and TIMELINE, whose order is that of the versions."""
    line = on_branch(timeline).select("version", "timestamp")
    if "statistics" not in lifetimes.columns or line.is_empty():
        return pl.DataFrame(schema=COLUMN_STATES)
    every = states(lifetimes, line["version"])
    columns = every["statistics"].struct
    parts = [
        _column(name, line.with_columns(every["records"]), series.struct.unnest())
        for name, series in zip(columns.fields, columns.unnest().get_columns(), strict=True)
    ]
    return pl.concat([pl.DataFrame(schema=COLUMN_STATES), *parts])


def newest_first(states: pl.DataFrame, column: str) -> pl.DataFrame:
    """The rows of one column of COLUMN_STATES, newest first."""
    return states.filter(pl.col("column") == column).reverse()


def _column(name: str, line: pl.DataFrame, statistics: pl.DataFrame) -> pl.DataFrame:
    rows = line.with_columns(statistics.select("null_count", "null_count_exact", "exact", "nulls"))
    low, high = statistics["some_min"], statistics["some_max"]
    numbers = low.dtype.is_numeric()
    unknown = pl.Series([None], dtype=pl.Float64).new_from_index(0, statistics.height)
    known = pl.col("null_count").is_not_null() & (pl.col("records") > 0)
    some = pl.col("null_count").is_null() & (pl.col("nulls") > 0) & (pl.col("records") > 0)
    ranged = low.is_not_null() & high.is_not_null()
    complete = statistics["min"].is_not_null() & statistics["max"].is_not_null()
    return (
        rows.select(
            pl.lit(name).alias("column"),
            "version",
            "timestamp",
            "records",
            "null_count",
            null_share=pl.when(known | some).then(
                (pl.coalesce("null_count", "nulls") / pl.col("records")).clip(0.0, 1.0)
            ),
            exact=known & pl.col("null_count_exact"),
            mark=pl.when(known & pl.col("null_count_exact"))
            .then(pl.lit(""))
            .when(known)
            .then(pl.lit("\N{LESS-THAN OR EQUAL TO}"))
            .when(some)
            .then(pl.lit("\N{GREATER-THAN OR EQUAL TO}")),
            low=low.cast(pl.Float64) if numbers else unknown,
            high=high.cast(pl.Float64) if numbers else unknown,
            min_text=bound_texts(low, statistics["exact"]),
            max_text=bound_texts(high, statistics["exact"]),
            range_is=pl.when(complete & pl.col("exact"))
            .then(pl.lit("exact"))
            .when(complete)
            .then(pl.lit("bound"))
            .when(ranged)
            .then(pl.lit("partial")),
        )
        .cast(COLUMN_STATES)
        .with_columns(shown_bounds())
    )
