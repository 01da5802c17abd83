"""Signed URLs as a store: files read by ranges, kept by id, and asked for again when their URLs expire."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, NoReturn

import polars as pl

from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    CorruptTableError,
    DataFileMissingError,
    LakeviewError,
    SharingError,
    UnsupportedTableError,
)
from lakeview.model.snapshot import milliseconds
from lakeview.sharing.client.file_lines import SignedUrl
from lakeview.sharing.client.http import Http, redacted_url, redirect_target
from lakeview.sharing.client.range_file import BLOCK, Blocks, RangeFile
from lakeview.sharing.client.refusals import MOVED, RetryLaterError, failure
from lakeview.storage.interface import LISTING, Entry, Storage

if TYPE_CHECKING:
    from datetime import datetime

    import httpx

_TOTAL = re.compile(r"bytes (?P<first>\d+)-\d+/(?P<total>\d+)")
_NEAR = 60_000
_WHOLE = 64 << 20
"""A store that sends no ranges has to send whole files: up to this size they are taken."""
_REFUSED = (400, 401, 403)
"""What stores answer to a URL that is no longer good: S3 and Azure 403, Google 400."""
_HOPS = 3


class SignedFiles(Storage):
    """The files of one version of a shared table, read-only; paths are ids (`lakeview.sharing.client.file_lines`).

    `urls`: where files are now; `again` asks the server for these URLs again. The URLs themselves are never shown.
    """

    def __init__(
        self,
        root: str,
        config: Config,
        http: Http,
        clock: Callable[[], datetime],
        blocks: Blocks,
        urls: Mapping[str, SignedUrl],
        again: Callable[[], Mapping[str, SignedUrl]],
    ) -> None:
        super().__init__(root, config)
        self._http = http
        self._clock = clock
        self._blocks = blocks
        self._urls = dict(urls)
        self._again = again
        self._near = _NEAR
        self._totals: dict[str, int] = {}
        """Sizes of files that are listed without one, as their store says."""
        self._url_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SignedFiles({self.root!r}, files={len(self._urls)})"

    def add(self, urls: Mapping[str, SignedUrl]) -> None:
        """More files, or newer URLs of the same."""
        with self._url_lock:
            self._urls.update(urls)

    @property
    def server(self) -> str | None:
        """The URL of the server that gives the URLs, None where it is not known."""
        return self._http.server

    def urls(self) -> dict[str, SignedUrl]:
        """Where files are now, by path; those about to expire are asked for again first."""
        with self._url_lock:
            first = next(iter(self._urls), None)
        if first is not None:
            self._fresh_url(first)
        with self._url_lock:
            return dict(self._urls)

    # -- reading

    def open(self, path: str, size: int = 0) -> IO[bytes]:  # noqa: ARG002 (the server's answer has it)
        self.count("open")
        location = self._url_of(path)
        if location.size is None:
            self._fetch(path, 0, 1)  # a removed file may be listed without its size: its store knows it
            location = replace(self._url_of(path), size=self._totals.get(path))
            self.add({path: location})
        if location.size is None:
            raise UnsupportedTableError(
                f"the size of {path} is not known, and its store does not say it",
                fix="ask the data provider for a store that says the size of a file",
                place=path,
            )
        return io.BufferedReader(RangeFile(partial(self.part, path), location.size), 64 << 10)

    def read(self, path: str) -> bytes:
        with self.open(path) as file:
            return file.read()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """As any store. Of a file whose size is not known only these bytes are asked for, and none are kept."""
        location = self._url_of(path)
        if location.size is not None:
            return self.part(path, start, min(length, max(location.size - start, 0)))
        return self._fetch(path, start, length) if length else b""

    def exists(self, path: str) -> bool:
        return path in self._urls

    def part(self, path: str, start: int, length: int, ahead: int = 0) -> bytes:
        """Bytes of a file of known size, through the blocks kept; missing ones next to each other in one request."""
        if length <= 0:
            return b""
        size = self._url_of(path).size or 0
        first, last = start // BLOCK, (start + length - 1) // BLOCK
        blocks = {number: self._blocks.get((path, number)) for number in range(first, last + 1)}
        if missing := [number for number, block in blocks.items() if block is None]:
            begin, end = missing[0], min(missing[-1] + ahead, (size - 1) // BLOCK)
            data = self._fetch(path, begin * BLOCK, min((end + 1) * BLOCK, size) - begin * BLOCK)
            for number in range(begin, end + 1):
                block = data[(number - begin) * BLOCK : (number - begin + 1) * BLOCK]
                self._blocks.put((path, number), block)
                blocks[number] = block
        whole = b"".join(blocks[number] or b"" for number in range(first, last + 1))
        return whole[start - first * BLOCK : start - first * BLOCK + length]

    def _url_of(self, path: str) -> SignedUrl:
        with self._url_lock:
            location = self._urls.get(path)
        if location is None:
            raise FileNotFoundError(path)
        return location

    def _fresh_url(self, path: str) -> SignedUrl:
        """The URL of a file, asked for again if it is about to expire."""
        location = self._url_of(path)
        if location.expires is not None and self._remaining(location) < self._near:
            self._renew(location, path)
            return self._url_of(path)
        return location

    def _remaining(self, location: SignedUrl) -> int:
        """Milliseconds that a URL still holds."""
        return (location.expires or 0) - milliseconds(self._clock())

    def _renew(self, old: SignedUrl, path: str) -> None:
        """New URLs for all files, unless another thread has just fetched them."""
        with self._url_lock:
            if self._urls.get(path) is not old:
                return
            for name, url in self._again().items():
                earlier = self._urls.get(name)
                self._urls[name] = url if earlier is None or url.size is not None else replace(url, size=earlier.size)
            # a server whose URLs hold for seconds is not asked before every read, nor by each of several threads
            if (location := self._urls.get(path)) is not None and location.expires is not None:
                self._near = min(_NEAR, max(0, self._remaining(location) // 4))

    def _fetch(self, path: str, start: int, length: int) -> bytes:
        """A range of a file. DataFileMissingError if it is gone, SharingError if the store answers otherwise."""
        self.count("read")
        location = self._fresh_url(path)
        try:
            return self._http.with_retries(lambda: self._follow(location, path, start, length), location.url)
        except _ExpiredError:
            self._renew(location, path)
        newer = self._url_of(path)
        try:
            return self._http.with_retries(lambda: self._follow(newer, path, start, length), newer.url)
        except _ExpiredError as error:
            raise error.error from None

    def _follow(self, location: SignedUrl, path: str, start: int, length: int) -> bytes:
        url = location.url
        for _ in range(_HOPS):
            self._http.check_url(url, f"the URL of file {path}")
            headers = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
            with self._http.stream("GET", url, headers=headers) as response:
                if response.status_code not in MOVED or "location" not in response.headers:
                    return self._read_body(response, location, path, start, length)
                url = redirect_target(url, response.headers["location"])
        raise SharingError(f"file {path} is moved about without end", fix="ask the data provider", place=path)

    def _read_body(self, response: httpx.Response, location: SignedUrl, path: str, start: int, length: int) -> bytes:
        match response.status_code:
            case 206:
                data = self._http.body(response, length)
                total = _check_range(response.headers.get("Content-Range", ""), location, path, start)
                if location.size is None and total is not None:
                    self._totals[path] = total
            case 200:
                if (location.size or 0) > _WHOLE:
                    raise SharingError(
                        f"the store of file {path} sends no parts of files, and this one is large",
                        fix="ask the data provider for a store that answers range requests",
                        place=path,
                        kind="no-ranges",
                    )
                data = self._http.body(response, _WHOLE)
                if location.size is None:
                    self._totals[path] = len(data)
                for number in range(-(-len(data) // BLOCK)):  # it was sent whole: it is not asked for again
                    self._blocks.put((path, number), data[number * BLOCK : (number + 1) * BLOCK])
                data = data[start : start + length]
            case 404 | 410:
                raise DataFileMissingError(
                    f"file {path} is in the server's list but not in its store: perhaps it was vacuumed",
                    fix="refresh to read the latest version, or ask the data provider",
                    place=path,
                )
            case 416:
                data = b""
            case _:
                raise self._refusal(response, path)
        if location.size is not None and len(data) != length:
            raise CorruptTableError(
                f"file {path} holds {location.size:,} bytes by the server's list, and its store sent fewer",
                fix="ask the data provider",
                place=path,
                kind="corrupt-data-file",
            )
        return data

    def _refusal(self, response: httpx.Response, path: str) -> Exception:
        error = failure(response, b"", f"file {path}")
        if isinstance(error, RetryLaterError):
            return error
        # the store's own words may quote the URL: they are left out
        ours: LakeviewError = AccessDeniedError(
            f"the store refuses file {path} ({response.status_code}), also after new URLs were asked for",
            fix="ask the data provider",
            place=redacted_url(str(response.url)),
            kind="file-refused",
        )
        return _ExpiredError(ours) if response.status_code in _REFUSED else ours

    # -- what a share has not

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:  # noqa: ARG002 (of no folder)
        """Nothing: a share has no folders."""
        return []

    def walk(self) -> pl.DataFrame:
        """Nothing: which files there are, the listing of a version says."""
        return pl.DataFrame(schema=LISTING)

    def holds_files(self) -> bool:
        """No, as `walk`."""
        return False

    def _refuse(self, path: str, data: bytes = b"") -> NoReturn:  # noqa: ARG002 (never looked at)
        raise UnsupportedTableError("a shared table is read, not written", fix="write it where it lies", place=path)

    put = put_if_absent = delete = _refuse


class _ExpiredError(Exception):
    """The store refused the URL: new ones may help; `error` is what to raise if they do not."""

    def __init__(self, error: LakeviewError) -> None:
        super().__init__(str(error))
        self.error = error


def _check_range(header: str, location: SignedUrl, path: str, start: int) -> int | None:
    """The whole file's size by the header of a part, None without one. CorruptTableError if the list says another."""
    match = _TOTAL.match(header)
    if match is None:  # a proxy may leave the total out: then the length is checked alone
        return None
    total = int(match["total"])
    if int(match["first"]) != start or (location.size is not None and total != location.size):
        raise CorruptTableError(
            f"file {path} holds {total:,} bytes in its store, {location.size or 0:,} by the server's list",
            fix="ask the data provider",
            place=path,
            kind="corrupt-data-file",
        )
    return total
