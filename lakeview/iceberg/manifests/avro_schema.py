"""Avro schemas as files record them to schemas that readers take: fields called by their ids, nothing without bytes."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from lakeview.model import limits

NO_ID = "name "
"""What stands before the name of a field that has no id and is called as if it had one (`f12`)."""

_LIKE_AN_ID = re.compile(r"f\d+")
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_BLANKS = {"boolean": b"\0", "int": b"\0", "long": b"\0", "float": bytes(4), "double": bytes(8), "bytes": b"\0"}


@lru_cache(maxsize=64)
def readable_schema(text: bytes, names: frozenset[tuple[str, int]], inner: str | None) -> Any:
    """The schema of a header's JSON; the same object for the same text: not to be changed.

    `names`: the ids of fields that carry none; `inner`: a field, by its new name, that is a record: its fields stand
    beside the others then, since a record's bytes are those of its fields and readers can skip only fields at the top.
    ValueError, KeyError, TypeError, RecursionError and the like for one that is no schema of records with fields.
    """
    schema = _SchemaById(dict(names)).type(msgspec.json.decode(text), 0)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its schema is no record with fields")
    return schema if inner is None else _flatten(schema, inner)


def _flatten(schema: dict[str, Any], inner: str) -> dict[str, Any]:
    matches = [f for f in schema["fields"] if f["name"] == inner]
    if len(matches) != 1 or not isinstance(matches[0]["type"], dict) or matches[0]["type"].get("type") != "record":
        return schema
    names = {f["name"] for f in matches[0]["type"]["fields"]}
    fields: list[dict[str, Any]] = []
    for field in schema["fields"]:
        if field["name"] == inner:
            fields += field["type"]["fields"]
        else:
            fields.append({**field, "name": f"outer {field['name']}"} if field["name"] in names else field)
    return {**schema, "fields": fields}


def blank_record(schema: Any, text: str) -> bytes:
    """The bytes of a record of a readable schema that holds nothing but this text, in each of its strings."""
    match schema:
        case list():
            place = schema.index("string") if "string" in schema else 0
            return bytes([place << 1]) + blank_record(schema[place], text)
        case None | "null":
            return b""
        case "string":
            return bytes([len(text) << 1]) + text.encode()
        case str():
            return _BLANKS[schema]
    match schema["type"]:
        case "record":
            return b"".join(blank_record(f["type"], text) for f in schema["fields"])
        case "fixed":
            return bytes(schema["size"])
        case "array" | "map" | "enum":
            return b"\0"
        case "bytes":  # a decimal, which has one byte at least
            return b"\x02\0"
    return blank_record(schema["type"], text)


class _SchemaById:
    """A schema with its fields called by their ids, entries of maps `key` and `value`, and no field without bytes."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names
        self._types: dict[str, Any] = {}
        self._counter = 0
        self._inside = 0  # names that stand for what is looked at now
        self._repeats = 0

    def type(self, schema: Any, depth: int) -> Any:
        if depth > limits.AVRO_DEPTH:
            raise ValueError("its schema is nested too deep, or in itself")
        self._repeats += bool(self._inside)
        if self._repeats > limits.AVRO_TYPES:
            raise ValueError("its schema uses the same types too often")
        if isinstance(schema, list):
            branches = [self.type(b, depth + 1) for b in schema]
            # Branches without bytes leave only the branch's number: BigQuery has a nullable record without fields.
            return "long" if all(b in ("null", None) for b in branches) and len(branches) > 1 else branches
        if isinstance(schema, str):
            return schema if schema in _PRIMITIVES else self._again(schema, depth)
        match schema["type"]:
            case "record" | "fixed" | "enum":
                return self._named_type(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "map":
                return {"type": "map", "values": self._with_bytes(self.type(schema["values"], depth + 1))}
            case list() | dict() as inner:
                return self.type(inner, depth + 1)
        return self._again(schema["type"], depth) if schema["type"] not in _PRIMITIVES else _plain(schema)

    def _named_type(self, schema: Any, depth: int) -> Any:
        """A record, fixed or enum under a name of our own; None for a record whose fields have no bytes."""
        self._remember(schema)
        fields = [self._field(f, depth) for f in schema["fields"]] if schema["type"] == "record" else []
        self._counter += 1
        name = f"r{self._counter}"
        match schema["type"]:
            case "fixed":
                return {**_plain_fixed(schema), "name": name}
            case "enum":
                return {"type": "enum", "name": name, "symbols": schema["symbols"]}
        with_bytes = [f for f in fields if f["type"] is not None]
        return {"type": "record", "name": name, "fields": with_bytes} if with_bytes else None

    def _remember(self, schema: Any) -> None:
        for name in (schema["name"], f"{schema.get('namespace', '')}.{schema['name']}"):
            self._types[name] = schema

    def _again(self, name: str, depth: int) -> Any:
        if name not in self._types:
            raise ValueError(f"its schema names the type {name[:80]}, which it does not have")
        self._inside += 1
        type_ = self.type(self._types[name], depth + 1)
        self._inside -= 1
        return type_

    def _field(self, schema: Any, depth: int) -> dict[str, Any]:
        field_id = schema.get("field-id", self._names.get(schema["name"]))
        name = NO_ID + schema["name"] if _LIKE_AN_ID.fullmatch(schema["name"]) else schema["name"]
        if isinstance(field_id, int) and field_id >= 0:
            name = f"f{field_id}"
        type_ = self.type(schema["type"], depth + 1)
        return {"name": name, "type": None if type_ == "null" else type_}

    def _array(self, schema: Any, depth: int) -> dict[str, Any]:
        items = self._with_bytes(self.type(schema["items"], depth + 1))
        if schema.get("logicalType") == "map" and isinstance(items, dict) and len(items.get("fields", ())) == 2:
            pairs = zip(items["fields"], ("key", "value"), strict=True)
            items = {**items, "fields": [{**f, "name": name} for f, name in pairs]}
        return {"type": "array", "items": items}

    def _with_bytes(self, items: Any) -> Any:
        if not _takes_bytes(items):  # any number of them would fit into no bytes at all
            raise ValueError("its schema has lists of elements that take no bytes")
        return items


def _takes_bytes(type_: Any) -> bool:
    """Whether a value of a readable type takes a byte at least."""
    match type_:
        case None | "null" | {"type": "fixed", "size": 0}:
            return False
        case {"type": "record", "fields": fields}:
            return any(_takes_bytes(f["type"]) for f in fields)
    return True


def _plain_fixed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    size = schema["size"]
    if not isinstance(size, int) or not 0 <= size < 1 << 31:
        raise ValueError(f"its schema has a type of {size!r} bytes")
    type_ = _plain(schema)
    return {"size": size, **(type_ if isinstance(type_, Mapping) else {"type": "fixed"})}


def _plain(schema: Mapping[str, Any]) -> Any:
    """A primitive, or a fixed, with what changes how it is read; meanings no reader has a type for are left out."""
    match schema.get("logicalType"):
        case "duration":
            return schema["type"]
        case "decimal":
            precision, scale = schema.get("precision"), schema.get("scale", 0)
            if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 38):
                return schema["type"]
    type_ = {k: schema[k] for k in ("type", "logicalType", "precision", "scale", "adjust-to-utc") if k in schema}
    return type_ if len(type_) > 1 else schema["type"]
