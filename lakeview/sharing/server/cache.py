"""A bounded memory of values that say how large they are: the least recently used go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class _Sized(Protocol):
    @property
    def size(self) -> int:
        """Bytes."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=_Sized)


class SizedCache(Generic[K, V]):
    """Values by key, `most` bytes of them; the newest stays however large it is. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value, now the most recently used."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> None:
        """Remember a value. Sizes may grow after this: all are asked again."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > 1 and sum(v.size for v in self._values.values()) > self._most:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)
