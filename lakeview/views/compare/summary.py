"""Two versions compared in one frame: totals, columns, settings and partitions."""

from __future__ import annotations

import polars as pl

from lakeview.model.snapshot import Snapshot
from lakeview.views.compare.versions import partition_difference, settings_difference
from lakeview.views.schema.diff import diff_schemas

COMPARISON = pl.Schema(
    {"aspect": pl.String(), "name": pl.String(), "change": pl.String(), "before": pl.String(), "after": pl.String()}
)
"""One row a difference. `aspect`: total (`name`: rows, bytes or files), column, setting or partition; `change`: of a
column as in SCHEMA_DIFF, of a setting as in SETTINGS_DIFF, else changed. `before` and `after` as text, numbers in plain
digits, null where there is none or it is unknown; of a partition the files that were removed and added."""


def comparison(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    """COMPARISON of two snapshots of one table; what is equal in both has no row."""
    columns = diff_schemas(before.schema, after.schema).select(
        pl.lit("column").alias("aspect"), pl.col("column").alias("name"), "change", "before", "after"
    )
    settings = settings_difference(before, after).filter(pl.col("change") != "same")
    partitions = partition_difference(before, after).filter(
        pl.any_horizontal(pl.col("files_added", "files_removed", "files_redeleted") > 0)
    )
    return pl.concat([
        _totals(before, after),
        columns,
        settings.select(pl.lit("setting").alias("aspect"), "name", "change", "before", "after"),
        partitions.select(
            pl.lit("partition").alias("aspect"),
            pl.col("partition_text").alias("name"),
            pl.lit("changed").alias("change"),
            pl.col("files_removed").cast(pl.String).alias("before"),
            pl.col("files_added").cast(pl.String).alias("after"),
        ),
    ]).cast(COMPARISON)  # fmt: skip


def _totals(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    pairs = {
        "rows": (before.num_records, after.num_records),
        "bytes": (before.size_bytes, after.size_bytes),
        "files": (before.num_files, after.num_files),
    }
    rows = [
        ("total", name, "changed", None if old is None else str(old), None if new is None else str(new))
        for name, (old, new) in pairs.items()
        if old != new or old is None
    ]
    return pl.DataFrame(rows, schema=COMPARISON, orient="row")
