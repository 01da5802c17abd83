"""Offsets of a stream to the files between them: the rows of a version, then what each commit adds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import first_version_from
from lakeview.delta.table import DeltaTable
from lakeview.model.column_values import sizes
from lakeview.model.data_types import Field
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask, select_columns
from lakeview.spark.streams import (
    StreamOptions,
    no_offset,
    no_version,
    other_columns,
    other_table,
    raise_or_log,
    removed_rows,
    taken_back,
)


@dataclass(frozen=True)
class Offset:
    """What a stream has read: all files before number `index` of `version`. `initial`: of all files that the version
    has, else of those that its commit adds. `table`: the id of the table. `first`: version, index and initial of the
    offset at which the stream began; None in checkpoints of older releases. VERSION: the key of `version` in these."""

    table: str
    version: int
    index: int
    initial: bool
    first: list[Any] | None = None

    VERSION: ClassVar = "version"

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """An offset of a checkpoint. InvalidRequestError if it is none of ours."""
        match value, value.get("first", [0, 0, False]):
            case (
                {"table": str(table), cls.VERSION: int(version), "index": int(index), "initial": bool(initial), **rest},
                [int(), int(), bool()],
            ) if rest.keys() <= {"first"}:
                return cls(table, version, index, initial, value.get("first"))
        raise no_offset(value)

    def json(self) -> dict[str, Any]:
        """As a checkpoint records it: one that says no beginning stays as it was."""
        first = {} if self.first is None else {"first": self.first}
        return {
            "table": self.table, self.VERSION: self.version, "index": self.index, "initial": self.initial, **first,
        }  # fmt: skip

    def began(self) -> Self:
        """This offset as the one at which a stream begins."""
        return replace(self, first=[self.version, self.index, self.initial])

    def begin_of(self, end: Self) -> Self:
        """The start of a batch that ends at `end`, where Spark says that it is this one: of the first batch, Spark
        records the end alone, and asks for the beginning again after a restart, when the table may have grown."""
        if end.first is None or end.first == self.first:
            return self
        version, index, initial = end.first
        return replace(end, version=version, index=index, initial=initial)

    def next_version(self) -> Self:
        """The end of the version."""
        return replace(self, version=self.version + 1, index=0, initial=False)


class StreamFiles:
    """The files of a Delta table in the order in which a stream reads them.

    `version`: the one whose schema the stream has; a later commit that changes the columns stops it.
    """

    def __init__(self, table: DeltaTable, options: StreamOptions, version: int, columns: list[str]) -> None:
        self.table = table
        self._options = options
        self._version = self._last_checked = version
        self._columns = columns
        self._tasks: dict[tuple[int, bool], list[FileTask]] = {}

    @cached_property
    def _state(self) -> Replay:
        return self.table.state(self._version)

    @cached_property
    def schema(self) -> Schema:
        """The columns that the stream can have."""
        return self.table.snapshot(self._version).schema

    @property
    def latest(self) -> int:
        """The newest version, after one listing."""
        self.table.refresh()
        return self.table.latest_version

    def first(self) -> Offset:
        """Where a new stream begins."""
        return self._first().began()

    def _first(self) -> Offset:
        options, latest = self._options, self.latest
        table_id = str(self._state.metadata.id)
        if options.starting_latest:
            return Offset(table_id, latest + 1, 0, initial=False)
        if options.starting_timestamp is not None:
            times = self.table.versions(look=False).select("version", "timestamp").sort("version")
            return Offset(table_id, first_version_from(times, options.starting_timestamp), 0, initial=False)
        if options.starting_version is not None:
            if options.starting_version > latest + 1:
                raise no_version(self.table.address, options.starting_version, latest)
            return Offset(table_id, options.starting_version, 0, initial=False)
        return Offset(table_id, latest, 0, initial=True)

    def end(
        self, start: Mapping[str, Any], until: int | None, max_files: int | None, max_bytes: int | None
    ) -> dict[str, Any]:
        """How far a batch goes: at most so many files and bytes, at least one file, no further than `until`, the newest
        version without it."""
        newest = self.latest
        latest = newest if until is None else min(newest, until)
        files = size = 0
        offset = self._parse(start)
        if offset.version > newest + 1:
            loss = taken_back(self.table.address, offset.version - 1, newest)
            raise_or_log(loss, fail_on_data_loss=self._options.fail_on_data_loss)
        while offset.version <= latest:
            for task in self._files(offset)[offset.index :]:
                full = max_files is not None and files >= max_files
                if full or (max_bytes is not None and files and size + task.size > max_bytes):
                    return offset.json()
                files, size = files + 1, size + task.size
                offset = replace(offset, index=offset.index + 1)
            offset = offset.next_version()
        return offset.json()

    def between(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[FileTask]:
        """The files from one offset to another."""
        stop = self._parse(end)
        offset = self._parse(start).begin_of(stop)
        while (offset.version, not offset.initial) < (stop.version, not stop.initial):
            yield from self._files(offset)[offset.index :]
            offset = offset.next_version()
        if offset.index < stop.index:
            yield from self._files(offset)[offset.index : stop.index]

    # -- inside

    def _parse(self, value: Mapping[str, Any]) -> Offset:
        """As `Offset.parse`; InvalidRequestError for an offset of another table, too."""
        offset = Offset.parse(value)
        if offset.table != self._state.metadata.id:
            raise other_table(self.table.address, offset.table, str(self._state.metadata.id))
        return offset

    def _files(self, offset: Offset) -> list[FileTask]:
        key = offset.version, offset.initial
        if key not in self._tasks:
            # what lies before is not asked for again: offsets only grow
            self._tasks = {k: tasks for k, tasks in self._tasks.items() if k[0] >= offset.version - 1}
            tasks = self._rows_of(offset.version) if offset.initial else self._added_tasks(offset.version)
            self._tasks[key] = select_columns(tasks, self.schema, self._columns)
        return self._tasks[key]

    def _partitions(self) -> list[Field]:
        return partition_fields(self.schema, self._state.metadata.partition_columns or [])

    def _rows_of(self, version: int) -> list[FileTask]:
        self._check_definition(version, may_change=True)
        tasks = self._scan(self.table.state(version)).tasks(None)
        return sorted(self._with_roots(tasks), key=lambda task: task.path)

    def _scan(self, state: Replay) -> Scan:
        return Scan(state, self.schema, self._partitions(), self.table.address)

    def _added_tasks(self, version: int) -> list[FileTask]:
        commit = self._commit(version)
        if commit is None:
            return []
        self._check_definition(version, may_change=bool(only("meta_data", [commit])))
        if any(remove.data_change for _, remove in only("remove", [commit])):
            if self._options.skip_change_commits:
                return []
            self._check_changes(commit)
        columns = ["size", "vector", "partition_values", "data_change"]
        actions = file_actions([commit], self.table.address, columns).with_columns(sizes())
        return self._with_roots(self._scan(self._state).tasks_of(actions.filter("added", "data_change")))

    def _commit(self, version: int) -> Commit | None:
        there = self.table.log.commit_files()["version"]
        if version in there:
            return self.table.log.commit(version)
        loss = VersionNotFoundError(
            f"commit {version} of {self.table.address} is gone from the log: what it added cannot be read",
            fix="start again with a new checkpoint location, or set failOnDataLoss to false to go on without it",
            place=f"version {version}",
        )
        raise_or_log(loss, fail_on_data_loss=self._options.fail_on_data_loss)
        return None

    def _check_definition(self, version: int, *, may_change: bool) -> None:
        """That a version has the stream's columns; `may_change`: its commit may have changed them, as may those between
        it and the last one that was checked, which a stream that begins late does not read."""
        if version <= self._last_checked:
            return
        if may_change or version > self._last_checked + 1:
            table_id, stream_id = self.table.state(version).metadata.id, self._state.metadata.id
            if table_id != stream_id:
                raise other_table(self.table.address, str(stream_id), str(table_id))
            if self.table.snapshot(version).schema.to_arrow() != self.schema.to_arrow():
                raise other_columns(f"version {version}", self.table.address)
        self._last_checked = version

    def _check_changes(self, commit: Commit) -> None:
        adds = any(a.add is not None and a.add.data_change is not False for a in commit.actions)
        if self._options.ignore_changes or (self._options.ignore_deletes and not adds):
            return
        raise removed_rows(f"version {commit.version}", self.table.address, commit.info.operation, adds=adds)

    def _with_roots(self, tasks: list[FileTask]) -> list[FileTask]:
        return [replace(task, roots=self.table.storage.config.roots) for task in tasks]
