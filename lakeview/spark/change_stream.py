"""What versions of a table change to micro-batches, with the kind of each change: whole commits of a Delta table here,
whole snapshots of an Iceberg table in `snapshot_changes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles

from lakeview.delta.data.changes import change_files
from lakeview.delta.table import DeltaTable
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.scan.data_files import IcebergSource
from lakeview.iceberg.table import IcebergTable
from lakeview.model.change_columns import VERSION
from lakeview.model.errors import VersionNotFoundError
from lakeview.rows.tasks import FileTask
from lakeview.spark.addresses import task_access
from lakeview.spark.reader import ChangeOptions, FilePartition, file_partitions
from lakeview.spark.stream_files import first_version
from lakeview.spark.stream_reader import StreamReader
from lakeview.spark.streams import (
    no_offset,
    no_stream_of_changes,
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


class ChangeReader(StreamReader[ChangeOptions], ABC):
    """Tails the changes of a table's rows. A batch has whole versions, at least one, and as many files as
    `maxFilesPerTrigger` says where it has more than one. KIND: what a version is called."""

    KIND: ClassVar[str]

    @property
    @abstractmethod
    def table(self) -> DeltaTable | IcebergTable:
        """The table."""

    @abstractmethod
    def _begin(self) -> int:
        """The version before the first one that the options name."""

    @abstractmethod
    def _versions(self, before: int, last: int | None) -> Sequence[int]:
        """The versions after one, up to `last` or the latest, whose changes can be read."""

    def _file_counts(self, versions: Sequence[int]) -> Iterator[int]:
        """How many files hold the changes of each version."""
        return (self.table.changes_plan(version, version).height for version in versions)

    def _is_behind(self, version: int) -> bool:
        """Whether a version is an earlier one than that whose columns the stream has."""
        return version < self._version

    @property
    def _table_id(self) -> str:
        return str(self.table.snapshot().id)

    @cached_property
    def _columns(self) -> pa.Schema:
        return self._columns_of(self._version)

    def _columns_of(self, version: int) -> pa.Schema:
        """The columns alone: comments and the next value of an identity column change the schema's text as well."""
        return self.table.snapshot(None if version == NO_SNAPSHOT else version).schema.to_arrow()

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins: before the first version that the options name."""
        before = self._begin()
        return ChangeOffset(before, self._table_id, before).json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes; `start` where nothing is new. Lists the table, which `partitions` then takes as
        it is."""
        self.table.refresh()
        offset = self._check_offset(start)
        versions = self._versions(offset.version, self._until)
        end = versions[-1] if versions else offset.version
        if isinstance(limit, ReadMaxFiles):
            files = 0
            for number, count in enumerate(self._file_counts(versions)):
                files += count
                if files > limit.max_files and number:
                    end = versions[number - 1]
                    break
        return replace(offset, version=end).json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Versions that come from now on are left to the next run."""
        self.table.refresh()
        self._until = self.table.latest_version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FilePartition]:
        """The files of the changes between two offsets, packed for tasks, with the columns of the stream's version.
        InvalidRequestError where they changed since then; else errors as `changes`."""
        begin, stop = self._check_offset(start), self._check_offset(end)
        versions = self._versions(begin.begin_of(stop), stop.version)
        if not versions:
            return [FilePartition(())]
        first, last, own = versions[0], versions[-1], self._columns
        if self._columns_of(last) == own:
            columns, tasks = self.table.change_tasks(first, last)
        elif self._is_behind(last):
            columns, tasks = self.table.change_tasks(first, self._version)
            tasks = [(task, kind) for task, kind in tasks if _version_of(task) in versions]
        else:
            raise other_columns(f"{self.KIND} {last}", self.table.address)
        check_schema(self.schema, columns)
        return file_partitions(tasks, task_access(self.table))

    def _check_offset(self, value: Mapping[str, Any]) -> ChangeOffset:
        """An offset of the table as it was listed last. InvalidRequestError for one of another table."""
        offset = ChangeOffset.parse(value)
        if offset.table != self._table_id:
            raise other_table(self.table.address, offset.table, self._table_id)
        return offset


def _version_of(task: FileTask) -> int:
    columns = task.source.own if isinstance(task.source, IcebergSource) else task.constants
    return int(columns[VERSION])


class ChangeStreamReader(ChangeReader):
    """Tails the changes of a Delta table's rows."""

    KIND = "version"

    @cached_property
    def table(self) -> DeltaTable:
        """The table. UnsupportedTableError for one of another format."""
        table = self.options.table()
        if not isinstance(table, DeltaTable):
            raise no_stream_of_changes(table.format, self.options.path)
        return table

    def _begin(self) -> int:
        return first_version(self.table, self.options.start) - 1

    def _versions(self, before: int, last: int | None) -> Sequence[int]:
        latest = self.table.latest_version
        end = latest if last is None else min(last, latest)  # of a batch that is planned again commits may be gone
        return range(self._first_there(before + 1, end), end + 1)

    def _file_counts(self, versions: Sequence[int]) -> Iterator[int]:
        """From the commits alone, and not from the state of the table at each, for a stream may be thousands behind."""
        log = self.table.log
        for start in range(0, len(versions), _COMMITS):
            part = versions[start : start + _COMMITS]
            counts = Counter(change_files(log.commits(part), log.storage.root)["version"])
            yield from (counts[version] for version in part)

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

    def _check_offset(self, value: Mapping[str, Any]) -> ChangeOffset:
        """VersionNotFoundError where commits were taken back, too."""
        offset = super()._check_offset(value)
        if self.table.latest_version < offset.version:
            loss = taken_back(self.table.address, offset.version, self.table.latest_version)
            raise_or_log(loss, fail_on_data_loss=self.options.fail_on_data_loss)
        return offset
