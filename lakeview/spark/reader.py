"""Batch reading: a pinned version of a table, or what commits or two versions changed, to Spark partitions of files,
and those to Arrow batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.change_columns import CHANGE_TYPE, change_schema
from lakeview.model.errors import InvalidRequestError
from lakeview.model.runs import runs
from lakeview.model.schema import Schema
from lakeview.model.table import Table
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask, of_files
from lakeview.spark.addresses import task_access
from lakeview.spark.option_values import (
    access_of,
    flag,
    known_options,
    number,
    path_of,
    point,
    positive,
    starting_point,
)
from lakeview.spark.options import ReadOptions
from lakeview.spark.streams import no_stream_of_changes
from lakeview.spark.types import arrow_schema, check_schema
from lakeview.storage.access import NO_OPTIONS, StoreAccess

if TYPE_CHECKING:
    from lakeview.spark.addresses import OpenTable


# As Spark plans its own file scans: opening a file costs as much as reading four megabytes.
_PARTITION_BYTES = 64 << 20
_OPEN_BYTES = 4 << 20


@dataclass
class FilePartition(InputPartition):
    """The files one task reads, each with the kind of change that its rows are, where they do not say it themselves;
    and what it opens their store with.

    InputPartition's own constructor is not called: it holds one value of any kind.
    """

    tasks: tuple[tuple[FileTask, str | None], ...]
    access: StoreAccess = NO_OPTIONS


class LakeviewReader(DataSourceReader):
    """Reads the columns of `schema` of one version; of the options, `where` only skips files.

    There is no `pushFilters` on purpose: Spark 4.3 keeps the reader that one query narrowed by its filters and answers
    the next, unfiltered query of the same DataFrame with it (tests/spark/test_spark_itself.py shows it).
    Every batch has exactly the Arrow schema Spark expects: it compares the first and trusts the others.
    """

    def __init__(self, options: ReadOptions, version: int, schema: StructType) -> None:
        self.options = options
        self.version = version
        self.schema = schema

    def partitions(self) -> Sequence[FilePartition]:
        """The files to read, packed for tasks; one empty partition when no file is left.

        An empty list would come back to `read` as a partition we did not make.
        """
        options = self.options
        table = lv.open_table(options.path, storage_options=options.access.options)
        names = self.schema.fieldNames()
        version = options.version_of(table, self.version)
        check_schema(self.schema, table.snapshot(version).schema)
        tasks = of_files(lambda _: table.tasks(version, names, options.where), options.files)(None)
        return file_partitions([(task, None) for task in tasks], task_access(table))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's files."""
        return partition_rows(partition, self.schema)


def file_partitions(tasks: Sequence[tuple[FileTask, str | None]], access: StoreAccess) -> list[FilePartition]:
    """Files with the kind of their changes, packed for tasks; one empty partition when there are none."""
    kinds = (kind for _, kind in tasks)  # packing keeps the order
    portions = [tuple((task, next(kinds)) for task in run) for run in pack([task for task, _ in tasks])]
    return [FilePartition(run, access) for run in portions] or [FilePartition(())]


