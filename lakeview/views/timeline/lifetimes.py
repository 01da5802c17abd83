"""LIFETIMES and a timeline to the lives of files: how long what each commit wrote stayed, and what ended it."""

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.sums import at_least, total, total_of
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.live_intervals import with_positions

FILE_LIVES = pl.Schema(
    {
        "from": pl.Int64(),
        "to": pl.Int64(),
        "added": pl.Int64(),
        "removed": pl.Int64(),
        "begins": UTC_MILLIS,
        "ends": UTC_MILLIS,
        "ended_by": pl.String(),
        "size": pl.Int64(),
    }
)
"""One row a life of a file, however often other rows of it were deleted. `from`, `to`: places of the commits on the
timeline that added and removed it (0 for what was there before; null while it lives), `added`, `removed` their
versions, `begins`, `ends` their moments. `ended_by`: the lane of the commit that removed it, null while it lives."""

COHORTS = pl.Schema(
    {
        "first": pl.Int64(),
        "last": pl.Int64(),
        "begins": UTC_MILLIS,
        "ends": UTC_MILLIS,
        "ended_by": pl.String(),
        "ended_in": pl.Int64(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "low": pl.Int64(),
        "high": pl.Int64(),
    }
)
"""One row for files that came and went together, in the order in which they came. `first` to `last`: the versions that
added them (the same one but where commits are grouped), `ended_in` the one that removed the last of them. `low`
to `high`: their bytes, as far as known, on the sum of all that was ever written; `bytes` null where one is unknown."""

LIVES_BY_COMMIT = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "writer": pl.String(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "live_files": pl.Int64(),
        "live_bytes": pl.Int64(),
        "live_share": pl.Float64(),
        "median_life_ms": pl.Int64(),
        "ended_in": pl.Int64(),
    }
)
"""One row a commit that added files, newest first: how many, what of it still lives, the share of bytes
that do (null without bytes), the median lifetime of those removed,
and `ended_in`: the version that removed most of its bytes (null while all live)."""

MOST_COHORTS = 2_400
_BINS = 40
"""Commits of longer histories are put into so many groups: 40 begins, 41 ends, a few ways to end."""


@dataclass(frozen=True, slots=True)
class LifeFacts:
    """All files that ever were: how many and their bytes, what lives of them, the share of written bytes that is gone
    (`churn`), and the median life of removed files; None where nothing was written or removed, or bytes are unknown."""

    files: int
    bytes: int | None
    live_files: int
    live_bytes: int | None
    churn: float | None
    median_life: timedelta | None


def continuations(lifetimes: pl.DataFrame) -> pl.DataFrame:
    """`goes_on, went_on` of each of LIFETIMES: whether the file stays on after it with other deleted rows (it ends
    where another begins), and whether it was there before so (it begins where another ends)."""
    stays = lifetimes.select("path", "added", "removed").with_row_index("row")
    ends = stays.drop_nulls("removed")
    begins = stays.filter(pl.col("added").is_in(ends["removed"].unique().implode()))  # texts are compared for few
    met = ends.join(begins, left_on=["path", "removed"], right_on=["path", "added"]).select(
        ends="row", begins="row_right"
    )
    row = pl.int_range(lifetimes.height, dtype=pl.UInt32, eager=True)
    return pl.DataFrame({"goes_on": row.is_in(met["ends"].implode()), "went_on": row.is_in(met["begins"].implode())})


def additions(lifetimes: pl.DataFrame) -> pl.DataFrame:
    """`path, added` of LIFETIMES, one row a file: the version that added it last, not one that replaced its deletion
    vector."""
    begun = lifetimes.filter(~continuations(lifetimes)["went_on"])
    return begun.select("path", "added").unique("path", keep="last")


