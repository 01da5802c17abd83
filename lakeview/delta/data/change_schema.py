"""Schemas within a range of versions to a verdict: can their rows be read as those of its last version?"""

from collections.abc import Sequence

from lakeview.delta.data.type_widening import widens
from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.schema import Schema


def incompatibility(before: Schema, after: Schema) -> str | None:
    """Why rows written with one schema cannot be read with a later one; None if they can.

    Columns may have been added, types widened, values allowed to be null. Columns are the same if their physical names
    are: so a column that column mapping renamed or dropped is found out, and not read as null.
    """
    return _fields(before.fields, after.fields, "", common=False)


def common_incompatibility(before: Schema, after: Schema) -> str | None:
    """Why values written with one schema cannot be read with another one; None if they can.

    Only types count, and only those of columns of both. Columns are the same as for `incompatibility`.
    """
    return _fields(before.fields, after.fields, "", common=True)


def _fields(before: Sequence[Field], after: Sequence[Field], above: str, *, common: bool) -> str | None:
    later = {f.stored_name: f for f in after}
    for field in before:
        column = f"{above}.{field.name}" if above else field.name
        newer = later.get(field.stored_name)
        if newer is None and common:
            continue
        if newer is None:
            return f"column {column} was dropped"
        if newer.name != field.name and not common:
            return f"column {column} was renamed to {newer.name}"
        if field.nullable and not newer.nullable and not common:
            return f"column {column} must not be null any more"
        if (why := _types(field.type, newer.type, column, common=common)) is not None:
            return why
    return None


def _types(before: DataType, after: DataType, column: str, *, common: bool) -> str | None:
    match before, after:
        case StructType(fields), StructType(later):
            return _fields(fields, later, column, common=common)
        case ArrayType(element, nulls), ArrayType(later, later_nulls):
            is_stricter = nulls and not later_nulls and not common
            return _elements(element, later, f"{column}.element", is_stricter=is_stricter, common=common)
        case MapType(key, value, nulls), MapType(later_key, later_value, later_nulls):
            is_stricter = nulls and not later_nulls and not common
            keys = _types(key, later_key, f"{column}.key", common=common)
            return keys or _elements(value, later_value, f"{column}.value", is_stricter=is_stricter, common=common)
    return None if widens(before, after) else f"column {column} was changed from {before} to {after}"


def _elements(before: DataType, after: DataType, column: str, *, is_stricter: bool, common: bool) -> str | None:
    return f"column {column} must not be null any more" if is_stricter else _types(before, after, column, common=common)
