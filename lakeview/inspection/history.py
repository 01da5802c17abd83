"""The history of a table to its timeline, the arrival of its partitions, and what a cleanup would end; versions of
unknown rows, of a table or of one partition, to the bounds that their delete files prove."""

from collections.abc import Callable

import polars as pl

from lakeview import views
from lakeview.inspection.frames import TableFrames, cache_answer
from lakeview.model.column_values import least_records
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot import Snapshot
from lakeview.views.partitions.sizes import least_records_of

_MOST_VERSIONS, _MOST_FILES = 8, 50_000
"""Versions whose files are read for it, the last ones, and files of a table for which that is cheap."""


class HistoryAnswers:
    """What the commits of a table and the lifetimes of its files show, up to one of its versions."""

    def __init__(self, frames: TableFrames, version: int | None = None) -> None:
        self.frames = frames
        self._version = version

    @property
    def version(self) -> int:
        """The version that the answers are about."""
        return self.frames.latest if self._version is None else self._version

    @property
    def branch(self) -> str | None:
        """The ref whose newest version this is; None at any other version and where the table has no refs."""
        if self.version != self.frames.latest or self.frames.refs.is_empty():
            return None
        return str(self.frames.refs["name"][0]) if self.frames.ref is None else self.frames.ref

    @property
    def snapshot(self) -> Snapshot:
        """The table at this version; the newest one of a branch has the table's schema as it is now."""
        return self.frames.snapshot(self.version, self.branch)

    def off_branch_commits(self) -> pl.DataFrame:
        """OFF_BRANCH: commits that are not on the line of versions that ends at the latest one."""
        return views.timeline.branches.off_branch(self.frames.history, self.frames.refs, self.frames.latest)

    def on_branch(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a frame with a column `version` whose versions are on the line that ends at the latest one."""
        return frame.join(self.off_branch_commits(), on="version", how="anti", maintain_order="left")

    def branch_commits(self) -> pl.DataFrame:
        """COMMITS of the line of versions that is shown, newest first."""
        return self.on_branch(self.frames.history)

    @cache_answer("frames.latest", "frames.ref")
    def commit_timeline(self) -> pl.DataFrame:
        """TIMELINE whose suspicious loads are found by rows and removals alone."""
        commits, off_branch = self.frames.history, self.off_branch_commits()
        try:
            lifetimes, by_partition = self.frames.lifetimes, self._arrivals(self.frames.latest)
            snapshot = self.frames.snapshot(self.frames.latest)
            first_writes = views.health.history.sequence_arrivals(snapshot, lifetimes, commits, by_partition)
        except LakeviewError:  # the commits of an unsupported or broken table can still be shown
            return views.timeline.commits.timeline(commits, off_branch=off_branch)
        line = views.timeline.commits.timeline(commits, lifetimes, arrivals=first_writes, off_branch=off_branch)
        return with_row_bounds(line, self.frames)

    def arrivals(self) -> pl.DataFrame:
        """PARTITION_ARRIVALS: when each partition of this version was first written, and which came late."""
        return self._arrivals(self.version)

    @cache_answer("frames.latest", "frames.ref")
    def _arrivals(self, version: int) -> pl.DataFrame:
        snapshot = self.frames.snapshot(version)
        sizes = views.partitions.sizes.partition_sizes(snapshot)
        lifetimes, commits = self.frames.lifetimes, self.frames.history
        return views.partitions.writes.partition_arrivals(sizes, snapshot.files, lifetimes, commits)

    @cache_answer("frames.latest", seconds=60)
    def readability(self) -> pl.DataFrame:
        """RIBBON: which versions of the line that ends at the latest one can still be read, and which the next vacuum
        or snapshot expiration would end (`at risk`, where that is known)."""
        versions = self.on_branch(self.frames.of_log("readable versions"))
        ribbon = views.timeline.readability.readability(versions)
        if ribbon.is_empty():
            return ribbon
        try:
            return views.retention.simulation.at_risk(ribbon, self.retention_simulation())
        except LakeviewError:  # what a cleanup would remove of a broken or unsupported table is unknown
            return ribbon

    @cache_answer("frames.latest", entries=16, seconds=60)
    def retention_simulation(self) -> views.retention.simulation.Retention:
        """What a vacuum or snapshot expiration of the whole table would find now, whichever ref is shown."""
        refs, snapshot = self.frames.refs, self.frames.snapshot(self.frames.latest)
        return views.retention.simulation.retention(
            self.frames.of_log("readable versions"),
            self.frames.of_log("lifetimes"),
            views.retention.policy.retention_policy(snapshot.properties, refs),
            commits=self.frames.history,
            refs=refs,
            tombstones=snapshot.tombstones,
            now=self.frames.clock(),
        )


def with_row_bounds(line: pl.DataFrame, frames: TableFrames) -> pl.DataFrame:
    """TIMELINE with the bound of each version's own files of position deletes (Iceberg) as `least_records`."""
    bounds = _bounds(
        views.timeline.branches.on_branch(line),
        frames,
        lambda snapshot: least_records(snapshot.files, snapshot.delete_files),
    )
    rows = line.join(bounds, on="version", how="left", maintain_order="left")
    return rows.with_columns(pl.max_horizontal("least_records", "bound").alias("least_records")).drop("bound")


def with_partition_bounds(states: pl.DataFrame, frames: TableFrames, partition: str) -> pl.DataFrame:
    """PARTITION_HISTORY with `mark`, "≥" where `records` is the bound of its own files, as in `with_row_bounds` of
    PARTITION_SIZES, else ""."""
    bounds = _bounds(states, frames, lambda snapshot: least_records_of(snapshot, partition))
    return views.sums.with_least(states.join(bounds, on="version", how="left", maintain_order="left"), "bound")


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
