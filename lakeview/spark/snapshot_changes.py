"""What snapshots of an Iceberg table change to micro-batches: whole snapshots, with the kind of each change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles

from lakeview.iceberg.manifests.tree import has_expired_parent
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.scan.changes import ChangeSource
from lakeview.iceberg.table import IcebergTable
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.snapshot import milliseconds
from lakeview.rows.tasks import FileTask
from lakeview.spark.addresses import task_access
from lakeview.spark.change_stream import ChangeOffset
from lakeview.spark.reader import ChangeOptions, FilePartition, file_partitions
from lakeview.spark.stream_branch import StreamBranch
from lakeview.spark.stream_reader import StreamReader
from lakeview.spark.streams import other_columns, other_table, raise_or_log
from lakeview.spark.types import check_schema


class SnapshotChangeReader(StreamReader[ChangeOptions]):
    """Tails what the snapshots of the main branch of an Iceberg table change. Their changes are derived from files and
    deletes, so that the snapshot before the first one that is read has to be there. A batch has whole snapshots, as
    `ChangeStreamReader` has whole commits."""

    @cached_property
    def branch(self) -> StreamBranch:
        """The main branch of the table."""
        table = self.options.table()
        assert isinstance(table, IcebergTable)  # the data source asked for its format
        return StreamBranch(table, fail_on_data_loss=self.options.fail_on_data_loss)

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins: before the first snapshot that the options name."""
        start, branch = self.options.start, self.branch
        last = branch.table.latest_version
        if isinstance(start, datetime):
            entry = branch.since(milliseconds(start))
        else:
            entry = None if start is None else branch.entry(start)
        before = last if entry is None else NO_SNAPSHOT if entry.parent is None else entry.parent
        return ChangeOffset(before, branch.table_id, before).json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes; `start` where nothing is new. Reads the metadata, which `partitions` then takes
        as it is."""
        self.branch.table.refresh()
        offset = end = self._check_offset(start)
        files = 0
        for entry in self._readable(offset.version, self._until):
            if isinstance(limit, ReadMaxFiles):
                files += self.branch.table.changes_plan(entry.snapshot_id, entry.snapshot_id).height
                if files > limit.max_files and end is not offset:
                    break
            end = replace(offset, version=entry.snapshot_id)
        return end.json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Snapshots that come from now on are left to the next run."""
        self.branch.table.refresh()
        self._until = self.branch.table.latest_version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FilePartition]:
        """The files of the changes between two offsets, packed for tasks; errors as `changes`. VersionNotFoundError
        where the snapshot of an offset was rolled back, or has expired with what followed it."""
        begin, stop = self._check_offset(start), self._check_offset(end)
        before = begin.begin_of(stop)
        if before == stop.version:
            return [FilePartition(())]
        if stop.version not in [entry.snapshot_id for entry in self.branch.line]:
            self.branch.check_loss(stop.version, f"snapshot {stop.version}")
            return [FilePartition(())]  # what is left comes with later offsets
        entries = self._readable(before, stop.version)
        if not entries:
            return [FilePartition(())]
        return file_partitions(self._tasks(entries), task_access(self.branch.table))

    def _readable(self, before: int, last: int | None) -> list[SnapshotEntry]:
        """The snapshots after one, up to `last`, whose changes can be derived. Errors as `StreamBranch`, and
        VersionNotFoundError for one whose parent has expired, unless an option says to go on without it."""
        entries = self.branch.following(before)
        ids = [entry.snapshot_id for entry in entries]
        if last is not None:
            entries = entries[: ids.index(last) + 1] if last in ids else []
        state = self.branch.table.state
        if entries and has_expired_parent(state.metadata, state.tree, entries[0]):
            loss = VersionNotFoundError(
                f"the snapshot before {entries[0].snapshot_id} of {self.branch.table.address} has expired, so that "
                "what it changed is not known",
                fix="start again with a new checkpoint location, or set failOnDataLoss to false to go on without it; "
                "expire snapshots with a retention that is longer than the stream lags behind",
                place=f"snapshot {entries[0].snapshot_id}",
            )
            raise_or_log(loss, fail_on_data_loss=self.options.fail_on_data_loss)
            return entries[1:]
        return entries

    def _tasks(self, entries: Sequence[SnapshotEntry]) -> Sequence[tuple[FileTask, str | None]]:
        """The files of changes, with the columns of the stream's snapshot. InvalidRequestError where they changed since
        then."""
        table, line = self.branch.table, [entry.snapshot_id for entry in self.branch.line]
        first, last = entries[0].snapshot_id, entries[-1].snapshot_id
        if self._columns_of(last) == self._columns:
            columns, tasks = table.change_tasks(first, last)
        elif self._version in line[line.index(last) :]:
            columns, tasks = table.change_tasks(first, self._version)
            own = {entry.snapshot_id for entry in entries}
            tasks = [task for task in tasks if isinstance(s := task[0].source, ChangeSource) and s.version in own]
        else:
            raise other_columns(f"snapshot {last}", table.address)
        check_schema(self.schema, columns)
        return tasks

    @cached_property
    def _columns(self) -> pa.Schema:
        return self._columns_of(self._version)

    def _columns_of(self, snapshot: int) -> pa.Schema:
        point = None if snapshot == NO_SNAPSHOT else snapshot
        return self.branch.table.snapshot(point).schema.to_arrow()

    def _check_offset(self, value: Mapping[str, Any]) -> ChangeOffset:
        """An offset of this table. InvalidRequestError for one of another table."""
        offset = ChangeOffset.parse(value)
        if offset.table != self.branch.table_id:
            raise other_table(self.branch.table.address, offset.table, self.branch.table_id)
        return offset
