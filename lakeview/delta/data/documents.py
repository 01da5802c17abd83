"""Statistics documents, the JSON text of adds, to columns of values: only the leaves asked for, a batch at a time.

What a document does not say, says in the wrong type or says in no JSON at all is null.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain, starmap
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import polars as pl
import pyarrow as pa
from msgspec.structs import astuple

from lakeview.delta.data.document_columns import ABSENT, ABSENT_FLOAT, Lists, numbers
from lakeview.delta.data.document_values import (
    DTYPES,
    UNREADABLE,
    Columns,
    Kind,
    Place,
    Places,
    exact,
)

_BATCH = 128
"""Documents that are objects at once: they fit in the processor's caches."""
_NUMBERS: Mapping[Kind, tuple[str, float | None]] = {
    Kind.COUNT: ("q", ABSENT),
    Kind.INTEGER: ("q", ABSENT),
    Kind.FLOAT: ("d", ABSENT_FLOAT),
}
"""Kinds that `struct` packs, and what it packs where there is none."""
_INTEGERS = (Kind.COUNT, Kind.INTEGER)
_WORDS: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Documents:
    """Decodes statistics documents into columns: structs of a small batch at a time, whose numbers are packed row by
    row and become columns at once.

    A document that is not as expected is decoded by itself (`exact`): it is the reference that tests compare with.
    `places`: in the order of documents; `order`: in which their columns stand side by side, where they do.
    """

    def __init__(self, places: Places, order: Iterable[Place] | None = None) -> None:
        self._places = places
        self._root = _root(tuple(places.items()), tuple(order or places))
        self._nameable = not _UNSAFE.search("".join(chain.from_iterable(places)))

    def unknown(self, rows: int) -> Columns:
        """The columns of documents that say nothing."""
        blocks = [
            pl.Series([None], dtype=DTYPES[kind]).new_from_index(0, rows * len(places))
            for kind, places, _ in self._root.all_blocks
        ]
        return Columns(rows, blocks, self._root.where)

    def decode(self, stats: pl.Series) -> Columns:
        """A column of documents to one column for each place, typed as DTYPES says."""
        rows = stats.len()
        if stats.null_count() == rows:
            return self.unknown(rows)
        if not self._nameable:
            by_place = exact(stats, self._places)
            return Columns(rows, list(by_place.values()), {place: (i, 0) for i, place in enumerate(by_place)})
        texts = stats.fill_null("{}") if stats.null_count() else stats
        values, odd = _Rows(self._root), set[int]()
        for at in range(0, rows, _BATCH):
            values.extend(self._structs(texts.slice(at, _BATCH).to_list(), at, odd), at, odd)
        blocks = list(values.blocks())
        kinds = [block.kind for block in self._root.all_blocks]
        if any(block.null_count() for kind, block in zip(kinds, blocks, strict=True) if kind in _INTEGERS):
            odd.update(texts.str.contains(str(ABSENT), literal=True).arg_true())
        if odd:
            odd_rows = sorted(odd)
            by_place = exact(texts[odd_rows], self._places)
            for i, (_, places, _) in enumerate(self._root.all_blocks):
                where = pl.Series([j * rows + row for j in range(len(places)) for row in odd_rows], dtype=pl.UInt32)
                blocks[i] = blocks[i].scatter(where, pl.concat([by_place[place] for place in places]))
        return Columns(rows, blocks, self._root.where)

    def _structs(self, texts: list[str], at: int, odd: set[int]) -> list[msgspec.Struct]:
        """Documents, empty ones where one is not as expected; `odd` gets their rows."""
        decode = self._root.decode
        try:
            return list(map(decode, texts))
        except UNREADABLE:
            structs = []
            for row, text in enumerate(texts, at):
                try:
                    structs.append(decode(text))
                except UNREADABLE:
                    structs.append(decode("{}"))
                    odd.add(row)
            return structs


_TYPES: Mapping[Kind, Any] = {
    Kind.COUNT: int | None,
    Kind.INTEGER: int | None,
    Kind.FLOAT: float | str | None,
    Kind.NUMBER: Decimal | None,
    Kind.TEXT: str | None,
    Kind.BOOLEAN: bool | None,
}
_UNSAFE = re.compile(r'[\\"\x00-\x1f]')
"""What JSON escapes, and msgspec has in no name of a field."""


@lru_cache(maxsize=16)
def _root(places: tuple[tuple[Place, Kind], ...], order: tuple[Place, ...]) -> _Node:
    """Documents with these places, the last few that were asked for: to make structs takes longer than to decode some
    documents."""
    tree: dict[str, Any] = {}
    for place, kind in places:
        node = tree
        for part in place[:-1]:
            node = node.setdefault(part, {})
        node[place[-1]] = kind
    return _Node(tree, (), {place: i for i, place in enumerate(order)})


