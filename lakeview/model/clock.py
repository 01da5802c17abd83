"""The clock that callers pass where time is an argument."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns an aware datetime."""


def system_clock() -> datetime:
    """Returns the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 (the clock itself)
