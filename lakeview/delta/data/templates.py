"""Statistics documents of one shape to columns of values: a shape is a document's keys, in order, without its values.

Writers write document after document with the same keys in the same order. Each document is cut at every `":`, and each
piece has to be one value and then exactly what the shape has there, up to the next key. Where every piece is, the
document is the shape with other values in it, and nothing was guessed. A document with a piece that is not is left to
slower decoders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import and_

import polars as pl

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
Columns = dict[Place, pl.Series]

_CUT = '":'
_BLANK = r"[ \t\r\n]*"
_PLAIN = r'"[^"\\\x00-\x1f]*'
_SCALAR = rf'-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|{_PLAIN}"|true|false|null'
_FIRST = re.compile(rf"{_BLANK}\{{{_BLANK}({_PLAIN})")
_PIECE = re.compile(
    rf"(?P<blank>{_BLANK})(?P<value>{_SCALAR}|\{{{_BLANK}\}}|\{{)"
    rf"(?P<ending>(?P<close>[ \t\r\n}}]*)(?P<comma>,?){_BLANK}(?P<key>(?:{_PLAIN})?))"
)
_DECIMAL = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
_WORDS = {'"NaN"': float("nan"), '"Infinity"': float("inf"), '"-Infinity"': float("-inf")}


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands from one key to the next: `blank`, a value, `ending` with the next key. `text`: all of it."""

    place: Place
    text: str
    blank: str
    ending: str
    structure: bool


class Template:
    """The shape of a document, and which of its values are places."""

    def __init__(self, first: str, pieces: list[_Piece], places: Places) -> None:
        self._first = first
        self._pieces = pieces
        self._places = places

    @staticmethod
    def cut(stats: pl.Series) -> pl.Series:
        """Documents to lists of pieces, for `read`."""
        return stats.str.split(_CUT)

    @staticmethod
    def of(text: str, places: Places) -> Template | None:
        """The shape of this document; None for one that only a JSON decoder can tell: arrays, escapes, keys twice."""
        first, *rest = text.split(_CUT)
        start = _FIRST.fullmatch(first)
        if start is None or not 0 < len(rest) <= limits.STATISTICS_PIECES:
            return None
        above, key = list[str](), start[1][1:]
        pieces = list[_Piece]()
        for i, piece in enumerate(rest):
            match, last, place = _PIECE.fullmatch(piece), i == len(rest) - 1, (*above, key)
            if match is None:
                return None
            opens, closes = match["value"] == "{", match["close"].count("}")
            sound = closes == len(above) + 1 if last else closes <= len(above)
            if not sound or bool(match["key"]) == last or bool(match["comma"]) == (last or opens) or (opens and closes):
                return None
            pieces.append(_Piece(place, piece, match["blank"], match["ending"], match["value"][0] == "{"))
            above = [*above, key] if opens else above[: len(above) - closes]
            key = match["key"][1:]
        if len({piece.place for piece in pieces}) < len(pieces):
            return None
        return Template(first, pieces, places)

    def read(self, pieces: pl.Series, rows: pl.Series) -> tuple[pl.Series, Columns]:
        """Those of the rows (indices into `pieces`) that have this shape, and their values at its places."""
        width = len(self._pieces) + 1
        pieces = pieces if rows.len() == pieces.len() else pieces.gather(rows)  # most often all
        fitting = pieces.list.len() == width
        if not fitting.all():
            rows, pieces = rows.filter(fitting), pieces.filter(fitting)
        if not rows.len():
            return rows, {}
        flat = pieces.explode()
        columns: Columns = {}
        checks = [flat.gather_every(width) == self._first]
        for i, piece in enumerate(self._pieces, 1):
            column = flat.gather_every(width, i)
            kind = self._places.get(piece.place)
            if piece.structure:
                checks.append(column == piece.text)
            elif kind is None:
                checks.append(column.str.contains(f"^(?:{piece.blank})(?:{_SCALAR}){re.escape(piece.ending)}$"))
            else:
                body = column.str.strip_suffix(piece.ending)
                checks.append(column.str.len_bytes() - body.str.len_bytes() == len(piece.ending.encode()))
                body = body.str.strip_prefix(piece.blank) if piece.blank else body
                values, good = _READERS[kind](body)
                columns[piece.place] = values
                if good is not None:
                    checks.append(good)
        failed = [check for check in checks if not check.all()]
        if not failed:
            return rows, columns
        whole = reduce(and_, failed)
        return rows.filter(whole), {place: values.filter(whole) for place, values in columns.items()}


Read = tuple[pl.Series, pl.Series | None]
"""Values, and whether each is sound: of the kind, or the word null. None where all are."""


def _integers(body: pl.Series) -> Read:
    values = body.cast(pl.Int64, strict=False)
    return values, values.is_not_null() | (body == "null") if values.null_count() else None


def _counts(body: pl.Series) -> Read:
    values, good = _integers(body)
    least = values.min()
    return (values.set(values < 0, None) if isinstance(least, int) and least < 0 else values), good


def _floats(body: pl.Series) -> Read:
    values = body.cast(pl.Float64, strict=False)
    finite = values.is_finite()
    if not values.null_count() and finite.all():
        return values, None
    words = body.replace_strict(_WORDS, default=None, return_dtype=pl.Float64)
    numbers = values.set(~finite.fill_null(value=False), None)
    return numbers.fill_null(words), numbers.is_not_null() | words.is_not_null() | (body == "null")


def _numbers(body: pl.Series) -> Read:
    good = body.str.contains(_DECIMAL) & (body.str.len_bytes() <= limits.NUMBER_DIGITS) & (body != "-0")
    return (body, None) if good.all() else (body.set(~good, None), good | (body == "null"))


def _texts(body: pl.Series) -> Read:
    text = body.str.strip_prefix('"').str.strip_suffix('"')
    shorter = (body.str.len_bytes() - text.str.len_bytes()) == 2
    good = shorter & ~text.str.contains('"', literal=True) & ~text.str.contains("\\", literal=True)
    return (text, None) if good.all() else (text.set(~good, None), good | (body == "null"))


def _booleans(body: pl.Series) -> Read:
    values = body.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    return values, values.is_not_null() | (body == "null") if values.null_count() else None


_READERS: Mapping[Kind, Callable[[pl.Series], Read]] = {
    Kind.COUNT: _counts,
    Kind.INTEGER: _integers,
    Kind.FLOAT: _floats,
    Kind.NUMBER: _numbers,
    Kind.TEXT: _texts,
    Kind.BOOLEAN: _booleans,
}
