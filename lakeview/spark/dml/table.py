"""A Delta table for those who know Delta's own `DeltaTable`: the same calls, done by Spark jobs and our commits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview import delta
from lakeview.delta.features import WRITER_FEATURES
from lakeview.delta.log.actions import supported_features
from lakeview.delta.write.merge import TARGET
from lakeview.delta.write.symlink_manifest import write_manifests
from lakeview.model.arguments import hours_of, optional_count
from lakeview.model.errors import InvalidRequestError, NotATableError
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml import catalog, changes, results
from lakeview.spark.dml.changes import clone_table
from lakeview.spark.dml.columns import Condition, Values, sql_text
from lakeview.spark.dml.merge_builder import DeltaMergeBuilder, DeltaOptimizeBuilder
from lakeview.spark.dml.table_builder import Creation, DeltaTableBuilder
from lakeview.spark.tables import table, timestamp_of
from lakeview.spark.types import from_spark, struct_type
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
        cls,
        sparkSession: SparkSession,
        path: str,
        storage_options: Mapping[str, Any] | None = None,
        hadoopConf: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """The table at an address, with storage options as of `open_table`.

        NotATableError, UnsupportedTableError for one of another format, InvalidRequestError for options of Hadoop.
        """
        if hadoopConf:
            raise InvalidRequestError(
                f"hadoopConf has {next(iter(hadoopConf))}, and lakeview opens stores without Hadoop",
                fix="give storage_options, by their names in deltalake or fsspec",
                place="hadoopConf",
                kind="hadoop-options",
            )
        access = StoreAccess(storage_options or {})
        return cls(sparkSession, delta_table(path, "changed", "read it with lakeview.spark.table()", access))

    @classmethod
    def forName(
        cls, sparkSession: SparkSession, tableOrViewName: str, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTable:
        """The table of a name in Spark's catalog, at the location that is recorded there; or of delta.`address`.

        NotATableError for a name without a location, or with one where no table is; InvalidRequestError for a view.
        """
        path = catalog.path_of(tableOrViewName) or catalog.required_location(sparkSession, tableOrViewName)
        try:
            return cls.forPath(sparkSession, path, storage_options)
        except NotATableError as error:
            raise catalog.without_table(tableOrViewName, path) from error

    @classmethod
    def isDeltaTable(
        cls,
        sparkSession: SparkSession,  # noqa: ARG003 (Delta's call)
        identifier: str,
        storage_options: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether a Delta table is at an address, also one written as delta.`address`."""
        address = catalog.path_of(identifier) or identifier
        try:
            return isinstance(lv.open_table(address, storage_options=storage_options), delta.table.DeltaTable)
        except NotATableError:
            return False

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        collectStats: bool = True,  # noqa: ARG003 (Delta's call)
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTable:
        """Make a table of the files of parquet.`folder`, which stay as they are; a Delta table is left as it is.

        `partitionSchema`: the columns that folders such as `day=2026-01-01` name. The driver reads all footers, and
        takes the statistics that they have. Errors as of `lakeview.convert_to_delta`.
        """
        address = catalog.path_of(identifier, ("parquet", "delta"))
        if address is None:
            raise InvalidRequestError(
                f"{identifier} is no folder", fix="give it as parquet.`folder`", place=identifier, kind="table-name"
            )
        if not cls.isDeltaTable(sparkSession, address, storage_options):
            partitions = None if partitionSchema is None else from_spark(struct_type(partitionSchema))
            lv.convert_to_delta(address, partition_by=partitions, storage_options=storage_options)
        return cls.forPath(sparkSession, address, storage_options)

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

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Let the protocol have higher versions. InvalidRequestError for lower ones, and for two that do not fit."""
        self._table.upgrade_versions(readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Let the protocol name a table feature, in any case of letters, and those that it needs. UnsupportedTableError
        for one that lakeview does not write."""
        spellings = {name.lower(): name for name in WRITER_FEATURES}
        self._table.upgrade_protocol([spellings.get(featureName.lower(), featureName)])

    def generate(self, mode: str) -> None:
        """Write the manifests of `symlink_format_manifest`: lists of the files of the latest version, for engines
        without Delta. UnsupportedTableError for a table that files alone do not give."""
        if mode.lower() != "symlink_format_manifest":
            raise InvalidRequestError(f"{mode!r} is no manifest", fix="give symlink_format_manifest", place="mode")
        write_manifests(self._table)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take a table feature out of the protocol, in any case of letters, and what the table keeps for it. Errors as
        the library's `drop_feature`; with `truncateHistory` versions go that are older than a day."""
        self._table.refresh()
        spellings = {name.lower(): name for name in supported_features(self._table.state().protocol)}
        name = spellings.get(featureName.lower(), featureName)
        self._table.drop_feature(name, truncate_history=bool(truncateHistory))

    def clone(
        self,
        target: str,
        isShallow: bool,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Make a table at another address of the files that this one has, with `properties` besides its own: they stay
        where they are, or are copied by tasks of Spark if it is not shallow.

        Reading a shallow one needs this table's folder among the allowed roots. UnsupportedTableError for one in place
        of a table, CommitConflictError where a table is.
        """
        return self._clone(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of the files that the table had at a version."""
        return self._clone(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: datetime | str,
        target: str,
        isShallow: bool,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of the files that the table had at a moment, which is written as for `restoreToTimestamp`."""
        return self._clone(target, isShallow, replace, properties, at=timestamp_of(self._spark, timestamp))

    def _clone(
        self, target: str, isShallow: bool, replace: bool, properties: Mapping[str, str] | None, **point: Any
    ) -> DeltaTable:
        table = clone_table(
            self._spark, self._table, target, properties or {}, shallow=isShallow, replace=replace, **point
        )
        return DeltaTable(self._spark, table)

    def detail(self) -> DataFrame:
        """`results.DETAIL`: one row, the table as it is."""
        self._table.refresh()
        return self._spark.createDataFrame([results.detail_row(self._table)], results.DETAIL)

    def history(self, limit: int | None = None) -> DataFrame:
        """`results.HISTORY`: one row a commit, newest first."""
        self._table.refresh()
        return results.history(self._spark, self._table, optional_count(limit, "limit"))

    def vacuum(
        self, retentionHours: float | None = None, *, dry_run: bool = True, allow_short_retention: bool = False
    ) -> DataFrame:
        """`results.VACUUM`: the files that no version within the retention needs, deleted with `dry_run=False` alone.

        InvalidRequestError for a retention below the table's, unless `allow_short_retention`.
        """
        retention = None if retentionHours is None else hours_of(retentionHours, "retentionHours")
        files = self._table.vacuum(retention, dry_run=dry_run, allow_short_retention=allow_short_retention)
        return self._spark.createDataFrame(files.rows(), results.VACUUM)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table what it was at a version; returns `results.RESTORE`, the files that came and went."""
        return self._restore_result(self._table.restore(version))

    def restoreToTimestamp(self, timestamp: datetime | str) -> DataFrame:
        """Make the table what it was at a moment: a datetime with its offset, or text, which without one is in the time
        zone of the session. Returns as `restoreToVersion`."""
        return self._restore_result(self._table.restore(at=timestamp_of(self._spark, timestamp)))

    def _restore_result(self, version: int | None) -> DataFrame:
        return self._spark.createDataFrame([results.restore_row(self._table, version)], results.RESTORE)
