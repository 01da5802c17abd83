"""What every store can do: the one interface, and what its implementations share.

All paths given to a Storage are relative to its root, or absolute (a path or `scheme://...`); absolute ones and those
that climb out of the root are opened only below the allowed roots. What is not there lists as nothing.
"""

import os
import posixpath
import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import IO, Any, TypeAlias, TypeVar

import polars as pl

from lakeview.model.addresses import below, is_absolute, is_local, normalise
from lakeview.model.column_values import moments
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, LakeviewError, UnsupportedTableError
from lakeview.model.frames import UTC_MILLIS
from lakeview.storage.new_file import NewFile
from lakeview.storage.options import COORDINATOR

LISTING = pl.Schema({"name": pl.String(), "size": pl.Int64(), "modified": UTC_MILLIS})
"""One row a file, by name in ascending order; `name` relative to the folder listed, `size` in bytes."""

Entry: TypeAlias = tuple[str, int, int | None]
"""One file: name, bytes, milliseconds since 1970 (None where the store does not tell)."""

_T = TypeVar("_T")
_R = TypeVar("_R")

NO_LISTING = "no-listing"
"""The kind of the UnsupportedTableError of a store that shows no folders: a web server may be one."""

FIRST_FOLDERS = 20

BLOCK = 8 << 20
"""Bytes of a file that are in memory at once while it is copied."""

READ_AHEAD = 16
"""Calls to a remote store that are made at once, and ahead of the caller."""

FILES_AHEAD = 32
"""Whole files of a log or of metadata that are read at once: they are small, and are kept as bytes."""


def ahead(call: Callable[[_T], _R], items: Iterable[_T], width: int) -> Generator[_R, None, None]:
    """What a call gives of each item, in their order, `width` calls at once; closing it cancels what was not begun."""
    rest = iter(items)
    with ThreadPoolExecutor(width, thread_name_prefix="lakeview-ahead") as pool:
        pending = deque(pool.submit(call, item) for item in islice(rest, width))
        try:
            while pending:
                outcome = pending.popleft().result()
                pending.extend(pool.submit(call, item) for item in islice(rest, 1))
                yield outcome
        finally:
            pool.shutdown(cancel_futures=True)


