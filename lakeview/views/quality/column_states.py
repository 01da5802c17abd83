"""Lifetimes of files to the state of every column at every version: rows, nulls, range, in one pass."""

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform, first_label
from lakeview.views.quality.sudden_changes import brings_new_rows
from lakeview.views.sums import shown_bounds
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.trend import states
from lakeview.views.values import bound_texts, numbers

COLUMN_STATES = pl.Schema(
    {
        "column": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "records": pl.Int64(),
        "records_mark": pl.String(),
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
"""One row a column and version, oldest first: the whole table as it was. `records_mark`: "≥" where the rows are a
bound (`least_records` of TIMELINE), else ""; `mark` of the null share: "" exact, "≤" or "≥" a bound, null unknown;
`low`, `high`: of numbers; `range_is` as in SCHEMA_TREE: exact, bound, partial (of the files with a range), or null."""

COLUMN_QUALITY = pl.Schema(
    {
        "column": pl.String(),
        "null_share": pl.Float64(),
        "null_share_mark": pl.String(),
        "load": pl.Int64(),
        "load_null_share": pl.Float64(),
        "load_mark": pl.String(),
        "usual": pl.Float64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "anomalies": pl.Int64(),
    }
)
"""One row a leaf column, in the schema's order. Share, mark and texts as in SCHEMA_TREE; `load`: the version of the
newest load that has the column, with its null share and mark and the `usual` share before it, as in SUDDEN: not a
delete or a compaction, which writes rows of earlier loads again, unless no other has the column; `anomalies`: how many
loads are one of this column."""


def column_states(lifetimes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_STATES from LIFETIMES with `statistics` and TIMELINE, whose order is that of the versions."""
    line = on_branch(timeline).select("version", "timestamp", "least_records")
    if "statistics" not in lifetimes.columns or line.is_empty():
        return pl.DataFrame(schema=COLUMN_STATES)
    every = states(lifetimes, line["version"])
    columns = every["statistics"].struct
    is_bound = pl.col("records").is_null() & (pl.col("least_records") > 0)
    rows = line.with_columns(every["records"]).with_columns(
        records=pl.when(is_bound).then("least_records").otherwise("records"),
        records_mark=pl.when(is_bound).then(pl.lit("\N{GREATER-THAN OR EQUAL TO}")).otherwise(pl.lit("")),
    )
    parts = [
        _column(name, rows, series.struct.unnest())
        for name, series in zip(columns.fields, columns.unnest().get_columns(), strict=True)
    ]
    return pl.concat([pl.DataFrame(schema=COLUMN_STATES), *parts])


def newest_first(states: pl.DataFrame, column: str) -> pl.DataFrame:
    """The rows of one column of COLUMN_STATES, newest first."""
    return states.filter(pl.col("column") == column).reverse()


def _column(name: str, line: pl.DataFrame, statistics: pl.DataFrame) -> pl.DataFrame:
    rows = line.with_columns(statistics.select("null_count", "null_count_exact", "exact", "nulls"))
    low, high = statistics["some_min"], statistics["some_max"]
    is_counted, has_rows = pl.col("records_mark") == "", (pl.col("records") > 0).fill_null(value=False)
    none = (pl.col("null_count") == 0) & pl.col("null_count_exact") & (has_rows | pl.col("records").is_null())
    has_share = none | (has_rows & (is_counted | (pl.col("null_count") < pl.col("records"))))
    has_share &= pl.col("null_count").is_not_null()
    exact = none | (has_share & pl.col("null_count_exact") & is_counted)
    some = pl.col("null_count").is_null() & (pl.col("nulls") > 0) & has_rows & is_counted
    has_range = low.is_not_null() & high.is_not_null()
    complete = statistics["min"].is_not_null() & statistics["max"].is_not_null()
    return (
        rows.select(
            pl.lit(name).alias("column"),
            "version",
            "timestamp",
            "records",
            "records_mark",
            "null_count",
            null_share=pl.when(none)
            .then(0.0)
            .when(has_share | some)
            .then((pl.coalesce("null_count", "nulls") / pl.col("records")).clip(0.0, 1.0)),
            exact=exact,
            mark=first_label({"": exact, "\N{LESS-THAN OR EQUAL TO}": has_share, "\N{GREATER-THAN OR EQUAL TO}": some}),
            low=numbers(low),
            high=numbers(high),
            min_text=bound_texts(low, statistics["exact"]),
            max_text=bound_texts(high, statistics["exact"]),
            range_is=first_label({"exact": complete & pl.col("exact"), "bound": complete, "partial": has_range}),
        )
        .cast(COLUMN_STATES)
        .with_columns(shown_bounds())
    )


def column_quality(tree: pl.DataFrame, loads: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_QUALITY from SCHEMA_TREE, SUDDEN and the TIMELINE up to the version of the tree."""
    earlier = loads.filter(pl.col("version").is_in(timeline["version"].implode()))
    # the loads that others are compared with last: a delete that rewrites the table has the null share of the table
    by_column = (
        earlier.sort(brings_new_rows(), maintain_order=True)
        .group_by("column")
        .agg(
            pl.col("version").last().alias("load"),
            pl.col("null_share").last().alias("load_null_share"),
            pl.col("mark").last().alias("load_mark"),
            pl.col("usual").last(),
            (pl.col("sudden") | pl.col("sudden_range")).sum().cast(pl.Int64).alias("anomalies"),
        )
    )
    return (
        tree.filter("leaf")
        .rename({"path": "column"})
        .join(by_column, on="column", how="left", maintain_order="left")
        .pipe(conform, COLUMN_QUALITY)
    )
