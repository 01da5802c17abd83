"""A folder of this machine as a store."""

import errno
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from stat import S_ISREG
from typing import IO

import polars as pl

from lakeview.model import limits
from lakeview.model.addresses import below, is_local, normalise
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, InvalidRequestError
from lakeview.storage.interface import FIRST_FOLDERS, Entry, Storage, listing_of, refuse_oversized
from lakeview.storage.local_files import NewLocalFile, publish, replace_file, sync_folder, write_temporary
from lakeview.storage.local_opening import (
    closed_on_error,
    has_name_like,
    is_plain_place,
    names_in,
    open_at_once,
    open_plain,
    place_of,
    places_of_folder,
    printable,
    require_file,
)
from lakeview.storage.new_file import NewFile
from lakeview.storage.system_errors import ErrorTranslation
from lakeview.storage.turns import turn


class LocalStorage(Storage):
    """A folder of this machine. Links are followed only to places below the allowed roots."""

    def __init__(self, root: str, config: Config) -> None:
        super().__init__(root, config)
        self._spare: dict[int, tuple[bytes, str] | None] = {}
        """By thread, within `attempts`: the bytes and the temporary file of the next attempt, where it is written."""

    @property
    def remote(self) -> bool:
        return False

    def resolve(self, path: str) -> str:
        if len(path) > limits.PATH_CHARACTERS:  # following the links of a path of a million folders would take hours
            raise FileNotFoundError(errno.ENAMETOOLONG, f"a path of {len(path):,} characters names no file", path[:80])
        full = super().resolve(path)
        if not is_local(full):
            raise AccessDeniedError(
                f"{path} lies in another store than its table", place=path, kind="outside-roots",
                fix="copy the file into the table, or open the table from the store that holds both",
            )  # fmt: skip
        # with no link on the way none leads to the root that it lies below either
        if not is_plain_place(full) and (real := os.path.realpath(full)) != full:
            self._require_inside(path, real)
        return full

    def _require_inside(self, path: str, real: str) -> None:
        roots = [self.root, *(normalise(r) for r in self.config.roots)]
        if not any(below(real, place) for root in roots for place in places_of_folder(root)):
            raise AccessDeniedError(
                f"{path} is a link that leaves the table and the allowed roots", place=path, kind="outside-roots",
                fix="add the folder it points into to LAKEVIEW_ROOTS if you trust this table",
            )  # fmt: skip

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        self.count("list")
        entries: list[Entry] = []
        try:
            with ErrorTranslation(folder), os.scandir(self.resolve(folder)) as directory:
                for entry in directory:
                    if entry.name < start or not entry.is_file():
                        continue
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:  # removed while we look: then it is not there
                        continue
                    entries.append((printable(entry.name), stat.st_size, stat.st_mtime_ns // 1_000_000))
        except (FileNotFoundError, NotADirectoryError):
            return []
        entries.sort()
        return entries

    def read_all(self, folder: str, names: Sequence[str]) -> list[bytes]:
        if len(names) < 2 or os.open not in os.supports_dir_fd:
            return super().read_all(folder, names)
        # the folder is resolved once: following its links again for each of thousands of files takes five times as long
        with ErrorTranslation(folder):
            descriptor = os.open(self.resolve(folder), os.O_RDONLY | os.O_DIRECTORY)
        self.count("read", len(names))
        try:
            return [self._read_in(descriptor, folder, name) for name in names]
        finally:
            os.close(descriptor)

    def _read_in(self, descriptor: int, folder: str, name: str) -> bytes:
        try:
            # no link is followed, and no pipe waited for
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
            try:
                stat = os.fstat(file)
                if S_ISREG(stat.st_mode) and stat.st_size <= self.config.max_log_file_bytes:
                    # not by a file object: of many small files, making one is a third of the time
                    data = os.read(file, stat.st_size + 1)
                    if len(data) == stat.st_size:
                        return data
            finally:
                os.close(file)
        except OSError:
            pass  # no plain file, one too large or growing, or an error: the way of every other path says what is wrong
        return self.read(f"{folder}/{name}")

    def walk(self) -> pl.DataFrame:
        self.count("list")
        files: list[Entry] = []
        folders = [(self.resolve(""), "")]
        while folders:
            folder, prefix = folders.pop()
            with suppress(OSError), os.scandir(folder) as entries:  # one that may not be read holds nothing for us
                for entry in entries:
                    with suppress(OSError):  # a dangling link is no file
                        name = prefix + entry.name
                        if entry.is_dir():
                            if not entry.is_symlink():
                                folders.append((entry.path, f"{name}/"))
                            continue
                        stat = entry.stat()
                        files.append((printable(name), stat.st_size, stat.st_mtime_ns // 1_000_000))
        return listing_of(files)

    def names(self, tables: Mapping[str, re.Pattern[str]] | None = None) -> pl.Series:
        self.count("list")
        names: list[str] = []
        stack = [(self.resolve(""), "", False)]
        while stack:
            folder, prefix, inside = stack.pop()
            files, folders = names_in(folder)
            names += [prefix + name for name in files] if prefix else files
            inside = inside or any(has_name_like(f"{folder}/{n}", tables[n]) for n in folders if tables and n in tables)
            stack += [
                (f"{folder}/{name}", f"{prefix}{name}/", inside) for name in folders if not (inside and "=" in name)
            ]
        try:
            return pl.Series("name", names, pl.String())
        except UnicodeEncodeError:
            return pl.Series("name", list(map(printable, names)), pl.String())

    def folders(self, folder: str) -> list[str]:
        self.count("list")
        return sorted(map(printable, names_in(self.resolve(folder))[1]))

    def holds_files(self) -> bool:
        self.count("list")
        return any(files for _, _, files in islice(os.walk(self.resolve("")), FIRST_FOLDERS))

    def open(self, path: str, size: int = 0) -> IO[bytes]:  # noqa: ARG002 (the file system knows it)
        self.count("open")
        return self._open(path)

    def _open(self, path: str) -> IO[bytes]:
        """A file that lies inside the allowed roots: the opened one does, also where its name leads elsewhere by now.
        To look for links folder by folder first takes twice as long, and each call of the system counts
        (benches/bench_writer.py, 1,000 files)."""
        with ErrorTranslation(path):
            plain = open_plain(super().resolve(path))
            if plain is not None:
                return open(plain, "rb")
            full = self.resolve(path)
            require_file(full)
            with closed_on_error(open(full, "rb", opener=open_at_once)) as file:
                self._require_inside(path, place_of(file.fileno(), full))
            return file

    def local_path(self, path: str) -> str:
        self.count("open")
        with ErrorTranslation(path):
            full = self.resolve(path)
            require_file(full)
            return full

    def read(self, path: str) -> bytes:
        self.count("read")
        with ErrorTranslation(path), self._open(path) as file:
            refuse_oversized(path, os.fstat(file.fileno()).st_size, self.config)
            return file.read()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.count("read")
        with ErrorTranslation(path), self._open(path) as file:
            size = min(length, max(os.fstat(file.fileno()).st_size - start, 0))
            refuse_oversized(path, size, self.config)
            file.seek(start if size else 0)  # a file system refuses places that no file reaches
            return file.read(size)

    def exists(self, path: str) -> bool:
        self.count("read")
        with suppress(FileNotFoundError):
            return os.path.isfile(self.resolve(path))
        return False

    def put_if_absent(self, path: str, data: bytes) -> None:
        # fsspec's exclusive create checks and then writes: two writers can both win
        self.count("put")
        full = self.resolve(path)
        with ErrorTranslation(path):
            temporary = self._temporary_file(full, data)
            exists = False
            try:
                publish(temporary, full, data)
            except FileExistsError:
                exists = True
                raise
            finally:
                if exists and threading.get_ident() in self._spare:
                    self._spare[threading.get_ident()] = data, temporary
                else:  # an error here would say of a file that is there that it was refused
                    self._remove_temporary(temporary)
            sync_folder(os.path.dirname(full))

    @contextmanager
    def attempts(self) -> Iterator[None]:
        thread = threading.get_ident()
        self._spare[thread] = None
        try:
            yield
        finally:
            self._drop_spare(self._spare.pop(thread))

    @contextmanager
    def turn(self, meanwhile: Callable[[], None] | None = None) -> Iterator[bool]:
        with turn(self.root, meanwhile=meanwhile) as has_waited:
            yield has_waited

    def prepare(self, path: str, data: bytes) -> None:
        full = self.resolve(path)
        with suppress(OSError, InvalidRequestError):  # `put_if_absent` says what is wrong
            self._spare[threading.get_ident()] = data, write_temporary(full, data)

    def _temporary_file(self, full: str, data: bytes) -> str:
        """A temporary file with these bytes: that of the attempt before, as if it were written now, or a new one."""
        thread = threading.get_ident()
        spare = self._spare.get(thread)
        if spare is None:
            return write_temporary(full, data)
        self._spare[thread] = None
        if spare[0] == data and os.path.dirname(spare[1]) == os.path.dirname(full):
            with suppress(FileNotFoundError):
                os.utime(spare[1])
                return spare[1]
        self._drop_spare(spare)
        return write_temporary(full, data)

    def _drop_spare(self, spare: tuple[bytes, str] | None) -> None:
        if spare is not None:
            self._remove_temporary(spare[1])

    @staticmethod
    def _remove_temporary(temporary: str) -> None:
        with suppress(OSError):  # one that stays is named by the doctor
            os.unlink(temporary)

    def put(self, path: str, data: bytes) -> None:
        self.put_file(path, io.BytesIO(data))

    def put_hint(self, path: str, data: bytes) -> None:
        self.count("put")
        with ErrorTranslation(path):
            replace_file(self.resolve(path), data, durable=False)

    def put_file(self, path: str, file: IO[bytes]) -> None:
        self.count("put")
        with ErrorTranslation(path):
            replace_file(self.resolve(path), file, durable=True)

    def new_file(self, path: str) -> NewFile:
        return NewLocalFile(path, partial(self.put, path), partial(self.resolve, path), partial(self.count, "put"))

    def delete(self, path: str) -> None:
        self.count("delete")
        with ErrorTranslation(path), suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(self.resolve(path))
