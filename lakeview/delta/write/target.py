"""What a writer needs of the table it writes to, and operations that are done again where the commit of another writer
collided with theirs."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import CommitConflictError
from lakeview.storage import Storage

Progress: TypeAlias = Callable[[int, int], None]
"""Told of long work: how much is done, of how much, in files or bytes as the operation says."""

_T = TypeVar("_T")


def with_progress(files: Sequence[_T], sizes: Sequence[int | None], progress: Progress | None) -> Iterator[_T]:
    """The files; `progress` is called with the bytes of those that are done, and of all."""
    total, done = sum(size or 0 for size in sizes), 0
    for file, size in zip(files, sizes, strict=True):
        yield file
        done += size or 0
        if progress is not None:
            progress(done, total)


class Target(Protocol):
    """A Delta table as writers see it: its log and its store."""

    storage: Storage

    @property
    def log(self) -> TableLog:
        """Its log."""

    @property
    def latest_version(self) -> int:
        """The newest version seen by the last refresh."""

    def refresh(self) -> bool:
        """Look for newer versions."""

    def state(self, version: int | None = None, at: datetime | None = None) -> Replay:
        """The replayed log at a version or a moment, its protocol checked; the latest without either."""


_ATTEMPTS = 5


def until_made(attempt: Callable[[], int | None]) -> int | None:
    """What an operation gives, done again from the table as it is now where another writer's commit collided with it.

    What it decides follows from the rows that it finds: done again, it is the operation after that commit.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except CommitConflictError as conflict:
            if conflict.kind == "too-many-attempts":
                raise
    return attempt()
