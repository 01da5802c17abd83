"""CHANGES_PLAN to what commits did to rows, by version: known before any of the rows is read."""

from __future__ import annotations

import polars as pl

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
`bytes` that reading them reads at most; `source` as CHANGES_PLAN has it."""


def change_costs(plan: pl.DataFrame) -> pl.DataFrame:
    """CHANGE_COSTS of a CHANGES_PLAN."""
    counted = plan.group_by("version", pl.col("change_type").fill_null("recorded"), "source", maintain_order=True).agg(
        files=pl.len(),
        rows=pl.when(pl.col("rows").has_nulls()).then(None).otherwise(pl.col("rows").sum()),
        bytes=pl.col("size").sum(),
    )
    return counted.reverse().select(CHANGE_COSTS.names()).cast(CHANGE_COSTS)
