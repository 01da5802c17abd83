"""Every store that fsspec knows, as one of ours: retries, absolute paths kept inside, its errors as ours."""

import io
import posixpath
import shutil
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter
from typing import IO, Any, TypeVar, cast

import polars as pl

from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.model.snapshot import milliseconds
from lakeview.storage.exclusion import create_by_coordinator
from lakeview.storage.interface import BLOCK, FIRST_FOLDERS, Entry, Storage, listing_of, refuse_oversized
from lakeview.storage.object_files import SeekableFile
from lakeview.storage.options import COORDINATOR
from lakeview.storage.retries import with_retries
from lakeview.storage.system_errors import ErrorTranslation

_ATTEMPTS = 3

_UNTRANSLATED = (("botocore.exceptions", "BotoCoreError"), ("aiohttp", "ClientError"))
"""What libraries below fsspec raise that is no OSError: module, and the class at the root of its errors."""
_WITHOUT_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError")

T = TypeVar("T")


def _prepare(scheme: str) -> None:
    """Gives fsspec's class for FTP the connection that its `__del__` closes: where `__init__` raised there is none, and
    Python prints a traceback."""
    if scheme == "ftp":
        from fsspec.implementations.ftp import FTPFileSystem

        if not hasattr(FTPFileSystem, "ftp"):  # an instance that is connected has its own
            FTPFileSystem.ftp = ExitStack()


