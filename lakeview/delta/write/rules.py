"""What a table demands of those who write it: features in use, and changes of schema that are safe."""

from __future__ import annotations

from collections.abc import Iterator

from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.log.actions import Metadata
from lakeview.errors import InvalidRequestError
from lakeview.schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType

_BY_FIELD = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}


def active_features(metadata: Metadata) -> frozenset[str]:
    """The legacy features that this table really uses: each needs its property or its column metadata."""
    properties = metadata.configuration or {}
    found = {
        feature
        for key, feature in (("delta.appendOnly", "appendOnly"), ("delta.enableChangeDataFeed", "changeDataFeed"))
        if (properties.get(key) or "").lower() == "true"
    }
    if any(key.startswith("delta.constraints.") for key in properties):
        found.add("checkConstraints")
    if (properties.get("delta.columnMapping.mode") or "none") != "none":
        found.add("columnMapping")
    for field in _fields(parse_schema(metadata.schema_string).fields):
        found |= {feature for key, feature in _BY_FIELD.items() if key in field.metadata}
    return frozenset(found)


def has_type(schema: Schema, name: str) -> bool:
    """Whether a primitive type occurs anywhere in a schema."""
    return any(_holds(field.type, name) for field in schema)


def _holds(type_: DataType, name: str) -> bool:
    match type_:
        case PrimitiveType(own):
            return own == name
        case StructType(fields):
            return any(_holds(f.type, name) for f in fields)
        case ArrayType(element):
            return _holds(element, name)
        case MapType(key, value):
            return _holds(key, name) or _holds(value, name)
    return False


def _fields(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        if isinstance(field.type, StructType):
            yield from _fields(field.type.fields)


def check_evolution(old: Schema, new: Schema) -> None:
    """InvalidRequestError unless every old column stays as it is and every new one is nullable.

    "Any column that exists in a data file present in the table MUST also be present in the metadata of the table."
    """
    for field in old:
        if field.name not in new:
            raise _refused(f"column {field.name} would be dropped, which needs column mapping", field.name)
        if new[field.name].type != field.type:
            raise _refused(f"column {field.name} would change from {field.type} to {new[field.name].type}", field.name)
        if field.nullable and not new[field.name].nullable:
            raise _refused(f"column {field.name} would no longer be nullable", field.name)
    folded = [name.casefold() for name in new.names]
    for field in new:
        if folded.count(field.name.casefold()) > 1:
            raise _refused(f"two columns would be called {field.name}, case aside", field.name)
        if field.name not in old and not field.nullable:
            raise _refused(f"column {field.name} is new and must be nullable: older files do not have it", field.name)


def _refused(message: str, place: str) -> InvalidRequestError:
    return InvalidRequestError(
        message, fix="add nullable columns only; rewrite the table for anything else", place=place, kind="schema-change"
    )
