"""Arrays as files hold them to the types a schema asks for: only conversions that keep every value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.errors import UnsupportedTableError
from lakeview.variant import is_variant, variant_text

_KINDS = (
    ("integer", pa.types.is_integer),
    ("float", pa.types.is_float32),
    ("double", pa.types.is_float64),
    ("boolean", pa.types.is_boolean),
    ("date", pa.types.is_date),
    ("timestamp", pa.types.is_timestamp),
    ("decimal", pa.types.is_decimal),
    ("text", lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)),
    ("bytes", lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t)),
    ("time", pa.types.is_time),
)

# what a schema may ask for -> what files may hold: old files of widened columns, and texts that a writer left untyped
_SOURCES = {
    "integer": {"integer"},
    "float": {"float"},
    "double": {"double", "float", "integer"},
    "boolean": {"boolean"},
    "date": {"date"},
    "timestamp": {"timestamp", "date"},
    "decimal": {"decimal", "integer"},
    "text": {"text", "bytes"},
    "bytes": {"bytes", "text"},
    "time": {"time"},
}


def conformed(array: pa.Array, target: pa.DataType, column: str, declared: str) -> pa.Array:
    """The array in the target type: numbers widened, timestamps in its unit, struct fields by name.

    Field names inside structs may differ in case, as column names may. UnsupportedTableError where the types have
    nothing to do with each other, or a value would not survive; it names the column and its `declared` type.
    A variant becomes JSON text, at any level; CorruptTableError (kind corrupt-variant) if it is none.
    """
    if "variant" in declared:
        array = _with_text(array, target, column)
    if array.type == target:
        return array
    named = _named(array.type, target)
    if not _fits(named, target):
        raise _refused(column, array.type, declared, "one does not become the other")
    if named != array.type:
        array = array.view(named)
    try:
        return array.cast(options=pc.CastOptions(target_type=target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _refused(column, array.type, declared, str(error).splitlines()[0]) from error


def _refused(column: str, found: pa.DataType, declared: str, why: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"column {column} is {found} in a file and {declared} in the schema, and values do not fit: {why}",
        fix="read the other columns, or a version from before the type changed",
        place=column,
        kind="unsupported-cast",
    )


def _with_text(array: pa.Array, target: pa.DataType, column: str) -> pa.Array:
    """The array with JSON text where a file has a variant and the target text."""
    if is_variant(array.type) and pa.types.is_string(target):
        return variant_text(array, column)
    if array.offset:  # parts put together anew have to begin where their whole does
        array = pa.concat_arrays([array, array.slice(0, 0)])
    mask = array.is_null()
    if pa.types.is_struct(array.type) and pa.types.is_struct(target):
        wanted = {f.name.casefold(): f.type for f in target} | {f.name: f.type for f in target}
        parts = [
            part if (type_ := wanted.get(f.name, wanted.get(f.name.casefold()))) is None
            else _with_text(part, type_, f"{column}.{f.name}")
            for f, part in zip(array.type, array.flatten(), strict=True)
        ]  # fmt: skip
        fields = [f.with_type(part.type) for f, part in zip(array.type, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pa.types.is_list(array.type) and pa.types.is_list(target):
        values = _with_text(array.values, target.value_type, column)
        return pa.ListArray.from_arrays(
            array.offsets, values, type=pa.list_(array.type.value_field.with_type(values.type)), mask=mask
        )
    if pa.types.is_map(array.type) and pa.types.is_map(target):
        items = _with_text(array.items, target.item_type, column)
        type_ = pa.map_(array.type.key_field, array.type.item_field.with_type(items.type))
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=type_, mask=mask)
    return array


def _named(found: pa.DataType, target: pa.DataType) -> pa.DataType:
    """The file's type with struct fields spelled as the target spells them."""
    if pa.types.is_struct(found) and pa.types.is_struct(target):
        wanted = {f.name.casefold(): f for f in target}
        exact = {f.name for f in target}
        held = {f.name for f in found}
        fields = []
        for f in found:
            match = wanted.get(f.name.casefold())
            if match is None or (f.name not in exact and match.name in held):
                fields.append(f)
                continue
            name = f.name if f.name in exact else match.name
            fields.append(pa.field(name, _named(f.type, target.field(name).type), f.nullable))
        return pa.struct(fields)
    if pa.types.is_list(found) and pa.types.is_list(target):
        return pa.list_(found.value_field.with_type(_named(found.value_type, target.value_type)))
    if pa.types.is_map(found) and pa.types.is_map(target):
        key = found.key_field.with_type(_named(found.key_type, target.key_type))
        item = found.item_field.with_type(_named(found.item_type, target.item_type))
        return pa.map_(key, item, found.keys_sorted)
    return found


def _fits(found: pa.DataType, target: pa.DataType) -> bool:
    if found == target or pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        return _fits(found.value_type, target)
    if pa.types.is_struct(target):
        held = {f.name: f.type for f in found} if pa.types.is_struct(found) else None
        return held is not None and all(f.name not in held or _fits(held[f.name], f.type) for f in target)
    if pa.types.is_list(target):
        return (pa.types.is_list(found) or pa.types.is_large_list(found)) and _fits(found.value_type, target.value_type)
    if pa.types.is_map(target):
        return (
            pa.types.is_map(found)
            and _fits(found.key_type, target.key_type)
            and _fits(found.item_type, target.item_type)
        )
    return _kind(found) in _SOURCES.get(_kind(target), set())


def _kind(type_: pa.DataType) -> str:
    return next((kind for kind, test in _KINDS if test(type_)), str(type_))
