"""Every type of a schema, those within others too: one walk to look for a type, a field or its metadata."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.schema import leaf_name


class Node(NamedTuple):
    """A type and its place. `field`: the column or field of a struct whose type it is; None for what a list or a map
    holds, which goes by `element`, `key` or `value` in the path."""

    path: tuple[str, ...]
    type: DataType
    field: Field | None

    @property
    def name(self) -> str:
        """The path as `leaf_name` writes it."""
        return leaf_name(self.path)


def nodes(fields: Iterable[Field]) -> Iterator[Node]:
    """Each column, then what its type holds at any depth, in order; a schema may be deeper than Python calls go."""
    waiting = [Node((f.name,), f.type, f) for f in reversed(tuple(fields))]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (Node((*node.path, name), type_, field) for name, type_, field in reversed(_parts(node.type)))


def fields_below(fields: Iterable[Field]) -> Iterator[tuple[str, Field]]:
    """(path as `leaf_name` writes it, field) of each column and each field of a struct, at any depth."""
    return ((node.name, node.field) for node in nodes(fields) if node.field is not None)


def map_fields(type_: DataType, change: Callable[[Field], Field]) -> DataType:
    """A type whose nearest fields are changed: those of a struct, also of one that a list or a map holds."""
    match type_:
        case StructType(fields):
            return StructType(tuple(change(f) for f in fields))
        case ArrayType(element):
            return replace(type_, element=map_fields(element, change))
        case MapType(key, value):
            return replace(type_, key=map_fields(key, change), value=map_fields(value, change))
    return type_


def _parts(type_: DataType) -> list[tuple[str, DataType, Field | None]]:
    match type_:
        case StructType(fields):
            return [(f.name, f.type, f) for f in fields]
        case ArrayType(element):
            return [("element", element, None)]
        case MapType(key, value):
            return [("key", key, None), ("value", value, None)]
    return []