class FsspecStorage(Storage):
    """Any store that fsspec knows and that has no class of its own here: memory, HDFS, SFTP, WebDAV, ..."""

    _memory_lock = threading.Lock()

    def __init__(self, root: str, config: Config, options: Mapping[str, Any]) -> None:
        import fsspec

        super().__init__(root, config, options)
        self._scheme = root.partition("://")[0]
        self._coordinator = options.get(COORDINATOR)
        options = {name: value for name, value in options.items() if name != COORDINATOR}
        if self.remote and not root.partition("://")[2]:
            raise InvalidRequestError(
                f"{root} names a store and no place in it", fix=f"name the place too, such as {root}bucket/table"
            )
        # a listing kept from before would hide what others wrote since: whether a commit is there, for one
        fresh = {"use_listings_cache": False} if self.remote else {}
        try:
            _prepare(self._scheme)
            self._fs: Any = fsspec.filesystem(self._scheme, **{**fresh, **options})
        except ValueError as error:
            raise InvalidRequestError(
                f"no store is known for {self._scheme}://",
                fix="use a folder, s3://, gs://, abfss://, https:// or memory://",
            ) from error
        except ImportError as error:
            raise InvalidRequestError(
                f"opening {self._scheme}:// needs a package that is not installed", fix=str(error)
            ) from error
        except TypeError as error:  # of a store that needs more than its address
            raise InvalidRequestError(
                f"{self._scheme}:// cannot be opened by its address alone: {error}", fix="give storage_options"
            ) from error
        except OSError as error:  # of a store that is connected to at once
            raise StoreUnavailableError(
                f"{self._scheme}:// could not be reached: {error.strerror or type(error).__name__}",
                fix="try again; check the store",
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

    def _call(self, path: str, action: Callable[[], T]) -> T:
        attempts = _ATTEMPTS if self.remote else 1
        return with_retries(lambda: _translate_errors(path, action), attempts, StoreUnavailableError)

    def _list(self, folder: str, find: Callable[[str], Iterable[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
        """What fsspec says of each file and folder that `find` gives of a path; nothing where no folder is there."""
        self.count("list")
        path = self._path(folder)
        self._fs.invalidate_cache(path)
        with suppress(FileNotFoundError):
            return self._call(folder, lambda: list(find(path)))
        return []

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        entries = self._list(folder, lambda path: self._fs.ls(path, detail=True))
        files = [_entry(_base(e), e) for e in entries if e.get("type") == "file" and _base(e) >= start]
        return sorted(files, key=itemgetter(0))

    def walk(self) -> pl.DataFrame:
        entries = self._list("", lambda path: self._fs.find(path, detail=True).values())
        prefix = self._path("").strip("/") + "/"
        names = [str(e["name"]).lstrip("/").removeprefix(prefix) for e in entries]
        return listing_of([_entry(name, e) for name, e in zip(names, entries, strict=True) if e.get("type") == "file"])

    def folders(self, folder: str) -> list[str]:
        entries = self._list(folder, lambda path: self._fs.ls(path, detail=True))
        return sorted(_base(e) for e in entries if e["type"] == "directory")

    def holds_files(self) -> bool:
        self.count("list")
        path = self._path("")
        return self._call("", lambda: any(files for _, _, files in islice(self._fs.walk(path), FIRST_FOLDERS)))

    def open(self, path: str, size: int = 0) -> IO[bytes]:  # noqa: ARG002 (fsspec asks the store for it)
        self.count("open")
        if self._scheme == "memory":  # its own open() hands every caller the same object, position included
            return io.BytesIO(self._call(path, lambda: self._fs.cat_file(self._path(path))))
        full = self._path(path)
        return cast(IO[bytes], _RemoteFile(path, self._call(path, lambda: self._fs.open(full, "rb"))))

    def read(self, path: str) -> bytes:
        self.count("read")
        data: bytes = self._call(path, lambda: self._fs.cat_file(self._path(path)))
        refuse_oversized(path, len(data), self.config)
        return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.count("read")
        refuse_oversized(path, length, self.config)
        return self._call(path, lambda: self._range(self._path(path), start, length))

    def _range(self, path: str, start: int, length: int) -> bytes:
        """Bytes of a file; stores refuse a range that begins at its end, and take an empty one for the whole file."""
        try:
            data: bytes = self._fs.cat_file(path, start=start, end=start + length) if length else b""
        except FileNotFoundError:
            raise
        except OSError:
            if start < self._fs.size(path):
                raise
            return b""
        if not length and not self._fs.isfile(path):
            raise FileNotFoundError(path)
        return data

    def exists(self, path: str) -> bool:
        self.count("read")
        return bool(self._call(path, lambda: self._fs.isfile(self._path(path))))

    def signed_url(self, path: str, seconds: int) -> str | None:
        full = self._path(path)
        try:
            url: str = self._fs.sign(full, expiration=seconds)
        except NotImplementedError:  # fsspec's word for a store that signs nothing
            return None
        return url

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.count("put")
        if self._scheme != "memory":
            create_by_coordinator(self, self._coordinator, f"{self._scheme}://", path, data)
            return
        with self._memory_lock:  # memory lives in this process alone: a lock is mutual exclusion
            if self._fs.exists(self._path(path)):
                raise FileExistsError(path)
            self._fs.pipe_file(self._path(path), data)

    def put(self, path: str, data: bytes) -> None:
        self.count("put")
        self._call(path, lambda: self._fs.pipe_file(self._path(path), data))

    def put_file(self, path: str, file: IO[bytes]) -> None:
        self.count("put")
        self._call(path, lambda: self._upload(self._path(path), file))

    def _upload(self, path: str, file: IO[bytes]) -> None:
        """Write a file under a hidden name, which then becomes its own: one that is left in its midst is closed, by
        which many stores would show what they got so far."""
        file.seek(0)
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        try:
            with self._fs.open(temporary, "wb") as upload:
                shutil.copyfileobj(file, upload, BLOCK)
            self._move(temporary, path)
        except BaseException:
            with suppress(OSError, LakeviewError):  # the error that ended it is the one to raise
                _translate_errors(temporary, lambda: self._fs.rm_file(temporary))
            raise

    def _move(self, source: str, target: str) -> None:
        """Give a file another path. A store that has no way of its own to do it gets a copy: fsspec's way for all
        stores takes a path with `[`, `*` or `?` for a pattern."""
        from fsspec import AbstractFileSystem

        if type(self._fs).mv is not AbstractFileSystem.mv:
            self._fs.mv(source, target)
            return
        self._fs.cp_file(source, target)
        self._fs.rm_file(source)

    def delete(self, path: str) -> None:
        self.count("delete")
        with suppress(FileNotFoundError):
            self._call(path, lambda: self._fs.rm_file(self._path(path)))


class _RemoteFile(SeekableFile):
    """An open file of a remote store, whose failures in the midst of reading are ours as well."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        super().__init__()
        self._path = path
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        length = -1 if size is None else size
        return _translate_errors(self._path, lambda: self._file.read(length))

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _translate_errors(path: str, action: Callable[[], T]) -> T:
    """What an action gives; errors of the store as ours, those of the libraries below fsspec too."""
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in _UNTRANSLATED)  # loaded, or not raised
    try:
        with ErrorTranslation(path):
            return action()
    except NotImplementedError as error:  # what fsspec takes for a store may be no more than one file
        raise UnsupportedTableError(
            f"{path} lies in a store that cannot be asked for this", fix="use a store that lists folders", place=path
        ) from error
    except tuple(kind for kind in kinds if kind is not None) as error:
        if type(error).__name__ in _WITHOUT_CREDENTIALS:
            raise AccessDeniedError(
                f"no credentials were found for the store of {path}",
                fix="give them as storage options, or as the store's own tools expect them",
                place=path,
            ) from error
        raise StoreUnavailableError(
            f"{path} could not be read or written: {type(error).__name__}",
            fix="try again; check the address of the store and the network",
            place=path,
        ) from error


def _base(entry: Mapping[str, Any]) -> str:
    return posixpath.basename(str(entry["name"]).rstrip("/"))


def _entry(name: str, entry: Mapping[str, Any]) -> Entry:
    return name, int(entry.get("size") or 0), _modification_time(entry)


def _modification_time(entry: Mapping[str, Any]) -> int | None:
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, datetime):
            return milliseconds(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, int | float):
            return int(value * 1000)
    return None
