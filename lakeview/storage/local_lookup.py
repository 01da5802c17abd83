"""Recorded paths to where files lie on this machine, many of them in few folders."""

import os
from contextlib import suppress
from stat import S_ISREG
from typing import NamedTuple

from lakeview.storage.interface import Storage
from lakeview.storage.local_opening import is_plain_folder


class LocalFile(NamedTuple):
    """Where a file lies on this machine, and its bytes."""

    path: str
    size: int


class LocalFiles:
    """Finds files of a store as `Storage.local_path` does, and looks at each of their folders once: a thousand files
    take a third of the time (benches/bench_rows.py, 1,000 small files)."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._plain_folders: dict[str, bool] = {}

    def find(self, path: str) -> LocalFile | None:
        """The file of this path; None where the store is none of this machine. Errors as `Storage.local_path`."""
        file = None if self._storage.remote else self._plain_file(path)
        if file is not None:
            return file
        place = self._storage.local_path(path)
        return None if place is None else LocalFile(place, os.path.getsize(place))

    def _plain_file(self, path: str) -> LocalFile | None:
        """The file of this path if it is a regular one and no link leads to it."""
        full = Storage.resolve(self._storage, path)  # by its spelling alone
        folder = os.path.dirname(full)
        if folder not in self._plain_folders:
            self._plain_folders[folder] = is_plain_folder(folder)
        if self._plain_folders[folder]:
            with suppress(OSError):  # the longer way says what is wrong
                stat = os.lstat(full)
                if S_ISREG(stat.st_mode):
                    self._storage.count("open")
                    return LocalFile(full, stat.st_size)
        return None
