"""Things of a size to runs of about equal size, in their order."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def runs(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """The items, cut where the sizes of a run would come to more than `most`; one that is larger is a run alone."""
    run: list[T] = []
    total = 0
    for item in items:
        if run and total + size(item) > most:
            yield run
            run, total = [], 0
        run.append(item)
        total += size(item)
    if run:
        yield run
