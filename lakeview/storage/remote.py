"""Every store that fsspec knows, as one of ours: retries, absolute paths kept inside, its errors as ours."""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import IO, Any

import polars as pl

from lakeview.config import Config
from lakeview.errors import AccessDeniedError, InvalidRequestError, StoreUnavailableError, UnsupportedTableError
from lakeview.snapshot import milliseconds
from lakeview.storage.interface import LISTING, Storage, Translated, back_off, listing, refuse_oversized

_ATTEMPTS = 3


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
                with Translated(path):
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
        refuse_oversized(path, len(data), self.config)
        return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.count("read")
        refuse_oversized(path, length, self.config)
        data: bytes = self._call(path, lambda: self._fs.cat_file(self._path(path), start=start, end=start + length))
        return data

    def exists(self, path: str) -> bool:
        self.count("read")
        return bool(self._call(path, lambda: self._fs.isfile(self._path(path))))

    def signed_url(self, path: str, seconds: int) -> str | None:
        full = self._path(path)
        try:
            found: str = self._fs.sign(full, expiration=seconds)
        except NotImplementedError:  # fsspec's word for a store that signs nothing
            return None
        return found

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


def _base(entry: Mapping[str, Any]) -> str:
    return posixpath.basename(str(entry["name"]).rstrip("/"))


def _from_entries(entries: list[Mapping[str, Any]], name: Any) -> pl.DataFrame:
    files = [e for e in entries if e.get("type") == "file"]
    return listing([name(e) for e in files], [int(e.get("size") or 0) for e in files], [_modified(e) for e in files])


def _modified(entry: Mapping[str, Any]) -> int | None:
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, datetime):
            return milliseconds(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, int | float):
            return int(value * 1000)
    return None
