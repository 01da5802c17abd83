"""The types of a table to Arrow, and Arrow's to those of a table."""

from collections.abc import Callable, Mapping

import pyarrow as pa  # noqa: TID253 (loaded by what reads or writes rows alone)
from pyarrow import types as t  # noqa: TID253 (as above)

from lakeview.model.data_types import (
    VARIANT,
    VARIANT_BINARIES,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    named_type,
)
from lakeview.model.errors import UnsupportedTableError

STORED_VARIANT = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
"""A variant that is not shredded, as data files hold it."""

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "time": pa.time64("us"),
    "uuid": pa.binary(16),
    "fixed": pa.binary(),
    "void": pa.null(),
    VARIANT.name: pa.string(),
    VARIANT_BINARIES.name: STORED_VARIANT,
}

_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (t.is_string, "string"), (t.is_large_string, "string"), (t.is_string_view, "string"),
    (t.is_int64, "long"), (t.is_int32, "integer"), (t.is_int16, "short"), (t.is_int8, "byte"),
    (t.is_uint32, "long"), (t.is_uint16, "integer"), (t.is_uint8, "short"),
    (t.is_float32, "float"), (t.is_float64, "double"), (t.is_boolean, "boolean"),
    (t.is_binary, "binary"), (t.is_large_binary, "binary"), (t.is_binary_view, "binary"),
    (t.is_fixed_size_binary, "binary"),
    (t.is_date, "date"), (t.is_null, "void"),
)  # fmt: skip
"""Arrow's types without parts to the names of ours that hold all their values."""


def arrow_field(f: Field) -> pa.Field:
    """The Arrow field of a column or a field of a struct; UnsupportedTableError as `arrow_type`."""
    return pa.field(f.name, arrow_type(f.type), f.nullable or _is_always_null(f.type))


def _is_always_null(type_: DataType) -> bool:
    """Whether every value is null, also where the schema says that none is: a map has no null keys, and so no value."""
    return type_ == VOID or (isinstance(type_, MapType) and type_.key == VOID)


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type of a column; UnsupportedTableError names a type that has none."""
    match type_:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            return pa.list_(pa.field("element", arrow_type(element), contains_null or _is_always_null(element)))
        case MapType(key, value, value_contains_null) if key != VOID:
            values = pa.field("value", arrow_type(value), value_contains_null or _is_always_null(value))
            return pa.map_(arrow_type(key), values)
        case MapType():
            return pa.null()
        case StructType(fields):
            return pa.struct([arrow_field(f) for f in fields])
        case PrimitiveType(name):
            return named_type(ARROW_TYPES, name)


def field_from_arrow(f: pa.Field) -> Field:
    """The column of an Arrow field; UnsupportedTableError names one of a type that no table can hold."""
    return Field(f.name, _type_from_arrow(f.type, f.name), f.nullable)


def _type_from_arrow(arrow: pa.DataType, name: str) -> DataType:
    if (word := next((word for test, word in _NAMES if test(arrow)), None)) is not None:
        return PrimitiveType(word)
    if t.is_timestamp(arrow):
        return PrimitiveType("timestamp" if arrow.tz is not None else "timestamp_ntz")
    if t.is_decimal(arrow):
        return DecimalType(arrow.precision, arrow.scale)
    if t.is_dictionary(arrow):
        return _type_from_arrow(arrow.value_type, name)
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow):
        return ArrayType(_type_from_arrow(arrow.value_type, name), arrow.value_field.nullable)
    if t.is_map(arrow):
        return MapType(
            _type_from_arrow(arrow.key_type, name), _type_from_arrow(arrow.item_type, name), arrow.item_field.nullable
        )
    if t.is_struct(arrow):
        return StructType(tuple(field_from_arrow(f) for f in arrow))
    raise UnsupportedTableError(
        f"column {name} has the Arrow type {arrow}, which a table cannot hold",
        fix="cast the column before writing",
        place=name,
        kind="unsupported-type",
    )