def file_lives(lifetimes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """FILE_LIVES from LIFETIMES and TIMELINE, in no order; files that went before the timeline begins are left out."""
    line = on_branch(timeline).select("version", "timestamp", "lane").with_row_index("place")
    stays = lifetimes.select("path", "added", "removed", "size").hstack(continuations(lifetimes))
    spans = with_positions(stays, line["version"]).with_columns(pl.col("from").fill_null(0))
    has_parts = pl.col("goes_on") | pl.col("went_on")
    whole, parts = spans.filter(~has_parts), spans.filter(has_parts).sort("path", "from")
    life = (~pl.col("went_on") | (pl.col("path") != pl.col("path").shift(1)).fill_null(value=True)).cum_sum()
    whole_lives = parts.group_by(life.alias("life")).agg(
        pl.col("from", "added", "size").first(), pl.col("to", "removed").last()
    )
    columns = ["from", "to", "added", "removed", "size"]
    moments = line.select(pl.col("place").cast(pl.Int64), "timestamp")
    return (
        pl.concat([whole.select(columns), whole_lives.select(columns)])
        .join(moments.rename({"place": "from", "timestamp": "begins"}), on="from", how="left")
        .join(moments.rename({"place": "to", "timestamp": "ends"}), on="to", how="left")
        .join(
            line.select("version", "lane").rename({"version": "removed", "lane": "ended_by"}), on="removed", how="left"
        )
        .pipe(conform, FILE_LIVES)
    )


def life_cohorts(lives: pl.DataFrame) -> pl.DataFrame:
    """COHORTS from FILE_LIVES, at most MOST_COHORTS: neighbouring commits of a long history are grouped."""
    keys = ["from", "to", "ended_by"]
    if lives.select(keys).n_unique() <= MOST_COHORTS:
        spans = lives.with_columns(start="from", stop="to")
    else:
        length = max(
            1, -(-(int(lives.select(pl.max_horizontal(pl.col("from").max(), pl.col("to").max())).item()) + 1) // _BINS)
        )
        spans = lives.with_columns(start=pl.col("from") // length, stop=pl.col("to") // length)
    high = pl.col("height").cast(pl.Int128).cum_sum()
    return (
        spans.group_by("start", "stop", "ended_by")
        .agg(
            first=pl.col("added").sort_by("from", "added").first(),
            last=pl.col("added").sort_by("from", "added").last(),
            begins=pl.col("begins").min(),
            ends=pl.col("ends").max(),
            ended_in=pl.col("removed").sort_by("to").last(),
            files=pl.len(),
            bytes=total("size"),
            height=at_least("size").fill_null(0),
        )
        # what goes first lies at the bottom of what came together
        .sort("start", "stop", "ended_by", nulls_last=True)
        .with_columns(
            low=(high - pl.col("height")).cast(pl.Int64, strict=False), high=high.cast(pl.Int64, strict=False)
        )
        .pipe(conform, COHORTS)
    )


def life_facts(lives: pl.DataFrame) -> LifeFacts:
    """The figures of FILE_LIVES."""
    dead = lives.filter(pl.col("to").is_not_null())
    live = lives.filter(pl.col("to").is_null())
    total_bytes, live_bytes = total_of(lives["size"]), total_of(live["size"])
    life = dead.select(((pl.col("ends") - pl.col("begins")).dt.total_milliseconds()).median()).item()
    return LifeFacts(
        lives.height,
        total_bytes,
        lives.height - dead.height,
        live_bytes,
        (total_bytes - live_bytes) / total_bytes if total_bytes and live_bytes is not None else None,
        None if life is None else timedelta(milliseconds=int(life)),
    )


def lives_by_commit(lives: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """LIVES_BY_COMMIT from FILE_LIVES and TIMELINE; files from before the timeline are of no commit."""
    live = pl.col("to").is_null()
    life = (pl.col("ends") - pl.col("begins")).dt.total_milliseconds()
    births = lives.drop_nulls("added").with_columns(live_size=pl.when(live).then("size").otherwise(0))
    by_commit = births.group_by(version="added").agg(
        files=pl.len(),
        bytes=total("size"),
        live_files=live.sum(),
        live_bytes=total("live_size"),
        median_life_ms=life.median(),
    )  # fmt: skip
    most = (
        lives.drop_nulls(["added", "removed"])
        .group_by("added", "removed")
        .agg(pl.col("size").sum())
        .sort("size", "removed", descending=[True, False])
        .unique("added", keep="first", maintain_order=True)
        .select(version="added", ended_in="removed")
    )
    return (
        timeline.select("version", "timestamp", "operation", "writer")
        .join(by_commit, on="version", how="inner", maintain_order="left")
        .join(most, on="version", how="left", maintain_order="left")
        .reverse()
        .with_columns(live_share=pl.when(pl.col("bytes") > 0).then(pl.col("live_bytes") / pl.col("bytes")))
        .pipe(conform, LIVES_BY_COMMIT)
    )
