"""Offsets of a stream of a Delta table to its files: those of a version, then what each later commit adds."""

from dataclasses import replace
from datetime import datetime
from functools import cached_property

from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import first_version_from
from lakeview.delta.table import DeltaTable
from lakeview.model.column_values import sizes
from lakeview.model.errors import VersionNotFoundError
from lakeview.rows.tasks import FileTask
from lakeview.spark.row_stream import Offset, RowStream
from lakeview.spark.streams import StreamOptions, other_columns, other_table, raise_or_log, taken_back


def first_version(table: DeltaTable, start: int | datetime | None) -> int:
    """The first version whose commit a stream reads, by its number or time; the next one to come without. As the table
    was listed last. VersionNotFoundError for a number behind that."""
    latest = table.latest_version
    if start is None:
        return latest + 1
    if isinstance(start, datetime):
        return first_version_from(table.versions(look=False).select("version", "timestamp").sort("version"), start)
    if start > latest + 1:
        raise VersionNotFoundError(
            f"{table.address} has no version {start}: it is at {latest}",
            fix=f"start at a version up to {latest + 1}",
            place="startingVersion",
        )
    return start


class StreamFiles(RowStream):
    """The files of a Delta table. A commit that changes the columns stops the stream."""

    def __init__(self, table: DeltaTable, options: StreamOptions, version: int, columns: list[str]) -> None:
        super().__init__(options, version, columns)
        self.table: DeltaTable = table
        self._last_checked = version

    @cached_property
    def _state(self) -> Replay:
        return self.table.state(self._version)

    def _first(self, latest: int) -> Offset:
        if self._options.start is None and not self._options.starts_latest:
            return Offset(self._table_id, latest, 0, initial=True)
        return Offset(self._table_id, first_version(self.table, self._options.start), 0, initial=False)

    def _after(self, offset: Offset, last: int | None = None) -> Offset | None:
        if last is not None and offset.version > (newest := min(last, self.table.latest_version)):
            if offset.version > newest + 1:
                loss = taken_back(self.table.address, offset.version - 1, newest)
                raise_or_log(loss, fail_on_data_loss=self._options.fail_on_data_loss)
            return None
        return replace(offset, version=offset.version + 1, index=0, initial=False)

    def _tasks_of(self, version: int, initial: bool) -> list[FileTask]:
        tasks = self._rows_of(version) if initial else self._added_tasks(version)
        return [replace(task, roots=self.table.storage.config.roots) for task in tasks]

    def _rows_of(self, version: int) -> list[FileTask]:
        self._check_definition(version, may_change=True)
        return sorted(self._scan(self.table.state(version)).tasks(None), key=lambda task: task.path)

    def _scan(self, state: Replay) -> Scan:
        fields = partition_fields(self.schema, self._state.metadata.partition_columns or [])
        return Scan(state, self.schema, fields, self.table.address)

    def _added_tasks(self, version: int) -> list[FileTask]:
        commit = self._commit(version)
        if commit is None:
            return []
        self._check_definition(version, may_change=bool(only("meta_data", [commit])))
        if any(remove.data_change for _, remove in only("remove", [commit])):
            adds = any(add.data_change is not False for _, add in only("add", [commit]))
            if not self._options.reads_change(f"version {version}", self.table.address, commit.info.operation, adds):
                return []
        columns = ["size", "vector", "partition_values", "data_change"]
        actions = file_actions([commit], self.table.address, columns).with_columns(sizes())
        return self._scan(self._state).tasks_of(actions.filter("added", "data_change"))

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
            table_id = str(self.table.state(version).metadata.id)
            if table_id != self._table_id:
                raise other_table(self.table.address, self._table_id, table_id)
            if self.table.snapshot(version).schema.to_arrow() != self.schema.to_arrow():
                raise other_columns(f"version {version}", self.table.address)
        self._last_checked = version
