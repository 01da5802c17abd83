"""The demo's days: those of its data, the year 2013, moved by whole days to the present."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

SOURCE_FIRST, SOURCE_LAST = date(2013, 1, 1), date(2013, 12, 31)
"""The days that the data begins and ends on."""
_WHOLE = timedelta(hours=8)
"""The last deliveries are committed by this time of the next day, in UTC."""


@dataclass(frozen=True)
class Calendar:
    """Days of the data and of commits, all moved by the same number of days, so that the data ends on `last`.

    The year keeps its twelve periods, the months of the source: a period begins and ends on any day of a month.
    """

    last: date

    @classmethod
    def at(cls, now: datetime) -> "Calendar":
        """The calendar of a build at `now`, an aware datetime: its last day is the day before, in UTC.

        Until eight in the morning it is the day before that: the last deliveries come in the night after their day.
        """
        return cls((now.astimezone(UTC) - _WHOLE).date() - timedelta(days=1))

    @property
    def shift(self) -> timedelta:
        """What is added to a day of the source: whole days."""
        return self.last - SOURCE_LAST

    @property
    def end(self) -> datetime:
        """The moment by which everything is committed."""
        return datetime(self.last.year, self.last.month, self.last.day, tzinfo=UTC) + timedelta(days=1) + _WHOLE

    def day(self, period: int, number: int) -> date:
        """A day of a period, from 1."""
        return date(SOURCE_FIRST.year, period, number) + self.shift

    def period(self, number: int) -> tuple[date, date]:
        """The first and the last day of a period, of 1 to 12."""
        year, month = divmod(SOURCE_FIRST.year * 12 + number, 12)
        return self.day(number, 1), date(year, month + 1, 1) - timedelta(days=1) + self.shift

    def after(self, number: int) -> date:
        """The day after a period."""
        return self.period(number)[1] + timedelta(days=1)


def at_hour(day: date, hour: int) -> datetime:
    """That hour of the day; the minute differs from day to day as a scheduler's does."""
    return datetime(day.year, day.month, day.day, hour, day.toordinal() * 7 % 23, tzinfo=UTC)


def days(first: date, last: date) -> list[date]:
    """Every day from one to another, both included."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]
