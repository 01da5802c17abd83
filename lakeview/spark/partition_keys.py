"""Partition values to the names of folders that Spark's own writer makes, and back.

Hive's names, which Spark gives otherwise, have one spelling for null and for a text, are as long as the values, and
tell capital letters by their case alone, which not all file systems do.
"""

from collections.abc import Callable, Mapping, Sequence

import polars as pl
from pyspark.sql import Column
from pyspark.sql import functions as f

from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import polars_type

LONG_KEY = "lakeview: a partition value is too long to name a folder"
"""In the text of Spark's error, of a text of more than _KEY_BYTES."""

_KEY_BYTES = 100
"""Each is two characters of a name, and a file system has names of 255."""

_NULL, _VALUE = "n", "v"


def _text_key(value: Column) -> Column:
    value = value.cast("string")  # a collation would be the key's, too, which Spark refuses in names of folders
    too_long = f.raise_error(f.lit(LONG_KEY))
    key = f.when(f.octet_length(value) <= _KEY_BYTES, f.concat(f.lit(_VALUE), f.hex(value))).otherwise(too_long)
    # "An empty string for any type translates to a null partition value"  delta protocol, Partition Value Serialization
    return f.when(value.isNull() | (value == ""), f.lit(_NULL)).otherwise(key)


_NUMBERS: Mapping[str, Callable[[Column], Column]] = {
    **{name: lambda value: value for name in ("byte", "short", "integer", "long")},
    "boolean": lambda value: value.cast("int"),
    "date": f.unix_date,
    "timestamp": f.unix_micros,
}
"""The types of partition columns that have keys, besides texts, to the whole number that stands for a value."""


def has_key(field: Field) -> bool:
    """Whether the values of a partition column have keys."""
    return isinstance(field.type, PrimitiveType) and (field.type.name == "string" or field.type.name in _NUMBERS)


def key(value: Column, field: Field) -> Column:
    """The key of each value of a column that has keys. Spark's job fails with LONG_KEY where a text has none."""
    assert isinstance(field.type, PrimitiveType)
    if field.type.name == "string":
        return _text_key(value)
    number = _NUMBERS[field.type.name](value)
    return f.coalesce(f.concat(f.lit(_VALUE), number.cast("string")), f.lit(_NULL))


def values(keys: Sequence[str], field: Field) -> pl.Series:
    """The values of keys, a column of the field's name."""
    texts = [None if text == _NULL else text.removeprefix(_VALUE) for text in keys]
    if field.type == PrimitiveType("string"):
        return pl.Series(field.name, [None if t is None else bytes.fromhex(t).decode() for t in texts], pl.String())
    numbers = pl.Series(field.name, [None if t is None else int(t) for t in texts], pl.Int64())
    return numbers.cast(polars_type(field.type))
