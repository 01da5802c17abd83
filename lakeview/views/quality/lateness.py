"""Loads to how late the newest event of a table is, and whether loads go on without newer ones."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.views.health.kinds import finding
from lakeview.views.quality.trends import event_column, lag_days, usual_of_history
from lakeview.views.thresholds import BASELINE_MIN, LATE_TIMES
from lakeview.views.timeline.readability import NO_NEWER_EVENTS
from lakeview.views.units import count_text, format_age, format_moment, format_version


@dataclass(frozen=True, slots=True)
class EventNews:
    """The load that brought the newest event of a table: `newest` is the event in `column`, `moment` and `version` are
    those of the load, `since` the time from it to the latest load, `gaps` those between all loads with newer events
    (durations), `loads_since` how many loads came after it."""

    column: str
    version: int
    newest: datetime
    moment: datetime
    since: timedelta
    loads_since: int
    gaps: pl.Series

    def gap(self, share: float) -> timedelta:
        """The gap that this share of `gaps` does not exceed."""
        at: timedelta = self.gaps.sort().to_list()[round(share * (self.gaps.len() - 1))]
        return at

    @property
    def stands_still(self) -> bool:
        """Whether loads go on without newer events for longer than is usual: by the rule of a late table."""
        if self.gaps.len() < BASELINE_MIN:
            return False
        return self.since > max(self.gap(0.5) * LATE_TIMES, self.gap(0.95))


def data_lateness(changes: pl.DataFrame) -> str:
    """`1 day behind`: from the newest event in the table to the commit that brought it, append or not, from SUDDEN.

    Where loads go on for longer than newer events usually take, it is to the latest load: a table that is overwritten
    each night with the same events is later each night. "" for less than a day, without a column of event times, and
    where loads bring history. Events that were not over say nothing, nor do loads that take back others, which are late
    by their nature.
    """
    news = _event_news(changes)
    if news is None:
        return ""
    gap = news.gaps.median()
    stands_still = not isinstance(gap, timedelta) or news.since > gap
    late = news.moment + (news.since if stands_still else timedelta()) - news.newest
    days = late // timedelta(days=1)
    return f"{count_text(days, 'day')} behind" if days > 0 else ""


def _event_news(changes: pl.DataFrame) -> EventNews | None:
    """The newest event of a table and its load, from SUDDEN; None where `data_lateness` is ""."""
    column = event_column(changes)
    if column is None:
        return None
    repairs = changes["taken_back_by"].drop_nulls().unique()
    every = changes.filter(pl.col("column") == column)
    # of a load that was taken back the table has what its repair brought again
    again = every.select(taken_back_by="version", again="newest")
    stays = (
        pl.when(pl.col("taken_back_by").is_null())
        .then("newest")
        .when(pl.col("again").is_not_null())
        .then(pl.min_horizontal("newest", "again"))
    )
    loads = every.join(again, on="taken_back_by", how="left", maintain_order="left").with_columns(newest=stays)
    loads = loads.filter(~pl.col("version").is_in(repairs.implode()))
    loads = loads.select("version", "timestamp", "newest", value=lag_days()).filter(pl.col("value") >= 0)
    before = pl.col("newest").cum_max().shift(1)
    news = loads.filter((pl.col("newest") > before).fill_null(value=True))
    if news.is_empty() or usual_of_history(news) is not None:
        return None
    last = news.row(-1, named=True)
    later = loads.filter(pl.col("timestamp") > last["timestamp"])["timestamp"]
    since = timedelta() if later.is_empty() else later.to_list()[-1] - last["timestamp"]
    gaps = news["timestamp"].diff().drop_nulls()
    return EventNews(column, last["version"], last["newest"], last["timestamp"], since, later.len(), gaps)


def lateness_findings(changes: pl.DataFrame) -> list[Finding]:
    """A finding that loads go on without newer events, from SUDDEN; none where they bring newer ones as expected."""
    news = _event_news(changes)
    if news is None or not news.stands_still:
        return []
    claim = (
        f"No newer {news.column} for {format_age(news.since)}, though {count_text(news.loads_since, 'load')} came since"
    )
    usual = format_age(news.gap(0.5))
    evidence = f"{format_moment(news.newest)} came with {format_version(news.version)}; expected every {usual}"
    return [finding(NO_NEWER_EVENTS, Severity.ATTENTION, claim, evidence, column=news.column)]
