"""A name on this machine to an open file, and to where the file lies that was opened; the names in a folder.

Recorded paths to where files lie, many of them in few folders.
"""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from stat import S_ISREG
from typing import IO, NamedTuple

from lakeview.storage.interface import Storage


def require_file(full: str) -> None:
    """FileNotFoundError for a folder, and for a pipe or a device: opening one could wait for ever."""
    if not S_ISREG(os.stat(full).st_mode):
        raise FileNotFoundError(errno.ENOENT, "no regular file", full)


def open_plain(full: str) -> int | None:
    """A descriptor of a file to which no link leads, as Linux tells its place; None for any other, and where it cannot
    be told."""
    if sys.platform != "linux":
        return None
    with suppress(OSError, ValueError):
        file = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # no pipe is waited for
        if _is_plain(file, full):
            return file
        os.close(file)
    return None


def is_plain_place(full: str) -> bool:
    """Whether the folder of a file is there, and Linux tells that no link leads to it or to the file: in half the time
    that following them takes."""
    return is_plain_folder(os.path.dirname(full)) and not os.path.islink(full)


def is_plain_folder(folder: str) -> bool:
    """Whether a folder is there, and Linux tells that no link leads to it."""
    return _place_by_kernel(folder) == folder


def _place_by_kernel(folder: str) -> str | None:
    """Where a folder lies, as Linux tells it, None where it does not."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
            try:
                return os.readlink(f"/proc/self/fd/{descriptor}")
            finally:
                os.close(descriptor)
    return None


def _is_plain(file: int, full: str) -> bool:
    """Whether an open file is a regular one, and lies at this place."""
    with suppress(OSError):
        return S_ISREG(os.fstat(file).st_mode) and os.readlink(f"/proc/self/fd/{file}") == full
    return False


def open_at_once(path: str, flags: int) -> int:
    """An opener that waits for no pipe, should one have taken the place of a file."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextmanager
def closed_on_error(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Close a file only where an error ends what is done with it."""
    try:
        yield file
    except BaseException:
        file.close()
        raise


def place_of(descriptor: int, full: str) -> str:
    """Where the file lies that was opened by a name, links followed: as Linux tells it, elsewhere as its name
    leads now.

    FileNotFoundError where that leads to another file, and for what is no file."""
    if not S_ISREG(os.fstat(descriptor).st_mode):
        raise FileNotFoundError(errno.ENOENT, "no regular file", full)
    if sys.platform == "linux":
        with suppress(OSError):  # no /proc
            return os.readlink(f"/proc/self/fd/{descriptor}")
    real = os.path.realpath(full)
    if not os.path.samestat(os.fstat(descriptor), os.lstat(real)):
        raise FileNotFoundError(errno.ENOENT, "replaced while it was opened", full)
    return real


def places_of_folder(folder: str) -> set[str]:
    """Where a folder lies, links followed. Where a file system does not tell cases apart, Linux may spell the place of
    its files as another process named the folder first: that is a second one."""
    real = os.path.realpath(folder)
    return {real, _place_by_kernel(folder) or real}


def names_in(folder: str) -> tuple[list[str], list[str]]:
    """The names of the files and of the folders in a folder; links to folders are left out."""
    files: list[str] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:  # one that may not be read holds nothing for us
        for entry in entries:  # nothing is asked of a file itself: of a million that takes many seconds
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif os.path.isfile(entry.path):  # a link to one
                files.append(entry.name)
    return files, folders


def has_name_like(folder: str, name: re.Pattern[str]) -> bool:
    """Whether a file's name in a folder matches."""
    with suppress(OSError):
        return any(map(name.match, os.listdir(folder)))
    return False


def printable(name: str) -> str:
    """A local file's name as text: bytes that are no UTF-8, which no log can name, become question marks."""
    return name if name.isascii() else name.encode(errors="replace").decode()


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
