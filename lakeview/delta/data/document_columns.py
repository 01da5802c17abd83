"""Values of statistics documents, row by row, to columns that stand one after the other."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.data.document_values import DTYPES, Kind, column_values, join_columns

_LIST = 1_024
"""Rows whose texts become columns at once, which costs some microseconds however few they are."""
_MANY_ROWS = 1_024
"""Rows from which on it takes less time to gather cells by a query than to copy each column."""
ABSENT = 0x7FF8_0000_0000_0001
"""The bits of a number that is not there: as a double no number that JSON has, as an integer one that it can only have
digit by digit."""
ABSENT_FLOAT: float = struct.unpack("d", struct.pack("q", ABSENT))[0]


def numbers(cells: pa.Buffer, width: int, fields: Sequence[int], kind: Kind) -> pl.Series:
    """The numbers of some fields, one field after the other, from rows of so many cells of 64 bits."""
    values = _columns(cells, width, fields)
    absent = values == ABSENT
    if absent.any():
        values = values.set(absent, None)
    if kind is Kind.FLOAT:
        return pl.Series(values.to_arrow().view(pa.float64()))
    least = values.min()
    return values.set(values < 0, None) if kind is Kind.COUNT and isinstance(least, int) and least < 0 else values


def _columns(cells: pa.Buffer, width: int, fields: Sequence[int]) -> pl.Series:
    rows = cells.size // 8 // width
    if width == 1:
        return _integers(cells)
    if rows >= _MANY_ROWS:
        return _integers(cells).gather(_order(rows, width, fields))
    few = memoryview(cells).cast("q")  # without a query
    return _integers(pa.py_buffer(b"".join([few[i::width].tobytes() for i in fields])))


def _order(rows: int, width: int, fields: Sequence[int]) -> pl.Series:
    cells = pl.int_range(rows * len(fields), dtype=pl.UInt32, eager=True)
    return (cells % rows) * width + pl.Series(fields, dtype=pl.UInt32).gather(cells // rows)


def _integers(data: pa.Buffer) -> pl.Series:
    return pl.Series(pa.Array.from_buffers(pa.int64(), data.size // 8, [None, data]))


class Lists:
    """Values of some fields that are of one kind, in a list each until they become columns."""

    def __init__(self, kind: Kind, fields: Sequence[int]) -> None:
        self._kind = kind
        self._fields = list(map(itemgetter, fields))
        self._lists: list[list[Any]] = [[] for _ in fields]
        self._pieces: list[pl.Series] = []

    def extend(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Some more rows."""
        for values, field in zip(self._lists, self._fields, strict=True):
            values.extend(map(field, rows))
        if len(self._lists[0]) >= _LIST:
            self._flush()

    def _flush(self) -> None:
        self._pieces.append(_column(list(chain.from_iterable(self._lists)), self._kind))
        for values in self._lists:
            values.clear()

    def series(self) -> pl.Series:
        """The columns, one after the other."""
        if self._lists[0] or not self._pieces:
            self._flush()
        width = len(self._lists)
        if len(self._pieces) == 1 or width == 1:
            return join_columns(self._pieces)
        pairs = [(piece, piece.len() // width) for piece in self._pieces]
        return pl.concat([piece.slice(i * n, n) for i in range(width) for piece, n in pairs])


def _column(values: Sequence[Any], kind: Kind) -> pl.Series:
    return column_values(values, kind) if kind is Kind.NUMBER else pl.Series(values, dtype=DTYPES[kind])
