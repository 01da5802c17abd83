"""A timeline's versions of unknown rows to the bounds that their delete files prove."""

from __future__ import annotations

import polars as pl

from lakeview import views
from lakeview.inspection.frames import TableFrames
from lakeview.model.column_values import least_records
from lakeview.model.errors import LakeviewError

_MOST_VERSIONS, _MOST_FILES = 8, 50_000
"""Versions whose files are read for it, the last ones, and files of a table for which that is cheap."""


def with_row_bounds(line: pl.DataFrame, frames: TableFrames) -> pl.DataFrame:
    """TIMELINE with the bound of each version's own files of position deletes (Iceberg) as `least_records`."""
    shown = views.timeline.commits.on_branch(line)
    unknown = shown.filter(pl.col("records").is_null())["version"].tail(_MOST_VERSIONS)
    if unknown.is_empty():
        return line
    try:
        latest = frames.snapshot(frames.latest)
        if latest.num_files > _MOST_FILES or latest.delete_files.is_empty():
            return line
    except LakeviewError:  # the commits of a broken table are shown all the same
        return line
    bounds = pl.DataFrame(
        {"version": unknown, "bound": pl.Series([_bound(frames, version) for version in unknown], dtype=pl.Int64)}
    )
    joined = line.join(bounds, on="version", how="left", maintain_order="left")
    return joined.with_columns(pl.max_horizontal("least_records", "bound").alias("least_records")).drop("bound")


def _bound(frames: TableFrames, version: int) -> int | None:
    try:
        snapshot = frames.snapshot(version)
        return least_records(snapshot.files, snapshot.delete_files)
    except LakeviewError:  # a version that can no longer be read
        return None
