"""Arrays as files hold them to the types a schema asks for: fields found by name or id, every value kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

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
from lakeview.rows.variant import is_variant, stored_variants, variant_text

Match = Literal["name", "id"]
"""How the fields of a schema are found in a file: by (physical) name, or by the field id that Parquet records."""

_KINDS = (
    ("integer", pa.types.is_integer),
    ("half", pa.types.is_float16),
    ("float", pa.types.is_float32),
    ("double", pa.types.is_float64),
    ("boolean", pa.types.is_boolean),
    ("date", pa.types.is_date),
    ("timestamp", pa.types.is_timestamp),
    ("decimal", pa.types.is_decimal),
    ("text", lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)),
    (
        "bytes",
        lambda t: (
            pa.types.is_binary(t)
            or pa.types.is_large_binary(t)
            or pa.types.is_fixed_size_binary(t)
            or pa.types.is_binary_view(t)
        ),
    ),
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
_LONG_DIGITS, _MOST_DIGITS = 19, 38


def located(file_fields: Sequence[pa.Field], table_fields: Sequence[Field], match: Match = "name") -> list[int | None]:
    """Where in a file, or in one of its structs, each field lies; None for one that is not there.

    By name: exactly, else ignoring case ("unique ignoring case"). A physical name that column mapping made up is only
    matched exactly. By id: the Parquet field id; a column of the format's own has none and goes by its name.
    ArrowInvalid for one that is there twice, and for fields without ids ("readers must refuse to read that file or
    return nulls for each column": nulls would pass for data).
    """
    if match == "id":
        return _by_id(file_fields, table_fields)
    exact = {f.name: i for i, f in enumerate(file_fields)}
    folded: dict[str, int] = {}
    for i, f in enumerate(file_fields):
        folded.setdefault(f.name.casefold(), i)
    name_counts = Counter(f.name for f in file_fields)
    folded_counts = Counter(name.casefold() for name in name_counts)
    places = []
    for field in table_fields:
        name = field.stored_name
        place = exact.get(name)
        if place is None and name == field.name:
            place = folded.get(name.casefold())
            if folded_counts[name.casefold()] > 1:
                raise pa.ArrowInvalid(f"it holds {folded_counts[name.casefold()]} columns called {name}, case aside")
        if place is not None and name_counts[file_fields[place].name] > 1:
            name = file_fields[place].name
            raise pa.ArrowInvalid(f"it holds {name_counts[name]} columns called {name}")
        places.append(place)
    return places


def _by_id(file_fields: Sequence[pa.Field], table_fields: Sequence[Field]) -> list[int | None]:
    ids: dict[int, int] = {}
    for i, f in enumerate(file_fields):
        number = (f.metadata or {}).get(b"PARQUET:field_id", b"")
        if not number.isdigit():
            continue
        if int(number) in ids:
            raise pa.ArrowInvalid(f"it holds two columns with the field id {int(number)}")
        ids[int(number)] = i
    if file_fields and not ids and any(f.id is not None for f in table_fields):
        raise pa.ArrowInvalid("it has no field ids, by which column mapping finds its columns")
    names = {f.name: i for i, f in enumerate(file_fields)}
    return [names.get(f.stored_name) if f.id is None else ids.get(f.id) for f in table_fields]


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
        return located(source_fields, table_fields, self.match)

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
            raise _refused(path, array.type, column_type, "one does not become the other")
        return _cast(array, column_type, target, path)


class SameRows:
    """Conforms rows to types that differ by names, ids and nullability alone."""

    def fields(self, source_fields: Sequence[pa.Field], table_fields: Sequence[Field], path: str) -> list[int | None]:  # noqa: ARG002 (every field has its place)
        return list(range(len(table_fields)))

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:  # noqa: ARG002 (as above)
        return array


def conformed(array: pa.Array, field: Field, target: pa.DataType, match: Match = "name") -> pa.Array:
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
    array = _plain(array)
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
        return _rebuilt(array, target, values)
    if isinstance(column_type, MapType) and pa.types.is_map(source_type):
        array = whole(array)
        try:
            keys = conform(array.keys, column_type.key, target.key_type, f"{path}.key", rules)
            items = conform(array.items, column_type.value, target.item_type, f"{path}.value", rules)
        except ValueMisfitError as misfit:
            raise _in_list(misfit, array) from misfit.error
        return _rebuilt(
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
            # Arrow asks for room for every value of the type; here only the values there are have to fit
            digits = min(_MOST_DIGITS, _LONG_DIGITS + 1 + column_type.scale)
            array = array.cast(pa.decimal128(digits, column_type.scale))
        return array.cast(options=pc.CastOptions(target_type=target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _refused(place, array.type, column_type, str(error).splitlines()[0]) from error


def _plain(array: pa.Array) -> pa.Array:
    """Without the wrappings a file may ask for: extension types, dictionaries, other kinds of lists."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    source_type = array.type
    if pa.types.is_dictionary(source_type):
        return array.dictionary_decode()
    if pa.types.is_list_view(source_type) or pa.types.is_large_list_view(source_type):
        return _list_of_views(array)
    if pa.types.is_large_list(source_type) or pa.types.is_fixed_size_list(source_type):
        return array.cast(pa.list_(source_type.value_field))
    return array


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with text and bytes in place of their views, which files of delta-rs ask for: Arrow (pyarrow 26.0)
    filters no views."""
    schema = pa.schema(map(_field_without_views, batch.schema), batch.schema.metadata)
    return batch if schema == batch.schema else batch.cast(schema)


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_type_without_views(field.type))


def _type_without_views(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_struct(type_):
        return pa.struct([_field_without_views(field) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_field_without_views(type_.value_field))
    if pa.types.is_large_list(type_):  # of polars, which delta-rs writes as it comes
        return pa.large_list(_field_without_views(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(_field_without_views(type_.key_field), _field_without_views(type_.item_field))
    return type_


def _list_of_views(array: pa.Array) -> pa.Array:
    """A list view as a list. Arrow's own cast (pyarrow 26.0) loses elements that follow a null."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]).cast(pa.int32())
    lists = pa.ListArray.from_arrays(ends, array.flatten(), type=pa.list_(array.type.value_field))
    return pc.if_else(array.is_valid(), lists, pa.scalar(None, lists.type)) if array.null_count else lists


def whole(array: pa.Array) -> pa.Array:
    """The same values, not a part of a longer array, and no more: buffers and children begin where it begins.

    Of lists and maps, children hold the elements of those that are not null, and no others.
    """
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        lengths = pc.subtract(array.offsets.slice(1), array.offsets.slice(0, len(array)))
        count = pc.sum(lengths.filter(array.is_valid()) if array.null_count else lengths).as_py() or 0
        if count != len(array.values):
            return array.cast(_type_without_views(array.type)).take(pa.arange(0, len(array)))
    return array


def _rebuilt(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map with another child, its nulls and offsets as they were."""
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, children=[child])


def _refused(column: str, file_type: pa.DataType, column_type: DataType, why: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"column {column} is {file_type} in a file and {column_type} in the schema, and values do not fit: {why}",
        fix="read the other columns, or a version from before the type changed",
        place=column,
        kind="unsupported-cast",
    )


def kind_of(type_: pa.DataType) -> str:
    """`integer`, `text`, `timestamp`, ...: the types that Arrow stores the same kind of value in."""
    return next((kind for kind, test in _KINDS if test(type_)), str(type_))
