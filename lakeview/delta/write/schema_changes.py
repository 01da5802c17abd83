"""A schema and one change to the schema after it: columns renamed, dropped, widened, moved, described."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from lakeview.delta.data.type_widening import TYPE_CHANGES, type_changes, widens, widens_in_iceberg
from lakeview.delta.properties import column_paths
from lakeview.model.arguments import names_of
from lakeview.model.data_types import VOID, ArrayType, DataType, Field, MapType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, quote_name
from lakeview.model.type_tree import nodes

Path = tuple[str, ...]
Column: TypeAlias = str | tuple[str, ...]
"""A column as callers name it: `a.b` for a field of a struct, back-quotes around a name that holds a dot, or the names
themselves. Lists and maps have the steps `element`, `key` and `value`."""

_PLAIN = re.compile(r"\w+")


def column_path(column: Column) -> Path:
    """A column, or a field of a struct, as a path. InvalidRequestError for text that is none."""
    if not isinstance(column, str):
        path = names_of(column, "column")
        if not path:
            raise InvalidRequestError(f"{column!r} names no column", fix="give a name, or the names on the way to it")
        return path
    paths = column_paths(column)
    if paths is None or len(paths) != 1:
        raise InvalidRequestError(
            f"{column!r} names no column", fix="write a name, or a path such as a.b; `a.b` for a name with a dot"
        )
    return paths[0]


def add(schema: Schema, path: Path, field: Field) -> Schema:
    """The schema with a field behind the others of the struct at a path, that of the columns for an empty one."""
    return _with_fields(schema, path, (*path, field.name), lambda fields: (*fields, field))


def rename(schema: Schema, path: Path, name: str) -> Schema:
    """The field at a path under another name. InvalidRequestError where the name is empty or taken."""
    if not name.strip():
        raise InvalidRequestError(f"{name!r} names no column", fix="give the column a name", place=".".join(path))
    siblings = _fields_beside(schema, path)
    if any(f.name.casefold() == name.casefold() and f.name != path[-1] for f in siblings):
        raise InvalidRequestError(
            f"there is a column {'.'.join((*path[:-1], name))} already, case aside", fix="choose another name",
            place=name, kind="duplicate-column",
        )  # fmt: skip
    return edit(schema, path, lambda f: replace(f, name=name))


def renamed_in(columns: str, path: Path, name: str) -> str:
    """A comma list of columns with the last part of a path under another name, wherever a column begins so."""
    end = len(path)
    return _change_text(columns, path, lambda column: (*column[: end - 1], name, *column[end:]))


def dropped_from(columns: str, path: Path) -> str:
    """A comma list of columns without those that begin with a path."""
    return _change_text(columns, path, lambda _: ())


def _change_text(columns: str, path: Path, change: Callable[[Path], Path]) -> str:
    paths = column_paths(columns)
    if paths is None:  # no engine can read it
        return columns
    key = tuple(part.casefold() for part in path)
    new_paths = [change(c) if tuple(p.casefold() for p in c[: len(path)]) == key else c for c in paths]
    return ",".join(".".join(map(_quote, column)) for column in new_paths if column)


def _quote(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else quote_name(part)


def drop(schema: Schema, path: Path) -> Schema:
    """The schema without the field at a path. InvalidRequestError where no other field would be left, and for a
    field of a map's keys, which might no longer differ."""
    if (key := _key_above(schema, path)) is not None:
        raise InvalidRequestError(
            f"{'.'.join(path)} is a part of the keys of {'.'.join(key)}, which might be equal without it",
            fix="keep it", place=".".join(path), kind="schema-change",
        )  # fmt: skip
    if len(_fields_beside(schema, path)) == 1:
        raise InvalidRequestError(
            f"{'.'.join(path)} is the only {'field' if path[1:] else 'column'} there is", fix="keep it",
            place=".".join(path), kind="schema-change",
        )  # fmt: skip
    return edit(schema, path, lambda _: None)


def widen(schema: Schema, path: Path, type_: DataType, *, iceberg_feature: str | None = None) -> Schema:
    """The field at a path with a wider type, and the change noted where readers look for it (Type Widening).

    A void one, of which no file holds a value, takes any type, and no note: "this does not require the Type Widening
    feature" (Void Type). InvalidRequestError for a change that the protocol does not list, or that Iceberg does not
    know in a table which supports a feature that asks for those (`iceberg_feature`).
    """
    before = {node.path: node.type for node in nodes(schema)}.get(path)
    name = ".".join(path)
    if before is None:
        raise _unknown_column(path, schema.names if len(path) == 1 else [])
    if before == VOID != type_:
        return record_widening(schema, path, [type_])
    if before == type_ or not widens(before, type_):
        raise InvalidRequestError(
            f"{name} is {before}, which does not widen to {type_}",
            fix="widen whole numbers, float to double, decimals, or a date to a timestamp without zone",
            place=name,
            kind="schema-change",
        )
    if iceberg_feature is not None and not widens_in_iceberg(before, type_):
        raise InvalidRequestError(
            f"{name} is {before}, which Iceberg does not widen to {type_}, and the table supports {iceberg_feature}",
            fix="widen whole numbers to larger ones, float to double, or the precision of a decimal",
            place=name,
            kind="schema-change",
        )
    return record_widening(schema, path, [before, type_])


