"""A cache that is bounded in bytes: the least recently used values go first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteBoundedCache(Generic[K, V]):
    """Values by key, at most `max_bytes` of them; the newest stays however large it is.

    Safe to use from several threads. `size_of` gives the bytes of a value. `growing`: sizes may change later, so that
    each `put` measures all values again.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[V], int], *, growing: bool = False) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._growing = growing
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of all values, as they were at the last `put`."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """The value, which becomes the most recently used; None if it is not there."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V) -> None:
        """Add or replace a value; those not used for longest make room."""
        with self._lock:
            self._bytes -= self._values.pop(key, (value, 0))[1]
            self._values[key] = (value, self._size_of(value))
            self._bytes += self._values[key][1]
            if self._growing:
                self._values.update({k: (v, self._size_of(v)) for k, (v, _) in self._values.items()})
                self._bytes = sum(size for _, size in self._values.values())
            while self._bytes > self._max_bytes and len(self._values) > 1:
                self._bytes -= self._values.popitem(last=False)[1][1]

    def keys(self) -> set[K]:
        """The keys of all values that are there."""
        with self._lock:
            return set(self._values)

    def __len__(self) -> int:
        return len(self._values)


SmallFiles: TypeAlias = ByteBoundedCache[str, bytes]
"""Whole files by path."""
