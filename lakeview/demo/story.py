"""The demo's story: what happened to the table `flights` in its first year, step by step, as data.

It is told in the time of the flights, 2013. The build moves every moment by the same number of days, so that the story
ends within a day before the build and its commits lie in the twelve months before; the rows keep their real dates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from lakeview.demo.source import AIRCRAFT_COLUMNS, WEATHER_COLUMNS
from lakeview.spark.options import Statistics

# The morning after the last flight's day: the last such morning before the build.
END = datetime(2014, 1, 1, 8, tzinfo=UTC)


class Fault(StrEnum):
    """What is wrong with a delivery."""

    SECONDS = "delays in seconds, destinations missing, rows twice"
    NO_ARRIVALS = "no arrivals of one carrier"


@dataclass(frozen=True)
class CreateTable:
    """Version 0: the columns of the first feed, partitioned by month."""


@dataclass(frozen=True)
class Load:
    """Append the flights of these days, both included: one file, or one for each of the three airports."""

    first: date
    last: date
    by_airport: bool = False
    statistics: Statistics = Statistics.FULL
    fault: Fault | None = None


@dataclass(frozen=True)
class ReplaceMonth:
    """Overwrite a month's partition with what the source really says."""

    month: int


@dataclass(frozen=True)
class CorrectDay:
    """Replace exactly the files that hold one day."""

    day: date


@dataclass(frozen=True)
class AddColumns:
    """The table gains columns; older rows have no value there."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Compact:
    """Rewrite a month's many files as one: the same rows, in other files."""

    month: int


@dataclass(frozen=True)
class Vacuum:
    """Delete the files that only this version had: it stays in the log and can no longer be read."""

    version: int


@dataclass(frozen=True)
class Summarise:
    """Bring `daily_delays` up to date: every row replaced, or the days of a month appended."""

    month: int | None = None


Action = CreateTable | Load | ReplaceMonth | CorrectDay | AddColumns | Compact | Vacuum | Summarise


@dataclass(frozen=True)
class Step:
    """One action at a moment of the story; `note` is what its commit says about itself."""

    at: datetime
    action: Action
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """A whole story. Tests tell a shorter one."""

    steps: Sequence[Step] = field(default_factory=tuple)


def full_story() -> Plan:
    """The year, in seven chapters."""
    steps = [
        *_monthly_deliveries(),
        *_the_bad_april(),
        *_summer(),
        *_daily_september(),
        *_october_with_an_outage(),
        *_weather_joins(),
        *_december(),
    ]
    return Plan(tuple(steps))


def _monthly_deliveries() -> list[Step]:
    """January to March come as one delivery a month, a few hours into the next."""
    steps = [Step(at_hour(date(2013, 1, 1), 20), CreateTable(), "flights from New York, partitioned by month")]
    for month in (1, 2, 3):
        steps += _month(month, f"monthly delivery {month}")
    return steps


def _the_bad_april() -> list[Step]:
    """April arrives broken, is noticed after a few days, replaced, and its files are swept away."""
    bad = Load(date(2013, 4, 1), date(2013, 4, 30), fault=Fault.SECONDS)
    return [
        Step(at_hour(date(2013, 5, 1), 4), bad, "monthly delivery 4"),
        Step(at_hour(date(2013, 5, 6), 15), ReplaceMonth(4), "April again: the first delivery had delays in seconds"),
        Step(at_hour(date(2013, 5, 6), 16), Summarise()),
        # version 4 is the bad April: create, January, February, March, April
        Step(at_hour(date(2013, 5, 20), 1), Vacuum(version=4), "files of the bad April removed"),
    ]


def _summer() -> list[Step]:
    """May does not come; aircraft are known from July on; May comes in August, behind June and July."""
    return [
        *_month(6, "monthly delivery 6"),
        Step(at_hour(date(2013, 7, 15), 11), AddColumns(AIRCRAFT_COLUMNS), "the feed now names the aircraft"),
        *_month(7, "monthly delivery 7, with aircraft"),
        Step(at_hour(date(2013, 8, 20), 9), Load(date(2013, 5, 1), date(2013, 5, 31)), "May, three months late"),
        Step(at_hour(date(2013, 8, 20), 10), Summarise()),
        *_month(8, "monthly delivery 8"),
    ]


