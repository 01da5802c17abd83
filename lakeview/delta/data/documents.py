"""Statistics documents, the JSON text of adds, to columns of values: only the leaves asked for, a batch at a time.

What a document does not say, says in the wrong type or says in no JSON at all is null.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.data.templates import Columns, Kind, Place, Places, Template
from lakeview.delta.log.record_counts import whole
from lakeview.model import limits

BATCH = 32_768
_SMALL_BATCH = 1_024
"""Documents that are objects at once: they fit in the processor's caches."""
_NARROW = 20
_FEW = 20_000
_MOST_SHAPES = 6

DTYPES: Mapping[Kind, pl.DataType] = {
    Kind.COUNT: pl.Int64(),
    Kind.INTEGER: pl.Int64(),
    Kind.FLOAT: pl.Float64(),
    Kind.NUMBER: pl.String(),
    Kind.TEXT: pl.String(),
    Kind.BOOLEAN: pl.Boolean(),
}
"""The columns that the kinds become."""

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeEncodeError)


class Documents:
    """Decodes statistics documents into columns, a batch at a time.

    Two decoders with one exact fallback (`exact`), which the tests compare over drawn documents. Typed structs, a small
    batch at a time; and more than `_NARROW` places of at least `_FEW` documents by templates, for
    `benches/bench_logs.py`, statistics of all columns: of 18 columns they take 5.4 us of CPU a file, which threads
    share, typed structs 6.1 us under the interpreter's lock (9 in one large batch), pyarrow.json 6.1, polars'
    json_decode 10.8. Templates take 20 ms before the first file, structs one, and twice the memory of structs, whose
    pages cost as much again where they are new to the process: only tables of very many files come in such batches.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._typed = _TypedDecoder(places) if _nameable(places) else None
        self._templates: list[Template] = []
        self._lock = threading.Lock()  # batches are read in threads

    def decode(self, stats: pl.Series) -> Columns:
        """A column of documents to one column for each place, typed as DTYPES says."""
        if stats.null_count():
            rows = stats.is_not_null().arg_true()
            columns = null_columns(stats.len(), self._places)
            return _scattered(columns, rows, self.decode(stats.gather(rows))) if rows.len() else columns
        many = len(self._places) > _NARROW and stats.len() >= _FEW
        way = self.by_template if many else self.by_structs
        return self._joined(map(way, _slices(stats, BATCH)))

    def _joined(self, batches: Iterable[Columns]) -> Columns:
        first, *others = batches
        return {p: pl.concat([first[p], *(batch[p] for batch in others)]) for p in self._places} if others else first

    def by_structs(self, stats: pl.Series) -> Columns:
        """Values that are not asked for are passed over without becoming objects."""
        typed = self._typed
        if typed is None:
            return exact(stats, self._places)
        return self._joined(typed.decode(part.to_list()) for part in _slices(stats, _SMALL_BATCH))

    def by_template(self, stats: pl.Series) -> Columns:
        """Most documents of a table have the same keys in the same order: they are cut where the keys are."""
        columns = null_columns(stats.len(), self._places)
        rest = stats.is_not_null().arg_true()
        pieces = Template.cut(stats)
        tried = 0
        while rest.len() and tried < _MOST_SHAPES:
            with self._lock:
                if tried == len(self._templates):
                    template = Template.of(stats[int(rest[0])], self._places)
                    if template is None:
                        break
                    self._templates.append(template)
            rows, values_by_place = self._templates[tried].read(pieces, rest)
            columns = _scattered(columns, rows, values_by_place)
            rest = rest.filter(~rest.is_in(rows.implode())) if rows.len() else rest
            tried += 1
        return _scattered(columns, rest, self.by_structs(stats.gather(rest))) if rest.len() else columns


def _slices(stats: pl.Series, size: int) -> Iterable[pl.Series]:
    """The documents in their order, so many at once; none at all are one slice."""
    return (stats.slice(at, size) for at in range(0, max(1, stats.len()), size))


def null_columns(rows: int, places: Places) -> Columns:
    """The columns of documents that say nothing."""
    return {place: pl.Series([None], dtype=DTYPES[kind]).new_from_index(0, rows) for place, kind in places.items()}


def _scattered(columns: Columns, rows: pl.Series, values_by_place: Columns) -> Columns:
    """The columns with these values in these rows; a place without values stays as it is."""
    changed = {
        place: values if values.len() == columns[place].len() else columns[place].scatter(rows, values)
        for place, values in values_by_place.items()
    }
    return {**columns, **changed}


# -- the reference: every document by itself


class _Number(str):
    """A JSON number with a fraction or an exponent, as it is written."""

    __slots__ = ()


def exact(texts: Iterable[str | None], places: Places) -> Columns:
    """What `Documents.decode` gives, document by document: what the faster ways are measured against."""
    decoder = msgspec.json.Decoder(float_hook=_Number)
    documents: list[Any] = []
    for text in texts:
        try:
            documents.append(None if text is None else decoder.decode(text))
        except _UNREADABLE:
            documents.append(None)
    return {place: _values([_reach(document, place) for document in documents], kind) for place, kind in places.items()}


def _reach(document: Any, place: Place) -> Any:
    for part in place:
        if not isinstance(document, dict):
            return None
        document = document.get(part)
    return document


def _values(values: Sequence[Any], kind: Kind) -> pl.Series:
    match kind:
        case Kind.COUNT:
            return pl.Series([whole(v) for v in values], dtype=pl.Int64)
        case Kind.INTEGER:
            return pl.Series([_integer(v) for v in values], dtype=pl.Int64)
        case Kind.BOOLEAN:
            return pl.Series([v if isinstance(v, bool) else None for v in values], dtype=pl.Boolean)
        case Kind.TEXT:
            return pl.Series([v if type(v) is str else None for v in values], dtype=pl.String)
        case Kind.NUMBER:
            return pl.Series([_plain(v) for v in values], dtype=pl.String)
    return _floats(values)


def _integer(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if fits else None


def _plain(value: Any) -> str | None:
    """A number as text without an exponent; a quoted one counts. None beyond what any decimal type holds."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    if isinstance(value, int) and value.bit_length() > 4 * limits.NUMBER_DIGITS:
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or len(digits) > limits.NUMBER_DIGITS or abs(exponent) > limits.NUMBER_DIGITS:
        return None
    return format(number, "f")


