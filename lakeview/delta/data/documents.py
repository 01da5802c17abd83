"""Statistics documents, the JSON text of adds, to columns of values: only the leaves asked for, a batch at a time.

What a document does not say, says in the wrong type or says in no JSON at all is null.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
from msgspec.structs import astuple

from lakeview.delta.data.document_values import (
    DTYPES,
    UNREADABLE,
    Columns,
    Kind,
    Place,
    Places,
    column_values,
    exact,
    null_columns,
)

_BATCH = 128
"""Documents that are objects at once: they fit in the processor's caches."""
_LIST = 1_024
"""Values that become a column at once, which costs some microseconds however few they are."""
_PACKED: Mapping[Kind, tuple[str, pa.DataType]] = {
    Kind.COUNT: ("q", pa.int64()),
    Kind.INTEGER: ("q", pa.int64()),
    Kind.FLOAT: ("d", pa.float64()),
}
"""Kinds that `struct` packs as Arrow holds them."""


class Documents:
    """Decodes statistics documents into columns: typed structs, a small batch at a time, which become columns at once.

    A document that is not as expected is decoded by itself (`exact`): it is the reference that tests compare with.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._structs = _structs(tuple(places.items())) if _nameable(places) else None

    def decode(self, stats: pl.Series) -> Columns:
        """A column of documents to one column for each place, typed as DTYPES says."""
        if stats.null_count():
            rows = stats.is_not_null().arg_true()
            columns = null_columns(stats.len(), self._places)
            return _scatter(columns, rows, self.decode(stats.gather(rows))) if rows.len() else columns
        return exact(stats, self._places) if self._structs is None else self._structs.decode(stats)


def _scatter(columns: Columns, rows: pl.Series, values_by_place: Columns) -> Columns:
    """The columns with these values in these rows."""
    return {place: columns[place].scatter(rows, values) for place, values in values_by_place.items()}


_TYPES: Mapping[Kind, Any] = {
    Kind.COUNT: int | None,
    Kind.INTEGER: int | None,
    Kind.FLOAT: float | str | None,
    Kind.NUMBER: Decimal | None,
    Kind.TEXT: str | None,
    Kind.BOOLEAN: bool | None,
}
_UNSAFE = frozenset('\\"') | frozenset(map(chr, range(32)))


def _nameable(places: Places) -> bool:
    """Whether every key can be a field of a struct: msgspec takes no name that JSON would escape."""
    return not any(_UNSAFE & set(part) for place in places for part in place)


class _Structs:
    """Documents to structs that hold just what is asked, and structs to columns."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._tree: dict[str, Any] = {}
        for place, kind in places.items():
            node = self._tree
            for part in place[:-1]:
                node = node.setdefault(part, {})
            node[place[-1]] = kind
        self._empty = _struct(self._tree)()
        self._decoder = msgspec.json.Decoder(type(self._empty))

    def decode(self, stats: pl.Series) -> Columns:
        columns = {place: _Column(kind) for place, kind in _leaves(self._tree, ())}
        odd: list[int] = []
        for at in range(0, stats.len(), _BATCH):
            texts = stats.slice(at, _BATCH).to_list()
            try:
                documents = list(map(self._decoder.decode, texts))
            except UNREADABLE:
                documents = [self._one(text, at + i, odd) for i, text in enumerate(texts)]
            _collect(documents, self._tree, iter(columns.values()))
        series = {place: column.series() for place, column in columns.items()}
        return _scatter(series, pl.Series(odd, dtype=pl.UInt32), exact(stats[odd], self._places)) if odd else series

    def _one(self, text: str, row: int, odd: list[int]) -> msgspec.Struct:
        """A document, an empty one where it is not as expected; `odd` gets its row then."""
        try:
            return self._decoder.decode(text)
        except UNREADABLE:
            odd.append(row)
            return self._empty


@lru_cache(maxsize=16)
def _structs(places: tuple[tuple[Place, Kind], ...]) -> _Structs:
    """The structs of these places, of the last few that were asked for: to make them takes longer than to decode some
    documents."""
    return _Structs(dict(places))


def _leaves(tree: Mapping[str, Any], above: Place) -> Iterator[tuple[Place, Kind]]:
    """The places in the order of the structs' fields."""
    for name, inner in tree.items():
        if isinstance(inner, Kind):
            yield (*above, name), inner
        else:
            yield from _leaves(inner, (*above, name))


def _struct(tree: Mapping[str, Any]) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for i, (name, inner) in enumerate(tree.items()):
        if isinstance(inner, Kind):
            fields.append((f"f{i}", _TYPES[inner], msgspec.field(name=name, default=None)))
        else:
            # an object that is not there is an empty one, so that every path leads to a value
            kind = _struct(inner)
            fields.append((f"f{i}", kind, msgspec.field(name=name, default=kind())))
    return msgspec.defstruct("Statistics", fields, frozen=True, gc=False)


def _collect(structs: Sequence[Any], tree: Mapping[str, Any], columns: Iterator[_Column]) -> None:
    """Structs to columns, level by level."""
    for values, inner in zip(zip(*map(astuple, structs), strict=True), tree.values(), strict=True):
        if isinstance(inner, Kind):
            next(columns).extend(values)
        else:
            _collect(values, inner, columns)


class _Column:
    """The values of one place. Numbers are packed into memory of Arrow's own layout, up to the first that is none: a
    list of them takes five times as long (`benches/bench_logs.py`, statistics of all columns)."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._code, self._type = _PACKED.get(kind, ("", None))
        self._packed_values: list[bytes] = []
        self._values: list[Any] = []
        self._pieces: list[pl.Series] = []

    def extend(self, values: Sequence[Any]) -> None:
        if self._code:
            try:
                self._packed_values.append(struct.pack(f"{len(values)}{self._code}", *values))
                return
            except (struct.error, OverflowError):  # null, NaN as a word, or out of range
                self._code = ""
        self._values += values
        if len(self._values) >= _LIST:
            self._pieces.append(_column(self._values, self._kind))
            self._values = []

    def series(self) -> pl.Series:
        """All of them."""
        pieces = self._pieces
        if self._packed_values:
            data = pa.py_buffer(b"".join(self._packed_values))
            numbers = pl.Series(pa.Array.from_buffers(self._type, data.size // 8, [None, data]))
            pieces = [_counts(numbers) if self._kind is Kind.COUNT else numbers, *pieces]
        if self._values or not pieces:
            pieces = [*pieces, _column(self._values, self._kind)]
        return pl.concat(pieces) if len(pieces) > 1 else pieces[0]


def _column(values: Sequence[Any], kind: Kind) -> pl.Series:
    if kind is Kind.NUMBER:
        return column_values(values, kind)
    try:
        column = pl.Series(values, dtype=DTYPES[kind])
    except (TypeError, OverflowError):  # NaN as a word, or out of range
        return column_values(values, kind)
    return _counts(column) if kind is Kind.COUNT else column


def _counts(column: pl.Series) -> pl.Series:
    """None is below zero."""
    least = column.min()
    return column.set(column < 0, None) if isinstance(least, int) and least < 0 else column
