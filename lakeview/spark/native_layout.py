"""The footer of a Parquet file to a layout: the Spark schema that Spark's own reader gives the table's columns with;
and folder names to partition values, where its own reading of `name=value` gives those that the log has.

Spark reads a file differently from lakeview, or not at all, where a type needs more than a plain widening, where a
file has no field ids, and where names differ in case alone. Such a file has no layout: the Python source reads it.

"Directory names are not values": the log counts, and a folder may be called anything. Where each file's folders say
exactly what the log says, in a type whose text is read in one way, Spark's own partition columns cost nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import types as spark_types

from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.partition_texts import HIVE_NULL
from lakeview.model.schema import Schema
from lakeview.rows.field_places import Match, field_places
from lakeview.spark.types import PRIMITIVES, ddl

INT96_UNIT = "s"
"""The unit that INT96 timestamps are asked for in, so that they are known from all others: Parquet has no seconds."""

_INTEGERS: tuple[Callable[[pa.DataType], bool], ...] = (arrow.is_int8, arrow.is_int16, arrow.is_int32, arrow.is_int64)
_Test: TypeAlias = Callable[[pa.DataType], bool]


@dataclass(frozen=True)
class NativeLayout:
    """What Spark is to read from a file. `schema`: with the names that the file has; `columns`: for each column of the
    table its name there, None for one that the file lacks."""

    schema: spark_types.StructType
    columns: tuple[str | None, ...]

    @cached_property
    def key(self) -> tuple[str, tuple[str | None, ...]]:
        """Equal for equal layouts."""
        return self.schema.json(), self.columns


def native_layout(file_fields: Sequence[pa.Field], fields: Sequence[Field], match: Match) -> NativeLayout | None:
    """The layout of a file with these fields, read with INT96 in INT96_UNIT; None if Spark would not read it alike.

    ArrowInvalid if the file's fields cannot be told apart, or have no ids where they are found by id.
    """
    if not are_distinct(f.name for f in file_fields):
        return None
    spark_fields: list[spark_types.StructField] = []
    columns: list[str | None] = []
    for field, place in zip(fields, field_places(file_fields, fields, match), strict=True):
        if field.type == PrimitiveType("void") or place is None:
            columns.append(None)
            continue
        kind = _native_type(file_fields[place].type, field.type, match)
        if kind is None:
            return None
        spark_fields.append(spark_types.StructField(file_fields[place].name, kind))
        columns.append(file_fields[place].name)
    schema = spark_types.StructType(spark_fields)
    if not are_distinct(schema.names) or has_variables(schema):
        return None
    return NativeLayout(schema, tuple(columns))


def has_variables(schema: spark_types.StructType) -> bool:
    """Whether Spark would put the value of a setting or of the environment into SQL that has these names, quoted ones
    too: `${env:HOME}`."""
    return "${" in ddl(schema)


def _native_type(file_type: pa.DataType, column_type: DataType, match: Match) -> spark_types.DataType | None:
    """The Spark type to read values with, fields under the file's names; None if Spark would not read them alike."""
    if arrow.is_dictionary(file_type):  # what Arrow had in memory: the file has the values
        file_type = file_type.value_type
    match column_type:
        case StructType(fields) if arrow.is_struct(file_type):
            return _native_struct(list(file_type), fields, match)
        case ArrayType(element) if arrow.is_list(file_type) or arrow.is_large_list(file_type):
            inner = _native_type(file_type.value_type, element, match)
            return None if inner is None else spark_types.ArrayType(inner)
        case MapType(key, value) if arrow.is_map(file_type):
            native_key = _native_type(file_type.key_type, key, match)
            native_value = _native_type(file_type.item_type, value, match)
            return None if native_key is None or native_value is None else spark_types.MapType(native_key, native_value)
        case DecimalType(precision, scale) if _fits(file_type, precision, scale):
            return spark_types.DecimalType(precision, scale)
        case PrimitiveType(name) if any(test(file_type) for test in _STORED.get(name, ())):
            return PRIMITIVES[name]
    return None


def _fits(file_type: pa.DataType, precision: int, scale: int) -> bool:
    if not arrow.is_decimal128(file_type):
        return False
    return bool(file_type.scale <= scale and file_type.precision - file_type.scale <= precision - scale)


