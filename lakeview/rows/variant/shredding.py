"""Variant columns as Parquet files hold them to JSON text, a whole array at a time (Parquet, Variant Shredding)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model import limits
from lakeview.model.errors import CorruptTableError
from lakeview.rows.arrays import plain
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

_Result = TypeVar("_Result")
_Form = TypeVar("_Form", str, bytes)


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
    texts = _Texts(plain(array), column).rows("null")
    return pa.array(texts, pa.string())


def children_of(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct by name ("must be accessed by name, not by position"), null where the struct is."""
    return {f.name: plain(child) for f, child in zip(array.type, array.flatten(), strict=True)}


class ShreddedColumn(ABC, Generic[_Form]):
    """One array of variants in another form. Slots of nested arrays know which row they belong to: the row has the
    names."""

    def __init__(self, array: pa.StructArray, column: str) -> None:
        self._array = array
        self._column = column
        self._budget = Budget()
        self._cache: dict[bytes, Names] = {}
        self._metadata: list[bytes | None] = []

    def rows(self, null: _Form) -> list[_Form | None]:
        """The form of each row, None for a null one; `null`: that of the variant null."""
        children = children_of(self._array)
        metadata = children.get("metadata")
        if metadata is None or not is_binary(metadata.type) or len(children) == 1:
            raise self._shredding_error(f"it is {self._array.type} in a file, not a struct of metadata and values")
        self._metadata = metadata.to_pylist()
        forms = self._group(children, range(len(self._array)), 0)
        valid = self._array.is_valid().to_pylist()
        # "If a Variant is missing in a context where a value is required, readers must return a Variant null"
        return [None if not there else null if form is None else form for there, form in zip(valid, forms, strict=True)]

    @abstractmethod
    def _whole(self, row: int, value: bytes) -> _Form:
        """A value that is not shredded."""

    @abstractmethod
    def _encoder(self, typed_values: pa.Array) -> tuple[Callable[..., _Form] | None, pa.Array]:
        """The form of values of a type that is neither struct nor list, None where no variant is of it, and the column
        as plain Python values can be taken from it."""

    @abstractmethod
    def _field(self, name: str) -> Callable[[_Form], _Form]:
        """How a value becomes the part of an object that its field of this name is."""

    @abstractmethod
    def _other_fields(self, row: int, value: bytes) -> list[tuple[bytes, _Form]] | None:
        """The name and part of each field of a value; None if it is no object."""

    @abstractmethod
    def _object(self, row: int, parts: list[tuple[bytes, _Form]]) -> _Form:
        """An object of these fields, in the order of their names."""

    @abstractmethod
    def _list(self, row: int, elements: Sequence[_Form | None]) -> _Form:
        """A list of these elements; one that is missing is the variant null."""

    def _group(self, children: dict[str, pa.Array], rows: Sequence[int], depth: int) -> list[_Form | None]:
        """A `value` and `typed_value` pair: None where both are null, so where the value is missing."""
        if depth > limits.VARIANT_DEPTH:
            raise self._shredding_error(f"it is shredded deeper than {limits.VARIANT_DEPTH} levels")
        value, typed_values = children.get("value"), children.get("typed_value")
        if value is not None and not is_binary(value.type):
            raise self._shredding_error(f"a value in it is {value.type} in a file, binary was expected")
        values: list[bytes | None] = [None] * len(rows) if value is None else value.to_pylist()
        if typed_values is None or typed_values.null_count == len(typed_values):
            return [None if v is None else self._whole(row, v) for v, row in zip(values, rows, strict=True)]
        if pa.types.is_struct(typed_values.type):
            forms = self._objects(typed_values, values, rows, depth)
        elif pa.types.is_list(typed_values.type):
            forms = self._lists(typed_values, rows, depth)
        else:
            forms = self._primitives(typed_values)
        # "If engines choose to read in such cases, then the typed_value column must be used"
        return [
            form if form is not None or v is None else self._whole(row, v)
            for form, v, row in zip(forms, values, rows, strict=True)
        ]

    def _primitives(self, typed_values: pa.Array) -> list[_Form | None]:
        encode, values = self._encoder(typed_values)
        if encode is None:
            raise self._shredding_error(f"a value in it is shredded as {typed_values.type}, which no variant is")
        return [None if value is None else encode(value) for value in values.to_pylist()]

    def _objects(
        self, typed_values: pa.StructArray, values: list[bytes | None], rows: Sequence[int], depth: int
    ) -> list[_Form | None]:
        """Shredded objects, together with what `value` holds of them."""
        fields: list[tuple[bytes, list[_Form | None]]] = []
        for name, field in children_of(typed_values).items():
            if not pa.types.is_struct(field.type):
                raise self._shredding_error(f"its shredded field {name} is {field.type}, a struct was expected")
            as_field = self._field(name)
            forms = self._group(children_of(field), rows, depth + 1)
            fields.append((name.encode(), [None if form is None else as_field(form) for form in forms]))
        fields.sort(key=lambda entry: entry[0])
        own: set[bytes] = {name for name, _ in fields}
        objects: list[_Form | None] = []
        for i, there in enumerate(typed_values.is_valid().to_pylist()):
            if not there:
                objects.append(None)
                continue
            parts: list[tuple[bytes, _Form]] = [(name, part) for name, of in fields if (part := of[i]) is not None]
            rest = values[i]
            others = None if rest is None else self._other_fields(rows[i], rest)
            if others:
                # a name on both sides breaks the rules of writers: the column is what other readers show
                parts += [other for other in others if other[0] not in own]
                parts.sort(key=lambda entry: entry[0])
            self._spend(rows[i], sum(len(part) for _, part in parts))
            objects.append(self._object(rows[i], parts))
        return objects

    def _lists(self, typed_values: pa.ListArray, rows: Sequence[int], depth: int) -> list[_Form | None]:
        element = plain(pc.list_flatten(typed_values))
        if not pa.types.is_struct(element.type):
            raise self._shredding_error(f"elements of it are {element.type}, a struct was expected")
        parents = [rows[i] for i in pc.list_parent_indices(typed_values).to_pylist()]
        forms = self._group(children_of(element), parents, depth + 1)
        lists: list[_Form | None] = []
        at = 0
        for row, length in zip(rows, pc.list_value_length(typed_values).to_pylist(), strict=True):
            if length is None:
                lists.append(None)
                continue
            elements = forms[at : at + length]
            self._spend(row, sum(1 if form is None else len(form) for form in elements))
            lists.append(self._list(row, elements))
            at += length
        return lists

    def _at(self, row: int, decode: Callable[[bytes, Names, Budget], _Result], value: bytes) -> _Result:
        try:
            return decode(value, self._names(row), self._budget)
        except BrokenVariantError as error:
            raise self._shredding_error(f"row {row} of a batch is no variant: {error}") from error

    def _names(self, row: int) -> Names:
        metadata = self._metadata[row]
        if metadata is None:
            raise BrokenVariantError("its metadata is null")
        names = self._cache.get(metadata)
        if names is None:
            if len(self._cache) >= _KEPT_NAMES:
                self._cache.clear()
            names = self._cache[metadata] = Names(metadata)
        return names

    def _spend(self, row: int, size: int) -> None:
        try:
            self._budget.spend(size)
        except BrokenVariantError as error:
            raise self._shredding_error(f"row {row} of a batch is too large: {error}") from error

    def _shredding_error(self, why: str) -> CorruptTableError:
        return shredding_error(self._column, why)


