"""Functions of a table to functions that remember what they gave: bounded in entries and bytes, forgotten by table.

For values that never change: what is kept is handed out as it is, to all sessions, and nobody may change it.
(Streamlit's own cache of data copies a frame at every use, and knows no bytes.) Errors are not kept. Two that ask for
the same thing wait for one answer; those who ask for different things do not wait for each other.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from itertools import chain
from typing import ParamSpec, TypeVar

import polars as pl
import pyarrow as pa
import streamlit as st

from lakeview.model.snapshot import Snapshot

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")

MOST_BYTES = 512 << 20
"""All that is kept by one server."""

_LARGEST = 3
"""A value of more than a third of that is handed out and not kept: it would drive out what is small and costly. What
the pages show is made of such a value once, and that is kept."""

_SMALL_VALUE = 1 << 20
_SMALL = 1 << 10


@dataclass(slots=True)
class _Entry:
    value: object
    made: float
    size: int


class Memory:
    """Values by function, table and arguments, the longest unused forgotten first. Safe to use from several threads."""

    def __init__(self, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self.most_bytes = most_bytes
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
        """What `make` gave for these arguments, at most so many seconds ago; else what it gives now."""
        with self._lock:
            key = (function, address, self._generations.get(address, 0), *arguments)
        with self._alone(key):
            with self._lock:
                known = self._entries.get(key)
                if known is not None and (seconds is None or self._clock() - known.made < seconds):
                    self._entries.move_to_end(key)
                    return known.value  # type: ignore[return-value]  # this key's values come from this make
            value = make()
            size = size_of(value)
            if size * _LARGEST > self.most_bytes:
                return value
            with self._lock:
                self._entries[key] = _Entry(value, self._clock(), size)
                self._entries.move_to_end(key)
                self._shrink(function, entries)
            return value

    def forget(self, address: str) -> None:
        """Forgets what was kept of one table, and what is being made of it now."""
        with self._lock:
            self._generations[address] = self._generations.get(address, 0) + 1
            for key in [key for key in self._entries if key[1] == address]:
                del self._entries[key]

    @property
    def size(self) -> int:
        """Bytes kept, about: snapshots load more as pages ask for it."""
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
        over = self._size() - self.most_bytes
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


@st.cache_resource(show_spinner=False)
def memory() -> Memory:
    """This server's memory; a new one once everything was forgotten."""
    return Memory()


def kept(
    entries: int, seconds: float | None = None, *, address: int = 0
) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """A function that remembers its last `entries` values, for so many seconds if that is said.

    `address`: which of its positional arguments is the table's address. Arguments are hashable and positional.
    """

    def decorate(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
        name = f"{function.__module__}.{function.__qualname__}"

        @wraps(function)
        def remembering(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
            arguments = (*args, *sorted(kwargs.items()))
            return memory().get(
                name,
                str(args[address]),
                arguments,
                lambda: function(*args, **kwargs),
                entries=entries,
                seconds=seconds,
            )

        return remembering

    return decorate


def size_of(value: object) -> int:
    """Bytes that a value takes, about: its frames, Arrow data and texts, however deep in it they lie.

    Of a snapshot, of the frames it has loaded by now. What two values share is counted in both.
    """
    match value:
        case pl.DataFrame() | pl.Series():
            return _SMALL + int(value.estimated_size())
        case pa.Table() | pa.RecordBatch() | pa.ChunkedArray() | pa.Array():
            return _SMALL + int(value.get_total_buffer_size())  # of a slice too, which holds on to the whole
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
