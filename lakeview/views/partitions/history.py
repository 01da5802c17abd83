"""Lifetimes and commits to one partition's history: its files, bytes and rows after each commit that changed it."""

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.partitions.writes import in_folders
from lakeview.views.sums import FLOWS, flows, total, total_of, zero_without_files
from lakeview.views.timeline.lifetimes import continuations

PARTITION_HISTORY = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "writer": pl.String(),
        **FLOWS,
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
    }
)
"""One row a commit that added files to a partition, took some or deleted rows of some, oldest first; the last three
are what it held then. Bytes and records are null where a file does not tell, and from there on."""


def partition_history(
    files: pl.DataFrame, lifetimes: pl.DataFrame, commits: pl.DataFrame, partition: str
) -> pl.DataFrame:
    """PARTITION_HISTORY of one partition, from FILES (live), LIFETIMES and COMMITS or TIMELINE, oldest first.

    What was there before the first commit is counted from the start. Files that are gone belong to a partition as in
    `partition_writes`; those of no known one are left out.
    """
    partitions = files.drop_nulls("partition_text").select("path", "partition_text")
    there = partitions.filter(pl.col("partition_text") == partition)["path"]
    own = lifetimes.filter(pl.col("path").is_in(there.implode()))
    # a third of the time of `is_in` where both are a million
    removals = lifetimes.join(files.select("path"), on="path", how="anti", maintain_order="left")
    if not removals.is_empty():
        placements = in_folders(removals, partitions)
        own = pl.concat([own, placements.filter(pl.col("partition_text") == partition).select(own.columns)])
    order = "position" if "position" in commits.columns else "version"
    line = commits.sort(order) if order == "position" else commits
    writer = "writer" if "writer" in line.columns else "user"
    commits_of_line = line.select("version", "timestamp", "operation", pl.col(writer).alias("writer"))
    changes = commits_of_line
    own = own.hstack(continuations(own))
    for way, continues in (("added", "went_on"), ("removed", "goes_on")):
        part = flows(own.filter(pl.col(way).is_not_null() & ~pl.col(continues)), pl.col(way).alias("version"), way)
        changes = changes.join(part, on="version", how="left", maintain_order="left")
        # a file that stays with other deleted rows neither comes nor goes: its rows alone change
        stay = (
            own.filter(continues)
            .group_by(version=way)
            .agg(pl.len().alias(f"stays_{way}"), total("records").alias(f"rows_{way}"))
        )
        changes = changes.join(stay, on="version", how="left", maintain_order="left")
    stays = pl.col("stays_added").is_not_null()
    rows_deleted = pl.when(stays).then(pl.col("rows_removed") - pl.col("rows_added")).otherwise(0)
    is_touched = stays | pl.col("files_added").is_not_null() | pl.col("files_removed").is_not_null()
    changes = changes.with_columns(zero_without_files()).with_columns(
        pl.col("files_added", "files_removed").fill_null(0),
        records_added=pl.col("records_added") + (-rows_deleted).clip(0).fill_null(0),
        records_removed=pl.col("records_removed") + rows_deleted.clip(0),
        touched=is_touched,
    )
    first = own.filter(pl.col("added").is_null())
    state = []
    whole_of = {"files": first.height, "bytes": total_of(first["size"]), "records": total_of(first["records"])}
    for name, whole in whole_of.items():
        change = pl.col(f"{name}_added") - pl.col(f"{name}_removed")
        known_so_far = pl.lit(whole is not None) & ~change.is_null().cum_max()
        value = change.fill_null(0).cast(pl.Int128).cum_sum() + (whole or 0)
        state.append(pl.when(known_so_far).then(value).cast(pl.Int64, strict=False).alias(name))
    return changes.with_columns(state).filter("touched").pipe(conform, PARTITION_HISTORY)
