"""Filters as Delta Sharing carries them: a tree to SQL texts and to a JSON tree, and a JSON tree back.

A hint may only ever be weaker than the filter, in every dialect a server may read it in: what could be understood in
two ways is left out. Left out are floats (NaN), timestamps (the zone of a server), and texts with quotes or
back-slashes. `lakeview.predicates.sql_tree` reads the SQL texts.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

from lakeview.model.data_types import DataType, DecimalType, PrimitiveType, StructType
from lakeview.model.schema import Schema, quote_name
from lakeview.predicates import limits
from lakeview.predicates.columns import Columns
from lakeview.predicates.printing import SQLPrinter
from lakeview.predicates.tree import (
    MIRRORED,
    And,
    Comparison,
    IsIn,
    IsNull,
    Node,
    Or,
    Path,
    Unknown,
    conjuncts,
    join,
    negate,
)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMBIGUOUS = re.compile(r"['\"\\\x00-\x1f]")
_OPS = {
    "equal": "=", "lessThan": "<", "lessThanOrEqual": "<=", "greaterThan": ">", "greaterThanOrEqual": ">=",
}  # fmt: skip
_OP_NAMES = {op: name for name, op in _OPS.items()}
_VALUE_TYPES = {
    "string": "string", "boolean": "bool", "date": "date", "long": "long", "integer": "int", "short": "int",
    "byte": "int",
}  # fmt: skip
"""Column types whose constants are sent, and their value types."""

ValueType = Literal["bool", "int", "long", "string", "date", "float", "double", "timestamp"]
_COLUMN_TYPES: dict[str, tuple[str, ...]] = {
    "bool": ("boolean",), "int": ("integer", "short", "byte"), "long": ("long", "integer", "short", "byte"),
    "string": ("string",), "date": ("date",), "float": ("float",), "double": ("double", "float"),
    "timestamp": ("timestamp",),
}  # fmt: skip
"""The column types whose values a value type has unchanged: a cast to any other may change what matches."""


class _JsonNode(msgspec.Struct, rename="camel", omit_defaults=True):
    """A node of a JSON tree: an operation over children, a column (name) or a literal (value)."""

    op: Literal[
        "and", "or", "not", "isNull", "equal", "lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual",
        "column", "literal",
    ]  # fmt: skip
    children: list[_JsonNode] = []
    name: str | None = None
    value: str | None = None
    value_type: ValueType | None = None


# -- a tree to hints


def sql_hints(node: Node, schema: Schema) -> list[str]:
    """Returns conditions that are all true wherever the filter is; fewer than it has, perhaps none."""
    printer = SQLPrinter(
        name=lambda path: None if _type_of(path, schema) is None else _name(path),
        literal=lambda path, value: _sql_literal(value, _type_of(path, schema)),
        value_list=lambda leaf: _value_list(leaf, _type_of(leaf.path, schema)),
        not_equal="<>",
    )
    return [text for part in conjuncts(node) if (text := printer.print(part)) is not None]


def json_hint(node: Node, schema: Schema) -> str | None:
    """Returns the same as the text of one JSON tree, None where no condition can be written."""
    trees = [tree for part in conjuncts(node) if (tree := _json(part, schema)) is not None]
    return msgspec.json.encode(_combine("and", trees)).decode() if trees else None


def _json(node: Node, schema: Schema) -> _JsonNode | None:
    match node:
        case And() | Or():
            sides = _json(node.left, schema), _json(node.right, schema)
            return _combine("and" if isinstance(node, And) else "or", sides)
        case IsNull(path, is_negated=False):
            return _combine("isNull", [_json_column(path, schema)])
        case Comparison(path, op, value) if op in _OP_NAMES:
            return _json_comparison(path, op, value[0], schema)
        case IsNull() | Comparison():
            return _combine("not", [_json(negate(node), schema)])
        case IsIn(path, values, is_negated=False) if 0 < values.drop_nulls().len() <= limits.HINT_VALUES:
            return _combine("or", [_json_comparison(path, "=", value, schema) for value in values.drop_nulls()])
    return None


def _combine(op: Any, children: Any) -> _JsonNode | None:
    """An operation over children, None if one of them cannot be written; one child of AND or OR stands for itself."""
    if None in children:
        return None
    return children[0] if op in ("and", "or") and len(children) == 1 else _JsonNode(op, list(children))


def _json_comparison(path: Path, op: str, value: Any, schema: Schema) -> _JsonNode | None:
    column, text = _json_column(path, schema), _constant_text(value, _type_of(path, schema))
    if column is None or text is None:
        return None
    return _combine(_OP_NAMES[op], [column, _JsonNode("literal", value=text, value_type=column.value_type)])


def _json_column(path: Path, schema: Schema) -> _JsonNode | None:
    value_type: Any = _VALUE_TYPES.get(str(_type_of(path, schema)))
    return None if value_type is None or len(path) > 1 else _JsonNode("column", name=path[0], value_type=value_type)


def _type_of(path: Path, schema: Schema) -> DataType | None:
    type_: DataType | None = StructType(schema.fields)
    for part in path:
        fields = type_.fields if isinstance(type_, StructType) else ()
        type_ = next((f.type for f in fields if f.name == part), None)
    return type_


def _name(path: Path) -> str:
    return ".".join(part if _PLAIN.fullmatch(part) else quote_name(part) for part in path)


def _value_list(leaf: IsIn, type_: DataType | None) -> str | None:
    values = leaf.values.drop_nulls()
    if leaf.is_negated or not 0 < values.len() <= limits.HINT_VALUES:
        return None
    texts = [text for value in values if (text := _sql_literal(value, type_)) is not None]
    return ", ".join(texts) if len(texts) == values.len() else None


def _sql_literal(value: Any, type_: DataType | None) -> str | None:
    text = _constant_text(value, type_)
    return f"'{text}'" if text is not None and isinstance(value, str | date) else text


def _constant_text(value: Any, type_: DataType | None) -> str | None:
    """A constant as every dialect reads it; None if there is no such text, or it is not of the column's type."""
    match value, type_:
        case bool(), PrimitiveType("boolean"):
            return "true" if value else "false"
        case (bool(), _) | (datetime(), _):
            return None
        case int(), PrimitiveType("long" | "integer" | "short" | "byte"):
            return str(value)
        case str(), PrimitiveType("string") if not _AMBIGUOUS.search(value):
            return value
        case date(), PrimitiveType("date"):
            return value.isoformat()
        case int() | Decimal(), DecimalType():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
    return None


