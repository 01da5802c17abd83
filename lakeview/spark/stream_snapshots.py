"""Offsets of a stream of an Iceberg table to its files: those of a snapshot, then what each later one adds."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.table import IcebergTable
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.rows.tasks import FileTask, select_columns
from lakeview.spark.stream_branch import StreamBranch
from lakeview.spark.stream_files import Offset
from lakeview.spark.streams import StreamOptions, other_columns, other_table, removed_rows

COMPLETE = -1
"""The index of an offset behind all files of its snapshot."""

_ADDED = "add data file"


class SnapshotOffset(Offset):
    """An offset whose `version` is a snapshot: all files before number `index` of it, and of the snapshots before it,
    were read. `table`: the uuid of the table."""

    VERSION = "snapshot"


class SnapshotStream:
    """The files of an Iceberg table in the order in which a stream reads them.

    `version`: the snapshot whose schema the stream has; a later one with other columns stops it. Snapshots that only
    rearrange files (`replace`) are passed over. A snapshot that removes rows (files, or by deletes) stops the stream
    unless an option says what to do.
    """

    def __init__(self, table: IcebergTable, options: StreamOptions, version: int, columns: list[str]) -> None:
        self.table = table
        self._branch = StreamBranch(table, fail_on_data_loss=options.fail_on_data_loss)
        self._options = options
        self._version = version
        self._columns = columns
        self._tasks: dict[tuple[int, bool], list[FileTask]] = {}

    @cached_property
    def schema(self) -> Schema:
        """The columns that the stream can have."""
        schema = self.table.snapshot(None if self._version == NO_SNAPSHOT else self._version).schema
        # columns may have changed since the snapshot was made
        return schema if set(self._columns) <= set(schema.names) else self.table.snapshot().schema

    @property
    def latest(self) -> int:
        """The current snapshot, after one listing."""
        self.table.refresh()
        return self.table.latest_version

    def first(self) -> SnapshotOffset:
        """Where a new stream begins."""
        return self._first().began()

    def _first(self) -> SnapshotOffset:
        options, latest = self._options, self.latest
        newest = SnapshotOffset(self._branch.table_id, latest, COMPLETE, initial=False)
        if options.starting_latest or (latest == NO_SNAPSHOT and options.starting_version is None):
            return newest
        if options.starting_timestamp is not None:
            entry = self._branch.since(milliseconds(options.starting_timestamp))
            return newest if entry is None else replace(newest, version=entry.snapshot_id, index=0)
        if options.starting_version is not None:
            return replace(newest, version=self._branch.entry(options.starting_version).snapshot_id, index=0)
        return replace(newest, index=0, initial=True)

    def parse(self, value: Mapping[str, Any]) -> SnapshotOffset:
        """As `SnapshotOffset.parse`; InvalidRequestError for an offset of another table, too."""
        offset = SnapshotOffset.parse(value)
        if offset.table != self._branch.table_id:
            raise other_table(self.table.address, offset.table, self._branch.table_id)
        return offset

    def end(
        self, start: Mapping[str, Any], until: int | None, max_files: int | None, max_bytes: int | None
    ) -> dict[str, Any]:
        """How far a batch goes: at most so many files and bytes, at least one file, no further than `until` (the
        current snapshot without it)."""
        last = self.latest
        files = size = 0
        offset: SnapshotOffset = self.parse(start)
        while True:
            for task in self._files(offset)[offset.index :]:
                full = max_files is not None and files >= max_files
                if full or (max_bytes is not None and files and size + task.size > max_bytes):
                    return offset.json()
                files, size = files + 1, size + task.size
                offset = replace(offset, index=offset.index + 1)
            offset = replace(offset, index=COMPLETE, initial=False)
            following = None if offset.version == (last if until is None else until) else self._following(offset)
            if following is None:
                return offset.json()
            offset = following

    def between(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[FileTask]:
        """The files from one offset to another. VersionNotFoundError where the snapshot of the other is gone, which
        `failOnDataLoss` false allows for one that has expired: then those that are left come with later offsets."""
        stop = self.parse(end)
        first = self.parse(start).begin_of(stop)
        if stop.version not in (first.version, *(entry.snapshot_id for entry in self._branch.line)):
            self._branch.check_loss(stop.version, f"snapshot {stop.version}")
            stop = replace(first, index=COMPLETE)
        offset: SnapshotOffset | None = first
        while offset is not None:
            tasks = self._files(offset)
            if offset.version == stop.version and (offset.initial == stop.initial or stop.index == COMPLETE):
                yield from tasks[offset.index : len(tasks) if stop.index == COMPLETE else stop.index]
                return
            yield from tasks[offset.index :]
            offset = self._following(offset)

    # -- inside

    def _following(self, offset: SnapshotOffset) -> SnapshotOffset | None:
        """The start of the snapshot after that of an offset; None after the current one."""
        rest = self._branch.following(offset.version)
        return replace(offset, version=rest[0].snapshot_id, index=0, initial=False) if rest else None

    def _files(self, offset: SnapshotOffset) -> list[FileTask]:
        if offset.index == COMPLETE:
            return []
        key = offset.version, offset.initial
        if key not in self._tasks:
            tasks = self._rows_of(*key)
            self._tasks = {key: select_columns(tasks, self.schema, self._columns)}  # offsets only grow
        return self._tasks[key]

    def _rows_of(self, snapshot: int, initial: bool) -> list[FileTask]:
        entry = self.table.metadata.snapshots.get(snapshot)
        if entry is None:
            self._branch.check_loss(snapshot, f"the rest of snapshot {snapshot}")
            return []
        if initial:
            self._check_columns(snapshot)
            tasks = self.table.tasks_as(snapshot, self.schema)
        else:
            if entry.operation == "replace":
                return []
            self._check_columns(snapshot)
            actions = self.table.commit(snapshot)
            if not self._is_read(snapshot, entry.operation, set(actions["kind"])):
                return []
            paths = actions.filter(actions["kind"] == _ADDED)["path"].to_list()
            tasks = self.table.tasks_as(snapshot, self.schema, paths)
        return sorted(tasks, key=lambda task: task.path)

    def _check_columns(self, snapshot: int) -> None:
        ids = [entry.snapshot_id for entry in self._branch.line]
        position = ids.index(self._version) if self._version in ids else -1
        if snapshot in ids[position + 1 :]:
            schema = self.table.snapshot(snapshot).schema
            if schema.to_arrow() != self.schema.to_arrow():
                raise other_columns(f"snapshot {snapshot}", self.table.address)

    def _is_read(self, snapshot: int, operation: str | None, kinds: set[str]) -> bool:
        """Whether the files that a snapshot adds are read. InvalidRequestError where it removes rows, and no option
        says what to do about that."""
        # an overwrite may leave delete files out without an entry that says so
        if operation not in ("overwrite", "delete") and kinds <= {"snapshot", _ADDED}:
            return True
        if self._options.skip_change_commits:
            return False
        adds = _ADDED in kinds
        if self._options.ignore_changes or (self._options.ignore_deletes and not adds):
            return True
        raise removed_rows(f"snapshot {snapshot}", self.table.address, operation, adds=adds)
