"""Lifetimes and commits to one partition's history: its files, bytes and rows after each commit that changed it."""

from __future__ import annotations

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.partitions.writes import in_folders
from lakeview.views.sums import flows, total_of, zero_without_files

PARTITION_HISTORY = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "writer": pl.String(),
        "files_added": pl.Int64(),
        "files_removed": pl.Int64(),
        "bytes_added": pl.Int64(),
        "bytes_removed": pl.Int64(),
        "records_added": pl.Int64(),
        "records_removed": pl.Int64(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
    }
)
"""One row a commit that added files to a partition or took some, oldest first; the last three are what it held then.
Bytes and records are null where a file does not tell, and from there on."""


def partition_history(
    files: pl.DataFrame, lifetimes: pl.DataFrame, commits: pl.DataFrame, partition: str
) -> pl.DataFrame:
    """PARTITION_HISTORY of one partition, from FILES (live), LIFETIMES and COMMITS or TIMELINE, oldest first.

    What was there before the first commit told is counted from the start. Files that are gone belong to a partition as
    in `partition_writes`; those of no known one are left out.
    """
    known = files.drop_nulls("partition_text").select("path", "partition_text")
    there = known.filter(pl.col("partition_text") == partition)["path"]
    own = lifetimes.filter(pl.col("path").is_in(there.implode()))
    gone = lifetimes.filter(~pl.col("path").is_in(files["path"].implode()))
    if not gone.is_empty():
        placed = in_folders(gone, known)
        own = pl.concat([own, placed.filter(pl.col("partition_text") == partition).select(own.columns)])
    order = "position" if "position" in commits.columns else "version"
    line = commits.sort(order) if order == "position" else commits
    writer = "writer" if "writer" in line.columns else "user"
    commits_of_line = line.select("version", "timestamp", "operation", pl.col(writer).alias("writer"))
    changes = commits_of_line
    for way in ("added", "removed"):
        part = flows(own.drop_nulls(way), pl.col(way).alias("version"), way)
        changes = changes.join(part, on="version", how="left", maintain_order="left")
    touched = pl.col("files_added").is_not_null() | pl.col("files_removed").is_not_null()
    first = own.filter(pl.col("added").is_null())
    state = []
    whole_of = {"files": first.height, "bytes": total_of(first["size"]), "records": total_of(first["records"])}
    for name, whole in whole_of.items():
        change = pl.col(f"{name}_added").fill_null(0) - pl.col(f"{name}_removed").fill_null(0)
        unknown = (pl.col("files_added").is_not_null() & pl.col(f"{name}_added").is_null()) | (
            pl.col("files_removed").is_not_null() & pl.col(f"{name}_removed").is_null()
        )
        known_so_far = pl.lit(whole is not None) & ~unknown.cum_max()
        value = change.cast(pl.Int128).cum_sum() + (whole or 0)
        state.append(pl.when(known_so_far).then(value).cast(pl.Int64, strict=False).alias(name))
    return (
        changes.with_columns(state)
        .filter(touched)
        .with_columns(*zero_without_files("added"), *zero_without_files("removed"))
        .with_columns(pl.col("files_added", "files_removed").fill_null(0))
        .select(PARTITION_HISTORY.names())
        .cast(PARTITION_HISTORY)
    )
