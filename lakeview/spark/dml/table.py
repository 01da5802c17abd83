"""A Delta table for those who know Delta's own `DeltaTable`: the same calls, done by Spark jobs and our commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

import lakeview as lv
from lakeview import delta
from lakeview.delta.write.merge import SOURCE, TARGET, Merge
from lakeview.model.data_types import StructType
from lakeview.model.errors import InvalidRequestError, NotATableError
from lakeview.predicates.qualifiers import qualifiers, with_qualifiers
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml import changes
from lakeview.spark.dml.columns import sql_text
from lakeview.spark.dml.merge import empty_source, merge
from lakeview.spark.tables import table
from lakeview.spark.types import from_spark
from lakeview.storage.access import StoreAccess

Condition: TypeAlias = str | Column
"""SQL text, or what Spark's functions make of columns, literals and operators (`expr`, `col`, `lit`)."""

Values: TypeAlias = Mapping[str, Condition]
"""Column of the table -> its value."""


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
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: ARG003 (Delta's call)
        """Whether a Delta table is at an address."""
        try:
            return isinstance(lv.open_table(identifier), delta.table.DeltaTable)
        except NotATableError:
            return False

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

    def vacuum(self, retentionHours: float | None = None, *, dry_run: bool = True) -> pl.DataFrame:
        """VACUUM: the files that no version within the retention needs; deleted with `dry_run=False` alone."""
        hours = None if retentionHours is None else timedelta(hours=retentionHours)
        return self._table.vacuum(hours, dry_run=dry_run)

    def history(self, limit: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first."""
        self._table.refresh()
        return self._table.history(limit)

    def restoreToVersion(self, version: int) -> int | None:
        """Make the table what it was at a version; returns the new one."""
        return self._table.restore(version)

    def restoreToTimestamp(self, timestamp: datetime | str) -> int | None:
        """Make the table what it was at a moment: a datetime with its offset, or text, which without one is in the time
        zone of the session. Returns the new version."""
        return self._table.restore(at=_moment(self._spark, timestamp) if isinstance(timestamp, str) else timestamp)


class DeltaMergeBuilder:
    """A merge in the making. Of clauses of one kind, the first whose condition holds counts."""

    def __init__(
        self, spark: SparkSession, target: delta.table.DeltaTable, source: DataFrame, condition: str, alias: str
    ) -> None:
        self._spark = spark
        self._table = target
        self._source = source
        self._alias = alias
        self._merges_schema = False
        fields = [field for schema in (target.snapshot().schema, from_spark(source.schema)) for field in schema]
        structs = {field.name for field in fields if isinstance(field.type, StructType)}
        self._columns = structs - {alias, TARGET, SOURCE}  # what is no struct has no fields: its name may be an alias
        self._names = {SOURCE: SOURCE, TARGET: TARGET, alias.casefold(): TARGET}
        self._merge = Merge(empty_source(source), self._sql(condition), _elsewhere)

    def whenMatchedUpdate(self, condition: Condition | None = None, set: Values | None = None) -> DeltaMergeBuilder:  # noqa: A002
        """Set columns of rows that a source row matches."""
        return self._with(lambda m: m.when_matched_update(self._values(set), where=self._where(condition)))

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Set all columns that the source has of rows that a source row matches."""
        return self._with(lambda m: m.when_matched_update(where=self._where(condition)))

    def whenMatchedDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete rows that a source row matches."""
        return self._with(lambda m: m.when_matched_delete(where=self._where(condition)))

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        """Insert source rows that match no row."""
        return self._with(lambda m: m.when_not_matched_insert(self._values(values), where=self._where(condition)))

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Insert source rows that match no row, with all of their columns."""
        return self._with(lambda m: m.when_not_matched_insert(where=self._where(condition)))

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> DeltaMergeBuilder:
        """Set columns of rows that no source row matches."""
        return self._with(
            lambda m: m.when_not_matched_by_source_update(self._values(set), where=self._where(condition))
        )

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete rows that no source row matches."""
        return self._with(lambda m: m.when_not_matched_by_source_delete(where=self._where(condition)))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add columns, and fields of structs, that the source alone has to the table: all where a clause takes every
        column, else those that clauses assign to. Fields of structs that the source lacks stay as they are in rows of
        which all columns are updated, and are null in new rows and where a clause assigns the whole struct."""
        self._merges_schema = True
        return self

    def execute(self) -> int | None:
        """Do it; returns the version, None if nothing changed."""
        if not self._merge.clauses:
            raise InvalidRequestError("the merge has no clause, and would change nothing", fix="add one")
        return merge(self._spark, self._table, self._source, self._merge, merge_schema=self._merges_schema)

    def _with(self, add: Callable[[Merge], Merge]) -> DeltaMergeBuilder:
        add(self._merge)
        return self

    def _sql(self, value: Condition) -> str:
        text = sql_text(value)
        for name in qualifiers(text, self._columns):
            if name not in self._names and len(self._names) > len({SOURCE, TARGET, self._alias.casefold()}):
                raise InvalidRequestError(
                    f"{name} is neither the table nor the source: they go by {', '.join(self._names)}",
                    fix="use one name for the source",
                    place=name,
                    kind="unknown-qualifier",
                )
            self._names.setdefault(name, SOURCE)
        return with_qualifiers(text, self._names)

    def _where(self, condition: Condition | None) -> str | None:
        return None if condition is None else self._sql(condition)

    def _values(self, values: Values | None) -> dict[str, str]:
        if not values:
            raise InvalidRequestError(
                "the clause sets no column", fix="name the columns, or use the clause for all of them"
            )
        return {self._column(name): self._sql(value) for name, value in values.items()}

    def _column(self, name: str) -> str:
        """What is set, without the name of the table before it, whose case means nothing."""
        for qualifier in (self._alias, TARGET):
            if name.casefold().startswith(f"{qualifier}.".casefold()):
                return name[len(qualifier) + 1 :]
        return name


class DeltaOptimizeBuilder:
    """Files to write again: all, or those of the partitions that a condition selects."""

    def __init__(self, spark: SparkSession, target: delta.table.DeltaTable, where: str | None = None) -> None:
        self._spark = spark
        self._table = target
        self._where = where

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only partitions that a condition on partition columns selects."""
        return DeltaOptimizeBuilder(self._spark, self._table, sql_text(partitionFilter))

    def executeCompaction(self) -> int | None:
        """Write small files again as few large ones; returns the version, None if all are well."""
        return changes.optimize(self._spark, self._table, self._where)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> int | None:
        """Order rows along a curve through columns; returns the version."""
        names = [name for col in cols for name in ([col] if isinstance(col, str) else col)]
        if not names:
            raise InvalidRequestError("no column to order by is named", fix="name one to six", kind="bad-order")
        return changes.optimize(self._spark, self._table, self._where, names)


def _moment(spark: SparkSession, text: str) -> datetime:
    """A text as Spark reads it as a timestamp. InvalidRequestError for one that it takes for none."""
    (row,) = spark.range(1).select(f.unix_micros(f.lit(text).try_cast("timestamp"))).collect()
    if row[0] is None:
        raise InvalidRequestError(
            f"{text!r} is no timestamp", fix="write it as 2026-07-15 or 2026-07-15 03:25:00", place="timestamp"
        )
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row[0])


def _elsewhere(plan: Merge) -> int | None:
    raise InvalidRequestError(f"the merge on {plan.on} is run by its builder", fix="call execute() of the builder")
