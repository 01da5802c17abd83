"""Rows of a DataFrame to the files of a commit by Spark's own Parquet writer: no row passes through Python.

Spark writes into a folder of its own in the table's. The statistics of the files come from their footers, which the
driver reads where they are few, else tasks; then the files get the names and places that those of our own writer have,
and the writer of `format("lakeview")` commits.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it says nothing of its types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

from lakeview.delta.data.partition_values import serialize
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import encode_path, staging_folder
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.footer_statistics import FileFacts, footer_facts, read_facts
from lakeview.delta.write.writer import data_file_path, recordable
from lakeview.model.data_types import Field
from lakeview.model.errors import ConstraintViolationError, LakeviewError
from lakeview.model.printable import count_text
from lakeview.model.snapshot import milliseconds
from lakeview.spark import partition_keys
from lakeview.spark.aborted_writes import FilesWritten
from lakeview.spark.dml.jobs import run_parts, without_errors
from lakeview.spark.native_conditions import CODECS, is_native
from lakeview.spark.options import Statistics
from lakeview.spark.types import to_spark
from lakeview.spark.writer import LakeviewWriter
from lakeview.storage.local import LocalStorage
from lakeview.storage.local_files import move_files

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_FILES_OF_TASK = 16
"""Whose footers one task reads."""

_FILES_OF_DRIVER = 64
"""Whose footers the driver reads: at a millisecond or two each it is done before Spark has started a task."""

_OF_SPARK = (PySparkException, Py4JJavaError)  # a write that fails gives the second


def write_natively(frame: DataFrame, writer: LakeviewWriter) -> bool:
    """Write the rows as a commit of the writer. False, and nothing is done, where Spark does not write the files that
    the table needs (`is_native`), single rows are replaced, or a text is too long to name a folder."""
    storage = writer.options.access.open(writer.context.root)
    is_local = isinstance(storage, LocalStorage) and "\\" not in storage.root
    if not is_local or writer.replacement.of_rows or not is_native(frame, writer.context):
        return False
    assert isinstance(storage, LocalStorage)
    was_there = os.path.exists(storage.root)
    try:
        with _staging(storage.resolve(staging_folder(writer.context.write_id))) as staging:
            message = _write(frame, writer, storage, staging)
    except BaseException as error:
        writer.abort([None])
        if not was_there:
            with suppress(OSError):  # another writer may have put a table there
                os.rmdir(storage.root)
        if isinstance(error, _OF_SPARK) and partition_keys.LONG_KEY in str(error):
            return False
        raise
    writer.commit([message])
    return True


@contextmanager
def _staging(path: str) -> Iterator[str]:
    """A folder that is gone in the end; where it cannot be, a warning names it."""
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if os.path.exists(path):
            _LOG.warning("files of a write are left in %s; vacuum removes them", path)


def _write(frame: DataFrame, writer: LakeviewWriter, storage: LocalStorage, staging: str) -> FilesWritten:
    """The rows in files of the table, as the actions of a commit.

    ConstraintViolationError for nulls in a column that must not have any, InvalidRequestError for a partition value
    that the log has no text for, LakeviewError where Spark has another file system than this process.
    """
    context, options = writer.file_context(), writer.options
    keys = [f"p{number}-{context.write_id}" for number in range(len(context.partition_columns))]
    count = _write_files(frame, context, keys, staging)
    files = _staged_files(staging, keys, context)
    facts = _read_all(frame, files, staging, context)
    rows = sum(fact.rows for fact in facts.values())
    if rows != count:
        raise LakeviewError(
            f"of {count_text(count, 'row')} that Spark wrote to {staging} {rows:,} are there for this process: its "
            "machines do not share the folder with it",
            fix="write to a folder that all of them have at this path, or to an object store",
            place=storage.root,
            kind="not-shared",
        )
    now = milliseconds(options.clock())
    moves: list[tuple[str, str]] = []
    adds: list[AddFile] = []
    for file in files:
        if not facts[file.name].rows:
            continue  # Spark writes one where there are no rows at all
        path = data_file_path(context, file.values)
        moves.append((os.path.join(staging, file.name), storage.resolve(path)))
        stats = None if options.statistics is Statistics.NONE else facts[file.name].stats
        adds.append(AddFile(encode_path(path), file.size, dict(file.values), now, options.data_change, stats=stats))
    move_files(moves)
    return FilesWritten(adds, rows, writer.definition)


def _write_files(frame: DataFrame, context: WriteContext, keys: Sequence[str], staging: str) -> int:
    """Returns how many rows Spark wrote."""
    places = {name.casefold(): place for place, name in enumerate(frame.columns)}
    types = to_spark(context.schema)

    def column(field: Field) -> Column:
        place = places.get(field.name.casefold())
        return f.lit(None).cast(types[field.name].dataType) if place is None else f.col(f"c{place}")

    columns = [
        column(field).alias(field.stored_name, metadata={} if field.id is None else {"parquet.field.id": field.id})
        for field in context.schema
        if field.name not in context.partition_columns
    ]
    for key, name in zip(keys, context.partition_columns, strict=True):
        field = context.schema[name]
        columns.append(partition_keys.key(column(field), field).alias(key))
    rows = frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).select(*columns)
    options: Mapping[str, str | int] = {
        "compression": CODECS[context.compression],
        "parquet.compression.codec.zstd.level": "1",  # that of the Python workers' files; Spark's is 3
        "maxRecordsPerFile": context.rows_per_file,
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    observation = Observation()
    rows = rows.observe(observation, f.count(f.lit(1)).alias("rows"))
    rows.write.mode("error").options(**options).partitionBy(*keys).parquet(f"file:{staging}")
    return int(observation.get["rows"])


@dataclass(frozen=True)
class _StagedFile:
    """A file that Spark wrote. `values`: of its partition, as the log has them, by their names in files."""

    name: str
    size: int
    values: Mapping[str, str | None]


def _staged_files(staging: str, keys: Sequence[str], context: WriteContext) -> list[_StagedFile]:
    names = sorted(
        os.path.relpath(os.path.join(folder, name), staging)
        for folder, _, names in os.walk(staging)
        for name in names
        if name.endswith(".parquet")
    )
    columns: dict[str, list[str | None]] = {}
    for place, name in enumerate(context.partition_columns):
        field = context.schema[name]
        texts = [path.split(os.sep)[place].removeprefix(f"{keys[place]}=") for path in names]
        values = recordable(partition_keys.values(texts, field), field)
        _check_nulls(field, values.null_count(), "partitions")
        columns[field.stored_name] = [serialize(value) for value in values]
    sizes = [os.path.getsize(os.path.join(staging, name)) for name in names]
    return [
        _StagedFile(name, size, {column: values[number] for column, values in columns.items()})
        for number, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]


def _read_all(
    frame: DataFrame, files: Sequence[_StagedFile], staging: str, context: WriteContext
) -> dict[str, FileFacts]:
    """What each file holds, by its name. Tasks read the files of which a footer does not say all, and those of many."""
    columns = [c for c in context.schema if not c.nullable and c.name not in context.partition_columns]
    not_null = [column.stored_name for column in columns]
    names = [file.name for file in files]
    facts: dict[str, FileFacts] = {}
    if len(names) <= _FILES_OF_DRIVER:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            of_footers = pool.map(lambda name: _read(footer_facts, staging, context, not_null, name), names)
            facts = {name: fact for name, fact in zip(names, of_footers, strict=True) if fact is not None}
    names = [name for name in names if name not in facts]
    parts = [names[start : start + _FILES_OF_TASK] for start in range(0, len(names), _FILES_OF_TASK)]
    read = partial(_read_files, staging, context, not_null)
    for of_part in without_errors(run_parts(frame.sparkSession, parts, read)):
        facts |= of_part
    for column in columns:
        _check_nulls(column, sum(fact.nulls[column.stored_name] for fact in facts.values()), "rows")
    return facts


def _read_files(
    staging: str, context: WriteContext, not_null: Sequence[str], names: Sequence[str]
) -> dict[str, FileFacts]:
    return {name: _read(read_facts, staging, context, not_null, name) for name in names}


def _read(
    read: Callable[[IO[bytes], WriteContext, Sequence[str]], T],
    staging: str,
    context: WriteContext,
    not_null: Sequence[str],
    name: str,
) -> T:
    """What a file holds, which is on the disk in the end: Spark leaves that to the system, and a commit is durable."""
    with open(os.path.join(staging, name), "r+b") as file:
        facts = read(file, context, not_null)
        os.fsync(file.fileno())
        return facts


def _check_nulls(field: Field, count: int, of_what: str) -> None:
    if count and not field.nullable:
        raise ConstraintViolationError(
            f"column {field.name} must not be null, and {count:,} of the {of_what} have none",
            fix="fill the values, or make the column nullable",
            place=field.name,
            kind="not-null",
        )
