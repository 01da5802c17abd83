"""Statistics of several versions to the null share of each column in each of them, and which are far from its
median."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.schema.null_shares import null_shares
from lakeview.views.thresholds import is_unusual_share

NULL_SHARES_BY_VERSION = pl.Schema(
    {
        "column": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "null_share": pl.Float64(),
        "exact": pl.Boolean(),
        "mark": pl.String(),
        "usual": pl.Float64(),
        "unusual": pl.Boolean(),
    }
)
"""One row a leaf column and version it was there in. `usual`: the median of the column's exact shares; `unusual`: an
exact share far off it, both in shares and against how the column varies."""


def null_shares_by_version(
    versions: Sequence[tuple[int, datetime | None, pl.DataFrame, pl.DataFrame]],
) -> pl.DataFrame:
    """NULL_SHARES_BY_VERSION from (version, timestamp, STATISTICS, FILES) for each, oldest first."""
    frames = [
        null_shares(statistics, files).select(
            "column",
            pl.lit(version, dtype=pl.Int64).alias("version"),
            pl.lit(timestamp, dtype=UTC_MILLIS).alias("timestamp"),
            "null_share",
            "exact",
            "mark",
        )
        for version, timestamp, statistics, files in versions
    ]
    empty = pl.DataFrame(schema={n: NULL_SHARES_BY_VERSION[n] for n in NULL_SHARES_BY_VERSION.names()[:6]})
    distance = (pl.col("null_share") - pl.col("usual")).abs()
    return (
        pl.concat([empty, *frames])
        # what some files leave out moves a share that is no more than a bound: only exact ones are compared
        .with_columns(usual=pl.when("exact").then("null_share").median().over("column"))
        .with_columns(spread=pl.when("exact").then(distance).median().over("column"))
        .with_columns(unusual=(is_unusual_share(distance, pl.col("spread")) & pl.col("exact")).fill_null(value=False))
        .select(NULL_SHARES_BY_VERSION.names())
    )
