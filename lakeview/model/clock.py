"""Clocks: what gives the present to code that depends on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Gives the present as an aware datetime."""


def system_clock() -> datetime:
    """The wall clock, for callers that are given no other."""
    return datetime.now(UTC)  # noqa: TID251 (the one default; whatever depends on time takes a clock)
