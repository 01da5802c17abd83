"""Recorded type changes to a verdict: are files of every earlier type readable (delta protocol, Type Widening)? Schemas
within a range of versions to another: can their rows be read as those of its last version?"""

from collections.abc import Mapping, Sequence
from typing import Any

from lakeview.delta.data.schemas import broken_schema, primitive_type
from lakeview.model.data_types import VOID, ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes

TYPE_CHANGES = "delta.typeChanges"

_WIDER: Mapping[str, frozenset[str]] = {
    "byte": frozenset({"short", "integer", "long", "double"}),
    "short": frozenset({"integer", "long", "double"}),
    "integer": frozenset({"long", "double"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
_WHOLE_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point that a decimal needs, to hold every whole number of a type."""


def check_type_changes(schema: Schema) -> None:
    """UnsupportedTableError naming column and types if a recorded change is none that the protocol allows.

    Files from before such a change would hold values that no rule turns into today's.
    """
    every = ((node, change) for node in nodes(schema) if node.field is not None for change in type_changes(node.field))
    for node, change in every:
        place = f"{node.name}.{change['fieldPath']}" if change.get("fieldPath") else node.name
        before, after = (_type(change.get(side), place) for side in ("fromType", "toType"))
        if not widens(before, after):
            raise UnsupportedTableError(
                f"column {place} was changed from {before} to {after}, a change that this reader does not implement",
                fix="read it with an engine that knows this change, or a version from before it",
                place=place,
                kind="unsupported-type-change",
            )


def widens(before: DataType, after: DataType) -> bool:
    """Whether every value of one type is a value of the other, by a change the protocol lists."""
    match before, after:
        case _ if before in (after, VOID):
            return True
        case DecimalType(precision, scale), DecimalType(wider, finer):
            return finer >= scale and wider - precision >= finer - scale
        case PrimitiveType(name), DecimalType(precision, scale):
            return name in _WHOLE_DIGITS and precision - scale >= _WHOLE_DIGITS[name]
        case PrimitiveType(name), PrimitiveType(other):
            return other in _WIDER.get(name, ())
    return False


def widens_unasked(before: DataType, after: DataType) -> bool:
    """Whether rows of one type may widen a column of another without anyone naming it: within whole numbers, floating
    point numbers or decimals, as Delta's own schema evolution does. From one of these to another, only on request."""
    match before, after:
        case DecimalType(), DecimalType():
            return before != after and widens(before, after)
        case PrimitiveType(name), PrimitiveType(other):
            whole = name in _WHOLE_DIGITS and other in _WHOLE_DIGITS
            return widens(before, after) and (whole or (name, other) == ("float", "double"))
    return False


def widens_in_iceberg(before: DataType, after: DataType) -> bool:
    """Whether the change is one of Iceberg's format version 2 too: within whole numbers, from float to double, and the
    precision of a decimal."""
    same_scale = not isinstance(before, DecimalType) or (isinstance(after, DecimalType) and before.scale == after.scale)
    return widens_unasked(before, after) and same_scale


def type_changes(field: Field) -> list[Mapping[str, Any]]:
    """The entries of a field: fromType, toType and perhaps fieldPath and tableVersion, as recorded."""
    entries = field.metadata.get(TYPE_CHANGES)
    if entries is None:
        return []
    return [e if isinstance(e, dict) else {} for e in (entries if isinstance(entries, list) else [entries])]


def _type(name: Any, place: str) -> DataType:
    if isinstance(name, str):
        return primitive_type(name, TYPE_CHANGES)
    raise broken_schema(f"a type change of column {place} does not say which types")


def incompatibility(before: Schema, after: Schema, *, common: bool = False) -> str | None:
    """Why rows written with one schema cannot be read with a later one; None if they can.

    Columns may have been added, types widened, values allowed to be null. Columns are the same if their physical names
    are: so a column that column mapping renamed or dropped is found out, and not read as null. `common`: only the types
    of columns of both count.
    """
    return _fields(before.fields, after.fields, "", common=common)


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
