"""The names below a table's folder, listed while its log is read."""

import threading
from collections.abc import Hashable
from contextlib import suppress

import polars as pl

from lakeview.model.errors import LakeviewError
from lakeview.storage.interface import Storage


class NamesAhead:
    """`storage.names()` of a state of a table: of a remote store begun before it is asked for. Safe to use from several
    threads.

    Of a store with 30 ms a request a listing of a million files takes half a minute, which reading the log takes too
    (benches/bench_stores.py).
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._listing: tuple[threading.Thread, list[pl.Series]] | None = None

    def begin(self, state: Hashable = 0) -> None:
        """Lists in the background, once for a state; no local folder, which takes CPU that reading the log needs."""
        with self._lock:
            if not self._storage.remote or self._state == state:
                return
            names: list[pl.Series] = []
            thread = threading.Thread(target=self._list, args=(names,), name="lakeview-names", daemon=True)
            thread.start()
            self._state, self._listing = state, (thread, names)

    def forget(self) -> None:
        """The names of the state that was begun last are not taken, but listed again: files may be gone since."""
        with self._lock:
            self._listing = None

    def take(self, state: Hashable = 0) -> pl.Series:
        """The names, listed since `begin` of the same state, or now. They are given once, and then listed again."""
        with self._lock:
            listing = self._listing if self._state == state else None
            self._state, self._listing = state, None
        if listing is not None:
            thread, names = listing
            thread.join()
            if names:
                return names[0]
        return self._storage.names()

    def _list(self, names: list[pl.Series]) -> None:
        with suppress(LakeviewError, OSError):  # `take` lists again, and raises it to its caller
            names.append(self._storage.names())