def _daily_september() -> list[Step]:
    """The feed becomes daily, one file an airport; one day is corrected; at the month's end the files are merged."""
    steps = []
    for day in _days(date(2013, 9, 1), date(2013, 9, 30)):
        fault = Fault.NO_ARRIVALS if day == date(2013, 9, 17) else None
        steps.append(_nightly(Load(day, day, by_airport=True, fault=fault), f"daily delivery {day}"))
        if day == date(2013, 9, 19):
            correction = CorrectDay(date(2013, 9, 17))
            steps.append(Step(at_hour(date(2013, 9, 20), 14), correction, "17 September with the missing arrivals"))
    steps.append(Step(at_hour(date(2013, 10, 1), 5), Compact(9), "September: one file instead of ninety"))
    steps.append(Step(at_hour(date(2013, 10, 1), 6), Summarise()))
    return steps


def _october_with_an_outage() -> list[Step]:
    """Half a month of small files, some without statistics; nothing for two weeks; then all at once, and tidied."""
    steps = []
    for day in _days(date(2013, 10, 1), date(2013, 10, 14)):
        bare = date(2013, 10, 8) <= day <= date(2013, 10, 10)
        statistics = Statistics.NONE if bare else Statistics.FULL
        steps.append(_nightly(Load(day, day, by_airport=True, statistics=statistics), f"daily delivery {day}"))
    rest = Load(date(2013, 10, 15), date(2013, 10, 31))
    steps.append(Step(at_hour(date(2013, 11, 1), 13), rest, "what came in during the outage"))
    steps.append(Step(at_hour(date(2013, 11, 1), 14), Summarise()))
    steps.append(
        Step(at_hour(date(2013, 11, 5), 15), Compact(10), "October: one file, and its statistics are whole again")
    )
    return steps


def _weather_joins() -> list[Step]:
    """November comes monthly again, and with the view at the airport."""
    added = Step(at_hour(date(2013, 11, 12), 10), AddColumns(WEATHER_COLUMNS), "the feed now knows the weather")
    return [added, *_month(11, "monthly delivery 11, with weather")]


def _december() -> list[Step]:
    """Weekly to Christmas, daily to the end: small files are left lying, and some say only how many rows they hold."""
    weeks = [Load(first, first + timedelta(days=6)) for first in _days(date(2013, 12, 1), date(2013, 12, 15))[::7]]
    bare = {date(2013, 12, 25), date(2013, 12, 26)}
    days = [
        Load(day, day, by_airport=True, statistics=Statistics.COUNTS if day in bare else Statistics.FULL)
        for day in _days(date(2013, 12, 22), date(2013, 12, 31))
    ]
    return [
        *(_nightly(week, f"weekly delivery {week.first}") for week in weeks),
        *(_nightly(day, f"daily delivery {day.first}") for day in days),
        Step(at_hour(date(2014, 1, 1), 5), Summarise(month=12)),
    ]


def _month(month: int, note: str) -> list[Step]:
    """A month's delivery early on the first of the next, and the summary after it."""
    first = date(2013, month, 1)
    following = date(2013 + month // 12, month % 12 + 1, 1)
    load = Load(first, following - timedelta(days=1))
    return [Step(at_hour(following, 4), load, note), Step(at_hour(following, 5), Summarise())]


def _nightly(load: Load, note: str) -> Step:
    """A delivery in the night after its last day."""
    return Step(at_hour(load.last + timedelta(days=1), 2), load, note)


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def at_hour(day: date, hour: int) -> datetime:
    """That hour of the day; the minute differs from day to day as a scheduler's does."""
    return datetime(day.year, day.month, day.day, hour, day.toordinal() * 7 % 23, tzinfo=UTC)
