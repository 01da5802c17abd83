"""A `Retention` and a timeline to what the past costs: which commit left how many bytes behind, and how often a byte
was written."""

from dataclasses import dataclass

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.retention.simulation import Retention
from lakeview.views.sums import at_least, total, total_of
from lakeview.views.timeline.branches import on_branch

HISTORY_COST = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "writer": pl.String(),
        "lane": pl.String(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "share": pl.Float64(),
    }
)
"""One row a commit that removed files which readable versions still need, the most bytes first. `files`, `bytes`: those
files, null where one's are unknown; `share` of all bytes kept for old versions only. A file removed twice counts where
it was removed last."""


@dataclass(frozen=True, slots=True)
class WriteAmplification:
    """How often a byte was written: `written_bytes` of data files by all commits, `loaded_bytes` of new data (appends,
    and what changes added beyond what they removed), `maintenance_bytes` of compaction, `ratio` of the first two. None
    where a commit does not record how many bytes it added."""

    written_bytes: int | None
    loaded_bytes: int | None
    maintenance_bytes: int | None
    ratio: float | None


def history_cost(retention: Retention, timeline: pl.DataFrame) -> pl.DataFrame:
    """HISTORY_COST from a Retention and TIMELINE."""
    by_commit = (
        retention.files.group_by("removed")
        .agg(files=pl.len().cast(pl.Int64), bytes=total("size"))
        .rename({"removed": "version"})
    )
    whole = total_of(retention.files["size"])
    commits = timeline.select("version", "timestamp", "operation", "writer", "lane")
    return (
        by_commit.join(commits, on="version", how="left")
        .with_columns(share=pl.col("bytes") / whole if whole else pl.lit(None, pl.Float64))
        .sort("bytes", "version", descending=True, nulls_last=True)
        .pipe(conform, HISTORY_COST)
    )


def write_amplification(timeline: pl.DataFrame) -> WriteAmplification:
    """The figures of TIMELINE's commits on the branch shown, as far back as it goes."""
    timeline = on_branch(timeline)
    maintenance = pl.col("lane") == "maintenance"
    net = (pl.col("bytes_added") - pl.col("bytes_removed").fill_null(0)).clip(0)
    new = pl.when(maintenance).then(0).when(pl.col("lane") == "append").then("bytes_added").otherwise(net)
    commits = timeline.with_columns(new=new, maintenance=pl.when(maintenance).then("bytes_added").otherwise(0))
    sums = commits.select(map(total, ("bytes_added", "new", "maintenance"))).row(0)
    if timeline.is_empty() or None in sums:
        return WriteAmplification(None, None, None, None)
    total_bytes, load_bytes, maintenance_bytes = map(int, sums)
    return WriteAmplification(
        total_bytes, load_bytes, maintenance_bytes, total_bytes / load_bytes if load_bytes else None
    )


COURSE = pl.Schema({"timestamp": UTC_MILLIS, "bytes": pl.Int64()})
"""One row a moment at which a size changed, oldest first; `bytes` from then on, null when unknown."""


def retained_course(retention: Retention, timeline: pl.DataFrame) -> pl.DataFrame:
    """COURSE of what the store keeps today of every version and those before it: its live bytes, and the files removed
    until then that are still there."""
    removals = retention.files.group_by(version="removed").agg(retained=at_least("size"))
    stored_bytes = pl.col("bytes") + pl.col("retained").cast(pl.Int128).fill_null(0).cum_sum()
    return (
        timeline.join(removals, on="version", how="left", maintain_order="left")
        .select("timestamp", bytes=stored_bytes.cast(pl.Int64, strict=False))
        .cast(COURSE)
    )


def ref_bytes(files: pl.DataFrame, lifetimes: pl.DataFrame) -> int:
    """Bytes, at least, of the FILES of a branch that no version of the default branch had, from LIFETIMES of that."""
    own_files = files.join(lifetimes.select("path"), on="path", how="anti")
    return int(own_files.select(at_least("size").fill_null(0)).item())


def log_course(log: pl.DataFrame) -> pl.DataFrame:
    """COURSE of the log by when its files were written, from LOG_FILES; those of no known moment count first."""
    files = log.sort("modified", nulls_last=False)
    return files.select(timestamp="modified", bytes=pl.col("size").cum_sum()).drop_nulls("timestamp").cast(COURSE)
