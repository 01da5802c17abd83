"""predicateHints, comparisons in SQL of the Spark dialect, to the tree of `lakeview.predicates.tree`, within limits.

What cannot be read skips no file: "If the server fails to parse one of the SQL predicates, or fails to evaluate it, the
server may skip it". So does what costs too much: sqlglot parses some 150,000 tokens a second, and holds the
interpreter's lock, so that every other recipient waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.sql_tree import read_hint
from lakeview.predicates.tree import And, Constant, Node, Unknown, join
from lakeview.sharing.server.budget import PARSING_CPU, Budget
from lakeview.sharing.server.literals import Columns

_DEPTH = 60
_MOST_HINTS = 1000
_MOST_CHARACTERS, _MOST_TOKENS = 16 << 10, 4000
"""Of all hints of a request together: 300 comparisons joined by AND are 3,600 characters and 1,200 tokens. A hint that
goes beyond is dropped, later ones that fit are read."""


def sql_condition(hints: Sequence[str], schema: Schema, budget: Budget | None = None) -> Node:
    """All hints together, AND-ed; Unknown in place of what cannot be read, is too large, or comes after the budget
    (a fifth of a second of CPU) is spent. Never an error."""
    reading = _Reading(schema, budget or Budget(PARSING_CPU))
    parts = [reading.parsed(hint) for hint in hints[:_MOST_HINTS]]
    return join(And, parts) if parts else Constant(True)


class _Reading:
    """The hints of one request, and what is left of its limits."""

    def __init__(self, schema: Schema, budget: Budget) -> None:
        self._columns = Columns(schema, budget)
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
            node, tokens = read_hint(text, self._columns, self._tokens)
        except (InvalidRequestError, RecursionError, ValueError):
            return Unknown()
        self._tokens -= tokens
        return node


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
