"""Operations that are done again where the commit of another writer collided with theirs."""

from __future__ import annotations

from collections.abc import Callable

from lakeview.model.errors import CommitConflictError

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
