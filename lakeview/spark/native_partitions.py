"""Folder names to partition values: whether Spark's own reading of `name=value` gives the values that the log has.

"Directory names are not values": the log counts, and a folder may be called anything. Where each file's folders say
exactly what the log says, in a type whose text is read in one way, Spark's own partition columns cost nothing.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from pyspark.sql import types as spark_types

from lakeview.model.data_types import PrimitiveType
from lakeview.model.schema import Schema
from lakeview.spark.types import PRIMITIVES

_NULL = "__HIVE_DEFAULT_PARTITION__"
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


def are_distinct(partitions: Sequence[spark_types.StructField], stored: Sequence[spark_types.StructField]) -> bool:
    """Whether Spark, which may ignore case, tells columns of folders from those of files."""
    names = [field.name.lower() for field in (*partitions, *stored)]
    return len(set(names)) == len(names)


def _text(value: Any, type_: PrimitiveType) -> str | None:
    """The one text that Spark reads as this value; None for a type or a value that has none."""
    if value is None:
        return _NULL if type_.name in ("string", "integer", "long", "date") else None
    match type_.name, value:
        case "string", str() if value != _NULL:
            return value
        case "integer" | "long", int():
            return str(value)
        case "date", date():
            return value.isoformat()
    return None