def _floats(values: Sequence[Any]) -> pl.Series:
    """Numbers, and the quoted words NaN, Infinity and -Infinity. A number beyond the type's range is null."""
    words = [v if type(v) is str else None for v in values]
    texts = [_digits(v) for v in values]
    numbers = pl.Series(texts, dtype=pl.String).cast(pl.Float64, strict=False)
    numbers = numbers.set(~numbers.is_finite(), None)
    return numbers.fill_null(pl.Series(words, dtype=pl.String).cast(pl.Float64, strict=False))


def _digits(value: Any) -> str | None:
    if isinstance(value, _Number):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return repr(value)
    return str(value) if value.bit_length() <= 1024 else None


# -- typed structs: values that are not asked for are skipped without becoming objects


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


class _TypedDecoder:
    """Documents to structs that hold just what is asked. One that is not as expected is decoded by itself."""

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

    def decode(self, texts: Sequence[str | None]) -> Columns:
        odd: list[int] = []
        try:
            documents = [self._empty if text is None else self._decoder.decode(text) for text in texts]
        except _UNREADABLE:
            documents, odd = self._each(texts)
        if not documents:
            return null_columns(0, self._places)
        columns: Columns = {}
        _collect(documents, self._tree, (), columns)
        if not odd:
            return columns
        return _scattered(columns, pl.Series(odd, dtype=pl.UInt32), exact([texts[i] for i in odd], self._places))

    def _each(self, texts: Sequence[str | None]) -> tuple[list[msgspec.Struct], list[int]]:
        """The documents, an empty one where one is not as expected, and where that is."""
        documents: list[msgspec.Struct] = []
        odd: list[int] = []
        for i, text in enumerate(texts):
            try:
                documents.append(self._empty if text is None else self._decoder.decode(text))
            except _UNREADABLE:
                documents.append(self._empty)
                odd.append(i)
        return documents, odd


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


def _collect(structs: Sequence[Any], tree: Mapping[str, Any], above: Place, columns: Columns) -> None:
    """Structs to columns, level by level."""
    for i, (name, inner) in enumerate(tree.items()):
        values = list(map(attrgetter(f"f{i}"), structs))
        if isinstance(inner, Kind):
            columns[(*above, name)] = _column(values, inner)
        else:
            _collect(values, inner, (*above, name), columns)


def _column(values: Sequence[Any], kind: Kind) -> pl.Series:
    if kind is Kind.NUMBER:
        return _values(values, kind)
    try:
        column = pl.Series(values, dtype=DTYPES[kind])
    except (TypeError, OverflowError):  # NaN as a word, or out of range
        return _values(values, kind)
    least = column.min() if kind is Kind.COUNT else 0
    return column.set(column < 0, None) if isinstance(least, int) and least < 0 else column
