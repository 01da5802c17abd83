"""A merge as Spark jobs: which source rows meet which file, then each file with its source rows by one task."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pyroaring
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.merge import Merge, merge_metrics
from lakeview.delta.write.merge_rows import MergeRows
from lakeview.delta.write.row_changes import PACKED_BYTES
from lakeview.delta.write.row_operations import RowWork
from lakeview.delta.write.target import until_made
from lakeview.delta.write.transaction import Transaction
from lakeview.model.clock import Clock, system_clock
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import quote_name
from lakeview.spark.arrow_functions import in_utc, map_batches, positions
from lakeview.spark.dml.changes import by_partition, parts
from lakeview.spark.dml.jobs import (
    OUTCOME,
    collect,
    parts_frame,
    run_parts,
    take_paths,
    task_work,
)
from lakeview.spark.dml.merge_source import BROADCAST_BYTES, OWN, SourceRows, assigned_columns, key_fields
from lakeview.spark.dml.merge_tasks import FILE, GROUP, MergeOutcome, insert_rows, key_rows, merge_alone, merge_rows
from lakeview.spark.failures import lakeview_errors
from lakeview.spark.types import arrow_schema, from_spark
from lakeview.spark.write_contexts import evolve
from lakeview.spark.writer import ENGINE

_GROUPS = StructType([StructField(FILE, IntegerType()), StructField(GROUP, IntegerType())])
_RANGED = ("long", "integer", "short", "byte", "string", "date")
"""Types of keys whose least and greatest value skip files."""


def merge(
    spark: SparkSession,
    table: DeltaTable,
    source: DataFrame,
    plan: Merge,
    *,
    merge_schema: bool = False,
    application: tuple[str, int] | None = None,
    user: str | None = None,
    user_metadata: str | None = None,
    clock: Clock = system_clock,
) -> int | None:
    """Do what the clauses of `plan` say with the rows of `source`; returns the version, None if nothing changed.

    `merge_schema`: columns and fields that the source alone has, and that a clause writes, are added to the table;
    fields of structs that it lacks stay as they are in rows of which all columns are updated, and are null elsewhere.
    `application`: its name, and a version of it that the table is merged with once (txnAppId and txnVersion of a
    write). InvalidRequestError (kind no-merge-key) for a condition without an equality of columns, and as the
    library's merge.
    """

    rows = SourceRows(source)

    def once() -> int | None:
        parameters = dict(plan.parameters())
        with table.transaction(
            "MERGE", parameters=parameters, user=user, user_metadata=user_metadata, engine=ENGINE, clock=clock
        ) as txn:
            if application is not None and not txn.set_transaction(*application, once=True):
                return None
            if merge_schema:
                evolve(txn, assigned_columns(plan, from_spark(source.schema)))
            _Merging(spark, txn, rows, plan, fill_missing=merge_schema).run()
        return txn.version

    return until_made(once)


def new_merge(source: DataFrame, on: str) -> Merge:
    """A merge of these rows, without clauses yet, for `merge` to run."""
    return Merge(pl.DataFrame(schema=from_spark(source.schema).to_polars()), on, _elsewhere)


def _elsewhere(plan: Merge) -> int | None:
    raise InvalidRequestError(f"the merge on {plan.on} is run by Spark", fix="call execute() of its builder")


class _Merging:
    def __init__(
        self, spark: SparkSession, txn: Transaction, source: SourceRows, plan: Merge, *, fill_missing: bool
    ) -> None:
        self._spark = spark
        self._txn = txn
        self._plan = plan
        txn.begin_merge(plan)
        with txn.row_changes() as rows:
            self._rows = MergeRows(plan, rows)
        self._keys = self._rows.check_keys()
        if not self._keys:
            raise InvalidRequestError(
                f"{plan.on} does not say which columns of target and source are equal: a whole column of each is "
                "needed, and a field of a struct, an expression or <=> says it of none",
                fix="add an equality of two columns with AND, such as target.id = source.id, or merge by "
                "lakeview.open_table(...).merge(...), which compares all rows",
                place="on",
                kind="no-merge-key",
            )
        self._fill_missing = fill_missing
        self._source = source

    def run(self) -> None:
        with task_work(self._txn) as work:
            self._work: RowWork = replace(work, context=replace(work.context, fill_missing=self._fill_missing))
            self._apply()

    # -- inside

    def _apply(self) -> None:
        txn = self._txn
        condition = None if self._plan.of("not matched by source") else self._condition()
        txn.reads(pl.lit(value=True) if condition is None else condition)
        files = txn.live_files(condition)
        outcomes = self._change_rows(files)
        inserts = self._insert_rows(outcomes) if self._plan.of("not matched") else []
        rows, counts = Counter({"numSourceRows": self._source.size()[0]}), Counter[str]()
        done = [o.row_outcome for o in (*outcomes, *inserts)]
        for outcome in (*outcomes, *inserts):
            rows.update(outcome.counts)
            counts.update(outcome.row_outcome.counts)
        txn.take(done, {})
        txn.entry.count(merge_metrics(counts, rows))

    def _condition(self) -> pl.Expr | None:
        """What rows of the table the merge can change, as a condition by which files are skipped."""
        types = {field.name: field.type for field in from_spark(self._source.schema)}
        condition = self._rows.left_only
        for column, other in self._keys:
            type_ = self._txn.schema[column].type
            if not isinstance(type_, PrimitiveType) or type_.name not in _RANGED or types.get(other) != type_:
                continue
            low, high = self._source.frame().agg(f.min(quote_name(other)), f.max(quote_name(other))).collect()[0]
            if low is None:
                return pl.lit(value=False)
            inside = pl.col(column).is_between(pl.lit(low), pl.lit(high))
            condition = inside if condition is None else condition & inside
        return condition

    def _change_rows(self, files: Sequence[LiveFile]) -> list[MergeOutcome]:
        """Apply the clauses for rows of the table."""
        if not files:
            return []
        of_number = dict(enumerate(by_partition(files)))
        # computed once: which files are touched is known only then, and by that they are divided among tasks
        with lakeview_errors():
            met = self._met_files(of_number).localCheckpoint()
            numbers = {row[0] for row in met.select(FILE).distinct().collect()}
        outcomes = self._merge_files(met, {number: of_number[number] for number in sorted(numbers)}) if numbers else []
        if self._plan.of("not matched by source"):
            rest = [file for number, file in of_number.items() if number not in numbers]
            alone = partial(merge_alone, self._work, self._plan)
            outcomes += self._with_paths(run_parts(self._spark, parts(rest), alone))
        return outcomes

    def _merge_files(self, met: DataFrame, files: dict[int, LiveFile]) -> list[MergeOutcome]:
        """Apply the clauses to the files that source rows meet, those of a group by one task: the small ones among them
        share new files."""
        size = sum(file.task.size for file in files.values())
        groups = parts(list(files.values()), min(self._tasks(files), max(1, size // PACKED_BYTES)))
        number = iter(files)  # parts keep the order of the files
        pairs = [(next(number), place) for place, group in enumerate(groups) for _ in group]
        group_of = self._spark.createDataFrame(pairs, _GROUPS)
        rows = met.join(f.broadcast(group_of), FILE)
        names = rows.columns
        columns = positions(rows)
        group_column = columns[names.index(GROUP)]
        work, plan = self._work, self._plan  # a task gets what its function names, and must not get this object

        def merging(rows: pa.Table) -> pa.Table:  # Spark reads the annotations, which a partial has not
            return merge_rows(work, plan, files, in_utc(rows.rename_columns(names)))

        # by number: source rows are few bytes for the files that tasks write, and Spark would put them into one task
        by_group = rows.toDF(*columns).repartitionById(self._tasks(groups), group_column).groupBy(group_column)
        return self._with_paths(collect(by_group.applyInArrow(merging, OUTCOME)))

    def _tasks(self, parts: Collection[object]) -> int:
        """So many tasks share the parts: as many as Spark has for a shuffle."""
        return min(len(parts), int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1))

    def _met_files(self, files: dict[int, LiveFile]) -> DataFrame:
        """Each source row with the number of each file that has its key."""
        columns = [column for column, _ in self._keys]
        names = [f"{OWN}key{i}" for i in range(len(columns))]
        fields = key_fields(self._keys, self._txn.schema, names)
        schema = StructType([StructField(FILE, IntegerType()), *fields])
        number = iter(files)  # parts keep the order of the files
        groups = parts(list(files.values()), self._tasks(files))
        files_by_part = [[(next(number), file) for file in group] for group in groups]
        keys = parts_frame(self._spark, files_by_part).mapInArrow(
            partial(key_rows, self._work, columns, arrow_schema(schema)), schema
        )
        others = [f"{OWN}source{i}" for i in range(len(columns))]
        source = self._source.with_keys(self._keys, self._txn.schema, others)
        equal = [keys[quote_name(name)] == source[quote_name(other)] for name, other in zip(names, others, strict=True)]
        # Spark takes the keys, of any number of files, for as small as the list of the files, and would broadcast them
        if self._source.size()[1] <= BROADCAST_BYTES:
            source = f.broadcast(source)
        else:
            keys = keys.hint("merge")
        return keys.join(source, reduce(lambda a, b: a & b, equal)).drop(*names, *others)

    def _insert_rows(self, outcomes: Sequence[MergeOutcome]) -> list[MergeOutcome]:
        """Insert the source rows that matched none."""
        matches = (
            pyroaring.BitMap64.union(*(o.matched_source_rows for o in outcomes)) if outcomes else pyroaring.BitMap64()
        )
        inserting = partial(insert_rows, self._work, self._plan, matches.serialize())
        source = self._source.frame().coalesce(max(1, self._source.size()[1] // PACKED_BYTES))  # each task adds a file
        return self._with_paths(collect(map_batches(source, inserting, OUTCOME)))

    def _with_paths(self, outcomes: Sequence[Any]) -> list[Any]:
        take_paths(self._txn, [o.row_outcome if isinstance(o, MergeOutcome) else o for o in outcomes])
        return list(outcomes)