# -- a JSON tree to a tree


def read_json_hint(text: str, columns: Columns) -> Node:
    """Returns the tree in a JSON text, Unknown if it breaks a rule of the format: "The server may return all the files
    if validations fail"."""
    try:
        return _Reader(columns).node(msgspec.json.decode(text, type=_JsonNode), 0)
    except (msgspec.DecodeError, RecursionError, UnicodeError, _FaultyTreeError):
        return Unknown()


class _FaultyTreeError(ValueError):
    """The tree breaks the rules of its format."""


class _Reader:
    """One decoded JSON tree to a tree."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def node(self, tree: _JsonNode, depth: int) -> Node:
        if depth > limits.HINT_DEPTH:
            raise _FaultyTreeError("too deep")
        match tree.op, tree.children:
            case "and" | "or", [_, _, *_]:
                return join(And if tree.op == "and" else Or, [self.node(child, depth + 1) for child in tree.children])
            case "not", [child]:
                return negate(self.node(child, depth + 1))
            case "isNull", [child]:
                column = self._column(child)
                return Unknown() if column is None else IsNull(column[0])
            case op, [left, right] if op in _OPS:
                return self._comparison(_OPS[op], left, right)
        raise _FaultyTreeError(f"{tree.op} of {len(tree.children)}")

    def _comparison(self, op: str, left: _JsonNode, right: _JsonNode) -> Node:
        if left.op == "literal":
            left, right, op = right, left, MIRRORED[op]
        column = self._column(left)
        if right.op == "column":
            self._column(right)  # which may be faulty; columns are not compared with each other
            return Unknown()
        if right.op != "literal" or right.value is None or right.value_type is None:
            raise _FaultyTreeError("a literal has a value as text and a value type")
        if column is None or left.value_type != right.value_type or self._columns.is_spent():
            return Unknown()
        return self._columns.comparison(*column, op, right.value)

    def _column(self, tree: _JsonNode) -> tuple[Path, DataType] | None:
        """(path, type); None for a column that is not there, or whose values the value type changes."""
        if tree.op != "column" or tree.name is None or tree.value_type is None:
            raise _FaultyTreeError("a column has a name and a value type")
        column = self._columns.find((tree.name,)) or self._columns.find(tree.name.split("."))
        return column if column is not None and str(column[1]) in _COLUMN_TYPES[tree.value_type] else None
