"""A filter to hints for the server: SQL texts and a JSON tree (sharing protocol, SQL Expressions and JSON predicates).

A hint may only ever be weaker than the filter, in every dialect a server may read it in: what could be understood in
two ways is left out. Left out are floats (NaN), timestamps (the zone of a server), and texts with quotes or
back-slashes.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from lakeview.model.schema import DecimalType, Field, PrimitiveType, Schema, StructType
from lakeview.predicates.printing import SQLPrinter
from lakeview.predicates.tree import And, Comparison, IsIn, IsNull, Node, Or, Path, conjuncts

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMBIGUOUS = re.compile(r"['\"\\\x00-\x1f]")
_JSON_OPS = {
    "=": "equal",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
}
_JSON_TYPES = {
    "string": "string", "boolean": "bool", "date": "date", "long": "long", "integer": "int", "short": "int",
    "byte": "int",
}  # fmt: skip
_MAX_VALUES = 100
"""Values of a membership test that are still sent."""

Json = dict[str, Any]


def sql_hints(node: Node, schema: Schema) -> list[str]:
    """Conditions that are all true wherever the filter is; fewer than it has, perhaps none."""
    printer = SQLPrinter(
        name=lambda path: None if _field(path, schema) is None else _name(path),
        literal=lambda path, value: _literal(value, _field(path, schema)),
        value_list=lambda leaf: _value_list(leaf, schema),
        not_equal="<>",
    )
    return [text for part in conjuncts(node) if (text := printer.print(part)) is not None]


def json_hint(node: Node, schema: Schema) -> str | None:
    """The same as one JSON tree, None where nothing can be said."""
    trees = [tree for part in conjuncts(node) if (tree := _json(part, schema)) is not None]
    if not trees:
        return None
    return msgspec.json.encode(trees[0] if len(trees) == 1 else {"op": "and", "children": trees}).decode()


def _json(node: Node, schema: Schema) -> Json | None:
    match node:
        case And(left, right) | Or(left, right):
            sides = _json(left, schema), _json(right, schema)
            if sides[0] is None or sides[1] is None:
                return None
            return {"op": "and" if isinstance(node, And) else "or", "children": list(sides)}
        case IsNull(path, negated):
            column = _json_column(path, schema)
            if column is None:
                return None
            test = {"op": "isNull", "children": [column]}
            return {"op": "not", "children": [test]} if negated else test
        case Comparison(path, "!=", value):
            equal = _json_compared(path, "=", value[0], schema)
            return None if equal is None else {"op": "not", "children": [equal]}
        case Comparison(path, op, value):
            return _json_compared(path, op, value[0], schema)
        case IsIn(path, _, negated=False):
            found = [_json_compared(path, "=", v, schema) for v in _values(node)]
            if not found or None in found:
                return None
            return found[0] if len(found) == 1 else {"op": "or", "children": found}
    return None


def _json_compared(path: Path, op: str, value: Any, schema: Schema) -> Json | None:
    column, text = _json_column(path, schema), _literal(value, _field(path, schema))
    if column is None or text is None:
        return None
    plain = (
        value.isoformat() if isinstance(value, date) else str(value).lower() if isinstance(value, bool) else str(value)
    )
    return {
        "op": _JSON_OPS[op],
        "children": [column, {"op": "literal", "value": plain, "valueType": column["valueType"]}],
    }


def _json_column(path: Path, schema: Schema) -> Json | None:
    field = _field(path, schema)
    known = _JSON_TYPES.get(field.type.name) if field is not None and isinstance(field.type, PrimitiveType) else None
    return None if known is None or len(path) > 1 else {"op": "column", "name": path[0], "valueType": known}


def _value_list(leaf: IsIn, schema: Schema) -> str | None:
    texts = [] if leaf.negated else [_literal(value, _field(leaf.path, schema)) for value in _values(leaf)]
    return None if not texts or None in texts else ", ".join(text for text in texts if text is not None)


def _values(node: IsIn) -> list[Any]:
    values = node.values.drop_nulls()
    return values.to_list() if values.len() <= _MAX_VALUES else []


def _field(path: Path, schema: Schema) -> Field | None:
    fields: Schema | StructType | None = schema
    found: Field | None = None
    for part in path:
        if fields is None:
            return None
        inside = fields.fields
        found = next((f for f in inside if f.name == part), None)
        fields = found.type if found is not None and isinstance(found.type, StructType) else None
    return found


def _name(path: Path) -> str:
    return ".".join(part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in path)


def _literal(value: Any, field: Field | None) -> str | None:
    """A constant as SQL that every dialect reads alike, None if there is none, or it is not of the column's type."""
    match value, None if field is None else field.type:
        case bool(), PrimitiveType("boolean"):
            return "true" if value else "false"
        case int(), PrimitiveType("long" | "integer" | "short" | "byte") if not isinstance(value, bool):
            return str(value)
        case str(), PrimitiveType("string") if not _AMBIGUOUS.search(value):
            return f"'{value}'"
        case date(), PrimitiveType("date") if not isinstance(value, datetime):
            return f"'{value.isoformat()}'"
        case int() | Decimal(), DecimalType() if not isinstance(value, bool):
            return format(value, "f") if isinstance(value, Decimal) else str(value)
    return None
