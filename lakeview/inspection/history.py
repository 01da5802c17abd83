"""The history of a table to its timeline, the arrival of its partitions, and what a cleanup would end."""

import polars as pl

from lakeview import views
from lakeview.inspection.frames import TableFrames
from lakeview.inspection.row_bounds import with_row_bounds
from lakeview.model.errors import LakeviewError


def off_branch_commits(frames: TableFrames) -> pl.DataFrame:
    """OFF_BRANCH: commits that are not on the line of versions that ends at the latest one."""
    return views.timeline.branches.off_branch(frames.history, frames.refs, frames.latest)


def commit_timeline(frames: TableFrames) -> pl.DataFrame:
    """TIMELINE whose suspicious loads are found by rows and removals alone."""

    def compute() -> pl.DataFrame:
        commits, off_branch = frames.history, off_branch_commits(frames)
        try:
            lifetimes, by_partition = frames.lifetimes, arrivals(frames, frames.latest)
            snapshot = frames.snapshot(frames.latest)
            first_writes = views.health.history.sequence_arrivals(snapshot, lifetimes, commits, by_partition)
        except LakeviewError:  # the commits of an unsupported or broken table can still be shown
            return views.timeline.commits.timeline(commits, off_branch=off_branch)
        line = views.timeline.commits.timeline(commits, lifetimes, arrivals=first_writes, off_branch=off_branch)
        return with_row_bounds(line, frames)

    return frames.get_or_make("commit timeline", compute, frames.latest, frames.ref)


def arrivals(frames: TableFrames, version: int) -> pl.DataFrame:
    """PARTITION_ARRIVALS of the partitions of a version."""

    def compute() -> pl.DataFrame:
        snapshot = frames.snapshot(version)
        sizes = views.partitions.sizes.partition_sizes(snapshot)
        return views.partitions.writes.partition_arrivals(sizes, snapshot.files, frames.lifetimes, frames.history)

    return frames.get_or_make("arrivals", compute, version, frames.latest, frames.ref)


def readability(frames: TableFrames) -> pl.DataFrame:
    """RIBBON of the line of versions that ends at the latest one; the versions that a cleanup would end are `at risk`
    where that is known."""

    def compute() -> pl.DataFrame:
        off_branch = off_branch_commits(frames)
        versions = frames.of_log("readable versions").join(off_branch, on="version", how="anti", maintain_order="left")
        ribbon = views.timeline.readability.readability(versions)
        if ribbon.is_empty():
            return ribbon
        try:
            simulation = retention_simulation(frames)
        except LakeviewError:  # what a cleanup would remove of a broken or unsupported table is unknown
            return ribbon
        return views.retention.simulation.at_risk(ribbon, simulation)

    return frames.get_or_make("ribbon", compute, frames.latest, seconds=60)


def retention_simulation(frames: TableFrames) -> views.retention.simulation.Retention:
    """What a vacuum or snapshot expiration of the whole table would find now, whichever ref is shown."""

    def compute() -> views.retention.simulation.Retention:
        refs, snapshot = frames.refs, frames.snapshot(frames.latest)
        return views.retention.simulation.retention(
            frames.of_log("readable versions"),
            frames.of_log("lifetimes"),
            views.retention.policy.retention_policy(snapshot.properties, refs),
            commits=frames.history,
            refs=refs,
            tombstones=snapshot.tombstones,
            now=frames.clock(),
        )

    return frames.get_or_make("retention", compute, frames.latest, entries=16, seconds=60)
