"""A long timeline to what a picture can hold: points that keep its envelope, sums of flows, marks by lane."""

from collections.abc import Sequence

import polars as pl

from lakeview.views.sums import FLOWS
from lakeview.views.timeline.commits import TIMELINE

_MOST_POINTS = 480
_MOST_FLOWS = 320
MOST_MARKS = 480
"""So many rows a panel, which is one for two or three pixels: with their tooltips all panels stay below 5,000 marks."""

SAMPLED = pl.Schema({**TIMELINE, "commits": pl.Int64(), "partly": pl.Boolean()})
"""TIMELINE with how many commits a row stands for; `partly`: its sums are lower bounds, some commits lack counts.
A column `matches` of the timeline (the commit passes the filters) is there as well: for a sum, whether any does."""


def state_points(timeline: pl.DataFrame, measure: str) -> pl.DataFrame:
    """SAMPLED: of each span of time the first and last commit and those with the least and most of a measure.

    Of commits at one time of `monotonic` only the last is there: a measure has one value at a time.
    """
    times = monotonic(timeline["timestamp"])
    timeline = timeline.filter(times.ne_missing(times.shift(-1)))
    if timeline.height <= _MOST_POINTS:
        return _whole(timeline)
    # one commit may be first, last, least and most at once: the rows kept stay below the limit
    rows = (
        _spans(timeline, _MOST_POINTS // 4)
        .with_row_index("row")
        .group_by("span")
        .agg(
            first=pl.col("row").first(),
            last=pl.col("row").last(),
            least=pl.col("row").get(pl.col(measure).arg_min()),
            most=pl.col("row").get(pl.col(measure).arg_max()),
        )
        .unpivot(index="span")["value"]
        .drop_nulls()
        .unique()
        .sort()
    )
    return _whole(timeline[rows])


def monotonic(timestamps: pl.Series) -> pl.Series:
    """The timestamps of commits in their order; a commit earlier than the one before, or without a timestamp, gets
    that one's, as for time travel (`delta/log/times.py`)."""
    return timestamps.cum_max().forward_fill()


def flow_sums(timeline: pl.DataFrame, limit: int = _MOST_FLOWS) -> pl.DataFrame:
    """SAMPLED: what was added and removed in each span of time, at its last commit; null where none records it.

    Maintenance writes rows again: among other commits it adds and removes none. A span is of its lane if it is alone.
    """
    if timeline.height <= limit:
        return _whole(timeline)
    maintenance = pl.col("lane") == "maintenance"
    alone = maintenance.all()
    flows = [pl.when(~maintenance | alone).then(f) if f.startswith("records") else pl.col(f) for f in FLOWS]
    sums = [
        pl.when(each.is_not_null().any()).then(each.cast(pl.Int128).sum().cast(pl.Int64, strict=False)).alias(f)
        for f, each in zip(FLOWS, flows, strict=True)
    ]
    counts = [f for f in FLOWS if f.startswith("records")]
    is_unrecorded = pl.any_horizontal(pl.col(f).is_null() & (~maintenance | alone) for f in counts)
    others = [pl.col(n).last() for n in TIMELINE if n not in (*FLOWS, "lane")] + [
        pl.col(n).any() for n in _further(timeline)
    ]
    lane = pl.when(alone).then(pl.col("lane").last()).otherwise(pl.col("lane").filter(~maintenance).last())
    return (
        _spans(timeline, limit)
        .group_by("span", maintain_order=True)
        .agg(*others, *sums, lane, commits=pl.len().cast(pl.Int64), partly=is_unrecorded.any())
        .select(*SAMPLED.names(), *_further(timeline))
    )


def lane_marks(timeline: pl.DataFrame, limit: int = MOST_MARKS) -> pl.DataFrame:
    """SAMPLED: one commit for each lane and span of time, those that stand out always apart."""
    return thin_marks(timeline, ["lane", "suspicious", *_further(timeline)], limit)


def thin_marks(timeline: pl.DataFrame, by: Sequence[str], limit: int) -> pl.DataFrame:
    """SAMPLED: the last commit of each span of time for each of these columns' values, at most `limit`."""
    if timeline.height <= limit:
        return _whole(timeline)
    spans = max(1, limit // timeline.select(by).n_unique())
    return (
        _spans(timeline, spans)
        .group_by("span", *by, maintain_order=True)
        .agg(pl.exclude("span", *by).last(), commits=pl.len().cast(pl.Int64), partly=pl.lit(value=False))
        .sort("timestamp", maintain_order=True)
        .select(*SAMPLED.names(), *_further(timeline))
    )


def _whole(timeline: pl.DataFrame) -> pl.DataFrame:
    whole = timeline.with_columns(commits=pl.lit(1, dtype=pl.Int64), partly=pl.lit(value=False))
    return whole.select(*SAMPLED.names(), *_further(timeline))


def _further(timeline: pl.DataFrame) -> list[str]:
    return [name for name in ("matches",) if name in timeline.columns]


def _spans(timeline: pl.DataFrame, spans: int) -> pl.DataFrame:
    """The timeline with `span`: which of so many equal spans of time each commit falls in."""
    moment = pl.col("timestamp").dt.epoch("ms")
    length = (moment.max() - moment.min()).clip(1)
    return timeline.with_columns(span=((moment - moment.min()) * spans // length).clip(0, spans - 1))
