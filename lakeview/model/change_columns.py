"""A table's schema to that of its changes: what every format's change rows have after the table's own columns."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.frames import CHANGES
from lakeview.model.schema import Schema

CHANGE_TYPE, VERSION, TIMESTAMP = CHANGES.names()
CHANGE_FIELDS = (
    Field(CHANGE_TYPE, PrimitiveType("string")),
    Field(VERSION, PrimitiveType("long")),
    Field(TIMESTAMP, PrimitiveType("timestamp")),
)
"""The fields of CHANGES."""


def change_schema(schema: Schema) -> Schema:
    """The table's columns, then those of a change; one of the table's that bears such a name is suffixed `_`.

    A column that is renamed so keeps the name it has in files as its physical name.
    """
    names = names_apart(schema.names, CHANGES.names())
    fields = [f if f.name == name else _rename(f, name) for f, name in zip(schema, names, strict=True)]
    return Schema((*fields, *CHANGE_FIELDS))


def names_apart(names: Sequence[str], own: Collection[str]) -> list[str]:
    """The names of a table's columns beside columns of our own: one that bears the name of these is suffixed `_`."""
    all_names, apart = {*own, *names}, []
    for name in names:
        other = name
        while other in own or (other != name and other in all_names):
            other += "_"
        all_names.add(other)
        apart.append(other)
    return apart


def _rename(field: Field, name: str) -> Field:
    return replace(field, name=name, physical_name=field.stored_name)