def _native_struct(
    file_fields: Sequence[pa.Field], fields: Sequence[Field], match: Match
) -> spark_types.StructType | None:
    """A struct whose missing fields have names that the file does not have, so that Spark makes them null."""
    names = [f.name for f in file_fields]
    places = field_places(file_fields, fields, match)
    if not are_distinct(names) or all(place is None for place in places):
        return None
    prefix = "_" * (max(map(len, names)) + 1)
    spark_fields: list[spark_types.StructField] = []
    for number, (field, place) in enumerate(zip(fields, places, strict=True)):
        if place is not None:
            kind = _native_type(file_fields[place].type, field.type, match)
            name = names[place]
        else:
            kind = None if field.metadata.get("initial-default") is not None else _spark_type(field.type)
            name = f"{prefix}{number}"
        if kind is None:
            return None
        spark_fields.append(spark_types.StructField(name, kind))
    return spark_types.StructType(spark_fields) if are_distinct(f.name for f in spark_fields) else None


def _spark_type(column_type: DataType) -> spark_types.DataType | None:
    """The type of a field that a file lacks; None for one that has parts, or that Parquet does not store."""
    match column_type:
        case DecimalType(precision, scale):
            return spark_types.DecimalType(precision, scale)
        case PrimitiveType(name) if name in _STORED:
            return PRIMITIVES[name]
    return None


def are_distinct(names: Iterable[str]) -> bool:
    """Whether names are told apart by Spark, which may ignore case."""
    lower_names = [name.lower() for name in names]
    return len(set(lower_names)) == len(lower_names)


def _is_instant(type_: pa.DataType) -> bool:
    """Microseconds and milliseconds in UTC, and INT96, which Spark reads as such."""
    if not arrow.is_timestamp(type_):
        return False
    return type_.unit == INT96_UNIT or (type_.tz is not None and type_.unit in ("us", "ms"))


_STORED: Mapping[str, tuple[_Test, ...]] = {
    "string": (arrow.is_string, arrow.is_large_string, arrow.is_string_view),
    "long": _INTEGERS,
    "integer": _INTEGERS[:3],
    "short": _INTEGERS[:2],
    "byte": _INTEGERS[:1],
    "float": (arrow.is_float32,),
    "double": (arrow.is_float64, arrow.is_float32, *_INTEGERS[:3]),
    "boolean": (arrow.is_boolean,),
    "binary": (arrow.is_binary, arrow.is_large_binary, arrow.is_binary_view, arrow.is_fixed_size_binary),
    "date": (arrow.is_date32,),
    "timestamp": (_is_instant,),
    "timestamp_ntz": (lambda type_: type_ in (pa.timestamp("us"), pa.timestamp("ms")),),
}
"""What a file may store for a column, so that Spark and lakeview read the same values: the type itself, and what it was
widened from. Other widenings (integers to decimals, dates to timestamps) are left to the Python source."""


_FOLDER = re.compile(r"([A-Za-z0-9_]+)=(.+)", re.DOTALL)
# Spark takes each escape for one character, so those of bytes beyond ASCII would become others.
_ESCAPE = re.compile(r"%([0-7][0-9A-Fa-f])")


def folder_values(path: str) -> dict[str, str] | None:
    """The text behind each name in the folders of a relative path; None if Spark would read other values from them."""
    values: dict[str, str] = {}
    for folder in path.split("/")[:-1]:
        match = _FOLDER.fullmatch(folder)
        if match is None or "%" in _ESCAPE.sub("", match[2]) or match[1].lower() in {name.lower() for name in values}:
            return None
        values[match[1]] = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), match[2])
    return values


def partition_fields(
    folders: Mapping[str, str], constants: Mapping[str, Any], schema: Schema
) -> list[spark_types.StructField] | None:
    """The partition columns that Spark is to read from folders, with the types of the table; None if a folder says
    anything else than the log. Columns that `schema` does not have are texts."""
    if folders.keys() != constants.keys():
        return None
    fields = []
    for name, text in folders.items():
        type_ = schema[name].type if name in schema else None
        if type_ is None:
            fields.append(spark_types.StructField(name, spark_types.StringType()))
        elif isinstance(type_, PrimitiveType) and text == _text(constants[name], type_):
            fields.append(spark_types.StructField(name, PRIMITIVES[type_.name]))
        else:
            return None
    return fields


def _text(value: Any, type_: PrimitiveType) -> str | None:
    """The one text that Spark reads as this value; None for a type or a value that has none."""
    if value is None:
        return HIVE_NULL if type_.name in ("string", "integer", "long", "date") else None
    match type_.name, value:
        case "string", str() if value != HIVE_NULL:
            return value
        case "integer" | "long", int():
            return str(value)
        case "date", date():
            return value.isoformat()
    return None
