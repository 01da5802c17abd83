"""The demo's story: what happened to the table `flights` in its first year, step by step, as data.

It goes by the twelve periods of a calendar, not by months: each period holds the same flights, delivered in the same
commits, on every day of a build.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from lakeview.demo.calendar import Calendar, at_hour, days
from lakeview.demo.source import AIRCRAFT_COLUMNS, WEATHER_COLUMNS
from lakeview.spark.options import Statistics


class Fault(StrEnum):
    """What is wrong with a delivery."""

    SECONDS = "delays in seconds, destinations missing, rows twice"
    NO_ARRIVALS = "no arrivals of one carrier"


@dataclass(frozen=True)
class CreateTable:
    """Version 0: the columns of the first feed, partitioned by period."""


@dataclass(frozen=True)
class Load:
    """Append the flights of these days, both included: one file, or one for each of the three airports."""

    first: date
    last: date
    by_airport: bool = False
    statistics: Statistics = Statistics.FULL
    fault: Fault | None = None


@dataclass(frozen=True)
class ReplacePeriod:
    """Overwrite a period's partition with what the source really says."""

    period: int


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
    """Rewrite a period's many files as one: the same rows, in other files."""

    period: int


@dataclass(frozen=True)
class Vacuum:
    """Delete the files that only this version had: it stays in the log and can no longer be read."""

    version: int


@dataclass(frozen=True)
class RunPipeline:
    """Run the pipeline that computes `daily_delays` and `long_delays` from the flights as they are."""


Action = CreateTable | Load | ReplacePeriod | CorrectDay | AddColumns | Compact | Vacuum | RunPipeline


@dataclass(frozen=True)
class Step:
    """One action at a moment of the story; `note` is what its commit says about itself."""

    at: datetime
    action: Action
    note: str = ""


def full_story(calendar: Calendar) -> list[Step]:
    """The year, in seven chapters."""
    return [
        *_monthly_deliveries(calendar),
        *_a_bad_delivery(calendar),
        *_a_late_delivery(calendar),
        *_daily_deliveries(calendar),
        *_an_outage(calendar),
        *_weather_joins(calendar),
        *_small_files(calendar),
    ]


def _monthly_deliveries(calendar: Calendar) -> list[Step]:
    """Periods 1 to 3 come as one delivery each, a few hours into the next."""
    start = at_hour(calendar.day(1, 1), 20)
    steps = [Step(start, CreateTable(), "flights from New York, partitioned by period")]
    for period in (1, 2, 3):
        steps += _whole_period(calendar, period, f"delivery of period {period}")
    return steps


def _a_bad_delivery(calendar: Calendar) -> list[Step]:
    """Period 4 arrives broken, is noticed after a few days, replaced, and its files are swept away."""
    bad = Load(*calendar.period(4), fault=Fault.SECONDS)
    again = "period 4 again: the first delivery had delays in seconds"
    return [
        Step(at_hour(calendar.day(5, 1), 4), bad, "delivery of period 4"),
        Step(at_hour(calendar.day(5, 1), 5), RunPipeline()),
        Step(at_hour(calendar.day(5, 6), 15), ReplacePeriod(4), again),
        Step(at_hour(calendar.day(5, 6), 16), RunPipeline()),
        # version 4 is the bad delivery: create, periods 1 to 4
        Step(at_hour(calendar.day(5, 20), 1), Vacuum(version=4), "files of the bad delivery removed"),
    ]


def _a_late_delivery(calendar: Calendar) -> list[Step]:
    """Period 5 does not come; aircraft are known from 7 on; 5 comes in 8, behind 6 and 7."""
    late = Load(*calendar.period(5))
    return [
        *_whole_period(calendar, 6, "delivery of period 6"),
        Step(at_hour(calendar.day(7, 15), 11), AddColumns(AIRCRAFT_COLUMNS), "the feed now names the aircraft"),
        *_whole_period(calendar, 7, "delivery of period 7, with aircraft"),
        Step(at_hour(calendar.day(8, 20), 9), late, "delivery of period 5, late"),
        *_whole_period(calendar, 8, "delivery of period 8"),
    ]


def _daily_deliveries(calendar: Calendar) -> list[Step]:
    """The feed becomes daily, one file an airport; one day is corrected; at the period's end the files are merged."""
    steps = []
    faulty = calendar.day(9, 17)
    for day in days(*calendar.period(9)):
        fault = Fault.NO_ARRIVALS if day == faulty else None
        steps.append(_nightly(Load(day, day, by_airport=True, fault=fault), f"daily delivery {day}"))
        if day == calendar.day(9, 19):
            correction = CorrectDay(faulty)
            steps.append(Step(at_hour(calendar.day(9, 20), 14), correction, f"{faulty} with the missing arrivals"))
    steps.append(Step(at_hour(calendar.day(10, 1), 5), Compact(9), "period 9: one file instead of ninety"))
    return steps


def _an_outage(calendar: Calendar) -> list[Step]:
    """Half a period of small files, some without statistics; nothing for two weeks; then all at once, and tidied."""
    steps = []
    for day in days(calendar.day(10, 1), calendar.day(10, 14)):
        bare = calendar.day(10, 8) <= day <= calendar.day(10, 10)
        statistics = Statistics.NONE if bare else Statistics.FULL
        steps.append(_nightly(Load(day, day, by_airport=True, statistics=statistics), f"daily delivery {day}"))
    rest = Load(calendar.day(10, 15), calendar.day(10, 31))
    note = "period 10: one file, and its statistics are whole again"
    return [
        *steps,
        Step(at_hour(calendar.day(11, 1), 13), rest, "what came in during the outage"),
        Step(at_hour(calendar.day(11, 5), 15), Compact(10), note),
    ]


def _weather_joins(calendar: Calendar) -> list[Step]:
    """Period 11 comes whole again, and with the view at the airport."""
    columns = AddColumns(WEATHER_COLUMNS)
    return [
        Step(at_hour(calendar.day(11, 12), 10), columns, "the feed now knows the weather"),
        *_whole_period(calendar, 11, "delivery of period 11, with weather"),
    ]


def _small_files(calendar: Calendar) -> list[Step]:
    """Weekly, then daily to the end: small files are left lying, and some say only how many rows they hold."""
    weeks = [Load(first, first + timedelta(days=6)) for first in days(calendar.day(12, 1), calendar.day(12, 15))[::7]]
    bare = {calendar.day(12, 25), calendar.day(12, 26)}
    daily = [
        Load(day, day, by_airport=True, statistics=Statistics.COUNTS if day in bare else Statistics.FULL)
        for day in days(calendar.day(12, 22), calendar.last)
    ]
    return [
        *(_nightly(week, f"weekly delivery {week.first}") for week in weeks),
        *(_nightly(day, f"daily delivery {day.first}") for day in daily),
        Step(at_hour(calendar.after(12), 5), RunPipeline()),
    ]


def _whole_period(calendar: Calendar, period: int, note: str) -> list[Step]:
    """A period's delivery early on the day after it."""
    return [Step(at_hour(calendar.after(period), 4), Load(*calendar.period(period)), note)]


def _nightly(load: Load, note: str) -> Step:
    """A delivery in the night after its last day."""
    return Step(at_hour(load.last + timedelta(days=1), 2), load, note)
