"""Batch reading: a pinned version of a table to Spark partitions of files, and those to Arrow batches."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask, of_files
from lakeview.spark.addresses import task_access
from lakeview.spark.options import ReadOptions
from lakeview.spark.types import arrow_schema, check_schema
from lakeview.storage.access import NO_OPTIONS, StoreAccess

# As Spark plans its own file scans: opening a file costs as much as reading four megabytes.
_PARTITION_BYTES = 64 << 20
_OPEN_BYTES = 4 << 20


@dataclass
class FilePartition(InputPartition):
    """The files one task reads, and what it opens their store with.

    InputPartition's own constructor is not called: it holds one value of any kind.
    """

    tasks: tuple[FileTask, ...]
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
        return file_partitions(list(tasks), task_access(table))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's files."""
        return partition_rows(partition, self.schema)


def file_partitions(tasks: Sequence[FileTask], access: StoreAccess) -> list[FilePartition]:
    """The files packed for tasks; one empty partition when there is none."""
    return [FilePartition(tuple(packed), access) for packed in pack(tasks)] or [FilePartition(())]


def partition_rows(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a FilePartition, in batches of exactly the Arrow schema that Spark expects."""
    assert isinstance(partition, FilePartition)
    target = arrow_schema(schema)
    for task in partition.tasks:
        for batch in read_task(task, partition.access.open(task.root, task.roots)):
            yield batch.select(target.names).cast(target)


def pack(tasks: Sequence[FileTask]) -> list[list[FileTask]]:
    """Files in their order, cut into runs of about equal cost: enough for every core, none above 64 MB if it can be."""
    total = sum(task.size + _OPEN_BYTES for task in tasks)
    limit = min(_PARTITION_BYTES, max(_OPEN_BYTES, total // (os.cpu_count() or 1)))
    runs: list[list[FileTask]] = []
    room = 0
    for task in tasks:
        cost = task.size + _OPEN_BYTES
        if not runs or cost > room:
            runs.append([])
            room = limit
        runs[-1].append(task)
        room -= cost
    return runs
