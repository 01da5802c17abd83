"""The configuration of a dataset to the merge by which its rows are published; and the rows that delete others to
tombstones, by which a row that is older than a deletion does not come again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.merge import SOURCE, TARGET, Merge, condition_of
from lakeview.model.clock import Clock
from lakeview.model.schema import quote_name
from lakeview.predicates.joins import qualify
from lakeview.spark.dml import changes
from lakeview.spark.dml.merge import merge, new_merge
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.pipelines import expectations
from lakeview.spark.pipelines.config import Action, Dataset, Expectation
from lakeview.spark.pipelines.graph import FORMAT
from lakeview.spark.pipelines.sources import table_at
from lakeview.spark.types import column, from_spark
from lakeview.storage.access import StoreAccess


def merge_plan(dataset: Dataset, rows: DataFrame) -> Merge:
    """Rows update the row of their key, or are inserted; those of `delete_when` delete it, and are not inserted. With
    `order_by` a row that is older than that of its key changes nothing."""
    plan = new_merge(rows, condition_of(dataset.keys))
    current = _not_older(dataset.order_by) if dataset.order_by else None
    if dataset.delete_when is None:
        return plan.when_matched_update(where=current).when_not_matched_insert()
    deletes = qualify(dataset.delete_when, SOURCE)
    plan.when_matched_delete(where=deletes if current is None else f"({deletes}) AND {current}")
    plan.when_matched_update(where=current)
    return plan.when_not_matched_insert(where=f"({deletes}) IS NOT TRUE")


def tombstone_plan(dataset: Dataset, rows: DataFrame) -> Merge:
    """Of each key the tombstone with the largest values of `order_by` stays, and of equal ones the last."""
    plan = new_merge(rows, condition_of(dataset.keys))
    return plan.when_matched_update(where=_not_older(dataset.order_by)).when_not_matched_insert()


def _not_older(order_by: Sequence[str]) -> str:
    """That a row of the source is as new as that of the table, or newer."""
    return f"({_is_older(order_by, SOURCE, TARGET)} IS NOT TRUE)"


def _is_older(order_by: Sequence[str], side: str, other: str) -> str:
    """That the row of one side is older than that of the other. Null is older than all values, as in
    `latest_of_keys`."""
    older = "FALSE"
    for name in reversed(order_by):
        column = '"' + name.replace('"', '""') + '"'
        ours, theirs = f"{side}.{column}", f"{other}.{column}"
        before = f"{theirs} > {ours} OR ({ours} IS NULL AND {theirs} IS NOT NULL)"
        same = f"{theirs} = {ours} OR ({ours} IS NULL AND {theirs} IS NULL)"
        older = f"({before} OR (({same}) AND {older}))"
    return older


_KEY, _ORDER = "\1key", "\1order"


@dataclass(frozen=True)
class Tombstones:
    """The keys that were deleted from a published table, each with the order of its deletion and the time at which it
    was published last, in a Delta table at `address`: columns `keys` and `order_by` of `dataset`, and one more.
    Publications of a row and of its deletion then have the same result in either order. Writing them again, by the run
    after one that was killed, changes that time alone."""

    spark: SparkSession
    address: str
    dataset: Dataset
    access: StoreAccess
    user: str | None
    clock: Clock

    def newer(self, rows: DataFrame) -> DataFrame:
        """The rows without those that are older than the deletion of their key."""
        table = table_at(self.address, self.access)
        keys, order = self.dataset.keys, self.dataset.order_by
        spellings = {} if table is None else {name.casefold(): name for name in table.snapshot().schema.names}
        if table is None or any(name.casefold() not in spellings for name in (*keys, *order)):
            return rows  # those of other keys, or of another order, say nothing of these
        reader = self.spark.read.format(FORMAT).options(**as_spark_options(self.access))
        tombstones = reader.option("versionAsOf", str(table.latest_version)).load(table.address)
        # structs are compared field by field, a null before all values
        tombstones = tombstones.select(
            *[column(spellings[key.casefold()]).alias(f"{_KEY}{i}") for i, key in enumerate(keys)],
            f.struct(*[column(spellings[name.casefold()]) for name in order]).alias(_ORDER),
        )
        same = [column(key) == column(f"{_KEY}{i}") for i, key in enumerate(keys)]
        is_older = column(_ORDER) > f.struct(*[column(name) for name in order])
        return rows.join(tombstones, reduce(Column.__and__, same, is_older), "left_anti")

    def add(self, rows: DataFrame) -> None:
        """Record the deletions among rows, of which a key has one; before the rows are merged."""
        rule = Expectation("deletes", Action.DROP, condition=self.dataset.delete_when)
        deletes = expectations.mark_failures(rows, [rule], None).where(~expectations.is_removed([rule]))
        names = dict.fromkeys((*self.dataset.keys, *self.dataset.order_by))
        deletes = deletes.dropna(subset=[quote_name(key) for key in self.dataset.keys])
        timestamp = f.lit(self.clock()).cast("timestamp").alias(self._time)
        deletes = deletes.select(*[column(name) for name in names], timestamp)
        if not deletes.isEmpty():
            plan = tombstone_plan(self.dataset, deletes)
            merge(
                self.spark, self._table(deletes), deletes, plan, merge_schema=True, user=self.user, clock=self.clock
            )  # fmt: skip

    def prune(self) -> bool:
        """Delete the tombstones that were published before the period of the dataset; true if there were any.

        Those without a time, of older releases, count as published now. Bounds of files tell without a job whether
        there are such rows.
        """
        table, period = table_at(self.address, self.access), self.dataset.tombstone_period
        if period is None or table is None:
            return False
        if self._time not in table.snapshot().schema:
            table.add_column(self._time, "timestamp")
        time, now = quote_name(self._time), self.clock()
        changes.update(
            self.spark, table, f"{time} IS NULL", {self._time: f"TIMESTAMP '{now.isoformat()}'"}, self.user
        )  # fmt: skip
        before = (now - period).isoformat()
        return changes.delete(self.spark, table, f"{time} < TIMESTAMP '{before}'", self.user) is not None

    def optimize(self) -> None:
        """Pack small files."""
        if (table := table_at(self.address, self.access)) is not None:
            changes.optimize(self.spark, table, None, user=self.user)

    def vacuum(self, retention: timedelta) -> None:
        """Delete files that are not needed for so long."""
        if (table := table_at(self.address, self.access)) is not None:
            table.vacuum(retention, dry_run=False, user=self.user, clock=self.clock)

    @property
    def _time(self) -> str:
        """The column of the time at which a deletion was published: a name that none of the others has."""
        name, others = "published", {name.casefold() for name in (*self.dataset.keys, *self.dataset.order_by)}
        while name in others:
            name += "_"
        return name

    def _table(self, rows: DataFrame) -> DeltaTable:
        table = table_at(self.address, self.access)
        if table is None:
            table = lv.create_table(
                self.address, from_spark(rows.schema).to_arrow(), user=self.user, clock=self.clock,
                properties={"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"},
                storage_options=self.access.options,
            )  # fmt: skip
        return table
