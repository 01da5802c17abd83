"""An address to bytes: one Storage over local folders, memory and every fsspec store.

All paths given to a Storage are relative to its root, or absolute (a path or `scheme://...`); absolute ones and those
that climb out of the root are opened only below the allowed roots. What is not there lists as nothing.
"""

from __future__ import annotations

import os
import posixpath
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import IO, Any

import polars as pl

from lakeview.addresses import below, is_absolute, is_local, normalise
from lakeview.config import Config, settings
from lakeview.errors import AccessDeniedError, InvalidRequestError, StoreUnavailableError, UnsupportedTableError
from lakeview.local_files import create_exclusively, require_file, sync_folder, write_beside
from lakeview.snapshot import UTC_MILLIS, milliseconds, moments

LISTING = pl.Schema({"name": pl.String(), "size": pl.Int64(), "modified": UTC_MILLIS})
"""One row a file, by name in ascending order; `name` relative to the folder listed, `size` in bytes."""

_ATTEMPTS = 3


class Storage(ABC):
    """Files below one root.

    `root`: normalised address. `requests`: how many calls of each kind went to the store
    (list, read, open, put, delete). Safe to use from several threads.
    """

    def __init__(self, root: str, config: Config) -> None:
        self.root = root
        self.config = config
        self.requests: Counter[str] = Counter()
        self._count_lock = threading.Lock()

    @property
    def remote(self) -> bool:
        """Whether a request costs a round trip, so that several at once pay."""
        return True

    @abstractmethod
    def list_from(self, folder: str, start: str = "") -> pl.DataFrame:
        """LISTING of the files in a folder whose names are >= start, folders inside it left out."""

    @abstractmethod
    def walk(self) -> pl.DataFrame:
        """LISTING of every file below the root, names relative to it."""

    @abstractmethod
    def open(self, path: str) -> IO[bytes]:
        """A seekable binary file. FileNotFoundError if it is not there."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """A whole file. FileNotFoundError if it is not there."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether a file is there."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file whole and durable, or raise FileExistsError: never half, never over another."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file whole: a reader sees the old bytes or the new ones."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if it is not there."""

    def count(self, kind: str) -> None:
        """Note one request."""
        with self._count_lock:
            self.requests[kind] += 1

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
            raise AccessDeniedError("a recorded path holds a null character", place=repr(path), kind="outside-roots")
        if is_local(self.root):
            return os.path.normpath(os.path.join(self.root, path))
        head, _, tail = self.root.partition("://")
        joined = posixpath.normpath(posixpath.join("/" + tail, path))
        return f"{head}://{joined.lstrip('/')}"


class LocalStorage(Storage):
    """A folder of this machine. Links are followed only to places below the allowed roots."""

    @property
    def remote(self) -> bool:
        return False

    def resolve(self, path: str) -> str:
        full = super().resolve(path)
        if not is_local(full):
            raise AccessDeniedError(
                f"{path} lies in another store than its table", place=path, kind="outside-roots",
                fix="copy the file into the table, or open the table from the store that holds both",
            )  # fmt: skip
        real = os.path.realpath(full)
        roots = [self.root, *(normalise(r) for r in self.config.roots)]
        if not any(below(real, os.path.realpath(root)) for root in roots):
            raise AccessDeniedError(
                f"{path} is a link that leaves the table and the allowed roots",
                fix="add the folder it points into to LAKEVIEW_ROOTS if you trust this table",
                place=path,
                kind="outside-roots",
            )
        return full

    def list_from(self, folder: str, start: str = "") -> pl.DataFrame:
        self.count("list")
        names: list[str] = []
        sizes: list[int] = []
        times: list[int] = []
        try:
            with _Translated(folder), os.scandir(self.resolve(folder)) as entries:
                for entry in entries:
                    if entry.name < start or not entry.is_file():
                        continue
                    with suppress(FileNotFoundError):  # removed while we look: then it is not there
                        stat = entry.stat()
                        names.append(_printable(entry.name))
                        sizes.append(stat.st_size)
                        times.append(stat.st_mtime_ns // 1_000_000)
        except (FileNotFoundError, NotADirectoryError):
            return pl.DataFrame(schema=LISTING)
        return _listing(names, sizes, times)

    def walk(self) -> pl.DataFrame:
        self.count("list")
        names: list[str] = []
        sizes: list[int] = []
        times: list[int] = []
        root = self.resolve("")
        for folder, _, files in os.walk(root):
            for name in files:
                full = os.path.join(folder, name)
                with suppress(OSError):  # a dangling link is no file
                    stat = os.stat(full)
                    names.append(_printable(os.path.relpath(full, root)))
                    sizes.append(stat.st_size)
                    times.append(stat.st_mtime_ns // 1_000_000)
        return _listing(names, sizes, times)

    def open(self, path: str) -> IO[bytes]:
        self.count("open")
        with _Translated(path):
            full = self.resolve(path)
            require_file(full)
            return open(full, "rb")

    def read(self, path: str) -> bytes:
        self.count("read")
        with _Translated(path):
            full = self.resolve(path)
            require_file(full)
            _refuse_oversized(path, os.path.getsize(full), self.config)
            with open(full, "rb") as file:
                return file.read()

    def exists(self, path: str) -> bool:
        self.count("read")
        return os.path.isfile(self.resolve(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        # fsspec's exclusive create checks and then writes: two writers can both win. A hard link is atomic.
        self.count("put")
        full = self.resolve(path)
        with _Translated(path):
            temporary = write_beside(full, data)
            try:
                os.link(temporary, full)
            except FileExistsError:
                raise
            except OSError:  # a file system without links: O_EXCL is exclusive there as well
                create_exclusively(full, data)
            finally:
                os.unlink(temporary)
            sync_folder(os.path.dirname(full))

    def put(self, path: str, data: bytes) -> None:
        self.count("put")
        full = self.resolve(path)
        with _Translated(path):
            os.replace(write_beside(full, data), full)
            sync_folder(os.path.dirname(full))

    def delete(self, path: str) -> None:
        self.count("delete")
        with _Translated(path), suppress(FileNotFoundError):
            os.unlink(self.resolve(path))


class FsspecStorage(Storage):
    """Any store that fsspec knows: memory, S3, GCS, Azure, HTTP, ..."""

    _memory_lock = threading.Lock()

    def __init__(self, root: str, config: Config, options: Mapping[str, Any]) -> None:
        import fsspec

        super().__init__(root, config)
        self._scheme = root.partition("://")[0]
        try:
            self._fs: Any = fsspec.filesystem(self._scheme, **options)
        except ValueError as error:
            raise InvalidRequestError(
                f"no store is known for {self._scheme}://", fix="use a folder, s3://, gs://, abfs:// or memory://"
            ) from error
        except ImportError as error:
            raise InvalidRequestError(
                f"opening {self._scheme}:// needs a package that is not installed", fix=str(error)
            ) from error

    def __repr__(self) -> str:  # options may hold credentials: they are never shown
        return f"FsspecStorage({self.root!r})"

    @property
    def remote(self) -> bool:
        return self._scheme != "memory"

    def _path(self, path: str) -> str:
        full = self.resolve(path)
        if not full.startswith(self._scheme + "://"):
            raise AccessDeniedError(f"{path} lies in another store than its table", place=path, kind="outside-roots")
        rest = full.partition("://")[2]
        return "/" + rest if self._scheme == "memory" else rest

    def _call(self, path: str, action: Any) -> Any:
        for attempt in range(_ATTEMPTS):
            try:
                with _Translated(path):
                    return action()
            except StoreUnavailableError:
                if attempt + 1 == _ATTEMPTS or not self.remote:
                    raise
                back_off(attempt, self.remote)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def list_from(self, folder: str, start: str = "") -> pl.DataFrame:
        self.count("list")
        path = self._path(folder)
        self._fs.invalidate_cache(path)
        try:
            entries = self._call(folder, lambda: self._fs.ls(path, detail=True))
        except FileNotFoundError:
            return pl.DataFrame(schema=LISTING)
        return _from_entries([e for e in entries if _base(e) >= start], _base)

    def walk(self) -> pl.DataFrame:
        self.count("list")
        path = self._path("")
        self._fs.invalidate_cache(path)
        try:
            entries = self._call("", lambda: list(self._fs.find(path, detail=True).values()))
        except FileNotFoundError:
            return pl.DataFrame(schema=LISTING)
        prefix = path.strip("/") + "/"
        return _from_entries(entries, lambda e: str(e["name"]).lstrip("/").removeprefix(prefix))

    def open(self, path: str) -> IO[bytes]:
        self.count("open")
        if self._scheme == "memory":  # its own open() hands every caller the same object, position included
            return BytesIO(self._call(path, lambda: self._fs.cat_file(self._path(path))))
        opened: IO[bytes] = self._call(path, lambda: self._fs.open(self._path(path), "rb"))
        return opened

    def read(self, path: str) -> bytes:
        self.count("read")
        data: bytes = self._call(path, lambda: self._fs.cat_file(self._path(path)))
        _refuse_oversized(path, len(data), self.config)
        return data

    def exists(self, path: str) -> bool:
        self.count("read")
        return bool(self._call(path, lambda: self._fs.isfile(self._path(path))))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.count("put")
        if self._scheme != "memory":
            raise UnsupportedTableError(
                f"{self._scheme}:// offers lakeview no way yet to create a file only if it is absent",
                fix="write to a local folder, or with an engine that has a commit service for this store",
                kind="unsupported-store",
            )
        with self._memory_lock:  # memory lives in this process alone: a lock is mutual exclusion
            if self._fs.exists(self._path(path)):
                raise FileExistsError(path)
            self._fs.pipe_file(self._path(path), data)

    def put(self, path: str, data: bytes) -> None:
        self.count("put")
        self._call(path, lambda: self._fs.pipe_file(self._path(path), data))

    def delete(self, path: str) -> None:
        self.count("delete")
        with suppress(FileNotFoundError):
            self._call(path, lambda: self._fs.rm_file(self._path(path)))


def back_off(attempt: int, remote: bool) -> None:
    """The retry policy: wait longer after each attempt, up to two seconds and with jitter; hardly at all locally."""
    longest = min(2.0, (0.1 if remote else 0.001) * 2**attempt)
    time.sleep(random.uniform(0, longest))  # noqa: TID251 (this is the retry policy)


def _base(entry: Mapping[str, Any]) -> str:
    return posixpath.basename(str(entry["name"]).rstrip("/"))


def _from_entries(entries: list[Mapping[str, Any]], name: Any) -> pl.DataFrame:
    files = [e for e in entries if e.get("type") == "file"]
    return _listing([name(e) for e in files], [int(e.get("size") or 0) for e in files], [_modified(e) for e in files])


def _modified(entry: Mapping[str, Any]) -> int | None:
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, datetime):
            return milliseconds(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, int | float):
            return int(value * 1000)
    return None


def _printable(name: str) -> str:
    """A local file's name as text: bytes that are no UTF-8, which no log can name, become question marks."""
    return name.encode(errors="replace").decode()


