"""A web server as a store that is only read: files by GET, listings by its pages about folders where it has any."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, cast
from urllib.parse import quote

import polars as pl

from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, InvalidRequestError, StoreUnavailableError, UnsupportedTableError
from lakeview.storage.directory_index import IndexEntry, parse_index
from lakeview.storage.interface import FIRST_FOLDERS, NO_LISTING, Entry, Storage, back_off, listing_of, refuse_oversized
from lakeview.storage.object_files import TAIL, ObjectFile

if TYPE_CHECKING:
    import httpx

_ATTEMPTS = 2
_CONNECT_SECONDS, _READ_SECONDS = 2.0, 30.0
_NAMES = ("headers", "username", "password")
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)$")


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class WebStorage(Storage):
    """A folder of a web server, read only. Options: `headers`, or `username` and `password`; they are never shown.

    Sizes and times come from the server's page about a folder, where it shows them: size 0 and no time elsewhere.
    """

    def __init__(self, root: str, config: Config, options: Mapping[str, Any]) -> None:
        super().__init__(root, config, _known_options(options))
        if "?" in root or "#" in root or not root.partition("://")[2]:
            raise InvalidRequestError(
                f"{root.partition('?')[0]} is no folder of a web server",
                fix="give an address without ? and #, such as https://host/lake/orders",
            )
        self._has_index: bool | None = None
        self._client = self._connect()
        weakref.finalize(self, self._client.close)

    def __repr__(self) -> str:  # options may hold credentials
        return f"WebStorage({self.root!r})"

    def _connect(self) -> httpx.Client:
        import httpx

        user = self.options.get("username")
        return httpx.Client(
            headers=self.options.get("headers"),
            auth=None if user is None else (str(user), str(self.options.get("password", ""))),
            timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            follow_redirects=not self.config.roots,  # elsewhere is outside the allowed roots
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=32),
        )

    # -- listing

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        self.count("list")
        return sorted(_files(entry for entry in self._index(folder) if entry.name >= start))

    def walk(self) -> pl.DataFrame:
        self.count("list")
        files: list[Entry] = []
        folders = [""]
        while folders:
            pages = list(self.each_ahead(self._index, folders))
            inside = [
                entry._replace(name=f"{folder}/{entry.name}".lstrip("/"))
                for folder, page in zip(folders, pages, strict=True)
                for entry in page
            ]
            files += _files(inside)
            folders = [entry.name for entry in inside if entry.is_folder]
        return listing_of(files)

    def folders(self, folder: str) -> list[str]:
        self.count("list")
        return sorted(entry.name for entry in self._index(folder) if entry.is_folder)

    def holds_files(self) -> bool:
        self.count("list")
        folders = [""]
        for _ in range(FIRST_FOLDERS):
            if not folders:
                return False
            folder = folders.pop(0)
            try:
                entries = self._index(folder)
            except UnsupportedTableError:  # what lies there is not to be seen
                return False
            if any(not f.is_folder for f in entries):
                return True
            folders += [f"{folder}/{f.name}".lstrip("/") for f in entries]
        return False

    def _index(self, folder: str) -> list[IndexEntry]:
        """What lies in a folder; UnsupportedTableError if the server shows no folders."""
        entries = self._page(folder)
        if entries is not None:
            self._has_index = True
            return entries
        if self._has_index is None:
            self._has_index = self._page("") is not None
        if not self._has_index:
            raise UnsupportedTableError(
                f"the server of {self.root} shows no listing of {folder or 'the folder'}",
                fix="turn its directory listing on, or open a Delta table, or one metadata file of an Iceberg table",
                place=folder,
                kind=NO_LISTING,
            )
        return []

    def _page(self, folder: str) -> list[IndexEntry] | None:
        url = self._url(folder).rstrip("/") + "/"
        try:
            answer = self._get(folder, url, {"Accept": "text/html"})
        except (FileNotFoundError, AccessDeniedError):
            return None
        if not answer.headers.get("content-type", "").startswith("text/html"):
            return None
        return parse_index(answer.body.decode(errors="replace"), answer.url)

    # -- reading

    def open(self, path: str, size: int = 0) -> IO[bytes]:
        self.count("open")
        start, data, total = self._part(path, f"bytes={max(0, size - TAIL)}-" if size > 0 else f"bytes=-{TAIL}")
        return cast(IO[bytes], ObjectFile(total, start, data, lambda at, n: self._bytes(path, at, n)))

    def read(self, path: str) -> bytes:
        self.count("read")
        return self._get(path, self._url(path)).body

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.count("read")
        refuse_oversized(path, length, self.config)
        return self._bytes(path, start, length)

    def _bytes(self, path: str, start: int, length: int) -> bytes:
        if length <= 0:
            if not self.exists(path):
                raise FileNotFoundError(path)
            return b""
        at, data, _ = self._part(path, f"bytes={start}-{start + length - 1}")
        return data[start - at : start - at + length] if start >= at else b""

    def _part(self, path: str, span: str) -> tuple[int, bytes, int]:
        """Where a part of a file begins, its bytes, and the size of the file. Servers may send the whole file."""
        answer = self._get(path, self._url(path), {"Range": span, "Accept-Encoding": "identity"})
        match = _RANGE.match(answer.headers.get("content-range", ""))
        if answer.status == 416:  # begins at the end of the file or behind it
            return 0, b"", 0
        if answer.status != 206 or match is None:
            return 0, answer.body, len(answer.body)
        return int(match[1]), answer.body, int(match[2])

    def exists(self, path: str) -> bool:
        self.count("read")
        with suppress(
            FileNotFoundError, AccessDeniedError
        ):  # buckets that are not listed answer 403 for what is not there
            return self._get(path, self._url(path), method="HEAD").status < 400
        return False

    def _url(self, path: str) -> str:
        full = self.resolve(path)
        if full.partition("://")[0] != self.root.partition("://")[0]:
            raise AccessDeniedError(f"{path} lies in another store than its table", place=path, kind="outside-roots")
        if full != self.root and full.startswith(self.root):  # the root is a URL as typed, names below it are plain
            return self.root + quote(full.removeprefix(self.root), safe="/=:@!$&'()*+,;~")
        return full

    def _get(self, path: str, url: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> _Answer:
        """The answer to a request: 2xx or 416, its body read up to the operator's limit."""
        import httpx

        for attempt in range(_ATTEMPTS):
            try:
                return self._send(path, httpx.Request(method, url), headers)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                # one that was silent for so long would be so again
                is_silent = isinstance(error, httpx.ReadTimeout)
                if attempt + 1 == _ATTEMPTS or is_silent or not isinstance(error, httpx.TransportError):
                    raise StoreUnavailableError(
                        f"{self.root} does not answer, asked for {path or 'its index'}: {type(error).__name__}",
                        fix="check the address and the network, then try again",
                        place=path,
                        kind="no-answer",
                    ) from error
                back_off(attempt, remote=True)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _send(self, path: str, request: httpx.Request, headers: Mapping[str, str] | None) -> _Answer:
        with self._client.stream(request.method, request.url, headers=headers) as answer:
            if answer.status_code in (404, 410):
                raise FileNotFoundError(path)
            if answer.status_code in (401, 403, 407):
                raise AccessDeniedError(
                    f"the server refuses access to {path}", fix="give headers, or username and password", place=path
                )
            if answer.status_code >= 300 and answer.status_code != 416:
                raise StoreUnavailableError(
                    f"{path} could not be read: {self.root} answered {answer.status_code}",
                    fix="try again; check the address",
                    place=path,
                )
            parts: list[bytes] = []
            size = 0
            for part in answer.iter_bytes():
                size += len(part)
                refuse_oversized(path, size, self.config)
                parts.append(part)
            return _Answer(answer.status_code, answer.headers, b"".join(parts), str(answer.url))

    # -- writing

    def _refuse(self, path: str, data: bytes = b"") -> NoReturn:  # noqa: ARG002 (nothing is written)
        raise UnsupportedTableError(
            "a web server is only read",
            fix="write to the store behind it, by its own address",
            place=path,
            kind="unsupported-store",
        )

    put = put_if_absent = delete = _refuse


def _files(entries: Iterable[IndexEntry]) -> list[Entry]:
    return [(e.name, e.size, e.modified) for e in entries if not e.is_folder]


def _known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _NAMES:
            raise InvalidRequestError(
                f"{name} is no storage option of a web server",
                fix=f"choose from {', '.join(_NAMES)}",
                place=name,
                kind="unknown-option",
            )
    return dict(options)
