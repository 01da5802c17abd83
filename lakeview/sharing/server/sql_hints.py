"""predicateHints, comparisons in SQL of the Spark dialect, to the tree of `lakeview.predicates.expressions`.

What cannot be read skips no file: "If the server fails to parse one of the SQL predicates, or fails to evaluate it, the
server may skip it". So does what costs too much: sqlglot parses some 150,000 tokens a second, and holds the
interpreter's lock, so that every other recipient waits.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import DataType, PrimitiveType, Schema
from lakeview.predicates.expressions import And, Constant, Node, Or, Path, Unknown
from lakeview.predicates.syntax import Refusal, check_size
from lakeview.sharing.server.budget import PARSING_CPU, Budget
from lakeview.sharing.server.literals import MIRRORED, Columns, comparison, joined, membership, null_test

_DEPTH = 60
_MOST_HINTS = 1000
_MOST_CHARACTERS, _MOST_TOKENS = 16 << 10, 4000
"""Of all hints of a request together: 300 comparisons joined by AND are 3,600 characters and 1,200 tokens. A hint that
goes beyond is dropped, later ones that fit are read."""

_MOST_VALUES = 1000
"""Of one list: data skipping looks at no more of them."""

_REFUSAL = Refusal("bad-hint", "predicateHints", "the hint")
_SPARK = sqlglot.Dialect.get_or_raise("spark")
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_CASTS = {
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
}


def sql_condition(hints: Sequence[str], schema: Schema, budget: Budget | None = None) -> Node:
    """All hints together, AND-ed; Unknown in place of what cannot be read, is too large, or comes after the budget
    (a fifth of a second of CPU) is spent. Never an error."""
    reading = _Reading(Columns(schema), budget or Budget(PARSING_CPU))
    parts = [reading.parsed(hint) for hint in hints[:_MOST_HINTS]]
    return joined(And, parts) if parts else Constant(True)


class _Reading:
    """The hints of one request, and what is left of its limits."""

    def __init__(self, columns: Columns, budget: Budget) -> None:
        self._reader = _Reader(columns, budget)
        self._budget = budget
        self._characters = _MOST_CHARACTERS
        self._tokens = _MOST_TOKENS

    def parsed(self, hint: str) -> Node:
        if len(hint) > self._characters or self._budget.is_spent:
            return Unknown()
        self._characters -= len(hint)
        text = _unwrapped(hint)
        if text is None:
            return Unknown()
        try:
            tokens = _SPARK.tokenize(text)
            if len(tokens) > self._tokens:
                return Unknown()
            check_size(tokens, _REFUSAL)
            self._tokens -= len(tokens)
            trees = _SPARK.parser().parse(tokens, text)
            if len(trees) != 1 or trees[0] is None:
                return Unknown()
            return self._reader.node(trees[0], negated=False)
        except (SqlglotError, RecursionError, ValueError, InvalidRequestError):
            return Unknown()


def _unwrapped(text: str) -> str | None:
    """Without parentheses that only wrap others, which some clients write by the hundred; None if it is nested too
    deep to be parsed, or its parentheses do not match."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    quote = ""
    deepest = 0
    escaped = False
    for i, letter in enumerate(text):
        if escaped:
            escaped = False
        elif quote and quote != "`" and letter == "\\":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter == "(":
            opened.append(i)
        elif letter == ")":
            if not opened:
                return None
            pairs[opened.pop()] = i
    if opened or quote:
        return None
    spare = {i for i, j in pairs.items() if pairs.get(i + 1) == j - 1}
    dropped = spare | {pairs[i] for i in spare}
    kept = "".join(letter for i, letter in enumerate(text) if i not in dropped)
    depth = 0
    for i in sorted(set(pairs) - spare | {pairs[i] for i in set(pairs) - spare}):
        depth += 1 if i in pairs else -1
        deepest = max(deepest, depth)
    return kept if deepest <= _DEPTH else None


class _Reader:
    """One parsed expression to a tree. `negated` is pushed down to the comparisons."""

    def __init__(self, columns: Columns, budget: Budget) -> None:
        self._columns = columns
        self._budget = budget

    def node(self, tree: exp.Expr, *, negated: bool) -> Node:
        if self._budget.is_spent:
            return Unknown()
        while isinstance(tree, exp.Paren | exp.Not):
            negated ^= isinstance(tree, exp.Not)
            tree = tree.this
        match tree:
            case exp.And() | exp.Or():
                parts = [self.node(part, negated=negated) for part in _parts(tree)]
                return joined(And if isinstance(tree, exp.And) != negated else Or, parts)
            case exp.Is():
                return self._is(tree, negated)
            case exp.In():
                return self._in(tree, negated)
            case exp.Between():
                low = self._compared(tree.this, ">=", tree.args["low"], negated)
                high = self._compared(tree.this, "<=", tree.args["high"], negated)
                return joined(Or if negated else And, [low, high])
            case exp.Boolean():
                return Constant(bool(tree.this) != negated)
            case exp.Column():
                found = self._column(tree)
                if found is not None and found[1] == PrimitiveType("boolean"):
                    return comparison(*found, "=", "true", negated=negated)
        op = _COMPARISONS.get(type(tree))
        return Unknown() if op is None else self._compared(tree.this, op, tree.expression, negated)

    def _column(self, tree: exp.Expr) -> tuple[Path, DataType] | None:
        tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if not isinstance(tree, exp.Column | exp.Dot):
            return None
        parts = tree.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        return self._columns.find(tuple(str(part.name) for part in parts))

    def _compared(self, left: exp.Expr, op: str, right: exp.Expr, negated: bool) -> Node:
        column, constant = self._column(left), right
        if column is None:
            column, constant, op = self._column(right), left, MIRRORED[op]
        if column is None:
            return Unknown()
        found = _constant(constant, column[1])
        return Unknown() if found is None else comparison(*column, op, found[0], negated=negated)

    def _is(self, tree: exp.Is, negated: bool) -> Node:
        column = self._column(tree.this)
        if column is None or not isinstance(tree.expression, exp.Null):
            return Unknown()
        return null_test(column[0], negated=negated)

    def _in(self, tree: exp.In, negated: bool) -> Node:
        column, listed = self._column(tree.this), tree.expressions
        if column is None or not 0 < len(listed) <= _MOST_VALUES or tree.args.get("query") is not None:
            return Unknown()
        values = [_constant(value, column[1]) for value in listed]
        known = [value[0] for value in values if value is not None]
        return membership(*column, known, negated=negated) if len(known) == len(values) else Unknown()


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    """The terms of a chain of the same operator, without recursion."""
    found: list[exp.Expr] = []
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if type(part) is type(tree):
            waiting += [part.expression, part.this]
        else:
            found.append(part)
    return found


def _constant(tree: exp.Expr, type_: DataType) -> tuple[str | None] | None:
    """The text of a constant (None in it for null) compared as the column's own type; None for anything else."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    text = type_ == PrimitiveType("string")
    match tree:
        case exp.Null():
            return (None,)
        case exp.Boolean():
            return (str(bool(tree.this)).lower(),) if type_ == PrimitiveType("boolean") else None
        case exp.Literal():
            # a text column compared with a number is cast to one: '05' is 5 then
            return (str(tree.this),) if tree.is_string or not text else None
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string and not text:
            return (f"-{tree.this.this}",)
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            return (str(tree.this.this),) if _CASTS.get(tree.to.this) == str(type_) else None
    return None
