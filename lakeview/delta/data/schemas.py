"""schemaString to Schema, and back (delta protocol, Schema Serialization Format)."""

import json
import re
from typing import Any

import msgspec

from lakeview.model.data_types import (
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from lakeview.model.errors import CorruptTableError
from lakeview.model.schema import Schema

_DECIMAL = re.compile(r"^decimal\s*(?:\(\s*(\d{1,4})\s*,\s*(-?\d{1,4})\s*\))?$")
_ID = "delta.columnMapping.id"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"


def parse_schema(text: str | None, *, is_mapped: bool = False, max_depth: int = 64) -> Schema:
    """The schema in a metaData action. CorruptTableError says what in it is no schema.

    `is_mapped`: column mapping is on, so ids and physical names in the metadata count; otherwise they are ignored.
    A type name that no specification knows stays as it is: the schema can be shown, rows of it cannot be read.
    """
    if text is None:  # old tests and engines write metaData without a schema
        return Schema()
    try:
        value = msgspec.json.decode(text)  # refuses lone surrogates, which no frame can hold
    except (msgspec.DecodeError, RecursionError) as error:
        raise broken_schema(f"schemaString is not JSON: {error}") from error
    type_ = _type(value, is_mapped, max_depth, "schemaString")
    if not isinstance(type_, StructType):
        raise broken_schema(f"schemaString is {type_}, a struct was expected")
    return Schema(type_.fields)


def broken_schema(message: str) -> CorruptTableError:
    """The error for a schema that a metaData action holds."""
    return CorruptTableError(
        message,
        fix="the metaData action is broken; restore its commit from a backup",
        place="metaData.schemaString",
        kind="corrupt-schema",
    )


def _type(value: Any, is_mapped: bool, depth: int, place: str) -> DataType:
    if depth <= 0:
        raise broken_schema(f"{place} is nested too deeply")
    if isinstance(value, str):
        return primitive_type(value, place)
    match value:
        case {"type": "struct", "fields": list(fields)}:
            columns = tuple(_field(f, is_mapped, depth - 1, place) for f in fields)
            names = [f.name for f in columns]
            if len(set(names)) != len(names):
                twice = next(n for n in names if names.count(n) > 1)
                raise broken_schema(f"{place} has two columns called {twice}")
            return StructType(columns)
        case {"type": "array", "elementType": element}:
            return ArrayType(_type(element, is_mapped, depth - 1, f"{place}.element"), _flag(value, "containsNull"))
        case {"type": "map", "keyType": key, "valueType": of}:
            return MapType(
                _type(key, is_mapped, depth - 1, f"{place}.key"),
                _type(of, is_mapped, depth - 1, f"{place}.value"),
                _flag(value, "valueContainsNull"),
            )
        case {"type": "udt", "sqlType": sql_type}:
            return _type(sql_type, is_mapped, depth - 1, place)
        case {"type": "variant"}:  # the form of the protocol's example, Variant Type
            return VARIANT
    raise broken_schema(f"{place} holds {json.dumps(value)[:80]}, which is no type")


def _flag(value: dict[str, Any], name: str) -> bool:
    return value.get(name) is not False


def primitive_type(name: str, place: str) -> DataType:
    """A type without parts, by its name in a schemaString. CorruptTableError for a decimal that cannot be."""
    if match := _DECIMAL.match(name):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise broken_schema(f"{place} is {name}; precision and scale go to 38")
        return DecimalType(precision, scale)
    return PrimitiveType(name)


def _field(value: Any, is_mapped: bool, depth: int, place: str) -> Field:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "type" not in value:
        raise broken_schema(f"{place} holds {json.dumps(value)[:80]}, which is no field")
    name = value["name"]
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    field_id, physical = (metadata.get(_ID), metadata.get(_PHYSICAL_NAME)) if is_mapped else (None, None)
    return Field(
        name,
        _type(value["type"], is_mapped, depth, f"{place}.{name}"),
        _flag(value, "nullable"),
        metadata,
        field_id if isinstance(field_id, int) else None,
        physical if isinstance(physical, str) else None,
    )


def schema_text(schema: Schema) -> str:
    """A schema as schemaString."""
    return json.dumps(_struct(schema.fields), ensure_ascii=False, separators=(",", ":"))


def _struct(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": f.name, "type": _json(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
            for f in fields
        ],
    }


def _json(type_: DataType) -> Any:
    match type_:
        case StructType(fields):
            return _struct(fields)
        case ArrayType(element, contains_null):
            return {"type": "array", "elementType": _json(element), "containsNull": contains_null}
        case MapType(key, value, contains_null):
            return {"type": "map", "keyType": _json(key), "valueType": _json(value), "valueContainsNull": contains_null}
    return str(type_)
