"""A version's files to its number of rows, or the tightest bound that the log proves."""

from __future__ import annotations

import polars as pl

from lakeview.model.column_values import live_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.sums import total_of
from lakeview.views.units import UNKNOWN, format_count


def least_records(files: pl.DataFrame, delete_files: pl.DataFrame | None = None) -> int | None:
    """At least how many rows FILES have; None for none.

    Without a file of equality deletes all files count but for as many rows as files of position deletes name: one of
    them may name a row twice, or one that another one names (Iceberg, "Position Delete Files").
    """
    certain = files.select(live_records().cast(pl.Int128).sum().cast(pl.Int64, strict=False)).item()
    if delete_files is None or delete_files.is_empty() or set(delete_files["content"]) != {"position deletes"}:
        return None if certain is None else int(certain)
    recorded = pl.col("records") - pl.col("deleted_records").fill_null(0)
    rows = files.select(recorded.cast(pl.Int128).sum().cast(pl.Int64, strict=False)).item()
    deletes = total_of(delete_files["records"])
    return max(certain or 0, 0 if rows is None or deletes is None else rows - deletes)


def rows_text(snapshot: Snapshot, *, exact: bool = False) -> str:
    """The live rows of a version: `61.5 M` (`61,480,112` with `exact`), `≥ 308,641` where that is all that the log
    tells, or unknown."""
    if snapshot.num_records is not None:
        return format_count(snapshot.num_records, exact=exact)
    least = least_records(snapshot.files, snapshot.delete_files)
    return f"\N{GREATER-THAN OR EQUAL TO} {least:,}" if least else UNKNOWN
