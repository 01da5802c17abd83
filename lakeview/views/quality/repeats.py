"""Loads that bring the rows of an earlier load again, as a job does that ran twice: from statistics alone."""

from __future__ import annotations

import polars as pl

from lakeview.views.thresholds import REPEAT_COLUMNS, REPEAT_DISTINCT, REPEAT_ROWS, REVERTED_ROUTINE

REPEATED_LOADS = pl.Schema({"version": pl.Int64(), "earlier": pl.Int64(), "records": pl.Int64(), "columns": pl.Int64()})
"""One row a load whose partitions, rows, and nulls, min and max of every column equal those of an `earlier` one, the
nearest before it; `columns`: how many of them tell min and max."""


def repeated_loads(changes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """REPEATED_LOADS from SUDDEN and TIMELINE, oldest first: appends of at least REPEAT_ROWS rows and REPEAT_COLUMNS
    columns that are not the same value throughout, one of which has another min or max in most loads.

    None where loads repeat each other as a rule. A load that was reverted says nothing, nor does the one that brings
    its rows again, or that follows deletes of as many rows: a day is deleted and loaded again.
    """
    alike = pl.struct("column", "null_count", "min_text", "max_text").hash()
    has_bounds = pl.col("min_text").is_not_null() & pl.col("max_text").is_not_null()
    appends = changes.filter((pl.col("lane") == "append") & pl.col("taken_back_by").is_null() & ~pl.col("rewrites"))
    appends = appends.with_columns(content=alike.sum().over("version"))
    # sensors have the same ranges on many days by chance; ids, times and amounts do not
    ends = pl.max_horizontal(pl.col("min_text").n_unique(), pl.col("max_text").n_unique())
    is_distinct = ends >= REPEAT_DISTINCT * pl.col("content").n_unique()
    distinct = appends.filter(has_bounds).group_by("column").agg(is_distinct=is_distinct).filter("is_distinct")
    tells_apart = has_bounds & pl.col("column").is_in(distinct["column"].implode())
    loads = appends.group_by("version", maintain_order=True).agg(
        folders=pl.col("folders").first(),
        records=pl.col("records").min(),
        rows_differ=pl.col("records").n_unique() > 1,
        content=pl.col("content").first(),
        tells_apart=tells_apart.any(),
        columns=has_bounds.sum().cast(pl.Int64),
        varied=(has_bounds & (pl.col("min_text") != pl.col("max_text"))).sum(),
    )
    judged = loads.filter(
        "tells_apart",
        (pl.col("records") >= REPEAT_ROWS) & ~pl.col("rows_differ") & (pl.col("varied") >= REPEAT_COLUMNS),
    )
    deleted = (pl.col("records_removed") - pl.col("records_added")).fill_null(0).clip(0)
    on_line = timeline.filter(pl.col("lane") != "off-branch")
    judged = judged.join(on_line.select("version", deleted=deleted.cum_sum()), on="version", maintain_order="left")
    before = pl.col("version", "deleted").shift(1).over("records", "content", "folders")
    repeats = judged.with_columns(before.name.suffix("_before")).filter(
        pl.col("deleted") - pl.col("deleted_before") < pl.col("records")
    )
    if repeats.height > REVERTED_ROUTINE * loads.height:
        return pl.DataFrame(schema=REPEATED_LOADS)
    return repeats.rename({"version_before": "earlier"}).select(REPEATED_LOADS.names()).cast(REPEATED_LOADS)
