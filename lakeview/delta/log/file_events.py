"""File events of commits and of checkpoints: what each removal took away, and the lifetime of every file."""

from collections.abc import Mapping

import polars as pl

from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.file_actions import COLUMN_TYPES, IDENTITY
from lakeview.model.column_values import live_records, sizes
from lakeview.model.frames import LIFETIMES

EVENTS = pl.Schema(
    {c: COLUMN_TYPES[c] for c in ("version", "added", "key", "path", "deletion_vector", "size", "records")}
)
"""One row a file action of the commits still there, in the order recorded. `size` is null where no file is of the size
recorded; `records` are live rows of an add, null where they are not recorded, and for a remove."""

ACTIONS = ["version", "size", "records"]
"""The columns of FILE_ACTIONS that events are made of, without those that are always there."""


def events_of(actions: pl.DataFrame) -> pl.DataFrame:
    """EVENTS of FILE_ACTIONS with the columns of ACTIONS, and their other columns."""
    return actions.with_columns(sizes(), live_records())


def states_before(removals: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """`removals`, of EVENTS with the column `start`, and what the latest event of each one's file in an earlier
    version, but not below `start`, says of it: `size_before`, `records_before`, null after a removal, as of a file that
    is gone nothing is known; `met`: whether there is such an event.

    "The actions of a commit have no order": what it removes was there before it, no matter what else it adds.
    """
    near = events.filter(pl.col("key").is_in(removals["key"].implode())).sort("version", maintain_order=True)
    live = [pl.when("added").then(name).alias(f"{name}_before") for name in ("size", "records")]
    vector = pl.col("deletion_vector").fill_null("")  # a join matches no nulls
    met = near.select("version", pl.col("version").alias("seen"), "key", *live, vector.alias("vector"))
    states = removals.with_columns(vector.alias("vector")).join_asof(
        met, on="version", by=["key", "vector"], allow_exact_matches=False, check_sortedness=False
    )
    is_met = pl.col("seen") >= pl.col("start")
    return states.with_columns(
        is_met.fill_null(value=False).alias("met"),
        *(pl.when(is_met).then(name).alias(name) for name in ("size_before", "records_before")),
    ).drop("seen", "vector")


def lifetimes_of(base: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """LIFETIMES of EVENTS in ascending order of versions, after those of `base`: what was there before they begin.

    Of many files that were there few are touched: all others just live on.
    """
    has_events = base["key"].is_in(events["key"].implode())
    hashes = base["key"].hash()  # compared far sooner than a million texts
    if hashes.n_unique() < hashes.len():  # a checkpoint may name a file twice: by mistake, or with another vector
        has_events |= hashes.is_duplicated()
    one = pl.concat([base.filter(has_events), events]) if has_events.any() else events
    one = one.unique(["version", *IDENTITY], keep="last", maintain_order=True).sort(*IDENTITY, "version")
    # sorted, a file's next event is its neighbour: four times as fast as looking for it in each group
    vector = pl.col("deletion_vector")
    same = (pl.col("key").shift(-1) == pl.col("key")) & vector.shift(-1).eq_missing(vector)
    lives = (
        one.with_columns(pl.when(same).then(pl.col("version").shift(-1)).alias("removed"))
        .filter("added")
        .with_columns(pl.when(pl.col("version") >= 0).then("version").alias("added"))
        .select(LIFETIMES.names())
        .sort("added", "path", nulls_last=False)
    )
    never = pl.lit(None, pl.Int64)
    quiet = base.filter(~has_events).with_columns(never.alias("added"), never.alias("removed"))
    return pl.concat([quiet.select(LIFETIMES.names()), lives])


def bridge_gaps(
    bases: Mapping[int, pl.DataFrame], events: pl.DataFrame, *, from_zero: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The files that were there before the events of a log begin, and the events, those of every gap added.

    `bases`: the files of checkpoints (`live_events`), by version, oldest first. The first one, unless the log still
    begins at version 0 (`from_zero`), is what was there before. Each other one bridges a gap: files that were live
    before it and are not in the checkpoint are removed at its version, files that only the checkpoint has are added.
    """
    before = pl.DataFrame(schema=EVENTS)
    for version, files in bases.items():
        earlier = events.filter(pl.col("version") <= version)
        later = events.filter(pl.col("version") > version)
        if not from_zero:
            before, events, from_zero = files, later, True
            continue
        newest = pl.concat([before, earlier.sort("version", maintain_order=True)])
        live = newest.unique(IDENTITY, keep="last", maintain_order=True).filter("added")
        removals = live.join(files, on=IDENTITY, how="anti", nulls_equal=True).with_columns(added=pl.lit(value=False))
        new = files.join(live, on=IDENTITY, how="anti", nulls_equal=True)
        changes = pl.concat([removals, new]).with_columns(pl.lit(version, pl.Int64).alias("version"))
        events = pl.concat([earlier, changes.select(EVENTS.names()), later])
    return before, events


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
