"""A byte-bounded memory of values by function, table and arguments; the least recently used values are evicted.

For values that never change: a cached value is handed out as it is, to all callers, and must not be modified.
(Streamlit's own cache of data copies a frame at every use, and counts no bytes.) Exceptions are not cached. Two callers
with the same arguments wait for one computation; callers with different arguments do not wait for each other.
"""

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import signature
from itertools import chain
from typing import Any, ParamSpec, TypeAlias, TypeVar

import polars as pl

from lakeview.model.snapshot import Snapshot

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")

MAX_BYTES = 512 << 20
"""The bytes of all values of one memory."""

_LARGEST = 3
"""A value of more than a third of the limit is returned and not cached: it would evict many small, costly values."""

_SMALL_VALUE = 1 << 20
_SMALL = 1 << 10


@dataclass(slots=True)
class _Entry:
    value: object
    created_at: float
    size: int


class Memory:
    """Values by function, table and arguments, evicted by last use. Safe to use from several threads."""

    def __init__(self, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[tuple[Hashable, ...], _Entry] = OrderedDict()
        self._generations: dict[str, int] = {}
        self._making: dict[tuple[Hashable, ...], list[threading.Lock]] = {}
        self._lock = threading.Lock()

    def get(
        self,
        function: str,
        address: str,
        arguments: tuple[Hashable, ...],
        make: Callable[[], _Value],
        *,
        entries: int,
        seconds: float | None = None,
    ) -> _Value:
        """The value that `make` returned for these arguments, at most `seconds` ago; else computes it.

        `entries`: how many values of this function are cached at most.
        """
        with self._lock:
            key = (function, address, self._generations.get(address, 0), *arguments)
        with self._alone(key):
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None and (seconds is None or self._clock() - entry.created_at < seconds):
                    self._entries.move_to_end(key)
                    return entry.value  # type: ignore[return-value]  # this key's values come from this make
            value = make()
            size = size_of(value)
            if size * _LARGEST > self.max_bytes:
                return value
            with self._lock:
                self._entries[key] = _Entry(value, self._clock(), size)
                self._entries.move_to_end(key)
                self._shrink(function, entries)
            return value

    def forget(self, address: str) -> None:
        """Evicts the values of one table, and those that are being computed now."""
        with self._lock:
            self._generations[address] = self._generations.get(address, 0) + 1
            for key in [key for key in self._entries if key[1] == address]:
                del self._entries[key]

    @property
    def size(self) -> int:
        """Bytes of the cached values, about: snapshots load more on demand."""
        with self._lock:
            return self._size()

    def _size(self) -> int:
        for entry in self._entries.values():
            if isinstance(entry.value, Snapshot):
                entry.size = size_of(entry.value)
        return sum(entry.size for entry in self._entries.values())

    def _shrink(self, function: str, entries: int) -> None:
        own = [key for key in self._entries if key[0] == function]
        for key in own[: max(0, len(own) - entries)]:
            del self._entries[key]
        over = self._size() - self.max_bytes
        # what is small was costly all the same: it goes last
        for least in (_SMALL_VALUE, 0):
            for key in [key for key, entry in self._entries.items() if entry.size > least]:
                if over > 0:
                    over -= self._entries.pop(key).size

    @contextmanager
    def _alone(self, key: tuple[Hashable, ...]) -> Iterator[None]:
        """One maker of a key at a time. The list counts who holds its lock or waits for it."""
        with self._lock:
            waiting = self._making.setdefault(key, [])
            lock = waiting[0] if waiting else threading.Lock()
            waiting.append(lock)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                waiting.pop()
                if not waiting:
                    self._making.pop(key, None)


Place: TypeAlias = tuple[Memory, str, tuple[Hashable, ...]]
"""Where the value of a function is cached: in which memory, by which table's address, and what tells it apart beside
the function's arguments."""


def memoize(
    place: Callable[[Any], Place], *, entries: int, seconds: float | None = None
) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Caches what a function returns, the last `entries` values, for `seconds` if given: in the place of its first
    argument, by the others, which are hashable or lists of what is."""

    def decorate(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
        name, parameters = f"{function.__module__}.{function.__qualname__}", [*signature(function).parameters.values()]

        @wraps(function)
        def remembering(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
            # one that is given by name, or not given, is the same argument; a name that the function has not, or that
            # has its value by its place, stays one argument more, with which no value is cached
            by_name = {each.name: each.default for each in parameters[len(args) :]} | kwargs
            first, *others = chain(args, by_name.values())
            memory, address, key = place(first)
            arguments = (*key, *(tuple(value) if isinstance(value, list) else value for value in others))
            make = partial(function, *args, **kwargs)
            return memory.get(name, address, arguments, make, entries=entries, seconds=seconds)

        return remembering

    return decorate


def size_of(value: object) -> int:
    """Bytes that a value takes, about: its frames, Arrow data and texts, however deep in it they lie.

    Of a snapshot, of the frames it has loaded by now. What two values share is counted in both.
    """
    match value:
        case pl.DataFrame() | pl.Series():
            return _SMALL + int(value.estimated_size())
        case _ if callable(buffers := getattr(value, "get_total_buffer_size", None)):  # Arrow data
            return _SMALL + int(buffers())  # of a slice too, which holds on to the whole
        case Snapshot():
            return _SMALL + value.loaded_bytes
        case str() | bytes():
            parts: Iterable[object] = ()
        case Mapping():
            parts = chain(value.keys(), value.values())
        case tuple() | list() | set() | frozenset():
            parts = value
        case _ if is_dataclass(value) and not isinstance(value, type):
            parts = (getattr(value, field.name) for field in fields(value))
        case _:
            parts = ()
    return sys.getsizeof(value) + sum(map(size_of, parts))
