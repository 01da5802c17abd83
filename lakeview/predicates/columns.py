"""The columns that a condition over recorded types may name, and its constants: texts to values of a column's type."""

import re
from collections.abc import Callable, Sequence

import polars as pl

from lakeview.model.data_types import DataType, DecimalType, PrimitiveType, StructType
from lakeview.model.schema import Schema
from lakeview.predicates.tree import Comparison, Constant, IsIn, Node, Or, Path, Unknown

TypeTexts = Callable[[pl.Series, DataType], pl.Series]
"""Texts to values of a type, null for a text that is none: how a reader types partition values."""

_COLLATIONS = "__COLLATIONS"
_INTEGER = r"-?[0-9]{1,19}"
_CONSTANTS = {
    "string": r"(?s:.*)", "boolean": r".*", "float": r".*", "double": r".*", "timestamp_ntz": r".*",
    "long": _INTEGER, "integer": _INTEGER, "short": _INTEGER, "byte": _INTEGER, "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "timestamp": r".*(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})",
}  # fmt: skip
"""What a constant of each type looks like. A timestamp without a zone is one in the zone of the client, which is
unknown; types that are not here are not compared."""


class Columns:
    """The columns of a table, by names in any case where only one fits.

    `is_spent`: whether the time for reading conditions is used up, so that the rest of them is Unknown.
    """

    def __init__(self, schema: Schema, type_texts: TypeTexts, is_spent: Callable[[], bool]) -> None:
        self._schema = schema
        self._type_texts = type_texts
        self.is_spent = is_spent

    def find(self, parts: Sequence[str]) -> tuple[Path, DataType] | None:
        """Returns the path and type of a leaf reached through structs; None if none there can be compared."""
        fields = self._schema.fields
        type_: DataType = StructType(fields)
        path: Path = ()
        for part in parts:
            matches = [f for f in fields if f.name == part] or [f for f in fields if f.name.lower() == part.lower()]
            if len(matches) != 1 or _COLLATIONS in matches[0].metadata:  # a collation has another order than ours
                return None
            path, type_ = (*path, matches[0].name), matches[0].type
            fields = type_.fields if isinstance(type_, StructType) else ()
        return None if isinstance(type_, StructType) else (path, type_)

    def comparison(self, path: Path, type_: DataType, op: str, text: str | None) -> Node:
        """Returns `path op text`: null if that is null, Unknown if the text is no value of the column's type."""
        if text is None:
            return Constant(None)
        value = self._values([text], type_)
        return Unknown() if value is None else Comparison(path, op, value)

    def membership(self, path: Path, type_: DataType, texts: Sequence[str | None]) -> Node:
        """Returns a test for a list of values. With a null in the list no row is certainly outside it."""
        values = self._values([text for text in texts if text is not None], type_)
        if values is None:
            return Unknown()
        return Or(IsIn(path, values), Constant(None)) if None in texts else IsIn(path, values)

    def _values(self, texts: Sequence[str], type_: DataType) -> pl.Series | None:
        """Values of a column's type; None if one of the texts is none of that type, or not certainly one."""
        pattern = _constant_pattern(type_)
        texts = texts if type_ == PrimitiveType("string") else [text.strip() for text in texts]
        if pattern is None or not all(re.fullmatch(pattern, text) for text in texts):
            return None
        if type_ == PrimitiveType("string"):
            return pl.Series(texts, dtype=pl.String)
        # 32-bit floats are compared as 64-bit ones
        values = self._type_texts(
            pl.Series(texts, dtype=pl.String), PrimitiveType("double") if type_ == PrimitiveType("float") else type_
        )
        return None if values.null_count() or (values.dtype.is_float() and not values.is_finite().all()) else values


def _constant_pattern(type_: DataType) -> str | None:
    match type_:
        case PrimitiveType(name):
            return _CONSTANTS.get(name)
        case DecimalType(precision, scale):
            # more digits than the column has would be rounded to another value
            return rf"-?0*[0-9]{{1,{max(precision - scale, 1)}}}(?:\.[0-9]{{0,{scale}}}0*)?"
    return None
