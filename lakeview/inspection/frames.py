"""The frames of one table, each read once and cached by version."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from functools import partial, wraps
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import polars as pl

from lakeview.model.clock import Clock, system_clock
from lakeview.model.findings import Finding
from lakeview.model.memory import Memory
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

    def get_or_make(
        self,
        name: str,
        make: Callable[[], _Value],
        *arguments: Hashable,
        entries: int = 32,
        seconds: float | None = None,
    ) -> _Value:
        """Returns `make()`, computed once for a name and its arguments."""
        return self.memory.get(name, self.address, arguments, make, entries=entries, seconds=seconds)

    def of_log(self, name: str) -> pl.DataFrame:
        """A frame of the whole log: history, versions (readability not examined), readable versions, schemas,
        lifetimes, refs, snapshot log, partition specs, format versions, sort orders, statistics files, log files."""
        return self.get_or_make("log", lambda: _OF_THE_LOG[name](self.table), name, self.latest, entries=128)

    @property
    def history(self) -> pl.DataFrame:
        """COMMITS, newest first."""
        return self.of_log("history")

    @property
    def refs(self) -> pl.DataFrame:
        """REFS, the default branch first."""
        return self.of_log("refs")

    @property
    def schemas(self) -> pl.DataFrame:
        """SCHEMAS along the ref, oldest first."""
        if self.ref is None:
            return self.of_log("schemas")
        ref = self.ref
        return self.get_or_make("schemas of a ref", lambda: self.table.ref_schemas(ref), self.latest, ref)

    @property
    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES along the ref."""
        return self.of_log("lifetimes") if self.ref is None else self.column_lifetimes(None)

    def column_lifetimes(self, columns: Sequence[str] | None) -> pl.DataFrame:
        """LIFETIMES along the ref, with the statistics of these columns."""
        names = None if columns is None else tuple(columns)

        def read() -> pl.DataFrame:
            return self.table.lifetimes(names) if self.ref is None else self.table.ref_lifetimes(self.ref, names)

        return self.get_or_make("lifetimes of columns", read, self.latest, self.ref, names)

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame:
        """`column_lifetimes`, where files may be left out that no commit still recorded added or removed: most of a
        large table whose log was cleaned up, and their statistics are most of that log."""
        names = tuple(columns)
        if self.ref is not None or self._is_whole:
            return self.column_lifetimes(names)
        lives, fewer = self.lifetimes, None
        if (lives["added"].is_null() & lives["removed"].is_null()).any():
            fewer = self.get_or_make(
                "lifetimes of changed files", lambda: self.table.changed_lifetimes(names), self.latest, names
            )
        return self.column_lifetimes(names) if fewer is None else fewer

    @property
    def _is_whole(self) -> bool:
        """Whether the oldest commit has none before it: every file was added by one that is still recorded."""
        return not self.history.is_empty() and self.history.sort("position")["parent"].item(0) is None

    def snapshot(self, version: int, branch: str | None = None) -> Snapshot:
        """The table at a version; with a branch or tag as it is now: its schema may be newer than its last commit."""

        def read() -> Snapshot:
            if branch is None:
                return self.table.snapshot(as_declared(self.table, version))
            return self.table.snapshot(ref=branch)

        return self.get_or_make("snapshot", read, version, branch, entries=64)

    def snapshot_at(self, timestamp: datetime) -> Snapshot:
        """The table as it was at an aware timestamp."""
        return self.get_or_make("snapshot at", lambda: self.table.snapshot(at=timestamp), timestamp, entries=64)

    def recorded_statistics(self, version: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS as writers recorded them: of a column that a file lacks they contain nothing."""
        names = None if columns is None else tuple(columns)
        version_or_newest = as_declared(self.table, version)
        return self.get_or_make(
            "recorded statistics", lambda: self.table.statistics(version_or_newest, names), version, names, entries=64
        )

    def sampled_statistics(self, version: int, share: float) -> pl.DataFrame | None:
        """STATISTICS of a share of the files, not cached; None where the table reads those of all."""
        return self.table.sampled_statistics(as_declared(self.table, version), share)

    def plan(self, where: str | pl.Expr, version: int) -> pl.DataFrame:
        """PLAN: what a filter would read; cached for one in SQL."""
        version_or_newest = as_declared(self.table, version)
        if not isinstance(where, str):  # expressions have no hash
            return self.table.plan(where, version_or_newest)
        return self.get_or_make("plan", lambda: self.table.plan(where, version_or_newest), version, where, entries=64)

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS of one commit."""
        return self.get_or_make("commit", lambda: self.table.commit(version), version, entries=64)

    def manifests(self, version: int) -> pl.DataFrame:
        """MANIFESTS of a version."""
        return self.get_or_make("manifests", lambda: self.table.manifests(version), version)

    def doctor(self) -> list[Finding]:
        """The findings of the log doctor; reads the whole log and lists the table's folder."""
        return self.get_or_make(
            "doctor", lambda: self.table.check(now=self.clock()), self.latest, entries=16, seconds=600
        )


def cache_answer(
    *keys: str, entries: int = 32, seconds: float | None = None
) -> Callable[[Callable[Concatenate[Any, _Arguments], _Value]], Callable[Concatenate[Any, _Arguments], _Value]]:
    """Caches what a method of an inspection returns with the frames of its table, the last `entries` values, for
    `seconds` if given: by these of its attributes (`version`, `frames.latest`), and its hashable arguments."""
    parts = [attrgetter(key) for key in keys]

    def decorate(
        method: Callable[Concatenate[Any, _Arguments], _Value],
    ) -> Callable[Concatenate[Any, _Arguments], _Value]:
        @wraps(method)
        def remembering(self: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
            frames: TableFrames = self.frames
            arguments = (*(part(self) for part in parts), *args, *sorted(kwargs.items()))
            make = partial(method, self, *args, **kwargs)
            name = method.__qualname__
            return frames.memory.get(name, frames.address, arguments, make, entries=entries, seconds=seconds)

        return remembering

    return decorate
