"""Variant columns as Parquet files hold them to JSON text, a whole array at a time (Parquet, Variant Shredding)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model import limits
from lakeview.model.errors import CorruptTableError
from lakeview.rows.variant import literals
from lakeview.rows.variant.encoding import (
    BrokenVariantError,
    Budget,
    Names,
    object_fields,
    object_text,
    value_text,
)

_KEPT_NAMES = 256
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}

Texts = list[str | None]

_Decoded = TypeVar("_Decoded")


def is_variant(type_: pa.DataType) -> bool:
    """Whether a file's column can be a variant: a struct of `metadata` with `value`, `typed_value` or both."""
    type_ = _storage_type(type_)
    if not pa.types.is_struct(type_):
        return False
    names = {f.name for f in type_}
    return "metadata" in names and names <= {"metadata", "value", "typed_value"} and len(names) > 1


def variant_text(array: pa.StructArray, column: str = "variant") -> pa.StringArray:
    """The variants of an array as JSON text; a null struct is null, the variant null is the text `null`.

    Decimals are exact; dates, times and timestamps are ISO 8601 texts, an instant ends in Z; binary is base64; NaN and
    the infinities are words; fields of an object stand in the order of their names. CorruptTableError (kind
    corrupt-variant) names the column and the row of the array, counted from 0, that is no variant.
    """
    found = _Column(_plain(array), column).texts()
    return pa.array(found, pa.string())


