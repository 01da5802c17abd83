"""The order of jobs of several users: no user waits for all jobs of another."""

from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items that wait, by user. Of the users with the fewest running jobs the one is next who had a turn longest ago;
    each user's own items keep their order."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, user: str, item: T) -> None:
        """Adds an item; a user without items is the last whose turn it is."""
        self._waiting.setdefault(user, deque()).append(item)

    def pop(self, running: Mapping[str, int]) -> T | None:
        """Removes and returns the next item; None without any. `running`: how many jobs of each user are running."""
        if not self._waiting:
            return None
        user = min(self._waiting, key=lambda user: running.get(user, 0))
        waiting = self._waiting.pop(user)
        item = waiting.popleft()
        if waiting:
            self._waiting[user] = waiting
        return item

    def remove(self, user: str, item: T) -> bool:
        """Removes an item; False if it is not there, since it had its turn."""
        waiting = self._waiting.get(user, ())
        if item not in waiting:
            return False
        self._waiting[user].remove(item)
        if not self._waiting[user]:
            del self._waiting[user]
        return True