def shredding_error(column: str, why: str) -> CorruptTableError:
    """The error for a column whose bytes are no variants."""
    return CorruptTableError(
        f"variant column {column} cannot be read: {why}",
        fix="restore the file from a backup, or read the other columns",
        place=column,
        kind="corrupt-variant",
    )


class _Texts(ShreddedColumn[str]):
    """Variants as JSON text."""

    def _whole(self, row: int, value: bytes) -> str:
        return self._at(row, value_text, value)

    def _encoder(self, typed_values: pa.Array) -> tuple[Callable[..., str] | None, pa.Array]:
        t, type_ = pa.types, typed_values.type
        if t.is_timestamp(type_):
            digits, has_zone = _DIGITS[type_.unit], type_.tz is not None
            return lambda ticks: literals.timestamp(ticks, digits, has_zone), typed_values.view(pa.int64())
        if t.is_date32(type_):
            return literals.date, typed_values.view(pa.int32())
        if t.is_time(type_):
            return literals.time, typed_values.cast(pa.time64("us"), safe=False).view(pa.int64())
        if t.is_decimal(type_):
            return lambda value: format(value, "f"), typed_values
        if t.is_fixed_size_binary(type_) and type_.byte_width == 16:
            return literals.uuid_text, typed_values
        simple: list[tuple[Callable[[pa.DataType], bool], Callable[..., str]]] = [
            (t.is_boolean, lambda value: "true" if value else "false"),
            (t.is_integer, str),
            (t.is_float32, literals.single),
            (t.is_float64, literals.double),
            (is_text, literals.quote),
            (is_binary, literals.binary),
        ]
        return next((text for test, text in simple if test(type_)), None), typed_values

    def _field(self, name: str) -> Callable[[str], str]:
        key = f"{literals.quote(name)}:"
        return lambda text: key + text

    def _other_fields(self, row: int, value: bytes) -> list[tuple[bytes, str]] | None:
        return self._at(row, object_fields, value)

    def _object(self, row: int, parts: list[tuple[bytes, str]]) -> str:  # noqa: ARG002 (text needs no names)
        return object_text(parts)

    def _list(self, row: int, elements: Sequence[str | None]) -> str:  # noqa: ARG002
        return f"[{','.join('null' if text is None else text for text in elements)}]"


def _storage_type(type_: pa.DataType) -> pa.DataType:
    return _storage_type(type_.storage_type) if isinstance(type_, pa.BaseExtensionType) else type_


def is_binary(type_: pa.DataType) -> bool:
    """Whether values are bytes of any length."""
    t = pa.types
    return bool(t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_))


def is_text(type_: pa.DataType) -> bool:
    """Whether values are texts."""
    t = pa.types
    return bool(t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_))
