"""Values of statistics documents, each document by itself: what the faster way gives too, and is compared with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.record_counts import whole
from lakeview.model import limits

Place = tuple[str, ...]
"""Where a value stands: the keys from the document's top, such as ("minValues", "a", "b")."""


class Kind(StrEnum):
    """What a value has to be. A NUMBER stays text in plain decimal notation, no digit lost."""

    COUNT = "count"
    INTEGER = "integer"
    FLOAT = "float"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"


Places = Mapping[Place, Kind]
DTYPES: Mapping[Kind, pl.DataType] = {
    Kind.COUNT: pl.Int64(),
    Kind.INTEGER: pl.Int64(),
    Kind.FLOAT: pl.Float64(),
    Kind.NUMBER: pl.String(),
    Kind.TEXT: pl.String(),
    Kind.BOOLEAN: pl.Boolean(),
}
"""The columns that the kinds become."""

UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeEncodeError)


class Columns(Mapping[Place, pl.Series]):
    """A column of each place. In `blocks` stand columns of one kind one after the other, so that many are worked on at
    once; `where`: the block of a place, and its number in it."""

    def __init__(self, rows: int, blocks: Sequence[pl.Series], where: Mapping[Place, tuple[int, int]]) -> None:
        self._rows = rows
        self._blocks = blocks
        self._where = where

    def __getitem__(self, place: Place) -> pl.Series:
        return self.side_by_side([place])

    def __iter__(self) -> Iterator[Place]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def side_by_side(self, places: Sequence[Place]) -> pl.Series:
        """The columns of these places, at least one, one after the other."""
        runs: list[list[int]] = []
        for block, number in map(self._where.__getitem__, places):
            if runs and runs[-1][0] == block and runs[-1][2] == number:
                runs[-1][2] += 1
            else:
                runs.append([block, number, number + 1])
        rows = self._rows
        return join_columns([self._blocks[block].slice(i * rows, (end - i) * rows) for block, i, end in runs])


def join_columns(columns: Sequence[pl.Series]) -> pl.Series:
    """Columns, one after the other."""
    return pl.concat(columns) if len(columns) > 1 else columns[0]


class _Number(str):
    """A JSON number with a fraction or an exponent, as it is written."""

    __slots__ = ()


def exact(texts: Iterable[str | None], places: Places) -> dict[Place, pl.Series]:
    """What `Documents.decode` gives, document by document: what the faster way is measured against."""
    decoder = msgspec.json.Decoder(float_hook=_Number)
    documents: list[Any] = []
    for text in texts:
        try:
            documents.append(None if text is None else decoder.decode(text))
        except UNREADABLE:
            documents.append(None)
    return {
        place: column_values([_reach(document, place) for document in documents], kind)
        for place, kind in places.items()
    }


def _reach(document: Any, place: Place) -> Any:
    for part in place:
        if not isinstance(document, dict):
            return None
        document = document.get(part)
    return document


def column_values(values: Sequence[Any], kind: Kind) -> pl.Series:
    """Decoded values to a column, typed as DTYPES says."""
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
    text = str(number)
    if "E" not in text and len(text) <= limits.NUMBER_DIGITS and number.is_finite():
        return text  # as nearly all are written
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
