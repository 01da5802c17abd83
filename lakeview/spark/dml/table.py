"""A Delta table for those who know Delta's own `DeltaTable`: the same calls, done by Spark jobs and our commits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lakeview as lv
from lakeview import delta
from lakeview.delta.write.merge import TARGET
from lakeview.model.arguments import optional_integer
from lakeview.model.errors import InvalidRequestError, NotATableError
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml import catalog, changes, results
from lakeview.spark.dml.columns import Condition, Values, sql_text
from lakeview.spark.dml.merge_builder import DeltaMergeBuilder
from lakeview.spark.dml.optimize_builder import DeltaOptimizeBuilder
from lakeview.spark.dml.table_builder import Creation, DeltaTableBuilder
from lakeview.spark.tables import table
from lakeview.storage.access import StoreAccess


class DeltaTable:
    """A Delta table and a session. Conditions and values are SQL text over the columns of the table, or
    columns of Spark that can be written as such.

    Raises the errors of the library, on the driver: a task's own are brought there.
    """

    def __init__(self, spark: SparkSession, target: delta.table.DeltaTable, alias: str = TARGET) -> None:
        self._spark = spark
        self._table = target
        self._alias = alias

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTable:
        """The table at an address, with storage options as of `open_table`.

        NotATableError, UnsupportedTableError for one of another format.
        """
        access = StoreAccess(storage_options or {})
        return cls(sparkSession, delta_table(path, "changed", "read it with lakeview.spark.table()", access))

    @classmethod
    def forName(
        cls, sparkSession: SparkSession, tableOrViewName: str, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTable:
        """The table of a name in Spark's catalog, at the location that is recorded there; or of delta.`address`.

        NotATableError for a name without a location, InvalidRequestError for a view; else as `forPath`.
        """
        path = catalog.path_of(tableOrViewName)
        if path is None:
            path = catalog.required_location(sparkSession, tableOrViewName)
        return cls.forPath(sparkSession, path, storage_options)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: ARG003 (Delta's call)
        """Whether a Delta table is at an address, also one written as delta.`address`."""
        try:
            return isinstance(lv.open_table(catalog.path_of(identifier) or identifier), delta.table.DeltaTable)
        except NotATableError:
            return False

    @classmethod
    def create(
        cls, sparkSession: SparkSession | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """A table that must not be there yet; say what it is, then `execute`."""
        return cls._builder(Creation.CREATE, sparkSession, storage_options)

    @classmethod
    def createIfNotExists(
        cls, sparkSession: SparkSession | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """A table that is left as it is where there is one already."""
        return cls._builder(Creation.CREATE_IF_NOT_EXISTS, sparkSession, storage_options)

    @classmethod
    def replace(
        cls, sparkSession: SparkSession | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Another definition, and no rows, for a table that must be there; its earlier versions stay."""
        return cls._builder(Creation.REPLACE, sparkSession, storage_options)

    @classmethod
    def createOrReplace(
        cls, sparkSession: SparkSession | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """As `replace` where there is a table, else as `create`."""
        return cls._builder(Creation.CREATE_OR_REPLACE, sparkSession, storage_options)

    @classmethod
    def _builder(
        cls, creation: Creation, spark: SparkSession | None, storage_options: Mapping[str, Any] | None
    ) -> DeltaTableBuilder[DeltaTable]:
        session = spark or SparkSession.getActiveSession()
        if session is None:
            raise InvalidRequestError("this thread has no active session", fix="give the session as first argument")
        return DeltaTableBuilder(session, creation, lambda target: cls(session, target), storage_options)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under another name, for the conditions of a merge."""
        return DeltaTable(self._spark, self._table, aliasName)

    def toDF(self) -> DataFrame:
        """The rows of the latest version."""
        self._table.refresh()
        return table(self._spark, self._table.address, storage_options=self._table.storage.options)

    def delete(self, condition: Condition | None = None) -> int | None:
        """Delete the rows for which a condition is true, all without one; returns the version, None without any."""
        return changes.delete(self._spark, self._table, None if condition is None else sql_text(condition))

    def update(self, condition: Condition | None = None, set: Values | None = None) -> int | None:  # noqa: A002
        """Set columns of the rows for which a condition is true, of all without one; returns the version."""
        if not set:
            raise InvalidRequestError("an update without assignments changes nothing", fix="say which columns to set")
        where = None if condition is None else sql_text(condition)
        return changes.update(self._spark, self._table, where, {name: sql_text(value) for name, value in set.items()})

    def merge(self, source: DataFrame, condition: Condition) -> DeltaMergeBuilder:
        """A merge of rows into the table; add clauses, then `execute`.

        The table's columns go by `target.` or its alias, the source's by `source.` or one other name, its alias, which
        Spark does not tell.
        """
        return DeltaMergeBuilder(self._spark, self._table, source, sql_text(condition), self._alias)

    def optimize(self) -> DeltaOptimizeBuilder:
        """Files to rearrange; then `executeCompaction` or `executeZOrderBy`."""
        return DeltaOptimizeBuilder(self._spark, self._table)

    # -- what the log alone tells or does

    def detail(self) -> DataFrame:
        """`results.DETAIL`: one row, the table as it is."""
        self._table.refresh()
        return results.detail(self._spark, self._table)

    def history(self, limit: int | None = None) -> DataFrame:
        """`results.HISTORY`: one row a commit, newest first."""
        self._table.refresh()
        return results.history(self._spark, self._table, optional_integer(limit, "limit"))

    def vacuum(
        self, retentionHours: float | None = None, *, dry_run: bool = True, allow_short_retention: bool = False
    ) -> DataFrame:
        """`results.VACUUM`: the files that no version within the retention needs, deleted with `dry_run=False` alone.

        InvalidRequestError for a retention below the table's, unless `allow_short_retention`.
        """
        hours = None if retentionHours is None else timedelta(hours=retentionHours)
        files = self._table.vacuum(hours, dry_run=dry_run, allow_short_retention=allow_short_retention)
        return results.vacuum_result(self._spark, files)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table what it was at a version; returns `results.RESTORE`, the files that came and went."""
        return results.restore_result(self._spark, self._table, self._table.restore(version))

    def restoreToTimestamp(self, timestamp: datetime | str) -> DataFrame:
        """Make the table what it was at a moment: a datetime with its offset, or text, which without one is in the time
        zone of the session. Returns as `restoreToVersion`."""
        at = _moment(self._spark, timestamp) if isinstance(timestamp, str) else timestamp
        return results.restore_result(self._spark, self._table, self._table.restore(at=at))


def _moment(spark: SparkSession, text: str) -> datetime:
    """A text as Spark reads it as a timestamp. InvalidRequestError for one that it takes for none."""
    (row,) = spark.range(1).select(f.unix_micros(f.lit(text).try_cast("timestamp"))).collect()
    if row[0] is None:
        raise InvalidRequestError(
            f"{text!r} is no timestamp", fix="write it as 2026-07-15 or 2026-07-15 03:25:00", place="timestamp"
        )
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row[0])
