"""Columns as a data file holds them to a table's schema, by field id at every level (iceberg spec, Column Projection).

What a file lacks is, in this order: the identity partition value of its manifest entry, the column that the name
mapping finds, the initial default, null.
A null struct stays null, whatever defaults its fields have. Rows to be written take their write defaults likewise
(Default values).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.iceberg.metadata.single_values import INITIAL_DEFAULT, NotAValueError, default_value
from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.rows.casts import conform_array
from lakeview.rows.field_places import FIELD_ID

_ID_KEYS = (FIELD_ID, b"iceberg.id")


def field_id(field: pa.Field) -> int | None:
    """The id a file records for a field, as Parquet or ORC write it."""
    for key in _ID_KEYS:
        number = (field.metadata or {}).get(key, b"")
        if number.isdigit():
            return int(number)
    return None


def has_ids(fields: Sequence[pa.Field]) -> bool:
    """Whether a file records an id for any of its fields, at any level."""
    return any(field_id(f) is not None or has_ids(children(f.type)) for f in fields)


def children(type_: pa.DataType) -> list[pa.Field]:
    """The fields inside a type: of structs, elements of lists, keys and values of maps."""
    return [type_.field(i) for i in range(type_.num_fields)]


def with_mapping(fields: Sequence[pa.Field], mapping: Any, manifest_ids: Collection[int] = ()) -> list[pa.Field]:
    """The same fields with the ids that a name mapping gives them, at every level; the names in it are literal.

    `mapping`: the list of the property `schema.name-mapping.default`; an object in its place is taken for its fields.
    `manifest_ids`: of columns whose values the manifest has, which come before those of a column found by its name.
    """
    entries = mapping.get("fields", []) if isinstance(mapping, dict) else mapping
    by_name: dict[str, Mapping[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else []:
        names = entry.get("names") if isinstance(entry, dict) else None
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str):
                by_name.setdefault(name, entry)
    with_ids = []
    for f in fields:
        entry = by_name.get(f.name, {})
        number = entry.get("field-id")
        is_mapped = isinstance(number, int) and 0 <= number < 2**31 and number not in manifest_ids
        metadata = {FIELD_ID: str(number).encode()} if is_mapped else {}
        type_ = _type_with_mapping(f.type, entry.get("fields") or [], manifest_ids)
        with_ids.append(f.with_type(type_).with_metadata(metadata))
    return with_ids


def _type_with_mapping(type_: pa.DataType, mapping: Any, manifest_ids: Collection[int]) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct(with_mapping(list(type_), mapping, manifest_ids))
    if pa.types.is_map(type_):
        (key,) = with_mapping([type_.key_field.with_name("key")], mapping)
        (value,) = with_mapping([type_.item_field.with_name("value")], mapping)
        return pa.map_(key, value)
    if _is_list(type_):
        (element,) = with_mapping([type_.value_field.with_name("element")], mapping)
        return pa.list_(element)
    return type_


def absent_fields(file_fields: Sequence[pa.Field], target_fields: Sequence[Field]) -> Iterator[Field]:
    """The fields, outside structs and inside, that a file does not hold."""
    for field, place in zip(target_fields, _places(file_fields, target_fields), strict=True):
        if place is None:
            yield field
        elif isinstance(field.type, StructType):
            yield from absent_fields(children(file_fields[place].type), field.type.fields)


class Projection:
    """A table's columns made of one file's. `constants`: identity partition values by source field id."""

    def __init__(
        self, file_fields: Sequence[pa.Field], target_fields: Sequence[Field], constants: Mapping[int, Any]
    ) -> None:
        self._constants = constants
        self._file_fields = list(file_fields)
        self._fields = list(target_fields)
        self._places = _places(self._file_fields, self._fields)

    @property
    def read(self) -> list[int]:
        """Which of the file's fields are needed."""
        return sorted({i for i in self._places if i is not None})

    def of(self, arrays: Mapping[int, pa.Array], rows: int, target: pa.Schema) -> pa.RecordBatch:
        """The wanted columns of a batch. `arrays`: the file's columns by their place in it."""
        columns = []
        for field, place, type_ in zip(self._fields, self._places, target.types, strict=True):
            if place is None:
                columns.append(self._missing(field, type_, rows))
            else:
                array = self._array(arrays[place], self._file_fields[place], field.type, type_, field.name)
                columns.append(_of_its_length(array, field))
        return (
            pa.RecordBatch.from_arrays(columns, schema=target)
            if columns
            else pa.RecordBatch.from_arrays([pa.nulls(rows)], ["_"])
        )

    def _missing(self, field: Field, target: pa.DataType, rows: int) -> pa.Array:
        if field.id is not None and field.id in self._constants:
            return _constant_array(self._constants[field.id], target, rows, field)
        return default_array(field, target, rows)

    def _array(
        self, array: pa.Array, file_field: pa.Field, target_fields: DataType, target: pa.DataType, place: str
    ) -> pa.Array:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        type_ = array.type
        if isinstance(target_fields, StructType) and pa.types.is_struct(type_):
            return self._struct(array, children(file_field.type), target_fields, target, place)
        if isinstance(target_fields, ArrayType) and _is_list(type_):
            (inner,) = children(file_field.type)
            array = _plain_list(array)
            values = self._array(array.values, inner, target_fields.element, target.value_type, f"{place}.element")
            return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, children=[values])
        if isinstance(target_fields, MapType) and (pairs := _pairs(file_field.type)) is not None:
            array = _plain_list(array)
            keys, items = _entries(array)
            pair = [
                self._array(keys, pairs[0], target_fields.key, target.key_type, f"{place}.key"),
                self._array(items, pairs[1], target_fields.value, target.item_type, f"{place}.value"),
            ]
            entries = pa.StructArray.from_arrays(pair, fields=[target.key_field, target.item_field])
            return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, children=[entries])
        if pa.types.is_time(target) and pa.types.is_int64(type_):  # ORC has no type of times (Appendix A)
            array = array.cast(pa.time64("us"))
            array.validate(full=True)
        return conform_array(array, Field(place, target_fields), target)

    def _struct(
        self,
        array: pa.StructArray,
        file_fields: Sequence[pa.Field],
        target_fields: StructType,
        target: pa.DataType,
        place: str,
    ) -> pa.Array:
        parts = []
        for field, index, type_ in zip(
            target_fields.fields, _places(file_fields, target_fields.fields), list(target), strict=True
        ):
            if index is None:
                parts.append(self._missing(field, type_.type, len(array)))
            else:
                own = array.field(index), file_fields[index], field.type, type_.type, f"{place}.{field.name}"
                parts.append(_of_its_length(self._array(*own), field))
        return (
            pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())
            if parts
            else conform_array(array, Field(place, target_fields), target)
        )


