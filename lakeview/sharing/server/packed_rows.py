"""ROWS to compressed chunks and back: the lines of every file of a version, in a fraction of their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import polars as pl

from lakeview.sharing.server.lines import Row, rows_frame

ROWS_A_CHUNK = 500


@dataclass(frozen=True, slots=True)
class PackedRows:
    """ROWS of the files of one version, and which of them are selected. Immutable.

    `chunks` have ROWS_A_CHUNK rows each, the last one fewer; `numbers` are the selected rows, in ascending order.
    """

    chunks: Sequence[bytes]
    numbers: pl.Series

    @staticmethod
    def of(rows: Iterable[Row]) -> PackedRows:
        """Pack rows as they are made: one chunk of them is in memory uncompressed."""
        chunks: list[bytes] = []
        waiting: list[Row] = []
        height = 0
        for row in rows:
            waiting.append(row)
            height += 1
            if len(waiting) == ROWS_A_CHUNK:
                chunks.append(_pack(waiting))
                waiting.clear()
        if waiting:
            chunks.append(_pack(waiting))
        return PackedRows(chunks, pl.int_range(height, dtype=pl.UInt32, eager=True))

    @property
    def height(self) -> int:
        """How many rows are selected."""
        return self.numbers.len()

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(map(len, self.chunks)) + 4 * self.height

    def filter(self, mask: pl.Series) -> PackedRows:
        """Of the selected rows, those for which a mask is true."""
        return PackedRows(self.chunks, self.numbers.filter(mask))

    def slice(self, start: int, length: int) -> PackedRows:
        """Of the selected rows, at most `length` from one on."""
        return PackedRows(self.chunks, self.numbers.slice(start, length))

    def frames(self) -> Iterator[pl.DataFrame]:
        """ROWS of the selected rows, one chunk unpacked at a time; chunks without a selected row stay packed."""
        at = 0
        while at < self.height:
            number = self.numbers[at] // ROWS_A_CHUNK
            first = number * ROWS_A_CHUNK
            end = int(self.numbers.search_sorted(first + ROWS_A_CHUNK))
            rows = pl.read_ipc_stream(BytesIO(self.chunks[number]))
            yield rows if end - at == rows.height else rows[self.numbers[at:end] - first]
            at = end


def _pack(rows: Sequence[Row]) -> bytes:
    buffer = BytesIO()
    rows_frame(rows).write_ipc_stream(buffer, compression="zstd")
    return buffer.getvalue()
