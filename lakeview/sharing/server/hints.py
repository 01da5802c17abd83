"""The filters of a request to trees, within limits of size and time.

What cannot be read skips no file: "If the server fails to parse one of the SQL predicates, or fails to evaluate it, the
server may skip it". So does what costs too much: sqlglot parses some 150,000 tokens a second, and holds the
interpreter's lock, so that every other recipient waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from lakeview.delta.sharing import parse_values
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.columns import Columns
from lakeview.predicates.hints import read_json_hint
from lakeview.predicates.sql_tree import read_hint
from lakeview.predicates.tree import And, Constant, Node, Unknown, join
from lakeview.sharing.server import limits

Clock = Callable[[], float]

PARSING_CPU = 0.2
PRUNING_CPU, PRUNING_WALL = 0.5, 10.0
"""Seconds. What clients send takes less: 300 comparisons joined by AND are parsed in 25 ms, with days in 80 ms, and
compared with the statistics of 10,000 files in 90 ms."""


class Budget:
    """CPU seconds of the calling thread, and seconds of the wall clock, from now on. For one thread only.

    CPU time bounds what others wait for: a thread that parses holds the interpreter's lock. The wall clock bounds what
    reads statistics for a filter. A wait for the processor spends nothing of the first.
    """

    def __init__(
        self, cpu: float, wall: float = 60.0, cpu_clock: Clock = time.thread_time, clock: Clock = time.monotonic
    ) -> None:
        self._cpu_clock, self._clock = cpu_clock, clock
        self._cpu_end, self._end = cpu_clock() + cpu, clock() + wall

    def is_spent(self) -> bool:
        """True once either is used up."""
        return self._cpu_clock() > self._cpu_end or self._clock() > self._end


def sql_condition(hints: Sequence[str], schema: Schema, budget: Budget | None = None) -> Node:
    """All predicateHints together, AND-ed; Unknown in place of what cannot be read, is too large, or comes after the
    budget (a fifth of a second of CPU) is spent. Never an error."""
    budget = budget or Budget(PARSING_CPU)
    columns = Columns(schema, parse_values, budget.is_spent)
    characters, tokens = limits.HINT_CHARACTERS, limits.HINT_TOKENS
    parts: list[Node] = []
    for hint in hints[: limits.HINTS]:
        node: Node = Unknown()
        size = 0
        if len(hint) <= characters and not budget.is_spent():
            characters -= len(hint)
            with suppress(InvalidRequestError, RecursionError, ValueError):
                node, size = read_hint(hint, columns, tokens)
        tokens -= size
        parts.append(node)
    return join(And, parts) if parts else Constant(True)


def json_condition(text: str | None, schema: Schema, budget: Budget | None = None) -> Node:
    """The tree of jsonPredicateHints; true without one, Unknown for a faulty or too large one. Unknown stands in place
    of the parts that come after the budget (a fifth of a second of CPU) is spent. Never an error."""
    if not text:
        return Constant(True)
    if len(text) > limits.JSON_HINT_CHARACTERS:
        return Unknown()
    return read_json_hint(text, Columns(schema, parse_values, (budget or Budget(PARSING_CPU)).is_spent))