def _places(file_fields: Sequence[pa.Field], target_fields: Sequence[Field]) -> list[int | None]:
    ids: dict[int, int] = {}
    for i, f in enumerate(file_fields):
        number = field_id(f)
        if number is None:
            continue
        if number in ids:
            raise pa.ArrowInvalid(f"it holds two columns with the field id {number}")
        ids[number] = i
    return [None if f.id is None else ids.get(f.id) for f in target_fields]


def _constant_array(value: Any, target: pa.DataType, rows: int, field: Field) -> pa.Array:
    try:
        return value_array(value, target, rows)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedTableError(
            f"column {field.name} has the value {value!r} for whole files, which is no {field.type}",
            fix="read the other columns",
            place=field.name,
            kind="unsupported-cast",
        ) from error


def _of_its_length(array: pa.Array, field: Field) -> pa.Array:
    """The array itself; ArrowInvalid where a fixed value has another length ("should be checked by the adapter": files
    of some formats keep fixed values as bytes of any length)."""
    length = field.metadata.get("length")
    if length is not None and pc.any(pc.not_equal(pc.binary_length(array), length)).as_py():
        raise pa.ArrowInvalid(f"column {field.name} is fixed[{length}], and a value has another length")
    return array


def _is_list(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_list(type_) or t.is_large_list(type_) or t.is_fixed_size_list(type_) or t.is_list_view(type_))


def _pairs(type_: pa.DataType) -> list[pa.Field] | None:
    """Key and value fields of a map, or of the list of entries that Avro has for keys that are no text."""
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if _is_list(type_) and pa.types.is_struct(type_.value_type) and type_.value_type.num_fields == 2:
        return children(type_.value_type)
    return None


def _entries(array: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_map(array.type):
        return iter((array.keys, array.items))
    return iter(array.values.flatten())


def _plain_list(array: pa.Array) -> pa.Array:
    """A list or map with 32-bit offsets that begins where its buffers begin."""
    if not pa.types.is_map(array.type) and not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def default_array(field: Field, target: pa.DataType, rows: int, name: str = INITIAL_DEFAULT) -> pa.Array:
    """The default of a column as an array of nullable `target`, null where the schema records none. `name`: which of
    the two, `initial-default` or `write-default`.

    CorruptTableError ("invalid-metadata") for a default that is none of its column's type.
    """
    default = field.metadata.get(name)
    if default is None:
        return pa.nulls(rows, target)
    try:
        return value_array(default_value(default, field, name), target, rows)
    except (NotAValueError, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CorruptTableError(
            f"the {name.replace('-', ' ')} of column {field.name} cannot be understood: {error}",
            fix="have the table's schema corrected by the engine that owns it",
            place=field.name,
            kind="invalid-metadata",
        ) from error


def value_array(value: Any, target: pa.DataType, rows: int) -> pa.Array:
    """An array of one value for each row; times beyond Python's own may be whole numbers in their unit.

    Raises what Arrow raises for a value that is none of the type.
    """
    if not rows:  # pyarrow repeats lists, maps and structs once at least
        return pa.nulls(0, target)
    if pa.types.is_timestamp(target) and isinstance(value, int):
        return pa.repeat(pa.scalar(value, pa.int64()).cast(target), rows)
    return pa.repeat(pa.scalar(value, type=target), rows)
