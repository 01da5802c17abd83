"""What commits of a Delta table change to micro-batches: whole commits, with the kind of each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles

from lakeview.delta.data.changes import change_files
from lakeview.delta.log.times import first_version_from
from lakeview.delta.table import DeltaTable
from lakeview.model.change_columns import VERSION
from lakeview.model.errors import VersionNotFoundError
from lakeview.rows.tasks import FileTask
from lakeview.spark.addresses import task_access
from lakeview.spark.reader import ChangeOptions, FilePartition, file_partitions
from lakeview.spark.stream_reader import StreamReader
from lakeview.spark.streams import (
    no_offset,
    no_stream_of_changes,
    no_version,
    other_columns,
    other_table,
    raise_or_log,
    taken_back,
)
from lakeview.spark.types import check_schema

_COMMITS = 32
"""Read at once to find out how far a batch goes."""


@dataclass(frozen=True)
class ChangeOffset:
    """The last version (of an Iceberg table the snapshot) whose changes were read, of the table with this id. `first`:
    that of the offset at which the stream began; None in checkpoints of older releases."""

    version: int
    table: str
    first: int | None = None

    @staticmethod
    def parse(value: Mapping[str, Any]) -> ChangeOffset:
        """An offset of a checkpoint. InvalidRequestError if it is none of a stream of changes."""
        match value:
            case {"changes": int(version), "table": str(table), "first": int(first)}:
                return ChangeOffset(version, table, first)
            case {"changes": int(version), "table": str(table)}:
                return ChangeOffset(version, table)
        raise no_offset(value)

    def json(self) -> dict[str, Any]:
        """As a checkpoint records it."""
        first = {} if self.first is None else {"first": self.first}
        return {"changes": self.version, "table": self.table, **first}

    def begin_of(self, end: ChangeOffset) -> int:
        """The version before the first one of a batch from here to an end. Of the first batch, Spark records the end
        alone, and asks for the beginning again after a restart, when the table may have grown: the end has where the
        stream began."""
        return self.version if end.first in (None, self.first) else end.first


class ChangeStreamReader(StreamReader[ChangeOptions]):
    """Tails the changes of a Delta table's rows. A batch has whole commits, at least one, and as many files as
    `maxFilesPerTrigger` says where it has more than one."""

    @cached_property
    def table(self) -> DeltaTable:
        """The table. UnsupportedTableError for one of another format."""
        table = self.options.table()
        if not isinstance(table, DeltaTable):
            raise no_stream_of_changes(table.format, self.options.path)
        return table

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins: before the first version that the options name."""
        start = self.options.start
        if start is None:
            start = self.table.latest_version + 1
        elif isinstance(start, datetime):
            start = first_version_from(self.table.versions(look=False).sort("version"), start)
        elif start > self.table.latest_version + 1:
            raise no_version(self.table.address, start, self.table.latest_version)
        return ChangeOffset(start - 1, self._id(), start - 1).json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes; `start` where nothing is new. Lists the log, which `partitions` then takes as it
        is."""
        self.table.refresh()
        offset = self._check_offset(start)
        latest = self.table.latest_version if self._until is None else self._until
        end = replace(offset, version=max(latest, offset.version))
        if not isinstance(limit, ReadMaxFiles):
            return end.json()
        files = 0
        first = self._first_there(offset.version + 1, latest)
        for version, count in self._file_counts(first, latest):
            files += count
            if files > limit.max_files and version > first:
                return replace(offset, version=version - 1).json()
        return end.json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Commits that come from now on are left to the next run."""
        self.table.refresh()
        self._until = self.table.latest_version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FilePartition]:
        """The files of the changes between two offsets, packed for tasks; errors as `changes`."""
        begin, stop = self._check_offset(start), self._check_offset(end)
        last = min(stop.version, self.table.latest_version)  # of a batch that is planned again commits may be gone
        first = self._first_there(begin.begin_of(stop) + 1, last)
        if last < first:
            return [FilePartition(())]
        return file_partitions(self._tasks(first, last), task_access(self.table))

    def _file_counts(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Each version, and how many files hold its changes: from its commit alone, and not from the state of the table
        at it, for a stream may be thousands behind."""
        log = self.table.log
        for start in range(first, last + 1, _COMMITS):
            versions = range(start, min(start + _COMMITS, last + 1))
            counts = Counter(change_files(log.commits(versions), log.storage.root)["version"])
            yield from ((version, counts[version]) for version in versions)

    def _first_there(self, first: int, last: int) -> int:
        """The first version from `first` on whose changes can be read: its commit, and a state to begin with, are in
        the log; `last + 1` without any. VersionNotFoundError if it is a later one, unless an option says to go on."""
        log = self.table.log
        there = log.commit_files()["version"]
        if first > last or (first in there and 0 in there):
            return first
        # a cleanup deletes the oldest commits, and leaves a checkpoint that the others build on
        oldest = next(iter(there), last + 1)
        bases = (checkpoint.version for checkpoint in log.checkpoints() if checkpoint.version >= oldest - 1)
        begin = max(first, oldest, min(bases, default=last + 1))
        if begin > first:
            subject = f"commit {first}" if first not in there else f"the state before commit {first}"
            loss = VersionNotFoundError(
                f"{subject} of {self.table.address} is gone from the log: what it changed cannot be read",
                fix=f"start with a new checkpoint location, at version {begin} or later, or set failOnDataLoss to "
                "false to go on from there",
                place=f"version {first}",
            )
            raise_or_log(loss, fail_on_data_loss=self.options.fail_on_data_loss)
        return min(begin, last + 1)

    def _tasks(self, first: int, last: int) -> Sequence[tuple[FileTask, str | None]]:
        """The files of changes, with the columns of the stream's version. InvalidRequestError where they changed since
        then."""
        own = self._columns  # before a cleanup of the log may take the version
        if self._columns_of(last) == own:
            columns, tasks = self.table.change_tasks(first, last)
        elif last < self._version:
            columns, tasks = self.table.change_tasks(first, self._version)
            tasks = [(task, kind) for task, kind in tasks if task.constants[VERSION] <= last]
        else:
            raise other_columns(f"version {last}", self.table.address)
        check_schema(self.schema, columns)
        return tasks

    @cached_property
    def _columns(self) -> pa.Schema:
        return self._columns_of(self._version)

    def _columns_of(self, version: int) -> pa.Schema:
        """The columns alone: comments and the next value of an identity column change the schema's text as well."""
        return self.table.snapshot(version).schema.to_arrow()

    def _id(self) -> str:
        return str(self.table.state().metadata.id)

    def _check_offset(self, value: Mapping[str, Any]) -> ChangeOffset:
        """An offset of the table as it was listed last. InvalidRequestError for one of another table,
        VersionNotFoundError where commits were taken back."""
        offset = ChangeOffset.parse(value)
        if offset.table != self._id():
            raise other_table(self.table.address, offset.table, self._id())
        if self.table.latest_version < offset.version:
            loss = taken_back(self.table.address, offset.version, self.table.latest_version)
            raise_or_log(loss, fail_on_data_loss=self.options.fail_on_data_loss)
        return offset
