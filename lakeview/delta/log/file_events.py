"""File events of commits and of a checkpoint to the life of every file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.commit_facts import FileEvent
from lakeview.model.frames import LIFETIMES, live_records, sizes

_KEY = ["key", "deletion_vector"]

EVENTS = pl.Schema(
    {
        "version": pl.Int64(),
        "added": pl.Boolean(),
        "key": pl.String(),
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "size": pl.Int64(),
        "records": pl.Int64(),
    }
)
"""One row a file action of the commits still there; `records` are live rows."""


def lifetimes_of(base: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """LIFETIMES of EVENTS in ascending order of versions, after those of `base`: what was there before they begin.

    Of many files that were there few are touched: all others just live on.
    """
    touched = base["key"].is_in(events["key"].implode())
    hashes = base["key"].hash()  # compared far sooner than a million texts
    if hashes.n_unique() < hashes.len():  # a checkpoint may name a file twice: by mistake, or with another vector
        touched |= hashes.is_duplicated()
    one = pl.concat([base.filter(touched), events]) if touched.any() else events
    one = one.unique(["version", *_KEY], keep="last", maintain_order=True).sort(*_KEY, "version")
    # sorted, a file's next event is its neighbour: four times as fast as looking for it in each group
    vector = pl.col("deletion_vector")
    same = (pl.col("key").shift(-1) == pl.col("key")) & vector.shift(-1).eq_missing(vector)
    moved = (
        one.with_columns(pl.when(same).then(pl.col("version").shift(-1)).alias("removed"))
        .filter("added")
        .with_columns(pl.when(pl.col("version") >= 0).then("version").alias("added"))
        .select(LIFETIMES.names())
        .sort("added", "path", nulls_last=False)
    )
    never = pl.lit(None, pl.Int64)
    quiet = base.filter(~touched).with_columns(never.alias("added"), never.alias("removed"))
    return pl.concat([quiet.select(LIFETIMES.names()), moved])


def collect(columns: dict[str, list[Any]], version: int, events: Sequence[FileEvent]) -> None:
    """Append the events of a commit to columns of EVENTS."""
    if events:
        columns["version"] += [version] * len(events)
        for name, values in zip(FileEvent._fields, zip(*events, strict=True), strict=True):
            columns[name] += values


def live_events(checkpoint: Checkpoint) -> pl.DataFrame:
    """EVENTS of the files a checkpoint holds, as if added before every version."""
    return (
        checkpoint.adds(["size", "records"])
        .with_columns(
            pl.lit(-1, pl.Int64).alias("version"),
            pl.lit(value=True).alias("added"),
            sizes(),
            live_records(),
        )
        .select(EVENTS.names())
    )
