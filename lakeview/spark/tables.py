"""A version of a table to a DataFrame: by Spark's own Parquet reader where it can, else by the Python data source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, quote_name
from lakeview.predicates import predicate
from lakeview.predicates.condition import translate, zone_dependent_part
from lakeview.rows.tasks import FileTask
from lakeview.sharing.client.table import SharedTable
from lakeview.spark.addresses import task_access
from lakeview.spark.native import native_rows
from lakeview.spark.native_files import divide
from lakeview.spark.native_layout import has_variables
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.types import to_spark

if TYPE_CHECKING:
    from lakeview.spark.addresses import OpenTable


_QUOTED_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"

_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00"})
"""Names of time zones in which Spark and lakeview read all conditions alike."""


def table(
    spark: SparkSession,
    address: str,
    *,
    version: int | None = None,
    at: datetime | str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    native: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """A version of a table (latest, `version`, or that of a moment) with only these columns and rows. A moment is a
    datetime with its offset, or text, which without one is in the time zone of the session.

    Local Parquet files are read by Spark itself, which then reads the columns that a query needs and skips row groups;
    what it cannot read (remote stores, Avro and ORC, equality deletes, ...) comes through the Python source, file by
    file. There Spark does not say which columns it needs: those not in `columns` are not read. `native` false reads all
    files through the Python source. `where` is a SQL condition; files that it rules out are not opened. The version is
    pinned now; planning opens the footer of each file, of which a process keeps the last 10,000. `storage_options` are
    those of `open_table`; tasks get them, and Spark shows none. Raises the errors of `open_table`.
    """
    source_table = lv.open_table(address, storage_options=storage_options)
    snapshot = source_table.snapshot(version, at=None if at is None else timestamp_of(spark, at))
    names = snapshot.schema.names if columns is None else snapshot.schema.resolve_names(columns)
    # Spark, which filters the rows, casts a text that is compared with a timestamp
    condition = None if where is None else predicate(where, snapshot.schema, casts_texts=True)
    filter_columns = [] if condition is None else condition.meta.root_names()
    if where is not None:
        _check_zone(spark, where, snapshot.schema)
    # Rows without any column would not be counted on their way to Spark.
    read_schema = snapshot.schema.select(list(dict.fromkeys([*names, *filter_columns])) or snapshot.schema.names[:1])
    is_current = version is None and at is None
    rows = _rows(spark, source_table, snapshot.version, read_schema, where, native=native, is_current=is_current)
    if where is not None:
        # printed from the checked tree: Spark takes backslashes for escapes, and would run what the check took for text
        rows = rows.where(translate(where, "spark"))
    return rows if names == read_schema.names else rows.select(*[f.col(quote_name(name)) for name in names])


def _check_zone(spark: SparkSession, where: str, schema: Schema) -> None:
    """InvalidRequestError for a condition that skips files by other values than Spark, in the time zone of its session,
    filters rows by."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    part = None if zone in _UTC else zone_dependent_part(where, schema)
    if part is not None:
        raise InvalidRequestError(
            f"{part} depends on the time zone, which is {zone} in this session and UTC in lakeview",
            fix="set spark.sql.session.timeZone to UTC, compare with a timestamp that has an offset, "
            "or filter the DataFrame",
            place="where",
            kind="time-zone",
        )


def _rows(
    spark: SparkSession,
    source_table: OpenTable,
    version: int,
    read_schema: Schema,
    where: str | None,
    *,
    native: bool,
    is_current: bool,
) -> DataFrame:
    """The columns of all files that `where` does not rule out; `is_current`: with the table's own columns."""

    def python_rows(tasks: Sequence[FileTask] | None = None) -> DataFrame:
        """The rows through `format("lakeview")`; of these tasks alone, if they are given."""
        reader = spark.read.format("lakeview").schema(to_spark(read_schema)).option("version", version)
        reader = reader.option("currentSchema", is_current)
        reader = reader.options(**as_spark_options(task_access(source_table)))
        if where is not None:
            reader = reader.option("where", where)
        if tasks is not None:
            reader = reader.option("files", json.dumps(sorted({task.path for task in tasks})))
        return reader.load(source_table.address)

    # A share's files have signed URLs that expire: they are asked for when they are read.
    if not native or isinstance(source_table, SharedTable) or source_table.storage.remote:
        return python_rows()
    if spark.conf.get(_QUOTED_PATTERNS) == "true":  # in the SQL of a native plan; `x|y` would be the column x
        return python_rows()
    if has_variables(to_spark(read_schema)):  # refuses types before any footer is read
        return python_rows()
    files, others = divide(source_table.tasks(None if is_current else version, read_schema.names, where), read_schema)
    if not files:
        return python_rows()
    frames = native_rows(spark, files, read_schema)
    if others:
        frames.append(python_rows(others))
    return reduce(DataFrame.union, frames).toDF(*read_schema.names)


def timestamp_of(spark: SparkSession, text: datetime | str) -> datetime:
    """A text as Spark reads it as a timestamp. InvalidRequestError for one that it takes for none."""
    if isinstance(text, datetime):
        return text
    (row,) = spark.range(1).select(f.unix_micros(f.lit(text).try_cast("timestamp"))).collect()
    if row[0] is None:
        raise InvalidRequestError(
            f"{text!r} is no timestamp", fix="write it as 2026-07-15 or 2026-07-15 03:25:00", place="timestamp"
        )
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row[0])
