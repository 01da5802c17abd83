"""Offsets of a stream of an Iceberg table to its files: those of a snapshot, then what each later one adds."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Self

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.table import IcebergTable
from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask
from lakeview.spark.row_stream import Offset, RowStream
from lakeview.spark.stream_branch import StreamBranch
from lakeview.spark.streams import StreamOptions, other_columns

COMPLETE = -1
"""The index of an offset behind all files of its snapshot."""

_ADDED = "add data file"


class SnapshotOffset(Offset):
    """An offset whose `version` is a snapshot: all files before number `index` of it, and of the snapshots before it,
    were read. `table`: the uuid of the table."""

    VERSION = "snapshot"

    def is_before(self, stop: Self) -> bool:
        """Whether the files from this offset to `stop` are of its snapshot and of later ones."""
        reaches = self.index == COMPLETE if stop.index == COMPLETE else self.initial == stop.initial
        return self.version != stop.version or not reaches


class SnapshotStream(RowStream):
    """The files of an Iceberg table: versions are the snapshots of its main branch.

    Snapshots that only rearrange files (`replace`) are passed over. One with other columns stops the stream. A snapshot
    removes rows by files that go, or by deletes.
    """

    OFFSET: ClassVar = SnapshotOffset

    def __init__(self, table: IcebergTable, options: StreamOptions, version: int, columns: list[str]) -> None:
        super().__init__(options, version, columns)
        self.table: IcebergTable = table
        self._branch = StreamBranch(table, fail_on_data_loss=options.fail_on_data_loss)

    @cached_property
    def schema(self) -> Schema:
        """The columns that the stream can have."""
        schema = self.table.snapshot(None if self._version == NO_SNAPSHOT else self._version).schema
        # columns may have changed since the snapshot was made
        return schema if set(self._columns) <= set(schema.names) else self.table.snapshot().schema

    @property
    def _table_id(self) -> str:
        return self._branch.table_id

    def _first(self, latest: int) -> SnapshotOffset:
        newest = SnapshotOffset(self._table_id, latest, COMPLETE, initial=False)
        if self._options.start is None and not self._options.starts_latest:
            return newest if latest == NO_SNAPSHOT else replace(newest, index=0, initial=True)
        entry = self._branch.first(self._options.start)
        return newest if entry is None else replace(newest, version=entry.snapshot_id, index=0)

    def _after(self, offset: Offset, last: int | None = None) -> Offset | None:
        """The end of an offset's snapshot, and from there the start of the next one; None after the current one."""
        if offset.index != COMPLETE:
            return replace(offset, index=COMPLETE, initial=False)
        following = [] if offset.version == last else self._branch.following(offset.version)
        return replace(offset, version=following[0].snapshot_id, index=0) if following else None

    def _between(self, start: Offset, stop: Offset) -> Iterator[FileTask]:
        """VersionNotFoundError where the snapshot of `stop` is gone, which `failOnDataLoss` false allows for one that
        has expired: then those that are left come with later offsets."""
        if stop.version not in (start.version, *(entry.snapshot_id for entry in self._branch.line)):
            self._branch.check_loss(stop.version, f"snapshot {stop.version}")
            stop = replace(start, index=COMPLETE)
        return super()._between(start, stop)

    def _files(self, offset: Offset) -> list[FileTask]:
        return [] if offset.index == COMPLETE else super()._files(offset)

    def _tasks_of(self, version: int, initial: bool) -> list[FileTask]:
        entry = self.table.metadata.snapshots.get(version)
        if entry is None:
            self._branch.check_loss(version, f"the rest of snapshot {version}")
            return []
        paths = None
        if not initial and entry.operation == "replace":
            return []
        self._check_columns(version)
        if not initial:
            actions = self.table.commit(version)
            if not self._is_read(version, entry.operation, set(actions["kind"])):
                return []
            paths = actions.filter(actions["kind"] == _ADDED)["path"].to_list()
        return sorted(self.table.tasks_as(version, self.schema, paths), key=lambda task: task.path)

    def _check_columns(self, snapshot: int) -> None:
        ids = [entry.snapshot_id for entry in self._branch.line]
        position = ids.index(self._version) if self._version in ids else -1
        if snapshot in ids[position + 1 :]:
            schema = self.table.snapshot(snapshot).schema
            if schema.to_arrow() != self.schema.to_arrow():
                raise other_columns(f"snapshot {snapshot}", self.table.address)

    def _is_read(self, snapshot: int, operation: str | None, kinds: set[str]) -> bool:
        """Whether the files that a snapshot adds are read."""
        # an overwrite may leave delete files out without an entry that says so
        if operation not in ("overwrite", "delete") and kinds <= {"snapshot", _ADDED}:
            return True
        return self._options.reads_change(f"snapshot {snapshot}", self.table.address, operation, _ADDED in kinds)
