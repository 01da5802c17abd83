"""The partitions page's parts: figures of skew, notes, writes over time, and the table."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.ui import tables, viewed
from lakeview.ui.components import MAX_ROWS, byte_unit, frame, grid, tile
from lakeview.ui.opened import Opened


def short_name(now: Opened) -> str:
    """The table's name for a sentence."""
    return tables.label(now.name).rpartition(" / ")[2]


def tiles(sizes: pl.DataFrame, skew: views.Skew) -> None:
    """Four figures: how many, the median, the largest and the one with most files, against their siblings."""
    with grid(220):
        tile("Partitions", f"{skew.partitions:,}", f"{int(sizes['files'].sum()):,} files")
        tile("Median", views.format_bytes(skew.median_bytes), views.counted(skew.median_files, "file"))
        tile(
            "Largest",
            views.format_bytes(skew.largest_bytes),
            _times(skew.bytes_ratio),
            beside=skew.largest,
            help="The partition with the most bytes, against the median.",
        )
        tile(
            "Most files",
            f"{skew.most_files_count:,}",
            _times(skew.files_ratio),
            beside=skew.most_files,
            help="The partition with the most files, against the median.",
        )


def sizes_note(sizes: pl.DataFrame) -> str:
    """What the bars count."""
    if sizes["records"].has_nulls():
        return "rows unknown where a file does not tell; dashed line: median"
    return "rows, from the log; dashed line: median"


def writes(now: Opened, sizes: pl.DataFrame) -> pl.DataFrame:
    """PARTITION_WRITES: when each partition was written, in spans that fit the table's age."""
    order = sizes["partition_text"].drop_nulls().to_list()
    return views.partition_writes(now.snapshot.files, now.lifetimes, viewed.timeline(now), partitions=order)


def table_note(sizes: pl.DataFrame) -> str:
    """How many rows the table has, and how many are shown."""
    if sizes.height > MAX_ROWS:
        return f"the {MAX_ROWS:,} largest of {sizes.height:,}"
    return f"{sizes.height:,}, in order"


def size_table(sizes: pl.DataFrame) -> None:
    """The twin of the bars: one row a partition."""
    column = st.column_config
    shown = sizes if sizes.height <= MAX_ROWS else sizes.sort("bytes", descending=True)
    unit, scale = byte_unit(shown["bytes"])
    median_unit, median_scale = byte_unit(shown["median_size"])
    rows = shown.select(
        partition=pl.col("partition_text").fill_null("unknown"),
        rows="records",
        files="files",
        size=pl.col("bytes") / scale,
        median=pl.col("median_size") / median_scale,
        share=pl.col("share") * 100,
    )
    frame(
        rows,
        {
            "partition": column.TextColumn("partition", width=220),
            "rows": column.NumberColumn("rows", format="localized", width=100),
            "files": column.NumberColumn("files", format="localized", width=80),
            "size": column.NumberColumn(f"size, {unit}", format="%.1f", width=110),
            "median": column.NumberColumn(f"median file, {median_unit}", format="%.1f", width=120),
            "share": column.ProgressColumn("share of bytes, %", format="%.1f", min_value=0, max_value=100, width=160),
        },
        key="partitions",
        unknown="unknown",
    )


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1f} times the median"
