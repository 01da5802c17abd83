"""Arrays as files hold them to the types a schema asks for: fields found by name or id, every value kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.errors import UnsupportedTableError
from lakeview.schema import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.variant import is_variant, variant_text

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


def located(found: Sequence[pa.Field], wanted: Sequence[Field], match: Match = "name") -> list[int | None]:
    """Where in a file, or in one of its structs, each field lies; None for one that is not there.

    By name: exactly, else ignoring case ("unique ignoring case"). A physical name that column mapping made up is only
    matched exactly. By id: the Parquet field id; a column of the format's own has none and goes by its name.
    ArrowInvalid for one that is there twice, and for fields without ids ("readers must refuse to read that file or
    return nulls for each column": nulls would pass for data).
    """
    if match == "id":
        return _by_id(found, wanted)
    exact = {f.name: i for i, f in enumerate(found)}
    folded: dict[str, int] = {}
    for i, f in enumerate(found):
        folded.setdefault(f.name.casefold(), i)
    held = Counter(f.name for f in found)
    places = []
    for field in wanted:
        name = field.physical_name or field.name
        place = exact.get(name)
        if place is None and name == field.name:
            place = folded.get(name.casefold())
        if place is not None and held[found[place].name] > 1:
            raise pa.ArrowInvalid(f"it holds {held[found[place].name]} columns called {found[place].name}")
        places.append(place)
    return places


def _by_id(found: Sequence[pa.Field], wanted: Sequence[Field]) -> list[int | None]:
    ids: dict[int, int] = {}
    for i, f in enumerate(found):
        number = (f.metadata or {}).get(b"PARQUET:field_id", b"")
        if not number.isdigit():
            continue
        if int(number) in ids:
            raise pa.ArrowInvalid(f"it holds two columns with the field id {int(number)}")
        ids[int(number)] = i
    if found and not ids and any(f.id is not None for f in wanted):
        raise pa.ArrowInvalid("it has no field ids, by which column mapping finds its columns")
    names = {f.name: i for i, f in enumerate(found)}
    return [names.get(f.physical_name or f.name) if f.id is None else ids.get(f.id) for f in wanted]


def conformed(array: pa.Array, wanted: Field, target: pa.DataType, match: Match = "name") -> pa.Array:
    """The array as `target`, the Arrow type of the field: numbers widened, timestamps in its unit, fields of structs
    found at every level, one that is missing null, JSON text for a variant.

    UnsupportedTableError where the types have nothing to do with each other, or a value would not survive; it names
    the column and its declared type. CorruptTableError for a variant that is none.
    """
    return _conformed(array, wanted.type, target, wanted.name, match)


def _conformed(array: pa.Array, wanted: DataType, target: pa.DataType, place: str, match: Match) -> pa.Array:
    array = _plain(array)
    found = array.type
    if pa.types.is_null(found) or pa.types.is_null(target):
        return pa.nulls(len(array), target)
    if wanted == PrimitiveType("variant") and is_variant(found):
        return variant_text(array, place)
    if isinstance(wanted, StructType) and pa.types.is_struct(found):
        return _struct(array, wanted, target, place, match)
    if isinstance(wanted, ArrayType) and pa.types.is_list(found):
        array = _whole(array)
        values = _conformed(array.values, wanted.element, target.value_type, f"{place}.element", match)
        return _rebuilt(array, target, values)
    if isinstance(wanted, MapType) and pa.types.is_map(found):
        array = _whole(array)
        keys = _conformed(array.keys, wanted.key, target.key_type, f"{place}.key", match)
        items = _conformed(array.items, wanted.value, target.item_type, f"{place}.value", match)
        return _rebuilt(
            array, target, pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        )
    if _kind(found) not in _SOURCES.get(_kind(target), ()) or wanted == PrimitiveType("variant"):
        raise _refused(place, found, wanted, "one does not become the other")
    return _cast(array, wanted, target, place)


def _struct(array: pa.StructArray, wanted: StructType, target: pa.DataType, place: str, match: Match) -> pa.Array:
    if not wanted.fields:
        array = _whole(array)
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], array.null_count)
    parts = []
    # null where the struct is: what lies below a null struct is nobody's value, and a variant there may be none
    held = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    places = located(list(array.type), wanted.fields, match)
    for field, index, type_ in zip(wanted.fields, places, (f.type for f in target), strict=True):
        if index is None:
            parts.append(pa.nulls(len(array), type_))
        else:
            parts.append(_conformed(held[index], field.type, type_, f"{place}.{field.name}", match))
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())


def _cast(array: pa.Array, wanted: DataType, target: pa.DataType, place: str) -> pa.Array:
    if array.type == target:
        return array
    try:
        if isinstance(wanted, DecimalType) and pa.types.is_integer(array.type):
            # Arrow asks for room for every value of the type; here only the values there are have to fit
            digits = min(_MOST_DIGITS, _LONG_DIGITS + 1 + wanted.scale)
            array = array.cast(pa.decimal128(digits, wanted.scale))
        return array.cast(options=pc.CastOptions(target_type=target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _refused(place, array.type, wanted, str(error).splitlines()[0]) from error


def _plain(array: pa.Array) -> pa.Array:
    """Without the wrappings a file may ask for: extension types, dictionaries, other kinds of lists."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    found = array.type
    if pa.types.is_dictionary(found):
        return array.dictionary_decode()
    if pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found) or pa.types.is_list_view(found):
        return array.cast(pa.list_(found.value_field))
    return array


def _whole(array: pa.Array) -> pa.Array:
    """The same values, not a part of a longer array: buffers and children begin where it begins."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def _rebuilt(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map with another child, its nulls and offsets as they were."""
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, children=[child])


def _refused(column: str, found: pa.DataType, declared: DataType, why: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"column {column} is {found} in a file and {declared} in the schema, and values do not fit: {why}",
        fix="read the other columns, or a version from before the type changed",
        place=column,
        kind="unsupported-cast",
    )


def _kind(type_: pa.DataType) -> str:
    return next((kind for kind, test in _KINDS if test(type_)), str(type_))
