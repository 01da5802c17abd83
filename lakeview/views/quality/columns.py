"""Columns of a version to how their nulls and ranges compare with their loads."""

from __future__ import annotations

import polars as pl

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
newest load that has the column, with its null share and mark and the `usual` share before it, as in SUDDEN;
`anomalies`: how many loads are one of this column."""


def column_quality(tree: pl.DataFrame, loads: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_QUALITY from SCHEMA_TREE, SUDDEN and the TIMELINE up to the version of the tree."""
    earlier = loads.filter(pl.col("version").is_in(timeline["version"].implode()))
    by_column = earlier.group_by("column").agg(
        pl.col("version").last().alias("load"),
        pl.col("null_share").last().alias("load_null_share"),
        pl.col("mark").last().alias("load_mark"),
        pl.col("usual").last(),
        (pl.col("sudden") | pl.col("sudden_range")).sum().cast(pl.Int64).alias("anomalies"),
    )
    return (
        tree.filter("leaf")
        .rename({"path": "column"})
        .join(by_column, on="column", how="left", maintain_order="left")
        .select(COLUMN_QUALITY.names())
        .cast(COLUMN_QUALITY)
    )
