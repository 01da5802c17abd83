"""A metaData action and the column mapping in force to the table's schema (delta protocol, Column Mapping)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lakeview.delta.data.schemas import broken_schema, parse_schema
from lakeview.delta.features import column_mapping_mode
from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.table_metadata import TableProtocol
from lakeview.model.type_tree import nodes

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


def as_before(schema: Schema, mapping: Schema) -> Schema:
    """Columns with the physical names and ids that they have in files from before column mapping ended.

    `mapping`: the schema with which it ended; from then on the names of columns are those in files. A column that came
    later is in none of the older files, whatever the names in these.
    """
    return Schema(_fields_before(schema, mapping))


def _fields_before(fields: Iterable[Field], mapping: Iterable[Field]) -> tuple[Field, ...]:
    by_name = {f.name: f for f in mapping}
    return tuple(_field_before(f, by_name.get(f.stored_name)) for f in fields)


def _field_before(field: Field, mapping: Field | None) -> Field:
    if mapping is None:
        return replace(field, id=None, physical_name=_NOWHERE)
    return replace(field, type=_type_before(field.type, mapping.type), id=mapping.id, physical_name=mapping.stored_name)


def _type_before(type_: DataType, mapping: DataType) -> DataType:
    match type_, mapping:
        case StructType(fields), StructType(others):
            return StructType(_fields_before(fields, others))
        case ArrayType(element), ArrayType(other):
            return replace(type_, element=_type_before(element, other))
        case MapType(key, value), MapType(other_key, other_value):
            return replace(type_, key=_type_before(key, other_key), value=_type_before(value, other_value))
    return type_