def record_widening(schema: Schema, path: Path, types: Sequence[DataType]) -> Schema:
    """The field at a path with the last of these types, and each change from one to the next noted."""
    # lists and maps have no metadata: that of the field that holds them has the rest of the path
    *_, owner = (n.path for n in nodes(schema) if n.field is not None and path[: len(n.path)] == n.path)
    below = path[len(owner) :]
    place = {"fieldPath": ".".join(below)} if below else {}
    notes = [{"fromType": str(before), "toType": str(after), **place} for before, after in pairwise(types)]

    def apply_change(field: Field) -> Field:
        metadata = {TYPE_CHANGES: [*type_changes(field), *notes]} if notes else {}
        type_ = _change_type(field.type, below, path, lambda _: types[-1])
        return replace(field, type=type_, metadata={**field.metadata, **metadata})

    return edit(schema, owner, apply_change)


def is_void(schema: Schema, path: Path) -> bool:
    """Whether the field at a path holds nothing but null."""
    return any(node.path == path and node.type == VOID for node in nodes(schema))


def _key_above(schema: Schema, path: Path) -> Path | None:
    """The map that a path leads into the keys of."""
    maps = {node.path for node in nodes(schema) if isinstance(node.type, MapType)}
    return next((path[:i] for i, part in enumerate(path) if part == "key" and path[:i] in maps), None)


def reorder(schema: Schema, names: Sequence[str]) -> Schema:
    """The columns in this order, those that are not named behind. InvalidRequestError for one that is not there."""
    schema.require(names, place="names")
    rest = [name for name in schema.names if name not in names]
    return schema.select([*dict.fromkeys(names), *rest])


def edit(schema: Schema, path: Path, change: Callable[[Field], Field | None]) -> Schema:
    """The schema with one field changed, or left out where `change` gives None.

    InvalidRequestError (kind unknown-column) for a path that leads nowhere.
    """

    def apply_change(fields: Sequence[Field]) -> list[Field]:
        if not any(f.name == path[-1] for f in fields):
            raise _unknown_column(path, [f.name for f in fields])
        new_fields = [change(f) if f.name == path[-1] else f for f in fields]
        return [f for f in new_fields if f is not None]

    return _with_fields(schema, path[:-1], path, apply_change)


def is_in_structs(schema: Schema, path: Path) -> bool:
    """Whether a path leads through structs alone, so that each row has one value there at most."""
    types = {node.path: node.type for node in nodes(schema)}
    return all(isinstance(types.get(path[:end]), StructType) for end in range(1, len(path)))


def _with_fields(
    schema: Schema, struct: Path, whole: Path, change: Callable[[Sequence[Field]], Sequence[Field]]
) -> Schema:
    """The schema with other fields in the struct at a path; `whole`: the path that an error names."""

    def apply_change(type_: DataType) -> DataType:
        if not isinstance(type_, StructType):
            raise _unknown_column(whole, [])
        return StructType(tuple(change(type_.fields)))

    root = _change_type(StructType(schema.fields), struct, whole, apply_change)
    assert isinstance(root, StructType)
    return Schema(root.fields)


def _change_type(type_: DataType, path: Path, whole: Path, change: Callable[[DataType], DataType]) -> DataType:
    """A type that holds another one at a path; `whole`: the path that an error names."""
    if not path:
        return change(type_)
    name, below = path[0], path[1:]
    match type_, name:
        case StructType(fields), _ if any(f.name == name for f in fields):
            inner = {f.name: _change_type(f.type, below, whole, change) for f in fields if f.name == name}
            return StructType(tuple(replace(f, type=inner.get(f.name, f.type)) for f in fields))
        case ArrayType(element), "element":
            return replace(type_, element=_change_type(element, below, whole, change))
        case MapType(key), "key":
            return replace(type_, key=_change_type(key, below, whole, change))
        case MapType(_, value), "value":
            return replace(type_, value=_change_type(value, below, whole, change))
    raise _unknown_column(whole, [f.name for f in type_.fields] if isinstance(type_, StructType) else [])


def _fields_beside(schema: Schema, path: Path) -> Sequence[Field]:
    """The fields of the struct that a path leads into."""
    siblings: list[Field] = []

    def note(fields: Sequence[Field]) -> Sequence[Field]:
        siblings.extend(fields)
        return fields

    _with_fields(schema, path[:-1], path, note)
    return siblings


def _unknown_column(path: Path, names: Sequence[str]) -> InvalidRequestError:
    return InvalidRequestError(
        f"there is no column {'.'.join(path)}",
        fix=f"choose from {', '.join(names[:20])}" if names else "follow structs by name, lists by `element`",
        place=".".join(path),
        kind="unknown-column",
    )
