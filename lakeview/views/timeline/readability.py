"""Versions to a ribbon: which can still be read, which are gone, which are broken; and how fresh the table is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform, first_label
from lakeview.views.thresholds import BASELINE_MIN, BASELINE_WINDOW, CADENCE_SPAN, JOB_GAP, LATE_TIMES
from lakeview.views.units import count_text, format_range

RIBBON = pl.Schema(
    {"version": pl.Int64(), "timestamp": UTC_MILLIS, "until": UTC_MILLIS, "state": pl.String(), "reason": pl.String()}
)
"""One row a version, oldest first. `state`: kept; gone (older than everything readable); broken (unreadable although an
older version, or none at all, can be read), null where readability was not checked. `until`: when the next version
came, null for the newest."""

RUNS = pl.Schema(
    {"state": pl.String(), "first": pl.Int64(), "last": pl.Int64(), "versions": pl.Int64(), "label": pl.String()}
)
"""One row a run of versions in the same state, oldest first; `label` is `v0` to `v12` with an en dash."""

ON_TIME, LATE, NO_NEWER_EVENTS = "commits-on-time", "commits-late", "no-newer-events"
"""Ids of the findings about freshness."""


def readability(versions: pl.DataFrame) -> pl.DataFrame:
    """RIBBON from VERSIONS (newest first)."""
    oldest_first = versions.reverse().with_columns(older_kept=pl.col("readable").cum_max())
    nothing_kept = ~pl.col("readable").any()
    newest = pl.int_range(pl.len()) == pl.len() - 1
    is_broken = pl.col("older_kept") | (nothing_kept & newest)
    label = first_label({"kept": "readable", "broken": is_broken}, "gone")
    state = pl.when(pl.col("readable").is_not_null()).then(label)
    return oldest_first.with_columns(state=state, until=pl.col("timestamp").shift(-1)).pipe(conform, RIBBON)


def readability_runs(ribbon: pl.DataFrame) -> pl.DataFrame:
    """RUNS from RIBBON."""
    runs = (
        ribbon.with_columns(run=pl.col("state").rle_id())
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("state").first(),
            first=pl.col("version").first(),
            last=pl.col("version").last(),
            versions=pl.len().cast(pl.Int64),
        )
        .drop("run")
    )
    labels = [format_range(first, last) for first, last in runs.select("first", "last").iter_rows()]
    return runs.with_columns(label=pl.Series(labels, dtype=pl.String())).pipe(conform, RUNS)


def runs_text(runs: pl.DataFrame, state: str, *, limit: int = 3) -> str | None:
    """The newest ranges of one state as text (`v20`, `v30` to `v32` and 3 older ranges), None when there are none. One
    more than `limit` is named too, which is shorter than to count it."""
    labels = runs.filter(pl.col("state") == state)["label"].to_list()
    if not labels:
        return None
    if len(labels) <= limit + 1:
        return ", ".join(labels)
    return f"{', '.join(labels[-limit:])} and {count_text(len(labels) - limit, 'older range')}"


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a table is written. `usual` is the median of the latest gaps between loads, those commits that changed
    data; None with fewer than five, or when all came within an hour. `late` only where there is a usual gap."""

    last: datetime | None
    age: timedelta | None
    usual: timedelta | None
    late: bool


def cadence(commits: pl.DataFrame, now: datetime) -> Cadence:
    """The rhythm of COMMITS or TIMELINE (any order) as seen at `now`, an aware moment."""
    moments = commits.filter("data_change")["timestamp"].drop_nulls().sort()
    if moments.is_empty():
        return Cadence(None, None, None, late=False)
    last: datetime = moments.to_list()[-1]
    age = now - last
    gaps = _gaps(moments)
    if gaps.len() < BASELINE_MIN or last - moments.to_list()[0] < CADENCE_SPAN:
        return Cadence(last, age, None, late=False)
    usual, longest = timedelta(milliseconds=_quantile(gaps, 0.5)), timedelta(milliseconds=_quantile(gaps, 0.95))
    return Cadence(last, age, usual, late=age > max(usual * LATE_TIMES, longest))


def _gaps(moments: pl.Series) -> pl.Series:
    """The latest gaps in milliseconds; between jobs of many commits each, where most commits follow another at once."""
    since = moments.diff()
    gaps = since.drop_nulls().tail(BASELINE_WINDOW).dt.total_milliseconds()
    if gaps.len() and _quantile(gaps, 0.5) < JOB_GAP / timedelta(milliseconds=1):
        jobs = moments.filter(since.is_null() | (since >= JOB_GAP)).diff().drop_nulls().tail(BASELINE_WINDOW)
        if jobs.len() >= BASELINE_MIN:  # else one job, which goes on writing
            return jobs.dt.total_milliseconds()
    return gaps


def _quantile(values: pl.Series, at: float) -> float:
    quantile = values.quantile(at, "nearest")
    return 0.0 if quantile is None else float(quantile)
