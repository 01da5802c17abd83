"""Versions of unknown rows, of a table or of one partition, to the bounds that their delete files prove."""

from collections.abc import Callable

import polars as pl

from lakeview import views
from lakeview.inspection.frames import TableFrames
from lakeview.model.column_values import least_records
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot import Snapshot
from lakeview.views.partitions.sizes import least_records_of

_MOST_VERSIONS, _MOST_FILES = 8, 50_000
"""Versions whose files are read for it, the last ones, and files of a table for which that is cheap."""


def with_row_bounds(line: pl.DataFrame, frames: TableFrames) -> pl.DataFrame:
    """TIMELINE with the bound of each version's own files of position deletes (Iceberg) as `least_records`."""
    bounds = _bounds(
        views.timeline.commits.on_branch(line),
        frames,
        lambda snapshot: least_records(snapshot.files, snapshot.delete_files),
    )
    joined = line.join(bounds, on="version", how="left", maintain_order="left")
    return joined.with_columns(pl.max_horizontal("least_records", "bound").alias("least_records")).drop("bound")


def with_partition_bounds(states: pl.DataFrame, frames: TableFrames, partition: str) -> pl.DataFrame:
    """PARTITION_HISTORY with `mark`, "≥" where `records` is the bound of its own files, as in `with_row_bounds` of
    PARTITION_SIZES, else ""."""
    bounds = _bounds(states, frames, lambda snapshot: least_records_of(snapshot, partition))
    joined = states.join(bounds, on="version", how="left", maintain_order="left")
    mark = pl.when(pl.col("records").is_null() & pl.col("bound").is_not_null()).then(
        pl.lit("\N{GREATER-THAN OR EQUAL TO}")
    )
    return joined.with_columns(mark=mark.otherwise(pl.lit("")), records=pl.coalesce("records", "bound")).drop("bound")


def _bounds(versions: pl.DataFrame, frames: TableFrames, bound_of: Callable[[Snapshot], int | None]) -> pl.DataFrame:
    """`version` and `bound` of the last versions whose `records` are null, none of a table without delete files."""
    unknown = versions.filter(pl.col("records").is_null())["version"].tail(_MOST_VERSIONS)
    try:
        latest = None if unknown.is_empty() else frames.snapshot(frames.latest)
        if latest is None or latest.num_files > _MOST_FILES or latest.delete_files.is_empty():
            unknown = unknown.clear()
    except LakeviewError:  # the commits of a broken table are shown all the same
        unknown = unknown.clear()
    bounds = [_bound(frames, version, bound_of) for version in unknown]
    return pl.DataFrame({"version": unknown, "bound": pl.Series(bounds, dtype=pl.Int64)})


def _bound(frames: TableFrames, version: int, bound_of: Callable[[Snapshot], int | None]) -> int | None:
    try:
        return bound_of(frames.snapshot(version))
    except LakeviewError:  # a version that can no longer be read
        return None
