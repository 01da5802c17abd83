"""`format("lakeview")`: Spark's options and schemas to a reader of one version, or a writer of one commit.

Spark imports this in a process of its own for each step: writers and streams are imported where they are asked for.
"""

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.model.errors import InvalidRequestError, NotATableError
from lakeview.spark.option_values import STORAGE_PREFIX
from lakeview.spark.options import ReadOptions, WriteOptions
from lakeview.spark.reader import ChangeOptions, LakeviewChangeReader, LakeviewReader
from lakeview.spark.streams import NAMES, StreamOptions, without_stream_options
from lakeview.spark.types import to_spark

_REDACTED_OPTIONS = "spark.sql.redaction.options.regex"
"""Spark's setting: the names of options whose values it shows nowhere."""

_STORAGE_OPTIONS = rf"^(?i:{re.escape(STORAGE_PREFIX)})"


_CHANGE_FEED = {"readchangedata": "readChangeFeed"}
"""Delta's first name of the option, in lower case, to the one that it has now."""


class LakeviewDataSource(DataSource):
    """Tables lakeview knows, for `spark.read` and `DataFrame.write`; options in `lakeview.spark.options`.

    Spark makes one of these for a DataFrame and keeps it: the version is decided here, so that planning again and
    running a task again see the table of the first look.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__({_CHANGE_FEED.get(name.lower(), name): value for name, value in options.items()})
        options = self.options
        self.changes = ChangeOptions.parse(options).pin() if ChangeOptions.apply_to(options) else None
        self.version = None if self.changes is not None else _pin(options)

    @classmethod
    def name(cls) -> str:
        """The word for `format`."""
        return "lakeview"

    def schema(self) -> StructType:
        """All columns of the pinned version."""
        if self.changes is not None:
            return to_spark(self.changes.columns())
        # Spark has not said yet whether it streams
        options = ReadOptions.parse(without_stream_options(self.options), (*NAMES, *_CHANGE_FEED.values()))
        table = lv.open_table(options.path, storage_options=options.access.options)
        version = None if self.version is None else options.version_of(table, self.version)
        return to_spark(table.snapshot(version).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns. Spark passes the schema by this name."""
        if self.changes is not None:
            self.changes.check_batch()
            return LakeviewChangeReader(self.changes, schema)
        options = ReadOptions.parse(self.options)
        return LakeviewReader(options, self._version(options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of rows that have these columns."""
        from lakeview.spark.stream_writer import sink

        return sink(WriteOptions.parse(self.options, overwrite=overwrite), schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of what these columns hold, and of what is added to them. Spark passes the schema by this name."""
        from lakeview.spark.change_stream import ChangeStreamReader
        from lakeview.spark.snapshot_changes import SnapshotChangeReader
        from lakeview.spark.stream_reader import LakeviewStreamReader

        if self.changes is not None:
            changes = ChangeOptions.parse(self.options)
            changes.check_stream()
            assert isinstance(self.changes.end, int)  # pinned
            is_iceberg = changes.table().format == "iceberg"
            return (SnapshotChangeReader if is_iceberg else ChangeStreamReader)(changes, self.changes.end, schema)
        options = StreamOptions.parse(self.options)
        return LakeviewStreamReader(options, self._version(options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer of micro-batches; `overwrite`: each replaces all rows (output mode complete)."""
        from lakeview.spark.stream_writer import LakeviewStreamWriter

        return LakeviewStreamWriter(self.options, schema, overwrite=overwrite)

    def _version(self, options: ReadOptions | StreamOptions) -> int:
        if self.version is not None:
            return self.version
        return lv.open_table(options.path, storage_options=options.access.options).latest_version


def register(spark: SparkSession) -> None:
    """Make `format("lakeview")` known to a session, and have Spark show no storage option in plans and event logs;
    `lakeview.spark.session` has done so. Each thread that writes or starts a stream needs the call."""
    spark.dataSource.register(LakeviewDataSource)
    # Spark 4.3 looks up what a thread writes with in its active session, which pyspark sets by this call alone
    spark.createDataFrame([], "none int")
    pattern = spark.conf.get(_REDACTED_OPTIONS) or ""
    if _STORAGE_OPTIONS not in pattern:
        spark.conf.set(_REDACTED_OPTIONS, f"{pattern}|{_STORAGE_OPTIONS}".removeprefix("|"))


def _pin(options: Mapping[str, str]) -> int | None:
    """The version these options mean now; None for the options of a write, and where no table is."""
    try:
        request = ReadOptions.parse(without_stream_options(options))
        if request.version is not None:
            return request.version
        table = lv.open_table(request.path, storage_options=request.access.options)
    except (InvalidRequestError, NotATableError):
        return None  # `schema`, `reader` and `writer` know what is wanted, and say what is wrong
    return table.latest_version if request.timestamp is None else table.snapshot(at=request.timestamp).version
