"""jsonPredicateHints, one tree as JSON text, to the tree of `lakeview.predicates.tree`.

"The server may return all the files if validations fail": a tree with any fault in it says nothing at all.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lakeview.model.schema import DataType, Schema
from lakeview.predicates.tree import MIRRORED, And, Constant, IsNull, Node, Or, Path, Unknown, join, negate
from lakeview.sharing.server.budget import PARSING_CPU, Budget
from lakeview.sharing.server.literals import Columns

_DEPTH = 100
_MOST_CHARACTERS = 128 << 10
"""Nearly a thousand comparisons. A longer tree skips no file."""

_COMPARISONS = {
    "equal": "=", "lessThan": "<", "lessThanOrEqual": "<=", "greaterThan": ">", "greaterThanOrEqual": ">=",
}  # fmt: skip
_HELD_BY = {
    "bool": ("boolean",),
    "int": ("integer", "short", "byte"),
    "long": ("long", "integer", "short", "byte"),
    "string": ("string",),
    "date": ("date",),
    "float": ("float",),
    "double": ("double", "float"),
    "timestamp": ("timestamp",),
}
"""A value type to the column types whose values it holds unchanged: a cast to any other may change what matches."""


class _FaultyTreeError(ValueError):
    """The tree breaks the rules of its format."""


def json_condition(text: str | None, schema: Schema, budget: Budget | None = None) -> Node:
    """The tree in a text; true without one, Unknown for a faulty or too large one. Unknown stands in place of the parts
    that come after the budget (a fifth of a second of CPU) is spent. Never an error."""
    if not text:
        return Constant(True)
    if len(text) > _MOST_CHARACTERS:
        return Unknown()
    try:
        return _Reader(Columns(schema, budget or Budget(PARSING_CPU))).node(msgspec.json.decode(text), depth=0)
    except (msgspec.DecodeError, RecursionError, UnicodeError, _FaultyTreeError):
        return Unknown()


class _Reader:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def node(self, tree: Any, *, depth: int) -> Node:
        if depth > _DEPTH:
            raise _FaultyTreeError("too deep")
        op, children = _operation(tree)
        match op:
            case "and" | "or":
                if len(children) < 2:
                    raise _FaultyTreeError(f"{op} of {len(children)}")
                parts = [self.node(child, depth=depth + 1) for child in children]
                return join(And if op == "and" else Or, parts)
            case "not":
                return negate(self.node(_only(children), depth=depth + 1))
            case "isNull":
                found, _ = self._column(_only(children))
                return Unknown() if found is None else IsNull(found[0])
            case str() if op in _COMPARISONS and len(children) == 2:
                return self._comparison(_COMPARISONS[op], children)
        raise _FaultyTreeError(f"no operation {op!r}")

    def _comparison(self, op: str, children: list[Any]) -> Node:
        left, right = children
        if _operation(left)[0] == "literal":
            left, right, op = right, left, MIRRORED[op]
        if _operation(left)[0] != "column" or _operation(right)[0] not in ("literal", "column"):
            raise _FaultyTreeError("a comparison takes columns and literals")
        found, kind = self._column(left)
        if right["op"] == "column":
            self._column(right)
            return Unknown()
        value, type_ = right.get("value"), right.get("valueType")
        if not isinstance(value, str) or not isinstance(type_, str) or type_ not in _HELD_BY:
            raise _FaultyTreeError("a literal has a value as text and a value type")
        if found is None or type_ != kind or self._columns.is_spent:
            return Unknown()
        return self._columns.comparison(*found, op, value)

    def _column(self, tree: Any) -> tuple[tuple[Path, DataType] | None, str]:
        """((path, type) or None where nothing can be said, value type)."""
        if _operation(tree)[0] != "column":
            raise _FaultyTreeError("a column was expected")
        name, kind = tree.get("name"), tree.get("valueType")
        if not isinstance(name, str) or not isinstance(kind, str) or kind not in _HELD_BY:
            raise _FaultyTreeError("a column has a name and a value type")
        found = self._columns.find((name,)) or self._columns.find(tuple(name.split(".")))
        usable = found is not None and str(found[1]) in _HELD_BY[kind]
        return (found if usable else None), kind


def _operation(tree: Any) -> tuple[Any, list[Any]]:
    if not isinstance(tree, dict):
        raise _FaultyTreeError("a node is no object")
    children = tree.get("children", [])
    if not isinstance(children, list):
        raise _FaultyTreeError("children are no list")
    return tree.get("op"), children


def _only(children: list[Any]) -> Any:
    if len(children) != 1:
        raise _FaultyTreeError("one child was expected")
    return children[0]
