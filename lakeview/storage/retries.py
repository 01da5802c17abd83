"""A call to a store, or to a catalog, made again where that may help."""

from collections.abc import Callable
from typing import TypeVar

from lakeview.storage.interface import back_off

_R = TypeVar("_R")


def with_retries(call: Callable[[], _R], attempts: int, again: type[Exception], remote: bool = True) -> _R:
    """What a call gives, made again while it raises such an error, with growing pauses; that of the last attempt is
    raised."""
    for attempt in range(attempts - 1):
        try:
            return call()
        except again:
            back_off(attempt, remote)
    return call()
