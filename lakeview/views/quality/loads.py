"""Loads that lose the rows of a table, or bring those of an earlier load again: from timeline and statistics alone."""

import polars as pl

from lakeview.views.conform import conform
from lakeview.views.thresholds import (
    BASELINE_WINDOW,
    CADENCE_SPAN,
    JOB_GAP,
    LOST_ROWS,
    LOST_SHARE,
    REPEAT_COLUMNS,
    REPEAT_DISTINCT,
    REPEAT_ROWS,
    REVERTED_ROUTINE,
)
from lakeview.views.timeline.branches import on_branch

ROW_LOSSES = pl.Schema(
    {"version": pl.Int64(), "records": pl.Int64(), "records_before": pl.Int64(), "restored_by": pl.Int64()}
)
"""One row an overwrite, oldest first: the rows that it left and those before it; `restored_by`: the version that
brought most of them back at once, null while they are missing."""

_OVERWRITES = (
    "WRITE",
    "OVERWRITE",
    "APPEND",
    "COPY INTO",
    "STREAMING UPDATE",
    "REPLACE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE AS SELECT",
)
"""Operations that overwrite a table where no file of before stays; by others rows are deleted as they are asked to.
Iceberg's `overwrite` may also be a delete that rewrote every file: its summary does not tell them apart."""


def row_losses(timeline: pl.DataFrame) -> pl.DataFrame:
    """ROW_LOSSES from TIMELINE: at least LOST_ROWS rows were there, and less than LOST_SHARE of them are left.

    An overwrite that empties the table and one commit of the same job that fills it again count as one, which is that
    of the first. Not counted are tables that were overwritten with as few rows before, those that are again after they
    grew, as one is that fills from month to month, and those that have most rows again within an hour: they are written
    in parts.
    """
    line = on_branch(timeline)
    follows = (pl.col("files").shift(1) == 0) & (pl.col("timestamp") - pl.col("timestamp").shift(1) <= JOB_GAP)
    is_second = follows.fill_null(value=False)
    is_whole = (
        pl.col("data_change")
        & (pl.col("files") == pl.col("files_added"))
        & pl.col("operation").str.to_uppercase().is_in(_OVERWRITES)
    )
    overwrites = (
        line.with_row_index("row")
        .with_columns(
            records_before=pl.when(is_second).then(pl.col("records").shift(2)).otherwise(pl.col("records").shift(1)),
            version=pl.when(is_second).then(pl.col("version").shift(1)).otherwise("version"),
        )
        .filter(is_whole, pl.col("records_before") > 0)
        .with_columns(fewest=pl.col("records").shift(1).rolling_min(BASELINE_WINDOW, min_samples=1))
    )
    shrinking = overwrites.filter(
        pl.col("records_before") >= LOST_ROWS, pl.col("records") < LOST_SHARE * pl.col("records_before")
    )
    losses = shrinking.filter((pl.col("records") < LOST_SHARE * pl.col("fewest")).fill_null(value=True))
    rows = []
    for row, version, records, before in losses.select("row", "version", "records", "records_before").iter_rows():
        is_in_parts, repair = _recovery(line[row:], LOST_SHARE * before)
        repeats = shrinking.filter(pl.col("row") > row, pl.col("records_before") >= LOST_SHARE * before)
        if not is_in_parts and (repair is not None or repeats.is_empty()):
            rows.append((version, records, before, repair))
    return pl.DataFrame(rows, schema=ROW_LOSSES, orient="row")


def _recovery(line: pl.DataFrame, enough: float) -> tuple[bool, int | None]:
    """Whether so many rows are there again within an hour of the first of these commits, and the first version that
    brings them back at once, None without one."""
    records, since = line["records"], line.select(pl.col("timestamp") - pl.col("timestamp").first()).to_series()
    is_enough = (records >= enough).fill_null(value=False)
    at_once = line.filter(is_enough & (records.diff() >= enough - records[0]).fill_null(value=False))["version"]
    return bool((is_enough & (since <= CADENCE_SPAN)).any()), None if at_once.is_empty() else int(at_once[0])


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
    large = loads.filter(
        "tells_apart",
        (pl.col("records") >= REPEAT_ROWS) & ~pl.col("rows_differ") & (pl.col("varied") >= REPEAT_COLUMNS),
    )
    rows_deleted = (pl.col("records_removed") - pl.col("records_added")).fill_null(0).clip(0)
    large = large.join(
        on_branch(timeline).select("version", deleted=rows_deleted.cum_sum()), on="version", maintain_order="left"
    )
    before = pl.col("version", "deleted").shift(1).over("records", "content", "folders")
    repeats = large.with_columns(before.name.suffix("_before")).filter(
        pl.col("deleted") - pl.col("deleted_before") < pl.col("records")
    )
    if repeats.height > REVERTED_ROUTINE * loads.height:
        return pl.DataFrame(schema=REPEATED_LOADS)
    return repeats.rename({"version_before": "earlier"}).pipe(conform, REPEATED_LOADS)