class _Block(NamedTuple):
    """Places of one kind in an object, and the numbers of their fields."""

    kind: Kind
    places: tuple[Place, ...]
    fields: tuple[int, ...]


class _Node:
    """An object in a document, of which a struct holds just what is asked, in the order of documents: msgspec looks for
    a key from the one before it on."""

    def __init__(self, tree: Mapping[str, Any], above: Place, order: Mapping[Place, int]) -> None:
        leaves = [(i, (*above, name), kind) for i, (name, kind) in enumerate(tree.items()) if isinstance(kind, Kind)]
        codes = {i: _NUMBERS[kind] for i, _, kind in leaves if kind in _NUMBERS}
        # eight bytes for each field: of others whether they are true, which takes less time than to pick fields
        cells = [codes.get(i, ("?7x", None)) for i in range(len(tree))]
        self.pack = struct.Struct("".join(code for code, _ in cells)).pack
        self.absent = [absent for _, absent in cells]
        groups: dict[Kind, list[tuple[Place, int]]] = {}
        for i, place, kind in sorted(leaves, key=lambda leaf: order[leaf[1]]):
            groups.setdefault(kind, []).append((place, i))
        self.blocks = [_Block(kind, *zip(*group, strict=True)) for kind, group in groups.items()]
        self.inner = {
            i: _Node(inner, (*above, name), order)
            for i, (name, inner) in enumerate(tree.items())
            if isinstance(inner, dict)
        }
        self._tree = tree

    @cached_property
    def type(self) -> type[msgspec.Struct]:
        """The struct."""
        kinds = [self.inner[i].type if i in self.inner else kind for i, kind in enumerate(self._tree.values())]
        return _struct(tuple(zip(self._tree, kinds, strict=True)))

    @cached_property
    def decode(self) -> Callable[[str], Any]:
        """A document to its struct."""
        return msgspec.json.Decoder(self.type).decode

    @cached_property
    def where(self) -> dict[Place, tuple[int, int]]:
        """The block of each place, and its number in it."""
        return {place: (i, j) for i, block in enumerate(self.all_blocks) for j, place in enumerate(block.places)}

    @cached_property
    def all_blocks(self) -> list[_Block]:
        """Its blocks and those of the objects in it."""
        return [*self.blocks, *(block for node in self.inner.values() for block in node.all_blocks)]


@lru_cache(maxsize=16)
def _struct(fields: tuple[tuple[str, Any], ...]) -> type[msgspec.Struct]:
    """A struct of values by kind and of structs. Least and greatest values are of one."""
    names = {f"f{i}": name for i, (name, _) in enumerate(fields)}
    kinds = [
        (f"f{i}", _TYPES[kind], _NUMBERS[kind][1] if kind in _NUMBERS else None)
        if isinstance(kind, Kind)
        # an object that is not there is an empty one, so that every path leads to a value
        else (f"f{i}", kind, kind())
        for i, (_, kind) in enumerate(fields)
    ]
    return msgspec.defstruct("Statistics", kinds, frozen=True, gc=False, rename=names)


class _Rows:
    """Structs of a node, their numbers packed row by row and their other values in lists, until they become blocks."""

    def __init__(self, node: _Node) -> None:
        self._node = node
        self._cells: list[bytes] = []
        self._lists = {
            block.kind: Lists(block.kind, block.fields) for block in node.blocks if block.kind not in _NUMBERS
        }
        self._inner = [(itemgetter(i), _Rows(inner)) for i, inner in node.inner.items()]

    def extend(self, structs: Sequence[msgspec.Struct], at: int, odd: set[int]) -> None:
        """Some more, the first of which is row `at`; `odd` gets rows with a number that has no 64 bits."""
        rows = list(map(astuple, structs))
        try:
            self._cells.append(b"".join(starmap(self._node.pack, rows)))
        except (struct.error, OverflowError):
            self._cells.append(b"".join([self._pack(row, i, odd) for i, row in enumerate(rows, at)]))
        for values in self._lists.values():
            values.extend(rows)
        for field, inner in self._inner:
            inner.extend(list(map(field, rows)), at, odd)

    def _pack(self, values: Sequence[Any], row: int, odd: set[int]) -> bytes:
        absent = self._node.absent
        cells = [none if v is None else v for v, none in zip(values, absent, strict=True)]
        try:
            return self._node.pack(*(_WORDS.get(v, v) if type(v) is str else v for v in cells))
        except (struct.error, OverflowError):
            odd.add(row)
            return self._node.pack(*absent)

    def blocks(self) -> Iterator[pl.Series]:
        """As the node's: of each the values of its first place, then those of the next."""
        cells, width = pa.py_buffer(b"".join(self._cells)), len(self._node.absent)
        for kind, _, fields in self._node.blocks:
            if kind in _NUMBERS:
                yield numbers(cells, width, fields, kind)
            else:
                yield self._lists[kind].series()
        for _, inner in self._inner:
            yield from inner.blocks()
