"""Schemas as table metadata spells them to lakeview's, with field ids (iceberg spec, Schemas and Data Types)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.schema import Schema

_WORDS = {"int": "integer", "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "unknown": "void"}
"""Iceberg's word for a primitive type -> lakeview's, where they differ. A word that is not known is shown, not read."""

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_MAX_ID = 2**31 - 1
_METADATA_KEYS = {"doc": "comment", "initial-default": "initial-default", "write-default": "write-default"}


def parse_schema(document: Any, max_depth: int = 64) -> Schema:
    """A schema of the metadata as lakeview's: ids on every struct field, documentation as `comment`, defaults as JSON
    single values in the fields' metadata.

    CorruptTableError if it is none, or an id occurs twice; UnsupportedTableError if it is nested too deep.
    """
    type_ = _struct(document, max_depth)
    ids = [i for i in _ids(document) if _is_id(i)]
    counts = Counter(ids)
    if twice := next((i for i, times in counts.items() if times > 1), None):
        raise _schema_error(f"the field id {twice} occurs twice in a schema")
    return Schema(type_.fields)


def parse_type(value: Any, depth: int = 64) -> DataType:
    """A type as JSON spells it; an unknown primitive keeps its own word."""
    if isinstance(value, str):
        return _primitive(value)
    if not isinstance(value, dict):
        raise _schema_error(f"{value!r} is no type")
    if depth <= 0:
        raise UnsupportedTableError(
            "the schema is nested deeper than lakeview reads", fix="raise max_schema_depth", kind="too-deep"
        )
    word = value.get("type")
    match word:
        case "struct":
            return _struct(value, depth)
        case "list":
            is_required = _flag(value, "element-required")
            return ArrayType(parse_type(value.get("element"), depth - 1), not is_required)
        case "map":
            key = parse_type(value.get("key"), depth - 1)
            return MapType(key, parse_type(value.get("value"), depth - 1), not _flag(value, "value-required"))
        case str(name) if name not in ("struct", "list", "map"):
            return _primitive(name)
    raise _schema_error(f"a type has the name {value.get('type')!r}")


def _primitive(text: str) -> DataType:
    if decimal := _DECIMAL.fullmatch(text):
        precision, scale = int(decimal[1]), int(decimal[2])
        return DecimalType(precision, scale) if 1 <= precision <= 38 and scale <= precision else PrimitiveType(text)
    if _FIXED.fullmatch(text):
        return PrimitiveType("fixed")
    return PrimitiveType(_WORDS.get(text, text))


def _struct(document: Any, depth: int) -> StructType:
    fields = document.get("fields") if isinstance(document, dict) else None
    if not isinstance(fields, list):
        raise _schema_error("a struct has no fields")
    children = tuple(_field(f, depth - 1) for f in fields)
    if twice := next((name for name, times in Counter(f.name for f in children).items() if times > 1), None):
        raise _schema_error(f"two columns side by side are called {twice}")
    return StructType(children)


def _field(document: Any, depth: int) -> Field:
    if not isinstance(document, dict):
        raise _schema_error(f"{document!r} is no field")
    name, field_id = document.get("name"), document.get("id")
    if not isinstance(name, str) or not _is_id(field_id):
        raise _schema_error(f"a field has the name {name!r} and the id {field_id!r}")
    metadata: dict[str, Any] = {ours: document[theirs] for theirs, ours in _METADATA_KEYS.items() if theirs in document}
    text = document.get("type")
    if isinstance(text, str) and (match := _FIXED.fullmatch(text)):
        metadata["length"] = int(match[1])
    return Field(name, parse_type(text, depth), not _flag(document, "required"), metadata, id=field_id)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= _MAX_ID


def _flag(document: Mapping[str, Any], key: str) -> bool:
    return document.get(key) is True


def _ids(document: Any) -> Iterator[Any]:
    """Every id in a type: fields, elements, keys and values."""
    if not isinstance(document, dict):
        return
    for key in ("element", "key", "value"):
        if f"{key}-id" in document:
            yield document[f"{key}-id"]
            yield from _ids(document.get(key))
    if document.get("type", "struct") == "struct":
        for f in document.get("fields") or ():
            yield f.get("id")
            yield from _ids(f.get("type"))


def struct_fields(schema: Schema) -> dict[int, tuple[tuple[str, ...], Field]]:
    """Every field reached through structs only, by id, with its path: those that partitioning and deletes can name."""
    by_id: dict[int, tuple[tuple[str, ...], Field]] = {}

    def visit(fields: tuple[Field, ...], above: tuple[str, ...]) -> None:
        for f in fields:
            if f.id is not None:
                by_id[f.id] = ((*above, f.name), f)
            if isinstance(f.type, StructType):
                visit(f.type.fields, (*above, f.name))

    visit(schema.fields, ())
    return by_id


def _schema_error(what: str) -> CorruptTableError:
    return CorruptTableError(
        f"the table's schema cannot be understood: {what}",
        fix="open an older metadata file of the table, or have its writer repair it",
        kind="invalid-metadata",
    )
