"""A table's schema to that of its changes: what every format's change rows have after the table's own columns."""

from __future__ import annotations

from dataclasses import replace

from lakeview.model.frames import CHANGES
from lakeview.model.schema import Field, PrimitiveType, Schema

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
    names = {*CHANGES.names(), *schema.names}
    fields = []
    for field in schema:
        name = field.name
        while name in CHANGES.names() or (name != field.name and name in names):
            name += "_"
        names.add(name)
        fields.append(field if name == field.name else _renamed(field, name))
    return Schema((*fields, *CHANGE_FIELDS))


def _renamed(field: Field, name: str) -> Field:
    return replace(field, name=name, physical_name=field.stored_name)
