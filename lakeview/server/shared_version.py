"""One version of a shared table, ready to be asked: its head lines, its files as lines, and what is known of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from lakeview.schema import Schema
from lakeview.server.pruning import FileIndex
from lakeview.sharing.protocol import ResponseFormat

Render = Callable[[pl.DataFrame, ResponseFormat, str], pl.DataFrame]
"""Some rows of a listing, the response format and the scheme of file ids to ROWS."""

BLOCK_ROWS = 500
_CACHED_BYTES = 32 << 20
"""Lines of some 50,000 files. Those beyond are written for each answer: 20 us a file, and 160 MB for 200,000 files
that are not held."""


class FileLines:
    """The lines of a version's files, newest file first, written a block at a time when they are first sent and cached
    up to a bound. Safe to use from several threads.

    `listing`: what `render` writes lines from, one row a file; asked for once.
    """

    def __init__(self, listing: Callable[[], pl.DataFrame], render: Render) -> None:
        self._read = listing
        self._render = render
        self._listing: pl.DataFrame | None = None
        self._blocks: dict[tuple[ResponseFormat, str, int], pl.DataFrame] = {}
        self._cached = 0
        self._lock = threading.Lock()

    def load(self) -> pl.DataFrame:
        """The listing, read if it has not been."""
        with self._lock:
            if self._listing is None:
                self._listing = self._read()
            return self._listing

    def blocks(self, response_format: ResponseFormat, scheme: str, kept: pl.Series | None) -> Iterator[pl.DataFrame]:
        """ROWS of the files whose mask is true (of all without one), at most BLOCK_ROWS at a time. Refusal for a file
        that cannot be given, when its turn comes."""
        height = self.load().height
        for start in range(0, height, BLOCK_ROWS):
            mask = None if kept is None else kept[start : start + BLOCK_ROWS]
            if mask is None or mask.any():
                rows = self._block(response_format, scheme, start)
                yield rows if mask is None else rows.filter(mask)

    def _block(self, response_format: ResponseFormat, scheme: str, start: int) -> pl.DataFrame:
        key = (response_format, scheme, start)
        with self._lock:
            if (known := self._blocks.get(key)) is not None:
                return known
        found = self._render(self.load()[start : start + BLOCK_ROWS], response_format, scheme)
        size = int(found.estimated_size())
        with self._lock:
            if key not in self._blocks and self._cached + size <= _CACHED_BYTES:
                self._blocks[key] = found
                self._cached += size
        return found

    @property
    def size(self) -> int:
        """About how many bytes are held."""
        with self._lock:
            return self._cached + (0 if self._listing is None else int(self._listing.estimated_size()))


@dataclass(frozen=True)
class SharedVersion:
    """`needed`: reader features that a client must have, in lower case; `timestamp` in milliseconds since 1970.

    `heads`: protocol and metaData as the bodies of their lines, by format. `index` and `files` have the files in one
    order. Safe to use from several threads.
    """

    version: int
    timestamp: int | None
    schema: Schema
    needed: frozenset[str]
    heads: Mapping[ResponseFormat, tuple[object, object]]
    index: FileIndex
    files: FileLines

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        return 100_000 + self.files.size + self.index.height * 200
