"""Two versions compared in one frame: totals, columns, settings and partitions."""

import polars as pl

from lakeview.model.column_values import least_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.compare.versions import partition_contents, partition_difference, settings_difference
from lakeview.views.schema.diff import diff_schemas

COMPARISON = pl.Schema(
    {"aspect": pl.String(), "name": pl.String(), "change": pl.String(), "before": pl.String(), "after": pl.String()}
)
"""One row a difference. `aspect`: total (`name`: rows, bytes or files), column, setting or partition; `change`: of a
column as in SCHEMA_DIFF, of a setting as in SETTINGS_DIFF, else changed. `before` and `after` as text, numbers in plain
digits (a bound of the rows as `≥ 308641`), null where there is none or it is unknown; of a partition its live files and
their rows."""


def comparison(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    """COMPARISON of two snapshots of one table; what is equal in both has no row."""
    columns = diff_schemas(before.schema, after.schema).select(
        pl.lit("column").alias("aspect"), pl.col("column").alias("name"), "change", "before", "after"
    )
    settings = settings_difference(before, after).filter(pl.col("change") != "same")
    partitions = partition_difference(before, after).filter(
        pl.any_horizontal(pl.col("files_added", "files_removed", "files_redeleted") > 0)
    )
    for name, snapshot in (("before", before), ("after", after)):
        partitions = partitions.join(partition_contents(snapshot, name), on="partition_text", how="left")
    return pl.concat([
        _totals(before, after),
        columns,
        settings.select(pl.lit("setting").alias("aspect"), "name", "change", "before", "after"),
        partitions.select(
            pl.lit("partition").alias("aspect"),
            pl.col("partition_text").alias("name"),
            pl.lit("changed").alias("change"),
            "before",
            "after",
        ),
    ]).cast(COMPARISON)  # fmt: skip


def _totals(before: Snapshot, after: Snapshot) -> pl.DataFrame:
    pairs = {
        "rows": (_rows(before), _rows(after)),
        "bytes": (_digits(before.size_bytes), _digits(after.size_bytes)),
        "files": (_digits(before.num_files), _digits(after.num_files)),
    }
    rows = [
        ("total", name, "changed", old, new)
        for name, (old, new) in pairs.items()
        if old != new or old is None or not old.isdecimal()
    ]
    return pl.DataFrame(rows, schema=COMPARISON, orient="row")


def _rows(snapshot: Snapshot) -> str | None:
    if snapshot.num_records is not None:
        return str(snapshot.num_records)
    least = least_records(snapshot.files, snapshot.delete_files)
    return f"\N{GREATER-THAN OR EQUAL TO} {least}" if least else None


def _digits(number: int | None) -> str | None:
    return None if number is None else str(number)
