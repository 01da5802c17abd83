"""The frames of one table, each read once and cached by version."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

import polars as pl

from lakeview.model.clock import Clock, system_clock
from lakeview.model.findings import Finding
from lakeview.model.memory import Memory, Place, memoize
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.snapshot_sources import as_declared
from lakeview.model.table import Table

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")

SchemaVersion = tuple[int, datetime | None, Schema]
"""A version, its timestamp and its schema."""

_OF_THE_LOG: Mapping[str, Callable[[Table], pl.DataFrame]] = {
    "history": lambda table: table.history(),
    "versions": lambda table: table.versions(look=False),
    "readable versions": lambda table: table.versions(),
    "schemas": lambda table: table.schemas(),
    "lifetimes": lambda table: table.lifetimes(),
    "refs": lambda table: table.refs(),
    "snapshot log": lambda table: table.snapshot_log(),
    "partition specs": lambda table: table.partition_specs(),
    "format versions": lambda table: table.format_versions(),
    "sort orders": lambda table: table.sort_orders(),
    "statistics files": lambda table: table.statistics_files(),
    "log files": lambda table: table.log_files(),
}


def cache_answer(
    *keys: str, entries: int = 32, seconds: float | None = None
) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Caches what a function of TableFrames, or of what has such `frames`, returns, the last `entries` values, for
    `seconds` if given: by these attributes of its first argument (`version`, `frames.latest`) and by the others."""
    parts = [attrgetter(key) for key in keys]

    def place(first: Any) -> Place:
        frames: TableFrames = getattr(first, "frames", first)
        return frames.memory, frames.address, tuple(part(first) for part in parts)

    return memoize(place, entries=entries, seconds=seconds)


class TableFrames:
    """Frames of a table up to its version `latest`, along the branch or tag `ref`.

    Without `latest` up to the newest version after each refresh; without `ref` along the default branch. Values are
    cached in `memory` by `address`; every key holds `latest`, so that a new commit is a new key. `clock` gives the time
    for what depends on ages, which is cached for a minute. Safe to use from several threads.
    """

    def __init__(
        self,
        table: Table,
        latest: int | None = None,
        ref: str | None = None,
        *,
        address: str | None = None,
        memory: Memory | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.table = table
        self._latest = latest
        self.ref = ref
        self.clock = clock
        self.memory = Memory() if memory is None else memory
        self.address = table.address if address is None else address

    @property
    def latest(self) -> int:
        """The newest version: as given, or that of the table after its last refresh."""
        return self.table.latest_version if self._latest is None else self._latest

    @cache_answer("latest", entries=128)
    def of_log(self, name: str) -> pl.DataFrame:
        """A frame of the whole log: history, versions (readability not examined), readable versions, schemas,
        lifetimes, refs, snapshot log, partition specs, format versions, sort orders, statistics files, log files."""
        return _OF_THE_LOG[name](self.table)

    @property
    def history(self) -> pl.DataFrame:
        """COMMITS, newest first."""
        return self.of_log("history")

    @property
    def refs(self) -> pl.DataFrame:
        """REFS, the default branch first."""
        return self.of_log("refs")

    @property
    @cache_answer("latest", "ref")
    def schemas(self) -> pl.DataFrame:
        """SCHEMAS along the ref, oldest first."""
        return self.of_log("schemas") if self.ref is None else self.table.ref_schemas(self.ref)

    @property
    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES along the ref."""
        return self.of_log("lifetimes") if self.ref is None else self.column_lifetimes(None)

    @cache_answer("latest", "ref")
    def column_lifetimes(self, columns: Sequence[str] | None) -> pl.DataFrame:
        """LIFETIMES along the ref, with the statistics of these columns."""
        return self.table.lifetimes(columns) if self.ref is None else self.table.ref_lifetimes(self.ref, columns)

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame:
        """`column_lifetimes`, where files may be left out that no commit still recorded added or removed: most of a
        large table whose log was cleaned up, and their statistics are most of that log."""
        fewer = None if self.ref is not None or self._is_whole else self._lifetimes_of_changes(columns)
        return self.column_lifetimes(columns) if fewer is None else fewer

    @cache_answer("latest")
    def _lifetimes_of_changes(self, columns: Sequence[str]) -> pl.DataFrame | None:
        lives = self.lifetimes
        unchanged_files = lives["added"].is_null() & lives["removed"].is_null()
        return self.table.changed_lifetimes(columns) if unchanged_files.any() else None

    @property
    def _is_whole(self) -> bool:
        """Whether the oldest commit has none before it: every file was added by one that is still recorded."""
        return not self.history.is_empty() and self.history.sort("position")["parent"].item(0) is None

    @cache_answer(entries=64)
    def snapshot(self, version: int, branch: str | None = None) -> Snapshot:
        """The table at a version; with a branch or tag as it is now: its schema may be newer than its last commit."""
        table = self.table
        return table.snapshot(as_declared(table, version)) if branch is None else table.snapshot(ref=branch)

    @cache_answer(entries=64)
    def snapshot_at(self, timestamp: datetime) -> Snapshot:
        """The table as it was at an aware timestamp."""
        return self.table.snapshot(at=timestamp)

    @cache_answer(entries=64)
    def recorded_statistics(self, version: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS as writers recorded them: of a column that a file lacks they contain nothing."""
        return self.table.statistics(as_declared(self.table, version), columns)

    @cache_answer(entries=64)
    def plan(self, where: str, version: int) -> pl.DataFrame:
        """PLAN: what a filter in SQL would read."""
        return self.table.plan(where, as_declared(self.table, version))

    @cache_answer(entries=64)
    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS of one commit."""
        return self.table.commit(version)

    @cache_answer(entries=64)
    def changes_plan(self, start: int, end: int) -> pl.DataFrame:
        """CHANGES_PLAN of the commits from `start` to `end`."""
        return self.table.changes_plan(start, end)

    @cache_answer(entries=16)
    def difference_plan(self, base: int, version: int) -> pl.DataFrame:
        """CHANGES_PLAN of what differs between two versions."""
        return self.table.difference_plan(base, version)

    @cache_answer()
    def manifests(self, version: int) -> pl.DataFrame:
        """MANIFESTS of a version."""
        return self.table.manifests(version)

    @cache_answer("latest", entries=16, seconds=600)
    def doctor(self) -> list[Finding]:
        """The findings of the log doctor; reads the whole log and lists the table's folder."""
        return self.table.check(now=self.clock())
