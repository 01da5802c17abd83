"""A filter and what the log says of files to the files that a recipient may need: by mask, three-valued, hints first.

What is unknown is kept. One index stands for one version of a table; bounds of a column are read once and stay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

import polars as pl

from lakeview.model.schema import leaf_name
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.tree import Node, Path
from lakeview.sharing.server.hints import PRUNING_CPU, PRUNING_WALL, Budget

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
        kept = pl.Series("kept", [True], dtype=pl.Boolean).new_from_index(0, height)
        for condition in conditions:
            kept = kept & may_match(condition, lambda path: None if limit.is_spent() else self.bounds(path), height)
        return kept

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

    def limited(self, kept: pl.Series, limit: int | None) -> pl.Series:
        """Of the files kept, from the first on, those that hold so many rows; files of unknown count hold none."""
        if limit is None:
            return kept
        live = (self.facts["records"] - self.facts["deleted_records"]).fill_null(0).clip(0)
        counted = live.set(~kept, 0)
        before = counted.cum_sum() - counted
        # limit 0 still tells the schema by one file: a client that asks for nothing wants at least the types
        return kept & (before < max(limit, 1))
