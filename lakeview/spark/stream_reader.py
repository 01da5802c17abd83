"""A table that grows to micro-batches: offsets on the driver, the files between two of them on the executors."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.iceberg.table import IcebergTable
from lakeview.model.errors import DataFileMissingError
from lakeview.spark.addresses import task_access, unsupported_format
from lakeview.spark.reader import ChangeOptions, FilePartition, file_partitions, partition_rows
from lakeview.spark.row_stream import RowStream
from lakeview.spark.stream_files import StreamFiles
from lakeview.spark.stream_snapshots import SnapshotStream
from lakeview.spark.streams import MOST_FILES, StreamOptions, deleted_file, raise_or_log
from lakeview.spark.types import check_schema

Options = TypeVar("Options", bound=StreamOptions | ChangeOptions)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[Options]):
    """What streams of rows and of changes do alike. `version`: the one whose columns the stream has. `read` alone runs
    on executors."""

    def __init__(self, options: Options, version: int, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._version = version
        self._until: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Executors read files that they are given, and open no table."""
        return {"options": self.options, "schema": self.schema}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the options that counts files; that of bytes is held in `latestOffset`."""
        return ReadMaxFiles(self.options.max_files or MOST_FILES)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's files. DataFileMissingError for one that a vacuum deleted before the stream came to
        it, or whose deletes it deleted: which rows it had is not known then. `failOnDataLoss` false passes over it and
        logs it."""
        assert isinstance(partition, FilePartition)
        for task, kind in partition.tasks:
            try:
                yield from partition_rows(FilePartition(((task, kind),), partition.access), self.schema)
            except DataFileMissingError as error:
                raise_or_log(deleted_file(error, task), fail_on_data_loss=self.options.fail_on_data_loss)


class LakeviewStreamReader(StreamReader[StreamOptions]):
    """Tails the log of a Delta table, or the snapshots of an Iceberg table's main branch. An offset says which files
    have been read, so that a batch that is planned again after a restart has the same rows."""

    @cached_property
    def files(self) -> RowStream:
        """The table as the stream sees it."""
        source = _stream(self.options, self._version, self.schema.fieldNames())
        check_schema(self.schema, source.schema)
        return source

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins."""
        return self.files.first()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes; `start` where nothing is new."""
        max_files = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        max_bytes = None if isinstance(limit, ReadAllAvailable) else self.options.max_bytes
        if isinstance(limit, ReadMaxBytes):
            max_bytes = limit.max_bytes
        return self.files.end(start, self._until, max_files, max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Commits that come from now on are left to the next run."""
        self._until = self.files.latest

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FilePartition]:
        """The files between two offsets, packed for tasks."""
        tasks = [(task, None) for task in self.files.between(start, end)]
        return file_partitions(tasks, task_access(self.files.table))


def _stream(options: StreamOptions, version: int, columns: list[str]) -> RowStream:
    """The table as its format streams it. NotATableError, UnsupportedTableError for a shared table."""
    table = lv.open_table(options.path, storage_options=options.access.options)
    if isinstance(table, DeltaTable):
        return StreamFiles(table, options, version, columns)
    if isinstance(table, IcebergTable):
        return SnapshotStream(table, options, version, columns)
    fix = "read it in batches, each with the option version"
    raise unsupported_format(options.path, "shared", "Delta and Iceberg tables are streamed", fix)
