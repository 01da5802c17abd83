"""A version to those worth comparing it with, and two versions to the commits between them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.views.timeline.commits import on_branch

_BEFORE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class BaseChoice:
    """A version worth comparing with, and why."""

    label: str
    version: int


def commits_between(timeline: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """TIMELINE rows after version `first` up to `last`, whichever of them came first; none where one is missing,
    or is an off-branch commit: of two branches no commits lead from one to the other."""
    places = [timeline["version"].index_of(version) for version in (first, last)]
    if None in places or "off-branch" in (timeline["lane"][place] for place in places if place is not None):
        return timeline.clear()
    low, high = sorted(place for place in places if place is not None)
    return on_branch(timeline.slice(low + 1, high - low))


def base_choices(timeline: pl.DataFrame, version: int) -> list[BaseChoice]:
    """Versions worth comparing one with: the one before, a day and a week before, before the last schema change and
    before the last bad load. Each version once, and none of another branch."""
    place = timeline["version"].index_of(version)
    if not place:
        return []
    earlier = on_branch(timeline.head(place))
    line = pl.concat([earlier, timeline.slice(place, 1)]).with_row_index("place")
    choices: dict[int, str] = {}

    def offer(label: str, rows: pl.DataFrame) -> None:
        for other in rows["version"].tail(1):
            choices.setdefault(int(other), label)

    offer("the version before", earlier)
    moment = timeline["timestamp"][place]
    if isinstance(moment, datetime):
        offer("a day before", earlier.filter(pl.col("timestamp") <= moment - _BEFORE_DAY))
        offer("a week before", earlier.filter(pl.col("timestamp") <= moment - 7 * _BEFORE_DAY))
    for label, marked in (
        ("before the last schema change", "schema_changed"),
        ("before the last bad load", "suspicious"),
    ):
        last = line.filter(marked)["place"].max()
        if isinstance(last, int) and last > 0:
            offer(label, line.slice(last - 1, 1))
    return [BaseChoice(label, other) for other, label in choices.items()]
