"""Schemas that a table may have: what a new one holds, what may be added to one, and what rows add to it; and an id
and a physical name for each mapped column (today's protocol, Column Mapping)."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

from lakeview.delta.data.schemas import mapping_ids
from lakeview.model.data_types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import fields_below, map_fields, nodes
from lakeview.rows.conform import path_below

_TYPES = frozenset(
    {
        "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
        "timestamp_ntz", "void", "variant",
    }
)  # fmt: skip
"""Primitive types (delta protocol, Primitive Types) whose values this writer writes."""

_MOST_DIGITS = 38


def check_types(schema: Schema) -> None:
    """Refuses a schema whose rows are not written: a type that is none of Delta's, a map with keys that are, or hold,
    variants, or two fields of one name.

    UnsupportedTableError for a type, InvalidRequestError where names of one struct differ by case at most.
    """
    _check_names(schema.fields, "")
    for node in nodes(schema):
        path, type_ = node.name, node.type
        if isinstance(type_, StructType):
            _check_names(type_.fields, path)
        is_nested = isinstance(type_, StructType | ArrayType | MapType)
        writable = type_.name in _TYPES if isinstance(type_, PrimitiveType) else is_nested
        if isinstance(type_, MapType):
            writable = not any(below.type == VARIANT for below in nodes([Field("key", type_.key)]))
        if isinstance(type_, DecimalType):
            writable = 1 <= type_.precision <= _MOST_DIGITS and 0 <= type_.scale <= type_.precision
        if not writable:
            raise UnsupportedTableError(
                f"column {path} is {type_}, which is not written to Delta tables",
                fix="cast the column to a type that Delta has, or leave it out",
                place=path,
                kind="unsupported-type",
            )


def check_column_metadata(schema: Schema) -> None:
    """InvalidRequestError for a rule that the protocol does not allow its column: a variant that is generated or has a
    default (Variant Data Type, Default Columns), an identity column that never counts on (Identity Columns)."""
    for node in nodes(schema):
        metadata = {} if node.field is None else node.field.metadata
        default = str(metadata.get("CURRENT_DEFAULT", "NULL")).strip().upper()
        if node.type == VARIANT and ("delta.generationExpression" in metadata or default != "NULL"):
            raise _not_allowed(node.name, "a variant, which is neither generated nor has a default other than NULL")
        if metadata.get("delta.identity.step") == 0:
            raise _not_allowed(node.name, "an identity column with a step of 0, which gives every row one value")


def _not_allowed(name: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {name} is {why}", fix="leave that out of the column's metadata", place=name, kind="column-metadata"
    )


def check_evolution(old: Schema, new: Schema) -> None:
    """InvalidRequestError unless all of the old schema stays and every new column, or field of a struct, is nullable.
    A void one may take any type.

    "Any column that exists in a data file present in the table MUST also be present in the metadata of the table."
    Fields may be added to structs at any depth, except below the key of a map: keys would be others.
    """
    _check_fields(old.fields, new.fields, "")


def keep_metadata(old: Schema, new: Schema) -> Schema:
    """The new schema, where fields of the old one keep their metadata except comments.

    Without its id and physical name a mapped column would be another one, null in all rows. New fields have none.
    """
    return Schema(_carry_fields(old.fields, new.fields))


def merge_schemas(old: Schema, rows: Schema) -> Schema:
    """The old schema with the columns, and the fields of structs, that only the rows have, behind its own.

    Names are compared without case. What both have stays as the table has it unless that is void, and so do keys of
    maps: rows of another type are refused when they are written. New fields are nullable.
    """
    return Schema(_merged_fields(old.fields, rows.fields))


def _check_names(fields: Sequence[Field], path: str) -> None:
    for field in fields:
        if "\0" in field.name:
            raise InvalidRequestError(
                f"the name {field.name!r} holds a null character, which libraries in C take for its end",
                fix="choose another name",
                place=path_below(path, field.name),
            )
    keys = [field.name.casefold() for field in fields]
    if len(set(keys)) == len(keys):
        return
    twice = next(field.name for field in fields if keys.count(field.name.casefold()) > 1)
    what = f"fields of {path}" if path else "columns"
    raise InvalidRequestError(
        f"two {what} are called {twice}, case aside",
        fix=_ONE_NAME,
        place=path_below(path, twice),
        kind="duplicate-column",
    )


def _check_fields(old: Sequence[Field], new: Sequence[Field], path: str) -> None:
    by_name = {field.name: field for field in new}
    keys = [field.name.casefold() for field in new]
    what = "field" if path else "column"
    for field in old:
        name = path_below(path, field.name)
        if field.name not in by_name:
            raise _refusal(f"{what} {name} would be dropped, which needs column mapping", name)
        if field.nullable and not by_name[field.name].nullable:
            raise _refusal(f"{what} {name} would no longer be nullable", name)
        _check_type(field.type, by_name[field.name].type, name, what)
    names = {field.name for field in old}
    for field in new:
        name = path_below(path, field.name)
        if keys.count(field.name.casefold()) > 1:
            raise _refusal(f"two {what}s would be called {name}, case aside", name, fix=_ONE_NAME)
        if field.name not in names and not field.nullable:
            raise _refusal(f"{what} {name} is new and must be nullable: older files do not have it", name)
        if field.name not in names and "CURRENT_DEFAULT" in field.metadata:  # delta protocol, Default Columns
            raise _refusal(f"{what} {name} is new and has a default, which rows written before would lack", name)


def _check_type(old: DataType, new: DataType, path: str, what: str) -> None:
    match old, new:
        case StructType(before), StructType(after):
            _check_fields(before, after, path)
        case ArrayType(before, nulls), ArrayType(after, nulls_after) if nulls_after or not nulls:
            _check_type(before, after, f"{path}.element", "field")
        case MapType(key, before, nulls), MapType(key_after, after, nulls_after) if nulls_after or not nulls:
            if key != key_after:
                raise _refusal(f"the key of {what} {path} would change from {key} to {key_after}", f"{path}.key")
            _check_type(before, after, f"{path}.value", "field")
        case _ if old not in (new, VOID):  # "A void column may be changed to any other data type"  delta protocol
            raise _refusal(f"{what} {path} would change from {old} to {new}", path)


def _carry_fields(old: Sequence[Field], new: Sequence[Field]) -> tuple[Field, ...]:
    by_name = {field.name: field for field in old}
    return tuple(_carry_field(by_name.get(field.name), field) for field in new)


def _carry_field(old: Field | None, new: Field) -> Field:
    if old is None:
        return without_column_ids(new)
    metadata = {key: value for key, value in old.metadata.items() if key != "comment"}
    metadata |= {key: value for key, value in new.metadata.items() if key == "comment"}
    return replace(old, type=_carry_type(old.type, new.type), nullable=new.nullable, metadata=metadata)


def _carry_type(old: DataType, new: DataType) -> DataType:
    match old, new:
        case StructType(fields), StructType(others):
            return StructType(_carry_fields(fields, others))
        case ArrayType(element), ArrayType(other):
            return replace(new, element=_carry_type(element, other))
        case MapType(key, value), MapType(_, other):
            return replace(new, key=key, value=_carry_type(value, other))
    return new


def _merged_fields(old: Sequence[Field], rows: Sequence[Field]) -> tuple[Field, ...]:
    by_name = {field.name.casefold(): field for field in rows}
    by_name.update({field.name: field for field in rows})
    fields = []
    for field in old:
        other = by_name.get(field.name) or by_name.get(field.name.casefold())
        fields.append(field if other is None else replace(field, type=_merge_types(field.type, other.type)))
    names = {field.name.casefold() for field in old}
    return (*fields, *(replace(field, nullable=True) for field in rows if field.name.casefold() not in names))


def _merge_types(old: DataType, rows: DataType) -> DataType:
    match old, rows:
        case StructType(fields), StructType(others):
            return StructType(_merged_fields(fields, others))
        case ArrayType(element), ArrayType(other):
            return replace(old, element=_merge_types(element, other))
        case MapType(_, value), MapType(_, other):
            return replace(old, value=_merge_types(value, other))
    return rows if old == VOID else old


_ADD_ONLY = "add nullable columns only; rewrite the table for anything else"
_ONE_NAME = "rename one of them, or drop it: names that differ only by case are one name in Delta"


def _refusal(message: str, place: str, fix: str = _ADD_ONLY) -> InvalidRequestError:
    return InvalidRequestError(message, fix=fix, place=place, kind="schema-change")


_MAPPING = "delta.columnMapping."
_ID = f"{_MAPPING}id"
_PHYSICAL_NAME = f"{_MAPPING}physicalName"
MAX_ID = "delta.columnMapping.maxColumnId"
"""The property that holds the largest id that a table has ever given to a column."""


def with_column_ids(schema: Schema, properties: dict[str, str | None], *, keep_names: bool = False) -> Schema:
    """The schema with an id and a physical name for each field that has none; the largest id becomes one of the
    properties.

    "Write the field id and a physical name that is universally unique"; `keep_names`: the physical name is the name,
    for a table whose files have it, and ids are new: what the fields have is of a table that they were copied from.
    """
    own = (number for _, field in fields_below(schema) for number in mapping_ids(field))
    last = int(properties.get(MAX_ID) or 0)
    numbers = iter(range(max(last, *own, 0) + 1, 2**31))

    def assign(field: Field) -> Field:
        nonlocal last
        metadata = dict(field.metadata)
        if keep_names or not isinstance(metadata.get(_ID), int):
            metadata[_ID] = next(numbers)
        if keep_names or not isinstance(metadata.get(_PHYSICAL_NAME), str):
            metadata[_PHYSICAL_NAME] = field.name if keep_names else f"col-{uuid.uuid4()}"
        last = max(last, metadata[_ID])
        return replace(
            field, metadata=metadata, id=metadata[_ID], physical_name=metadata[_PHYSICAL_NAME],
            type=map_fields(field.type, assign),
        )  # fmt: skip

    mapped_schema = Schema(tuple(assign(f) for f in schema))
    properties[MAX_ID] = str(last)
    return mapped_schema


def check_unique(schema: Schema) -> None:
    """InvalidRequestError for a mapped schema of which two columns have one id, or two of one struct one physical name:
    "unique" and "universally unique", so that either finds no more than one column."""
    owners: dict[tuple[object, ...], str] = {}
    for node in nodes(schema):
        if node.field is None:
            continue
        physical = node.field.physical_name
        for key, what in (((node.field.id,), f"id {node.field.id}"), ((node.path[:-1], physical), f"name {physical}")):
            other = owners.setdefault(key, node.name)
            if other != node.name:
                raise InvalidRequestError(
                    f"columns {other} and {node.name} are both mapped to the {what} by their metadata",
                    fix="leave the metadata of column mapping out of the schema: the table gives ids and names",
                    place=node.name,
                    kind="duplicate-column-id",
                )


def without_column_ids(field: Field) -> Field:
    """The field, and those within, without id and physical name: those of another table may be taken in this one."""
    metadata = {key: value for key, value in field.metadata.items() if not key.startswith(_MAPPING)}
    inner = map_fields(field.type, without_column_ids)
    return replace(field, metadata=metadata, id=None, physical_name=None, type=inner)
