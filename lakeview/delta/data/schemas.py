"""schemaString to Schema, and back (delta protocol, Schema Serialization Format), with the column mapping in force
(Column Mapping)."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from lakeview.delta.features import column_mapping_mode
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
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.table_metadata import TableProtocol
from lakeview.model.type_tree import nodes

_DECIMAL = re.compile(r"^decimal\s*(?:\(\s*(\d{1,4})\s*,\s*(-?\d{1,4})\s*\))?$")
_ID = "delta.columnMapping.id"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"
"""Key of the ids that elements, keys and values have, by their paths (delta protocol, Iceberg Compatibility V2)."""


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


def broken_schema(message: str, place: str = "metaData.schemaString") -> CorruptTableError:
    """The error for a schema, or partition columns, that a metaData action holds."""
    return CorruptTableError(
        message,
        fix="the metaData action is broken; restore its commit from a backup",
        place=place,
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


def mapping_ids(field: Field) -> list[int]:
    """The ids that the metadata of a field gives to it, and to the elements, keys and values below it."""
    below = field.metadata.get(NESTED_IDS)
    ids = [field.metadata.get(_ID), *(below.values() if isinstance(below, dict) else ())]
    return [number for number in ids if type(number) is int]


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


Path = tuple[str, ...]

_NOWHERE = "\0"
"""The physical name of a column that no file has."""


def table_schema(
    text: str | None, protocol: TableProtocol, properties: Mapping[str, str], *, max_depth: int = 64
) -> Schema:
    """The schema of a metaData action: with ids and physical names if column mapping is in force, else without.

    CorruptTableError (kind corrupt-schema) names a field that lacks what the mode asks for, or two that share it.
    """
    mode = column_mapping_mode(protocol, properties)
    schema = parse_schema(text, is_mapped=mode != "none", max_depth=max_depth)
    if mode != "none":
        _check(schema, mode)
    return schema


def _check(schema: Schema, mode: str) -> None:
    """Each field has a physical name that no sibling has; in id mode an id that no other field has."""
    ids: dict[int, str] = {}
    names: dict[tuple[Path, str], str] = {}
    for path, _, field in nodes(schema):
        if field is None:
            continue
        column = leaf_name(path)
        # "every column - nested or leaf - is assigned a unique physical name, and a unique 32-bit integer as an id"
        if field.physical_name is None:
            raise broken_schema(f"column {column} has no physical name, which column mapping by {mode} asks for")
        other = names.setdefault((path[:-1], field.physical_name), column)
        if other != column:
            raise broken_schema(f"columns {other} and {column} have the same physical name {field.physical_name}")
        if mode == "id":
            if field.id is None:
                raise broken_schema(f"column {column} has no id, which column mapping by id asks for")
            if ids.setdefault(field.id, column) != column:
                raise broken_schema(f"columns {ids[field.id]} and {column} have the same id {field.id}")


def logical_name(schema: Schema, physical: Path) -> str | None:
    """The name (as `leaf_name` writes it) of the column at a path of physical names through structs, None if none."""
    fields: tuple[Field, ...] = schema.fields
    path: Path = ()
    for name in physical:
        field = next((f for f in fields if f.stored_name == name), None)
        if field is None:
            return None
        path = (*path, field.name)
        fields = field.type.fields if isinstance(field.type, StructType) else ()
    return leaf_name(path) if path else None


def as_before(schema: Schema, before: Schema, after: Schema) -> Schema:
    """Columns with the physical names and ids that they have in files from before column mapping ended, or began.

    `before`, `after`: the schemas on either side, whose columns are the same if their names are. One that is not in
    both is in none of the older files, whatever the names in these.
    """
    return Schema(_fields_before(schema, before, after))


def _fields_before(fields: Iterable[Field], before: Iterable[Field], after: Iterable[Field]) -> tuple[Field, ...]:
    by_name = {field.name: field for field in before}
    sides = {field.stored_name: (by_name[field.name], field) for field in after if field.name in by_name}
    return tuple(_field_before(field, sides.get(field.stored_name)) for field in fields)


def _field_before(field: Field, sides: tuple[Field, Field] | None) -> Field:
    if sides is None:
        return replace(field, id=None, physical_name=_NOWHERE)
    before, after = sides
    type_ = _type_before(field.type, before.type, after.type)
    return replace(field, type=type_, id=before.id, physical_name=before.stored_name)


def _type_before(type_: DataType, before: DataType, after: DataType) -> DataType:
    match type_, before, after:
        case StructType(fields), StructType(older), StructType(newer):
            return StructType(_fields_before(fields, older, newer))
        case ArrayType(element), ArrayType(older), ArrayType(newer):
            return replace(type_, element=_type_before(element, older, newer))
        case MapType(key, value), MapType(older_key, older), MapType(newer_key, newer):
            key = _type_before(key, older_key, newer_key)
            return replace(type_, key=key, value=_type_before(value, older, newer))
    return type_
