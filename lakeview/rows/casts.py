"""Arrays as files hold them to the types a schema asks for: fields found by name or id, every value kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model.data_types import (
    VARIANT,
    VARIANT_BINARIES,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from lakeview.model.errors import UnsupportedTableError
from lakeview.rows.arrays import plain, rebuilt, whole
from lakeview.rows.field_places import Match, field_places
from lakeview.rows.variant import is_variant, stored_variants, variant_text
from lakeview.rows.variant.shredding import is_binary, is_text

_KINDS = (
    ("integer", pa.types.is_integer),
    ("half", pa.types.is_float16),
    ("float", pa.types.is_float32),
    ("double", pa.types.is_float64),
    ("boolean", pa.types.is_boolean),
    ("date", pa.types.is_date),
    ("timestamp", pa.types.is_timestamp),
    ("decimal", pa.types.is_decimal),
    ("text", is_text),
    ("bytes", lambda t: is_binary(t) or pa.types.is_fixed_size_binary(t)),
    ("time", pa.types.is_time),
)

# what a schema may ask for -> what files may hold: old files of widened columns, and texts that a writer left untyped
_SOURCES = {
    "integer": {"integer"},
    "float": {"float", "half"},
    "double": {"double", "float", "half", "integer"},
    "boolean": {"boolean"},
    "date": {"date"},
    "timestamp": {"timestamp", "date"},
    "decimal": {"decimal", "integer"},
    "text": {"text", "bytes"},
    "bytes": {"bytes", "text"},
    "time": {"time"},
}
_LONG_DIGITS, _MOST_DIGITS = 20, 38


class ConformRules(Protocol):
    """What `conform` leaves open: reading a file is lenient about fields and types, writing to a table is not."""

    def fields(self, source_fields: Sequence[pa.Field], table_fields: Sequence[Field], path: str) -> list[int | None]:
        """Where each field of the table's struct at `path` lies in the source; None where it is null."""

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:
        """An array without parts, or one whose parts do not match the column's type, as `target`."""


class ValueMisfitError(Exception):
    """A value that the target type cannot hold, raised by `leaf`; `position` counts from 0, at the level of `path`."""

    def __init__(self, position: int, value: str, error: Exception) -> None:
        super().__init__(value)
        self.position = position
        self.value = value
        self.error = error


@dataclass(frozen=True, slots=True)
class _Lenient:
    """Reading: fields found by name or id, missing ones null, others left out; numbers widened."""

    match: Match = "name"

    def fields(self, source_fields: Sequence[pa.Field], table_fields: Sequence[Field], path: str) -> list[int | None]:  # noqa: ARG002 (needs no path to refuse)
        return field_places(source_fields, table_fields, self.match)

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:
        if pa.types.is_null(target):
            return pa.nulls(len(array), target)
        if column_type == VARIANT and is_variant(array.type):
            return variant_text(array, path)
        if column_type == VARIANT_BINARIES and is_variant(array.type):
            return stored_variants(array, path)
        if array.type == target and column_type != VARIANT:
            return array
        # a date is no moment: "promotion to timestamptz is not allowed", and Delta widens it to timestamp_ntz alone
        needs_zone = pa.types.is_date(array.type) and pa.types.is_timestamp(target) and target.tz is not None
        if needs_zone or kind_of(array.type) not in _SOURCES.get(kind_of(target), ()) or column_type == VARIANT:
            raise _cast_error(path, array.type, column_type, "one does not become the other")
        return _cast(array, column_type, target, path)


class SameRows:
    """Conforms rows to types that differ by names, ids and nullability alone."""

    def fields(self, source_fields: Sequence[pa.Field], table_fields: Sequence[Field], path: str) -> list[int | None]:  # noqa: ARG002 (every field has its place)
        return list(range(len(table_fields)))

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:  # noqa: ARG002 (as above)
        return array


