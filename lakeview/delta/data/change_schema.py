"""Schemas within a range of versions to a verdict: can their rows be read as those of its last version?"""

from __future__ import annotations

from collections.abc import Sequence

from lakeview.delta.data.type_widening import widens
from lakeview.model.schema import ArrayType, DataType, Field, MapType, Schema, StructType


def incompatibility(before: Schema, after: Schema) -> str | None:
    """Why rows written with one schema cannot be read with a later one; None if they can.

    Columns may have been added, types widened, values allowed to be null. Columns are the same if their physical names
    are: so a column that column mapping renamed or dropped is found out, and not read as null.
    """
    return _fields(before.fields, after.fields, "")


def _fields(before: Sequence[Field], after: Sequence[Field], above: str) -> str | None:
    later = {f.physical_name or f.name: f for f in after}
    for field in before:
        column = f"{above}.{field.name}" if above else field.name
        found = later.get(field.physical_name or field.name)
        if found is None:
            return f"column {column} was dropped"
        if found.name != field.name:
            return f"column {column} was renamed to {found.name}"
        if field.nullable and not found.nullable:
            return f"column {column} must not be null any more"
        if (why := _types(field.type, found.type, column)) is not None:
            return why
    return None


def _types(before: DataType, after: DataType, column: str) -> str | None:
    match before, after:
        case StructType(fields), StructType(later):
            return _fields(fields, later, column)
        case ArrayType(element, nulls), ArrayType(later, allowed):
            return _elements(element, later, f"{column}.element", tightened=nulls and not allowed)
        case MapType(key, value, nulls), MapType(later_key, later_value, allowed):
            keys = _types(key, later_key, f"{column}.key")
            return keys or _elements(value, later_value, f"{column}.value", tightened=nulls and not allowed)
    return None if widens(before, after) else f"column {column} was changed from {before} to {after}"


def _elements(before: DataType, after: DataType, column: str, *, tightened: bool) -> str | None:
    return f"column {column} must not be null any more" if tightened else _types(before, after, column)
