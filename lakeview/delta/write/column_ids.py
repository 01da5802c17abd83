"""Columns to mapped columns: an id and a physical name for each (today's protocol, Column Mapping)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes

_MAPPING = "delta.columnMapping."
_ID = f"{_MAPPING}id"
_PHYSICAL_NAME = f"{_MAPPING}physicalName"
MAX_ID = "delta.columnMapping.maxColumnId"
"""The property that holds the largest id that a table has ever given to a column."""


def with_column_ids(schema: Schema, largest: int, *, keep_names: bool = False) -> tuple[Schema, int]:
    """The schema with an id and a physical name for each field that has none, and the largest id now.

    "Write the field id and a physical name that is universally unique"; `keep_names`: the physical name is the name,
    for a table whose files have it, and ids are new: what the fields have is of a table that they were copied from.
    """
    numbers = iter(range(max(largest, _largest(schema.fields)) + 1, 2**31))
    last = largest

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
            type=_map_type(field.type, assign),
        )  # fmt: skip

    return Schema(tuple(assign(f) for f in schema)), last


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
    inner = _map_type(field.type, without_column_ids)
    return replace(field, metadata=metadata, id=None, physical_name=None, type=inner)


def _map_type(type_: DataType, assign: Callable[[Field], Field]) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(tuple(assign(f) for f in fields))
        case ArrayType(element):
            return replace(type_, element=_map_type(element, assign))
        case MapType(key, value):
            return replace(type_, key=_map_type(key, assign), value=_map_type(value, assign))
    return type_


def _largest(fields: tuple[Field, ...]) -> int:
    return max((n for f in fields for n in _ids(f)), default=0)


def _ids(field: Field) -> Iterator[int]:
    number = field.metadata.get(_ID)
    yield number if isinstance(number, int) else 0
    for inner in _fields(field.type):
        yield from _ids(inner)


def _fields(type_: DataType) -> tuple[Field, ...]:
    match type_:
        case StructType(fields):
            return fields
        case ArrayType(element):
            return _fields(element)
        case MapType(key, value):
            return (*_fields(key), *_fields(value))
    return ()