class Storage(ABC):
    """Files below one root, for several threads. `root`: normalised address. `requests`: how many calls of each kind
    went to the store (list, read, open, put, delete). `options`: those in use, which may hold secrets: not for display.
    """

    def __init__(self, root: str, config: Config, options: Mapping[str, Any] | None = None) -> None:
        self.root = root
        self.config = config
        self.options: Mapping[str, Any] = options or {}
        self.newest: Callable[[], Storage] | None = None
        """Opens the same store with the newest credentials, where a catalog hands them out: for those that expired."""
        self.requests: Counter[str] = Counter()
        self._count_lock = threading.Lock()

    @property
    def remote(self) -> bool:
        """Whether a request costs a round trip, so that several at once pay."""
        return True

    @property
    def may_put_twice(self) -> bool:
        """Whether a file that was created exclusively may be put once more, with the same bytes and a later time: by a
        commit coordinator, where two writers finish one claim. No other bytes take its place."""
        return self.options.get(COORDINATOR) is not None

    def adopt_credentials(self, newer: "Storage") -> bool:
        """Use the credentials of a store that was opened later for every request from now on; false if that is another
        store: its root, its configuration or an option that is no credential differs."""
        return (self.root, self.config, self.options) == (newer.root, newer.config, newer.options)

    @abstractmethod
    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        """The files in a folder whose names are >= start, by name, folders inside it left out."""

    def list_from(self, folder: str, start: str = "") -> pl.DataFrame:
        """LISTING of `entries_from`."""
        return listing_of(self.entries_from(folder, start))

    def each_ahead(
        self, call: Callable[[_T], _R], items: Iterable[_T], width: int = READ_AHEAD
    ) -> Generator[_R, None, None]:
        """What a call gives of each item, in the order given. Of a remote store, `width` calls are made at once.

        Closing the iterator cancels what was not begun.
        """
        if not self.remote:
            yield from map(call, items)
            return
        yield from ahead(call, items, width)

    def read_all(self, folder: str, names: Sequence[str]) -> list[bytes]:
        """Several files of one folder, in the order named; each as `read`. From a remote store FILES_AHEAD at once."""
        return list(self.each_ahead(self.read, (f"{folder}/{name}" for name in names), FILES_AHEAD))

    @abstractmethod
    def walk(self) -> pl.DataFrame:
        """LISTING of every file below the root, names relative to it."""

    def names(self, tables: Mapping[str, re.Pattern[str]] | None = None) -> pl.Series:  # noqa: ARG002 (see LocalStorage)
        """The names of every file below the root, relative to it, in any order; sizes and times may cost far more.

        `tables`: a folder is a table where a folder of such a name in it holds a file of such a name. Folders of
        partitions (`day=1`) inside a table may be left out: they hold its data alone, and may be most of a store.
        """
        return self.walk()["name"]

    def name_pages(self) -> Iterator[Sequence[str]]:
        """The names of every file below the root, relative to it; of a store of objects, as the pages of it come."""
        yield self.names().to_list()

    def folders(self, folder: str) -> list[str]:  # noqa: ARG002 (a store may have none)
        """The names of the folders in a folder, in order; of a folder of very many objects those of the first pages."""
        return []

    @abstractmethod
    def holds_files(self) -> bool:
        """Whether a file lies below the root, in the first FIRST_FOLDERS folders: what lies there may have no end."""

    @abstractmethod
    def open(self, path: str, size: int = 0) -> IO[bytes]:
        """A seekable binary file. FileNotFoundError if it is not there.

        `size`: its bytes as a log or a listing records them, 0 where unknown. S3 is not asked for a size that is right;
        a wrong one costs requests, and the file is read as the store has it.
        """

    def local_path(self, path: str) -> str | None:  # noqa: ARG002 (for stores of this machine)
        """Where a file lies on this machine, for libraries that open it themselves; counted as opened.

        None where the store is none of this machine. FileNotFoundError if it is not there, AccessDeniedError as
        `resolve`.
        """
        return None

    @abstractmethod
    def read(self, path: str) -> bytes:
        """A whole file. FileNotFoundError if it is not there."""

    @abstractmethod
    def read_range(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes of a file from byte `start` on, fewer where it ends; nothing else of it is read.

        FileNotFoundError if it is not there, UnsupportedTableError for more than the operator's limit.
        """

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether a file is there."""

    @contextmanager
    def attempts(self) -> Iterator[None]:
        """Within it, this thread tries `put_if_absent` of the same bytes under one name after the other: a store may
        write them once, so that little time lies between learning of another writer's file and the next attempt."""
        yield

    def prepare(self, path: str, data: bytes) -> None:  # noqa: ARG002 (for stores that can)
        """Within `attempts`, do beforehand what `put_if_absent` of these bytes takes, where the store can."""
        return

    @contextmanager
    def turn(self, meanwhile: Callable[[], None] | None = None) -> Iterator[bool]:  # noqa: ARG002 (for a queue)
        """Within it, the writers that asked for their turn before have had it, where the store knows of any: none
        starves. True if there were some: there may be new files. For fairness: `put_if_absent` alone excludes.

        `meanwhile` is called before a wait.
        """
        yield False

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file whole and durable, or raise FileExistsError: never half, never over another."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file whole: a reader sees the old bytes or the new ones."""

    def put_hint(self, path: str, data: bytes) -> None:
        """As `put`, of a file that readers can do without: a power cut may leave it empty, or the old one there."""
        self.put(path, data)

    def put_file(self, path: str, file: IO[bytes]) -> None:
        """As `put`, with what an open file holds from its beginning on: block by block where the store can."""
        file.seek(0)
        self.put(path, file.read())

    def new_file(self, path: str) -> NewFile:
        """A file to be written bit by bit, and then put whole."""
        return NewFile(partial(self.put, path))

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if it is not there."""

    def delete_each(self, paths: Iterable[str]) -> list[str]:
        """Remove files; the paths of those that the store did not remove."""
        leftovers = []
        for path in paths:
            try:
                self.delete(path)
            except (LakeviewError, OSError):
                leftovers.append(path)
        return leftovers

    def signed_url(self, path: str, seconds: int) -> str | None:  # noqa: ARG002 (for stores that can)
        """An address by which anyone may read a file for so many seconds; None where the store signs none.

        Nothing is asked of the store. AccessDeniedError as `resolve`.
        """
        return None

    def count(self, kind: str, times: int = 1) -> None:
        """Note a request, or several of a kind."""
        with self._count_lock:
            self.requests[kind] += times

    def resolve(self, path: str) -> str:
        """The normalised address of a path; AccessDeniedError if it lies outside the root and the allowed roots."""
        full = normalise(path) if is_absolute(path) else self._join(path)
        if not (below(full, self.root) or any(below(full, normalise(r)) for r in self.config.roots)):
            raise AccessDeniedError(
                f"{path} lies outside the table and the allowed roots",
                fix="add its folder to LAKEVIEW_ROOTS if you trust this table",
                place=path,
                kind="outside-roots",
            )
        return full

    def _join(self, path: str) -> str:
        if "\0" in path:
            raise AccessDeniedError(
                "a recorded path holds a null character",
                fix="do not open tables of writers you do not trust",
                place=repr(path),
                kind="outside-roots",
            )
        if is_local(self.root):
            return os.path.normpath(os.path.join(self.root, path))
        head, _, tail = self.root.partition("://")
        path = posixpath.normpath(posixpath.join("/" + tail, path))
        return f"{head}://{path.lstrip('/')}"


def listing_of(entries: Sequence[Entry]) -> pl.DataFrame:
    """LISTING of entries."""
    # columns as lists: of tuples polars makes them at four times the cost
    columns = {name: [entry[place] for entry in entries] for place, name in enumerate(LISTING)}
    frame = pl.DataFrame(columns, schema={**LISTING, "modified": pl.Int64()})
    return frame.with_columns(moments("modified")).sort("name")


def refuse_oversized(path: str, size: int, config: Config) -> None:
    """UnsupportedTableError for a log file above the operator's limit: it would be read into memory whole."""
    if size > config.max_log_file_bytes:
        raise UnsupportedTableError(
            f"{path} holds at least {size:,} bytes, more than the limit of {config.max_log_file_bytes:,}",
            fix="raise LAKEVIEW_MAX_LOG_FILE_BYTES if this table is to be trusted",
            place=path,
            kind="too-large",
        )


def back_off(attempt: int, remote: bool, least: float = 0.0, share: float = 1.0) -> None:
    """The retry policy: wait longer after each attempt, up to two seconds and with jitter. Locally the first wait is
    about as long as a file takes that is written through to the disk.

    `least`: seconds that the store asked for, or other writers need; `share`: the part of the usual wait, for who has
    waited before.
    """
    longest = share * min(2.0, (0.1 if remote else 0.02) * 2**attempt)
    time.sleep(max(least, random.uniform(0, longest)))  # noqa: TID251 (this is the retry policy)