def partition_rows(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a FilePartition, in batches of exactly the Arrow schema that Spark expects."""
    assert isinstance(partition, FilePartition)
    target = arrow_schema(schema)
    for task, kind in partition.tasks:
        for batch in read_task(task, partition.access.open(task.root, task.roots)):
            kinds = None if kind is None else pa.repeat(pa.scalar(kind), batch.num_rows)
            rows = batch if kinds is None else batch.append_column(CHANGE_TYPE, kinds)
            yield rows.select(target.names).cast(target)


def pack(tasks: Sequence[FileTask]) -> list[list[FileTask]]:
    """Files in their order, cut into runs of about equal cost: enough for every core, none above 64 MB if it can be."""
    total = sum(task.size + _OPEN_BYTES for task in tasks)
    limit = min(_PARTITION_BYTES, max(_OPEN_BYTES, total // (os.cpu_count() or 1)))
    return list(runs(tasks, lambda task: task.size + _OPEN_BYTES, limit))


_FEED, _DIFFERENCE = "readchangefeed", "differencefrom"
_OF_FEED = ("startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp")
_OF_DIFFERENCE = ("versionAsOf",)
_OF_STREAM = ("maxFilesPerTrigger", "failOnDataLoss")
_NAMES = ("path", "readChangeFeed", "differenceFrom", *_OF_FEED, *_OF_DIFFERENCE, *_OF_STREAM)


@dataclass(frozen=True)
class ChangeOptions:
    """`readChangeFeed` with `startingVersion` or `startingTimestamp`, and `endingVersion` or `endingTimestamp` (both
    included, the latest without): the rows that commits changed, from the change feed or derived from files.
    `differenceFrom`, a version, and `versionAsOf` (the latest without): the rows that one of the two has alone.
    Of a stream of changes, which has no end: `maxFilesPerTrigger` of a batch, `startingVersion` latest (`start` is
    None), and `failOnDataLoss` false, which goes on where commits or data files are gone. `open_end`: the options name
    no end."""

    path: str
    start: int | datetime | None
    end: int | datetime | None
    difference: bool
    access: StoreAccess = NO_OPTIONS
    max_files: int | None = None
    fail_on_data_loss: bool = True
    open_end: bool = False

    @staticmethod
    def apply_to(options: Mapping[str, str]) -> bool:
        """Whether these options ask for changes."""
        by_name = {name.lower(): value for name, value in options.items()}
        return by_name.get(_FEED, "false").lower() != "false" or _DIFFERENCE in by_name

    @staticmethod
    def parse(options: Mapping[str, str]) -> ChangeOptions:
        """Raises InvalidRequestError for an unknown option and for a value or a combination that cannot be meant."""
        options = known_options(options, _NAMES, "reading changes")
        if flag(options, "readChangeFeed", default=False) and _DIFFERENCE in options:
            raise InvalidRequestError("readChangeFeed and differenceFrom are both given", fix="give one of them")
        is_difference = _DIFFERENCE in options
        kind, of_other = ("differenceFrom", _OF_FEED) if is_difference else ("readChangeFeed", _OF_DIFFERENCE)
        if stray := next((name for name in of_other if name.lower() in options), None):
            raise InvalidRequestError(
                f"{stray} means nothing beside {kind}",
                fix="give readChangeFeed with startingVersion and endingVersion, or differenceFrom with versionAsOf",
                place=stray,
            )
        if is_difference:
            base, version = number(options, "differenceFrom"), number(options, "versionAsOf")
            assert base is not None
            return ChangeOptions(path_of(options), base, version, difference=True, access=access_of(options))
        start, starts_latest = starting_point(options)
        if start is None and not starts_latest:
            raise InvalidRequestError(
                "it is not said from where on changes are read",
                fix="give startingVersion or startingTimestamp",
            )
        return ChangeOptions(
            path_of(options), start, point(options, "ending"), difference=False, access=access_of(options),
            max_files=positive(options, "maxFilesPerTrigger"),
            fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
        )  # fmt: skip

    def check_batch(self) -> None:
        """InvalidRequestError for an option of streams alone."""
        of_stream = {
            "maxFilesPerTrigger says how much a batch of a stream takes": self.max_files is not None,
            "failOnDataLoss says what a stream does where data is gone": not self.fail_on_data_loss,
            "startingVersion latest says that a stream begins with what comes from now on": self.start is None,
        }
        for problem, is_given in of_stream.items():
            if is_given:
                raise InvalidRequestError(
                    f"{problem}, and this is none", fix="leave it out, or use readStream", place=problem.split()[0]
                )

    def check_stream(self) -> None:
        """InvalidRequestError for changes that are no stream."""
        if self.difference or self.end is not None:
            raise InvalidRequestError(
                "a stream of changes has no end, and endingVersion, endingTimestamp or differenceFrom gives one",
                fix="give readChangeFeed with startingVersion or startingTimestamp alone, or read a batch",
                kind="stream-with-end",
            )

    def pin(self) -> ChangeOptions:
        """With the version that is the latest now, where no end is given. UnsupportedTableError where only a catalog
        knows which that is."""
        if self.end is not None:
            return self
        table = self.table()
        if isinstance(table, DeltaTable):
            table.state()
        return replace(self, end=table.latest_version, open_end=True)

    def table(self) -> OpenTable:
        """The table, opened."""
        return lv.open_table(self.path, storage_options=self.access.options)

    def columns(self) -> Schema:
        """The columns of the changes up to a pinned end. Where they may be a stream's, no commit is read: one that goes
        on from its checkpoint needs none of those before, which a cleanup or an expiration may have deleted."""
        table = self.table()
        if self.open_end and not self.difference and table.format != "sharing":
            assert isinstance(self.end, int)
            return change_schema(table.snapshot(None if self.end < 0 else self.end).schema)  # without a snapshot: -1
        if self.start is None:
            raise no_stream_of_changes(table.format, self.path)
        return self.read(table)[0]

    def read(self, table: Table) -> tuple[Schema, list[tuple[FileTask, str | None]]]:
        """The columns of the changes, and the files that hold them. Errors as `changes` and `difference`."""
        if self.difference:
            assert isinstance(self.start, int)
            assert self.end is None or isinstance(self.end, int)
            return table.difference_tasks(self.start, self.end)
        assert self.start is not None  # checked by `check_batch`
        return table.change_tasks(self.start, self.end)


class LakeviewChangeReader(DataSourceReader):
    """Reads the columns of `schema` of what changed."""

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[FilePartition]:
        """The files to read, packed for tasks; one empty partition when there are none."""
        table = self.options.table()
        columns, tasks = self.options.read(table)
        check_schema(self.schema, columns)
        return file_partitions(tasks, task_access(table))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's files."""
        return partition_rows(partition, self.schema)