def conform_array(array: pa.Array, field: Field, target: pa.DataType, match: Match = "name") -> pa.Array:
    """The array as `target`, the Arrow type of the field: numbers widened, timestamps in its unit, fields of structs
    found at every level, one that is missing null, JSON text for a variant, its bytes for VARIANT_BINARIES.

    UnsupportedTableError where the types have nothing to do with each other, or a value would not survive; it names
    the column and its declared type. CorruptTableError for a variant that is none.
    """
    return conform(array, field.type, target, field.name, _Lenient(match))


def conform(array: pa.Array, column_type: DataType, target: pa.DataType, path: str, rules: ConformRules) -> pa.Array:
    """The array as `target`, the Arrow type of `column_type`, level by level; `rules` decide about fields and leaves.

    `path` names the column, and below it fields, `element`, `key` and `value`. What lies below a null is left out.
    """
    array = plain(array)
    source_type = array.type
    if pa.types.is_null(source_type):
        return pa.nulls(len(array), target)
    if isinstance(column_type, StructType) and pa.types.is_struct(source_type):
        return _struct(array, column_type, target, path, rules)
    if isinstance(column_type, ArrayType) and pa.types.is_list(source_type):
        array = whole(array)
        try:
            values = conform(array.values, column_type.element, target.value_type, f"{path}.element", rules)
        except ValueMisfitError as misfit:
            raise _in_list(misfit, array) from misfit.error
        return rebuilt(array, target, values)
    if isinstance(column_type, MapType) and pa.types.is_map(source_type):
        array = whole(array)
        try:
            keys = conform(array.keys, column_type.key, target.key_type, f"{path}.key", rules)
            items = conform(array.items, column_type.value, target.item_type, f"{path}.value", rules)
        except ValueMisfitError as misfit:
            raise _in_list(misfit, array) from misfit.error
        return rebuilt(
            array, target, pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        )
    return rules.leaf(array, column_type, target, path)


def _in_list(misfit: ValueMisfitError, lists: pa.Array) -> ValueMisfitError:
    """The misfit of an element, at the position of the list or map that holds it."""
    ends = lists.offsets.slice(1)
    misfit.position = pc.sum(pc.cast(pc.less_equal(ends, misfit.position), pa.int64())).as_py() or 0
    return misfit


def _struct(
    array: pa.StructArray, column_type: StructType, target: pa.DataType, path: str, rules: ConformRules
) -> pa.Array:
    places = rules.fields(list(array.type), column_type.fields, path)
    if not column_type.fields:
        array = whole(array)
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], array.null_count)
    parts = []
    # null where the struct is: what lies below a null struct is nobody's value, and a variant there may be none
    children = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    for field, index, type_ in zip(column_type.fields, places, (f.type for f in target), strict=True):
        if index is None:
            parts.append(pa.nulls(len(array), type_))
        else:
            parts.append(conform(children[index], field.type, type_, f"{path}.{field.name}", rules))
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())


def _cast(array: pa.Array, column_type: DataType, target: pa.DataType, place: str) -> pa.Array:
    try:
        if isinstance(column_type, DecimalType) and pa.types.is_integer(array.type):
            array = integers_as_decimals(array, column_type.scale)
        return array.cast(options=pc.CastOptions(target_type=target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _cast_error(place, array.type, column_type, str(error).splitlines()[0]) from error


def integers_as_decimals(array: pa.Array, scale: int) -> pa.Array:
    """Whole numbers as decimals to be cast on. Arrow asks for room for every value of the type; here only the values
    there are have to fit."""
    return array.cast(pa.decimal128(min(_MOST_DIGITS, _LONG_DIGITS + scale), scale))


def _cast_error(column: str, file_type: pa.DataType, column_type: DataType, why: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"column {column} is {file_type} in a file and {column_type} in the schema, and values do not fit: {why}",
        fix="read the other columns, or a version from before the type changed",
        place=column,
        kind="unsupported-cast",
    )


def kind_of(type_: pa.DataType) -> str:
    """`integer`, `text`, `timestamp`, ...: the types that Arrow stores the same kind of value in."""
    return next((kind for kind, test in _KINDS if test(type_)), str(type_))
