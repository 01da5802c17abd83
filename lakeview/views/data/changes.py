"""CHANGES_PLAN to what commits did to rows, by version: known before any of the rows is read."""

from __future__ import annotations

import polars as pl

from lakeview.views.sums import total

CHANGE_COSTS = pl.Schema(
    {
        "version": pl.Int64(),
        "change_type": pl.String(),
        "files": pl.Int64(),
        "rows": pl.Int64(),
        "bytes": pl.Int64(),
        "source": pl.String(),
    }
)
"""One row a version and type of change, newest version first as far as the plan tells its order. `change_type`: insert,
delete, or `recorded` where files of a change feed say it row by row; `rows` null where a file does not count them;
`bytes` that reading them reads at most, null where one is unknown; `source` as CHANGES_PLAN has it."""


def change_costs(plan: pl.DataFrame) -> pl.DataFrame:
    """CHANGE_COSTS of a CHANGES_PLAN."""
    counted = plan.group_by("version", pl.col("change_type").fill_null("recorded"), "source", maintain_order=True).agg(
        files=pl.len(),
        rows=total("rows"),
        bytes=total("size"),
    )
    return counted.reverse().select(CHANGE_COSTS.names()).cast(CHANGE_COSTS)
