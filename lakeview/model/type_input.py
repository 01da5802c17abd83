"""Types, schemas and names of columns as users give them, to those of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from lakeview.model.data_types import VOID, ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes

if TYPE_CHECKING:
    import pyarrow as pa

TypeInput: TypeAlias = "DataType | pa.DataType | pl.DataType | type[pl.DataType] | str"
SchemaInput: TypeAlias = "Schema | pa.Schema | Mapping[str, TypeInput]"

_OTHER_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte", "real": "float"}
"""What SQL calls types, to the names that Delta has for them."""


_DECIMAL = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)")


def schema_of(schema: SchemaInput) -> Schema:
    """The schema that a user gave: lakeview's, Arrow's, polars', or names to types as `type_of` takes them.

    InvalidRequestError for what is no schema or no type, UnsupportedTableError for a type that no table can hold.
    """
    import pyarrow as pa

    if isinstance(schema, Schema):
        return Schema(tuple(replace(field, type=type_of(field.type, field.name)) for field in schema))
    if isinstance(schema, Mapping) and all(isinstance(name, str) for name in schema):
        return Schema(tuple(Field(name, type_of(type_, name)) for name, type_ in schema.items()))
    if isinstance(schema, pa.Schema):
        return Schema(
            tuple(
                replace(f, type=_complete(f, t)) for f, t in zip(Schema.from_arrow(schema), schema.types, strict=True)
            )
        )
    raise InvalidRequestError(
        f"a {type(schema).__name__} is given as schema{', whose names are no texts' * isinstance(schema, Mapping)}",
        fix='give names and types, as {"id": pl.Int64}, or the schema of rows: frame.schema',
        place="schema",
    )


def type_of(type_: TypeInput, column: str) -> DataType:
    """The type that a user gave a column: lakeview's, Arrow's, polars', or a name (`long`, `decimal(10,2)`, `bigint`).

    InvalidRequestError for what is no type, UnsupportedTableError for a type that no table can hold.
    """
    import pyarrow as pa

    from lakeview.model.arrow_types import ARROW_TYPES, field_from_arrow

    match type_:
        case PrimitiveType() | DecimalType() | ArrayType() | MapType() | StructType():
            return type_
        case pa.DataType():
            return _complete(field_from_arrow(pa.field(column, type_)), type_)
        case str():
            name = _OTHER_NAMES.get(type_.lower(), type_.lower())
            if name in ARROW_TYPES:
                return PrimitiveType(name)
            if (digits := _DECIMAL.fullmatch(name)) and int(digits[2]) <= int(digits[1]) <= 38 and int(digits[1]):
                return DecimalType(int(digits[1]), int(digits[2]))
            raise _no_type(column, type_)
        case None:
            raise _no_type(column, type_)
    try:
        if _holds_objects(pl.Schema({"column": type_}, check_dtypes=False)["column"]):
            raise _no_type(column, type_)  # polars panics at a list of them, or ends the process
        (arrow_type,) = pl.DataFrame(schema={"column": type_}).to_arrow().schema.types
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise _no_type(column, type_) from error
    return _complete(field_from_arrow(pa.field(column, arrow_type)), type_)


def _holds_objects(dtype: Any) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_objects(field.dtype) for field in dtype.fields)
    return (
        _holds_objects(dtype.inner)
        if isinstance(dtype, pl.List | pl.Array)
        else dtype in (pl.Object, pl.Unknown, object)
    )


def _is_of_nothing(type_: DataType) -> bool:
    match type_:
        case ArrayType(inner) | MapType(_, inner):
            return inner == VOID
        case StructType(fields):
            return all(field.type == VOID for field in fields)
    return False


def _complete(field: Field, type_: Any) -> DataType:
    """The type of a field. InvalidRequestError for a list or struct of nothing, such as pl.List: no row is written."""
    for node in nodes([field]):
        if _is_of_nothing(node.type):
            raise InvalidRequestError(
                f"column {field.name} is given {type_!r}, where {node.name} is {node.type}: the type of what it holds "
                "is not known",
                fix="give the types within, as pl.List(pl.Int64) or pl.Struct({'a': pl.Int64})",
                place=field.name,
            )
    return field.type


def _no_type(column: str, value: Any) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {column} is given {value!r}, which is no type that rows can have",
        fix="give a type of polars or Arrow, such as pl.Int64, or a name: long, string, decimal(10,2)",
        place=column,
    )
