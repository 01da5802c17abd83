"""Constants of a recipient's filter to values of the column they are compared with, and columns by their names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

import polars as pl

from lakeview.delta.data.partition_values import typed
from lakeview.expressions import And, Comparison, Constant, IsIn, IsNull, Node, Or, Path, Unknown
from lakeview.schema import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, Schema, StructType

_COMPARED = frozenset(
    {"string", "long", "integer", "short", "byte", "double", "float", "boolean", "date", "timestamp", "timestamp_ntz"}
)
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_COLLATIONS = "__COLLATIONS"
_ZONED = re.compile(r"(?:[Zz]|[+-]\d\d:?\d\d)$")


class Columns:
    """The columns of a table that filters can speak of. Names are found in any case where only one fits."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def find(self, parts: tuple[str, ...]) -> tuple[Path, DataType] | None:
        """The path and type of a leaf reached through structs; None if there is none that can be compared."""
        fields = self._schema.fields
        path: Path = ()
        found: Field | None = None
        for part in parts:
            exact = [f for f in fields if f.name == part] or [f for f in fields if f.name.lower() == part.lower()]
            if len(exact) != 1 or _COLLATIONS in exact[0].metadata:  # a collation has another order than ours
                return None
            found = exact[0]
            path = (*path, found.name)
            fields = found.type.fields if isinstance(found.type, StructType) else ()
        if found is None or isinstance(found.type, StructType):
            return None
        return path, found.type


def value_of(text: str, type_: DataType) -> pl.Series | None:
    """One value of the column's declared type, from text; None if it is none of that type, or not certainly one.

    A moment without a zone means one in the client's, which nobody told us; 32-bit floats are compared as 64-bit ones.
    """
    match type_:
        case PrimitiveType("string"):
            return pl.Series([text], dtype=pl.String)
        case PrimitiveType("timestamp") if not _ZONED.search(text.strip()):
            return None
        case PrimitiveType("float"):
            type_ = PrimitiveType("double")
        case DecimalType() if _decimal(text) is None:
            return None
        case PrimitiveType(name) if name not in _COMPARED:
            return None
        case ArrayType() | MapType() | StructType():
            return None
    try:
        found = typed(pl.Series([text.strip()], dtype=pl.String), type_)
    except pl.exceptions.PolarsError:
        return None
    value = found[0]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    # a decimal of more digits than the column has was rounded: another value
    return None if isinstance(type_, DecimalType) and value != _decimal(text) else found


def _decimal(text: str) -> Decimal | None:
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def comparison(path: Path, type_: DataType, op: str, text: str | None, *, negated: bool) -> Node:
    """`path op text`, or its opposite: comparisons with null are never true, their opposites neither."""
    if text is None:
        return Constant(None)
    value = value_of(text, type_)
    return Unknown() if value is None else Comparison(path, _NEGATED[op] if negated else op, value)


def null_test(path: Path, *, negated: bool) -> Node:
    """Whether a column is null."""
    return IsNull(path, negated)


def membership(path: Path, type_: DataType, texts: list[str | None], *, negated: bool) -> Node:
    """Whether a column is one of several values. With a null among them no row is outside the list."""
    if negated and None in texts:
        return Constant(None)
    values = [value_of(text, type_) for text in texts if text is not None]
    if any(value is None for value in values):
        return Unknown()
    known = [value for value in values if value is not None]
    return IsIn(path, pl.concat(known), negated) if known else Constant(None)


MIRRORED: Mapping[str, str] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The same comparison with its sides exchanged."""


def joined(kind: type[And] | type[Or], parts: Sequence[Node]) -> Node:
    """Several conditions as one, the tree as flat as can be: it is walked recursively."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return kind(joined(kind, parts[:middle]), joined(kind, parts[middle:]))
