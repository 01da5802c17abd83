"""One version of a shared table, ready to be asked: its head lines, rendered rows, and what is known of its files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lakeview.model.schema import Schema
from lakeview.sharing.protocol.messages import ResponseFormat
from lakeview.sharing.server.lines import Row
from lakeview.sharing.server.packed_rows import PackedRows
from lakeview.sharing.server.pruning import FileIndex

Render = Callable[[ResponseFormat, str], Iterable[Row]]
"""Response format and scheme of file ids to rows, newest file first, each made when it is asked for."""


@dataclass(frozen=True)
class SharedVersion:
    """`needed`: reader features that a client must have, in lower case; `timestamp` in milliseconds since 1970.

    `heads`: protocol and metaData as the bodies of their lines, by format. `index` and rendered rows have the files in
    one order. Safe to use from several threads.
    """

    version: int
    timestamp: int | None
    schema: Schema
    needed: frozenset[str]
    heads: Mapping[ResponseFormat, tuple[object, object]]
    index: FileIndex
    render: Render
    _rows: dict[tuple[ResponseFormat, str], PackedRows] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, response_format: ResponseFormat, scheme: str) -> PackedRows:
        """The rows of every file, rendered once. Refusal for a table whose files cannot be given."""
        with self._lock:
            key = (response_format, scheme)
            if key not in self._rows:
                self._rows[key] = PackedRows.of(self.render(response_format, scheme))
            return self._rows[key]

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        with self._lock:
            return 100_000 + sum(rows.size for rows in self._rows.values()) + self.index.height * 200