def children_of(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct by name ("must be accessed by name, not by position"), null where the struct is."""
    return {f.name: _plain(child) for f, child in zip(array.type, array.flatten(), strict=True)}


class _Column:
    """One array of variants. Slots of nested arrays know which row they belong to: the row has the names."""

    def __init__(self, array: pa.StructArray, column: str) -> None:
        self._array = array
        self._column = column
        self._budget = Budget()
        self._cache: dict[bytes, Names] = {}
        self._metadata: list[bytes | None] = []

    def texts(self) -> Texts:
        """JSON text for each row, None for a null one."""
        children = children_of(self._array)
        metadata = children.get("metadata")
        if metadata is None or not _is_binary(metadata.type) or len(children) == 1:
            raise self._broken(f"it is {self._array.type} in a file, not a struct of metadata and values")
        self._metadata = metadata.to_pylist()
        texts = self._group(children, range(len(self._array)), 0)
        valid = self._array.is_valid().to_pylist()
        # "If a Variant is missing in a context where a value is required, readers must return a Variant null"
        return [
            None if not there else "null" if text is None else text for there, text in zip(valid, texts, strict=True)
        ]

    def _group(self, children: dict[str, pa.Array], rows: Sequence[int], depth: int) -> Texts:
        """A `value` and `typed_value` pair: None where both are null, so where the value is missing."""
        if depth > limits.VARIANT_DEPTH:
            raise self._broken(f"it is shredded deeper than {limits.VARIANT_DEPTH} levels")
        value, typed = children.get("value"), children.get("typed_value")
        if value is not None and not _is_binary(value.type):
            raise self._broken(f"a value in it is {value.type} in a file, binary was expected")
        values: list[bytes | None] = [None] * len(rows) if value is None else value.to_pylist()
        if typed is None or typed.null_count == len(typed):
            return [None if v is None else self._at(row, value_text, v) for v, row in zip(values, rows, strict=True)]
        if pa.types.is_struct(typed.type):
            texts = self._objects(typed, values, rows, depth)
        elif pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
            texts = self._lists(typed, rows, depth)
        else:
            texts = self._primitives(typed)
        # "If engines choose to read in such cases, then the typed_value column must be used"
        return [
            text if text is not None or v is None else self._at(row, value_text, v)
            for text, v, row in zip(texts, values, rows, strict=True)
        ]

    def _objects(self, typed: pa.StructArray, values: list[bytes | None], rows: Sequence[int], depth: int) -> Texts:
        """Shredded objects, together with what `value` holds of them."""
        shredded: list[tuple[bytes, str, Texts]] = []
        for name, field in children_of(typed).items():
            if not pa.types.is_struct(field.type):
                raise self._broken(f"its shredded field {name} is {field.type}, a struct was expected")
            key = f"{literals.quoted(name)}:"
            shredded.append((name.encode(), key, self._group(children_of(field), rows, depth + 1)))
        shredded.sort(key=lambda entry: entry[0])
        own = {name for name, _, _ in shredded}
        found: Texts = []
        for i, there in enumerate(typed.is_valid().to_pylist()):
            if not there:
                found.append(None)
                continue
            pairs = [(name, key + text) for name, key, texts in shredded if (text := texts[i]) is not None]
            rest = values[i]
            if rest is not None and (others := self._at(rows[i], object_fields, rest)):
                # a name on both sides breaks the rules of writers: the column is what other readers show
                pairs = sorted([*pairs, *(pair for pair in others if pair[0] not in own)])
            self._spend(rows[i], sum(len(text) for _, text in pairs))
            found.append(object_text(pairs))
        return found

    def _lists(self, typed: pa.ListArray, rows: Sequence[int], depth: int) -> Texts:
        element = _plain(pc.list_flatten(typed))
        if not pa.types.is_struct(element.type):
            raise self._broken(f"elements of it are {element.type}, a struct was expected")
        parents = [rows[i] for i in pc.list_parent_indices(typed).to_pylist()]
        texts = self._group(children_of(element), parents, depth + 1)
        found: Texts = []
        at = 0
        for row, length in zip(rows, pc.list_value_length(typed).to_pylist(), strict=True):
            if length is None:
                found.append(None)
                continue
            parts = ["null" if text is None else text for text in texts[at : at + length]]
            self._spend(row, sum(map(len, parts)))
            found.append(f"[{','.join(parts)}]")
            at += length
        return found

    def _primitives(self, typed: pa.Array) -> Texts:
        text, values = _literal(typed)
        if text is None:
            raise self._broken(f"a value in it is shredded as {typed.type}, which no variant is")
        return [None if v is None else text(v) for v in values.to_pylist()]

    def _at(self, row: int, decode: Callable[[bytes, Names, Budget], _Decoded], value: bytes) -> _Decoded:
        metadata = self._metadata[row]
        try:
            if metadata is None:
                raise BrokenVariantError("its metadata is null")
            names = self._cache.get(metadata)
            if names is None:
                if len(self._cache) >= _KEPT_NAMES:
                    self._cache.clear()
                names = self._cache[metadata] = Names(metadata)
            return decode(value, names, self._budget)
        except BrokenVariantError as error:
            raise self._broken(f"row {row} of a batch is no variant: {error}") from error

    def _spend(self, row: int, size: int) -> None:
        try:
            self._budget.spend(size)
        except BrokenVariantError as error:
            raise self._broken(f"row {row} of a batch is too large: {error}") from error

    def _broken(self, why: str) -> CorruptTableError:
        return CorruptTableError(
            f"variant column {self._column} cannot be read: {why}",
            fix="restore the file from a backup, or read the other columns",
            place=self._column,
            kind="corrupt-variant",
        )


def _literal(typed: pa.Array) -> tuple[Callable[..., str] | None, pa.Array]:
    """How values of a shredded column become text, and the column as plain Python values can be taken from it."""
    t, type_ = pa.types, typed.type
    if t.is_timestamp(type_):
        digits, zoned = _DIGITS[type_.unit], type_.tz is not None
        return lambda ticks: literals.timestamp(ticks, digits, zoned), typed.view(pa.int64())
    if t.is_date32(type_):
        return literals.date, typed.view(pa.int32())
    if t.is_time(type_):
        return literals.time, typed.cast(pa.time64("us"), safe=False).view(pa.int64())
    if t.is_decimal(type_):
        return lambda value: format(value, "f"), typed
    if t.is_fixed_size_binary(type_) and type_.byte_width == 16:
        return literals.uuid_text, typed
    simple: list[tuple[Callable[[pa.DataType], bool], Callable[..., str]]] = [
        (t.is_boolean, lambda value: "true" if value else "false"),
        (t.is_integer, str),
        (t.is_float32, literals.single),
        (t.is_float64, literals.double),
        (_is_text, literals.quoted),
        (_is_binary, literals.binary),
    ]
    return next((text for test, text in simple if test(type_)), None), typed


def _plain(array: pa.Array) -> pa.Array:
    """Without the wrappings a file may ask for: extension types, dictionaries."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _storage_type(type_: pa.DataType) -> pa.DataType:
    return _storage_type(type_.storage_type) if isinstance(type_, pa.BaseExtensionType) else type_


def _is_binary(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_))


def _is_text(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_))
