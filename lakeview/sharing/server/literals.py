"""Constants of a recipient's filter to values of the column they are compared with, and columns by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation

import polars as pl

from lakeview.delta.sharing import typed
from lakeview.model.schema import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, Schema, StructType
from lakeview.predicates.tree import Comparison, Constant, IsIn, Node, Or, Path, Unknown
from lakeview.sharing.server.budget import Budget

_COMPARED = frozenset(
    {"string", "long", "integer", "short", "byte", "double", "float", "boolean", "date", "timestamp", "timestamp_ntz"}
)
_COLLATIONS = "__COLLATIONS"
_INTEGERS = {
    "long": (1 << 63, pl.Int64()), "integer": (1 << 31, pl.Int32()), "short": (1 << 15, pl.Int16()),
    "byte": (1 << 7, pl.Int8()),
}  # fmt: skip
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_ZONED = re.compile(r"(?:[Zz]|[+-]\d\d:?\d\d)$")


class Columns:
    """The columns of a table that filters can name, in any case where only one fits, within a budget of time."""

    def __init__(self, schema: Schema, budget: Budget) -> None:
        self._schema = schema
        self._budget = budget

    @property
    def is_spent(self) -> bool:
        """True once the budget is used up."""
        return self._budget.is_spent

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

    def comparison(self, path: Path, type_: DataType, op: str, text: str | None) -> Node:
        """Returns `path op text`: null if that is null, Unknown if the text is no value of the column's type."""
        if text is None:
            return Constant(None)
        value = values_of([text], type_)
        return Unknown() if value is None else Comparison(path, op, value)

    def membership(self, path: Path, type_: DataType, texts: list[str | None]) -> Node:
        """Returns a test for a list of values. With a null in the list no row is certainly outside it."""
        values = values_of([text for text in texts if text is not None], type_)
        if values is None:
            return Unknown()
        return Or(IsIn(path, values), Constant(None)) if None in texts else IsIn(path, values)


def values_of(texts: Sequence[str], type_: DataType) -> pl.Series | None:
    """Values of the column's declared type, from texts; None if one of them is none of that type, or not certainly one.

    A timestamp without a zone is one in the client's zone, which is unknown; 32-bit floats are compared as 64-bit ones.
    """
    match type_:
        case PrimitiveType("string"):
            return pl.Series(texts, dtype=pl.String)
        case PrimitiveType(name) if name in _INTEGERS and all(_INTEGER.fullmatch(text) for text in texts):
            bits, dtype = _INTEGERS[name]
            numbers = [int(text) for text in texts]  # ten times as fast as a cast of each one
            return pl.Series(numbers, dtype=dtype) if all(-(bits) <= n < bits for n in numbers) else None
        case PrimitiveType("date") if all(_DATE.fullmatch(text) for text in texts):
            days = [_day(text) for text in texts]
            return None if None in days else pl.Series(days, dtype=pl.Date)
        case PrimitiveType("timestamp") if not all(_ZONED.search(text.strip()) for text in texts):
            return None
        case PrimitiveType("float"):
            type_ = PrimitiveType("double")
        case DecimalType() if any(_decimal(text) is None for text in texts):
            return None
        case PrimitiveType(name) if name not in _COMPARED:
            return None
        case ArrayType() | MapType() | StructType():
            return None
    try:
        found = typed(pl.Series([text.strip() for text in texts], dtype=pl.String), type_)
    except pl.exceptions.PolarsError:
        return None
    if found.null_count() or (found.dtype.is_float() and not found.is_finite().all()):
        return None
    # a decimal of more digits than the column has was rounded: another value
    if isinstance(type_, DecimalType) and found.to_list() != [_decimal(text) for text in texts]:
        return None
    return found


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _decimal(text: str) -> Decimal | None:
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None
