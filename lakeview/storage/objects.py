"""S3, Google Cloud Storage and Azure as stores: by the library obstore, one request for each call."""

from __future__ import annotations

import io
import posixpath
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import polars as pl

from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, StoreUnavailableError
from lakeview.model.snapshot import milliseconds
from lakeview.storage.credentials import signs, use_newest
from lakeview.storage.exclusion import Exclusion
from lakeview.storage.interface import BLOCK, FIRST_FOLDERS, Entry, Storage, listing_of, refuse_oversized
from lakeview.storage.object_clients import ObjectPlace, client, endpoint_of, split_address
from lakeview.storage.object_errors import StoreBusyError, translate_errors
from lakeview.storage.object_files import TAIL, ObjectFile
from lakeview.storage.options import AZURE, CREDENTIALS, KINDS, normal_options
from lakeview.storage.retries import with_retries

if TYPE_CHECKING:
    from obstore.store import S3Store

T = TypeVar("T")

_ATTEMPTS = 4
_PAGE = 1000
_PARTS_AT_ONCE = 2
_ONE_REQUEST = 256 << 20
"""Bytes above which a file is put in several requests, side by side; it appears whole all the same."""


class ObjectStorage(Storage):
    """A folder of an object store. No request goes out before the first call; options are never shown."""

    def __init__(self, root: str, config: Config, options: Mapping[str, Any]) -> None:
        place, _ = split_address(root)
        super().__init__(root, config, normal_options(place.kind, options))
        self._place = place
        self._endpoint = endpoint_of(place, self.options)
        self._renewal = threading.Lock()

    def __repr__(self) -> str:  # options hold credentials
        return f"ObjectStorage({self.root!r})"

    def adopt_credentials(self, newer: Storage) -> bool:
        if not isinstance(newer, ObjectStorage) or self._identity() != newer._identity():
            return False
        self.options = newer.options
        return True

    def _identity(self) -> tuple[object, ...]:
        """What makes it this store and no other: everything but credentials."""
        others = {name: value for name, value in self.options.items() if name not in CREDENTIALS}
        return self.root, self.config, self._endpoint, others

    # -- reading

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        """From `start` on the store itself begins there: of a log of 100,000 commits the pages before it are not asked
        for."""
        self.count("list")
        place, key = self._at(folder)
        objects: Sequence[Any]
        if start and _in_order(place):
            objects = self._after(place, key, start)
        else:
            objects = self._call(place, key, lambda c: c.list_with_delimiter(key or None)["objects"])
        entries = [(posixpath.basename(str(e["path"])), int(e["size"]), _milliseconds(e)) for e in objects]
        return sorted(e for e in entries if e[0] >= start)

    def _after(self, place: ObjectPlace, key: str, start: str) -> list[Any]:
        """The objects of a folder itself, from a name on. The listing is one of all that lies below, in order: a folder
        inside this one that fills a page is passed over by another listing that begins behind it."""
        prefix = f"{key}/" if key else ""
        offset = prefix + start[:-1] + chr(ord(start[-1]) - 1) + "~"  # the library leaves the offset itself out
        own: list[Any] = []
        while offset:
            pages = self._pages(place, key, offset=offset)
            offset = ""
            for page in pages:
                own += [entry for entry in page if "/" not in str(entry["path"])[len(prefix) :]]
                inner, slash, _ = str(page[-1]["path"])[len(prefix) :].partition("/")
                if slash and len(page) == _PAGE:
                    offset = f"{prefix}{inner}/\U0010ffff"
                    break
        return own

    def walk(self) -> pl.DataFrame:
        files: list[Entry] = []
        for page in self._all_pages():  # a page at a time: a store may hold millions
            files += [(n, int(e["size"]), _milliseconds(e)) for n, e in zip(self._names(page), page, strict=True)]
        return listing_of(files)

    def name_pages(self) -> Iterator[Sequence[str]]:
        return map(self._names, self._all_pages())

    def _all_pages(self) -> Iterator[Sequence[Any]]:
        """The objects below the root, as the pages of the store come."""
        self.count("list")
        return self._pages(*self._at(""))

    def _pages(self, place: ObjectPlace, key: str, offset: str | None = None) -> Iterator[Sequence[Any]]:
        """The objects below a key, from behind another one on, as the pages of the store come."""

        def begin(bucket: Any) -> tuple[Iterator[Any], Any]:
            pages = iter(bucket.list(key or None, offset=offset, chunk_size=_PAGE))
            return pages, next(pages, None)

        pages, page = self._call(place, key, begin)
        while page:
            yield page
            # of another client a listing would have to begin again
            page = self._call(place, key, partial(_next, pages), renews=False)

    def _names(self, page: Sequence[Any]) -> list[str]:
        key = self._at("")[1]
        return [str(e["path"])[len(key) + 1 if key else 0 :] for e in page]

    def folders(self, folder: str) -> list[str]:
        """By at most FIRST_FOLDERS pages, each of which begins behind the last folder of the one before."""
        self.count("list")
        place, key = self._at(folder)
        prefix = f"{key}/" if key else ""
        names: set[str] = set()
        offset: str | None = None
        for _ in range(FIRST_FOLDERS):
            paths = [str(entry["path"]) for entry in next(self._pages(place, key, offset), ())]
            names |= {path[len(prefix) :].partition("/")[0] for path in paths if "/" in path[len(prefix) :]}
            if len(paths) < _PAGE or not _in_order(place):
                break
            inner, slash, _ = paths[-1][len(prefix) :].partition("/")
            offset = f"{prefix}{inner}/\U0010ffff" if slash else paths[-1]
        return sorted(names)

    def holds_files(self) -> bool:
        self.count("list")
        place, key = self._at("")
        return bool(self._call(place, "", lambda c: next(iter(c.list(key or None, chunk_size=FIRST_FOLDERS)), None)))

    def open(self, path: str, size: int = 0) -> IO[bytes]:
        self.count("open")
        place, key = self._at(path)
        if size <= 0 and place.kind != AZURE:  # which knows no ranges from a file's end
            with suppress(StoreUnavailableError):  # what an empty file answers
                end = {"range": {"suffix": TAIL}}
                answer = self._call(place, path, lambda c: c.get(key, options=end))
                tail = self._call(place, path, lambda _: bytes(answer.bytes()))
                return self._file(place, key, path, int(answer.meta["size"]), tail)
        if size <= 0:
            size = int(self._call(place, path, lambda c: c.head(key)["size"]))
            if not size:
                return io.BytesIO()
        # the end of the file is read first anyway, and one byte more shows whether the size is right
        start = max(0, size - TAIL)
        tail = self._range(place, key, path, start, size + 1 - start)
        if len(tail) != size - start:
            return self.open(path)
        return self._file(place, key, path, size, tail)

    def _file(self, place: ObjectPlace, key: str, path: str, size: int, tail: bytes) -> IO[bytes]:
        file = ObjectFile(size, size - len(tail), tail, lambda at, n: self._range(place, key, path, at, n))
        return cast(IO[bytes], file)

    def read(self, path: str) -> bytes:
        self.count("read")
        place, key = self._at(path)
        answer = self._call(place, path, lambda c: c.get(key))
        refuse_oversized(path, int(answer.meta["size"]), self.config)
        return self._call(place, path, lambda _: bytes(answer.bytes()))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.count("read")
        refuse_oversized(path, length, self.config)
        place, key = self._at(path)
        return self._range(place, key, path, start, length)

    def _range(self, place: ObjectPlace, key: str, path: str, start: int, length: int) -> bytes:
        """Bytes of a file; stores refuse a range that begins at its end, and the library an empty one."""
        if length <= 0 or start + length >= 1 << 63:
            self._call(place, path, lambda c: c.head(key))
            return b""
        try:
            return self._call(place, path, lambda c: bytes(c.get_range(key, start=start, length=length)))
        except StoreUnavailableError:
            if start < int(self._call(place, path, lambda c: c.head(key)["size"])):
                raise
            return b""

    def exists(self, path: str) -> bool:
        self.count("read")
        place, key = self._at(path)
        with suppress(FileNotFoundError):
            self._call(place, path, lambda c: c.head(key))
            return True
        return False

    def signed_url(self, path: str, seconds: int) -> str | None:
        from obstore import sign

        place, key = self._at(path)
        if not signs(place.kind, self.options):
            return None
        period = timedelta(seconds=seconds)
        store: S3Store = cast(Any, client(place, self.options))
        try:
            return translate_errors(place, self._endpoint, path, lambda: sign(store, "GET", key, period))
        except StoreUnavailableError:  # these credentials sign nothing: a signature of Azure's, for one
            return None

    # -- writing

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.count("put")
        place, _ = self._at(path)
        Exclusion(place, self.options, self._endpoint).put(self, self.create, path, data)

    def create(self, path: str, data: bytes) -> None:
        """Put a file if it is absent, by the store's own condition: S3 and Azure `If-None-Match: *`, Google
        `x-goog-if-generation-match: 0`. FileExistsError if it is there.

        Sent once, and again only where the store answered that it did not carry the request out. After a lost reply it
        is not known whether the file was made (StoreUnavailableError): sent again, it would meet itself.
        """
        place, key = self._at(path)
        self._call(place, path, lambda c: c.put(key, data, mode="create", use_multipart=False), once=True)

    def put(self, path: str, data: bytes) -> None:
        self.count("put")
        place, key = self._at(path)
        parts = len(data) > _ONE_REQUEST
        self._call(place, path, lambda c: c.put(key, data, use_multipart=parts))

    def put_file(self, path: str, file: IO[bytes]) -> None:
        self.count("put")
        place, key = self._at(path)

        def upload(bucket: Any) -> None:
            file.seek(0)
            bucket.put(key, file, chunk_size=BLOCK, max_concurrency=_PARTS_AT_ONCE)

        self._call(place, path, upload)

    def delete(self, path: str) -> None:
        self.count("delete")
        place, key = self._at(path)
        with suppress(FileNotFoundError):
            self._call(place, path, lambda c: c.delete(key))

    # -- inside

    def _at(self, path: str) -> tuple[ObjectPlace, str]:
        """The bucket and the key of a path."""
        full = self.resolve(path)
        if KINDS.get(full.partition("://")[0]) != self._place.kind:
            raise AccessDeniedError(f"{path} lies in another store than its table", place=path, kind="outside-roots")
        place, key = split_address(full)
        if place.host != self._place.host and (place.host or self._place.host):
            raise AccessDeniedError(f"{path} lies in another account than its table", place=path, kind="outside-roots")
        return place, key

    def _call(
        self, place: ObjectPlace, path: str, action: Callable[[Any], T], *, once: bool = False, renews: bool = True
    ) -> T:
        """What an action on the bucket's client gives; one that the store was too busy for is made again, and once more
        with newer credentials where it was refused. `once`: the library itself sends nothing twice."""

        def attempt() -> T:
            return translate_errors(place, self._endpoint, path, lambda: action(client(place, self.options, once=once)))

        options = self.options
        try:
            return with_retries(attempt, _ATTEMPTS, StoreBusyError)
        except AccessDeniedError:
            if not renews or not use_newest(self, options, self._renewal):
                raise
        return with_retries(attempt, _ATTEMPTS, StoreBusyError)


def _next(pages: Iterator[Any], _client: object) -> Any:
    return next(pages, None)


def _in_order(place: ObjectPlace) -> bool:
    """Whether the store lists by name, and can begin at one."""
    return place.kind != AZURE and not place.bucket.endswith("--x-s3")  # S3 Express lists in no order


def _milliseconds(entry: Mapping[str, Any]) -> int:
    return milliseconds(entry["last_modified"])
