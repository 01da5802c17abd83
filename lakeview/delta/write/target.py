"""What a writer needs of the table it writes to, and operations that are done again where the commit of another writer
collided with theirs."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeAlias

from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import CommitConflictError
from lakeview.storage import Storage

Progress: TypeAlias = Callable[[int, int], None]
"""Told of long work: how much is done, of how much, in files or bytes as the operation says."""


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