def _listing(names: list[str], sizes: list[int], times: list[int] | list[int | None]) -> pl.DataFrame:
    frame = pl.DataFrame({"name": names, "size": sizes, "modified": times}, schema={**LISTING, "modified": pl.Int64()})
    return frame.with_columns(moments("modified")).sort("name")


def _refuse_oversized(path: str, size: int, config: Config) -> None:
    if size > config.max_log_file_bytes:
        raise UnsupportedTableError(
            f"{path} holds {size:,} bytes, more than the limit of {config.max_log_file_bytes:,}",
            fix="raise LAKEVIEW_MAX_LOG_FILE_BYTES if this table is to be trusted",
            place=path,
            kind="too-large",
        )


class _Translated:
    """Turns a store's errors into ours; absence and presence stay Python's own, for the caller to explain."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError | FileExistsError | NotADirectoryError | AccessDeniedError):
            return
        if isinstance(error, PermissionError):
            raise AccessDeniedError(
                f"the store refuses access to {self._path}", fix="check the permissions", place=self._path
            ) from error
        if isinstance(error, OSError | TimeoutError) and not isinstance(error, StoreUnavailableError):
            raise StoreUnavailableError(
                f"{self._path} could not be read or written: {error.strerror or type(error).__name__}",
                fix="try again; check the store and the disk",
                place=self._path,
            ) from error


def open_storage(
    address: str, *, options: Mapping[str, Any] | None = None, config: Config | None = None, decode: bool = False
) -> Storage:
    """The store below an address. AccessDeniedError if roots are configured and the address lies outside them."""
    config = config or settings()
    root = normalise(address, decode=decode)
    if config.roots and not any(_inside(root, normalise(r)) for r in config.roots):
        raise AccessDeniedError(
            f"{root} lies outside the allowed roots",
            fix="open a table below one of them, or add its folder to LAKEVIEW_ROOTS",
            place=root,
            kind="outside-roots",
        )
    return LocalStorage(root, config) if is_local(root) else FsspecStorage(root, config, options or {})


def _inside(address: str, root: str) -> bool:
    if is_local(address) and is_local(root):
        return below(os.path.realpath(address), os.path.realpath(root))
    return below(address, root)
