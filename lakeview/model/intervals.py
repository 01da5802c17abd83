"""Durations as table properties write them: `interval 1 week`, `7 days 12 hours`."""

import re
from datetime import timedelta

_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_PART = re.compile(rf"(\d{{1,9}})\s+({'|'.join(_UNITS)})s?")
_INTERVAL = re.compile(rf"(?:interval\s+)?{_PART.pattern}(?:\s+{_PART.pattern})*")
LONGEST = timedelta(days=365_000)


def interval(text: str | None) -> timedelta | None:
    """`interval 1 week` or `7 days 12 hours` as a duration of at most a thousand years; None for any other text."""
    if text is None or _INTERVAL.fullmatch(text.strip().lower()) is None:
        return None
    parts = [int(number) * _UNITS[unit] for number, unit in _PART.findall(text.lower())]
    return min(sum(parts, timedelta()), LONGEST)
