"""One version of a shared table: its head lines, rendered rows, and the index of its files, by which a filter skips
those that a recipient cannot need (by mask, three-valued: what is unknown is needed). The filters of a request are read
within limits of size and time.

What cannot be read skips no file: "If the server fails to parse one of the SQL predicates, or fails to evaluate it, the
server may skip it". So does what costs too much: sqlglot parses some 150,000 tokens a second, and holds the
interpreter's lock, so that every other recipient waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from lakeview.delta.sharing import parse_values
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, leaf_name
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.columns import Columns
from lakeview.predicates.hints import read_json_hint
from lakeview.predicates.sql_tree import read_hint
from lakeview.predicates.tree import And, Constant, Node, Path, Unknown, join
from lakeview.sharing.protocol.messages import ResponseFormat
from lakeview.sharing.server import limits
from lakeview.sharing.server.lines import PackedRows, Row
from lakeview.sharing.server.refusals import unsupported_form
from lakeview.sharing.server.requests import AnswerOptions

StatisticsOf = Callable[[list[str]], pl.DataFrame]
"""Leaf names to STATISTICS of the same files in the same order."""


class FileIndex:
    """What is known of the files of one version, read when it is asked for. Safe to use from several threads.

    `facts`: `records`, `deleted_records` and `path`, one row a file; `partition`: typed values of partition columns,
    under their names.
    """

    def __init__(
        self, facts: Callable[[], pl.DataFrame], partition: Callable[[], dict[str, pl.Series]], statistics: StatisticsOf
    ) -> None:
        self._read_facts = facts
        self._read_partition = partition
        self._statistics = statistics
        self._bounds: dict[Path, Bounds | None] = {}
        self._lock = threading.Lock()

    @cached_property
    def facts(self) -> pl.DataFrame:
        """`path`, `records` and `deleted_records`, one row a file."""
        return self._read_facts()

    @cached_property
    def _partition(self) -> dict[str, pl.Series]:
        return self._read_partition()

    @property
    def height(self) -> int:
        """How many files it has read about so far."""
        return self.facts.height if "facts" in self.__dict__ else 0

    def keep(self, *conditions: Node, budget: Budget | None = None) -> pl.Series:
        """Which files may hold a row for which all conditions are true. Of a column that is looked at after the budget
        is spent nothing is known."""
        limit = budget or Budget(PRUNING_CPU, PRUNING_WALL)
        height = self.facts.height
        keep = pl.Series("keep", [True], dtype=pl.Boolean).new_from_index(0, height)
        for condition in conditions:
            keep = keep & may_match(condition, lambda path: None if limit.is_spent() else self.bounds(path), height)
        return keep

    def bounds(self, path: Path) -> Bounds | None:
        """Bounds of one column; None when nothing is known of it."""
        with self._lock:
            if path not in self._bounds:
                self._bounds[path] = self._read(path)
            return self._bounds[path]

    def _read(self, path: Path) -> Bounds | None:
        if len(path) == 1 and path[0] in self._partition:
            return Bounds.of_values(self._partition[path[0]])
        name = leaf_name(path)
        statistics = self._statistics([name])
        if name not in statistics.columns or not statistics["_path"].equals(self.facts["path"]):
            return None
        return Bounds.of_statistics(statistics[name], self.facts["records"])

    def limit_files(self, mask: pl.Series, limit: int | None) -> pl.Series:
        """Of the files of a mask, from the first on, those that hold so many rows; files of unknown count hold none."""
        if limit is None:
            return mask
        live = (self.facts["records"] - self.facts["deleted_records"]).fill_null(0).clip(0)
        rows = live.set(~mask, 0)
        before = rows.cum_sum() - rows
        # limit 0 still tells the schema by one file: a client that asks for nothing wants at least the types
        return mask & (before < max(limit, 1))


Render = Callable[[ResponseFormat, str], Iterable[Row]]
"""Response format and scheme of file ids to rows, newest file first, each made when it is asked for."""


@dataclass(frozen=True)
class SharedVersion:
    """`reader_features`: those that a client must have, in lower case; `timestamp` in milliseconds since 1970.

    `heads`: protocol and metaData as the bodies of their lines, by format. `index` and rendered rows have the files in
    one order. Safe to use from several threads.
    """

    version: int
    timestamp: int | None
    schema: Schema
    reader_features: frozenset[str]
    heads: Mapping[ResponseFormat, tuple[object, object]]
    index: FileIndex
    render: Render
    _rows: dict[tuple[ResponseFormat, str], PackedRows] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def response_format(self, options: AnswerOptions, more: frozenset[str] = frozenset()) -> ResponseFormat:
        """The format of an answer; `more`: features that are needed beside those of this version. 400 if there is
        none."""
        response_format = options.response_format(self.reader_features | more)
        if response_format not in self.heads:
            raise unsupported_form(f"this table is given in responseformat={next(iter(self.heads))} only")
        return response_format

    def rows(self, response_format: ResponseFormat, scheme: str) -> PackedRows:
        """The rows of every file, rendered once. Refusal for a table whose files cannot be given."""
        with self._lock:
            key = (response_format, scheme)
            if key not in self._rows:
                self._rows[key] = PackedRows.of(self.render(response_format, scheme))
            return self._rows[key]

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        with self._lock:
            return 100_000 + sum(rows.size for rows in self._rows.values()) + self.index.height * 200


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
