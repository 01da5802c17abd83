"""A merge as Spark jobs: which source rows meet which file, then each file with its source rows by one task."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.file_changes import FileChanges, paths_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.merge import Merge
from lakeview.delta.write.merge_rows import MergeRows, merge_metrics
from lakeview.delta.write.moved_rows import Rearrangement
from lakeview.delta.write.retries import until_made
from lakeview.delta.write.row_changes import PACKED_BYTES, RowChanges
from lakeview.delta.write.row_work import RowOutcome, RowWork
from lakeview.delta.write.transaction import Transaction
from lakeview.delta.write.writer import write_files
from lakeview.model.clock import Clock, system_clock
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import quoted
from lakeview.rows.batches import batches_of
from lakeview.spark.arrow_functions import in_utc, map_batches, positions
from lakeview.spark.dml.changes import by_partition, parts
from lakeview.spark.dml.jobs import (
    OUTCOME,
    attempt,
    collect,
    outcome_batch,
    parts_frame,
    parts_of,
    run_parts,
    take_paths,
)
from lakeview.spark.dml.merge_source import BROADCAST_BYTES, OWN, ROW, SourceRows, key_fields
from lakeview.spark.failures import lakeview_errors
from lakeview.spark.types import arrow_schema, from_spark
from lakeview.spark.write_contexts import evolve
from lakeview.spark.writer import ENGINE

_FILE = f"{OWN}file"
_GROUP = f"{OWN}group"
_GROUPS = StructType([StructField(_FILE, IntegerType()), StructField(_GROUP, IntegerType())])
_RANGED = ("long", "integer", "short", "byte", "string", "date")
"""Types of keys whose least and greatest value skip files."""


@dataclass
class MergeOutcome:
    """What a task did for some files. `counts`: of rows; `met`: the source rows that matched any."""

    done: RowOutcome
    counts: Counter[str]
    met: pyroaring.BitMap64


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

    `merge_schema`: columns and fields that the source alone has are added to the table, as a write with mergeSchema
    does. `application`: its name, and a version of it that the table is merged with once (txnAppId and txnVersion of a
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
                evolve(txn, from_spark(source.schema))
            _Merging(spark, txn, rows, plan).run()
        return txn.version

    return until_made(once)


def empty_source(source: DataFrame) -> pl.DataFrame:
    """A frame without rows that has the columns of a source."""
    return pl.DataFrame(schema=from_spark(source.schema).to_polars())


class _Merging:
    def __init__(self, spark: SparkSession, txn: Transaction, source: SourceRows, plan: Merge) -> None:
        self._spark = spark
        self._txn = txn
        self._plan = plan
        txn.begin_merge(plan)
        with txn.row_changes() as rows:
            self._rows = MergeRows(plan, txn.schema, rows, txn.clock)
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
        self._work: RowWork = txn.row_work()
        self._source = source

    def run(self) -> None:
        txn = self._txn
        condition = None if self._plan.of("not matched by source") else self._condition()
        txn.reads(pl.lit(value=True) if condition is None else condition)
        files = txn.live_files(condition)
        outcomes = self._changed(files)
        inserts = self._inserted(outcomes) if self._plan.of("not matched") else []
        rows, counts = Counter({"numSourceRows": self._source.size()[0]}), Counter[str]()
        done = [o.done for o in (*outcomes, *inserts)]
        for outcome in (*outcomes, *inserts):
            rows.update(outcome.counts)
            counts.update(outcome.done.counts)
        txn.take(done, {})
        txn.entry.count(merge_metrics(counts, rows, txn.files.adds))

    def _condition(self) -> pl.Expr | None:
        """What rows of the table the merge can change, as a condition by which files are skipped."""
        types = {field.name: field.type for field in from_spark(self._source.schema)}
        condition = self._rows.left_only
        for column, other in self._keys:
            type_ = self._txn.schema[column].type
            if not isinstance(type_, PrimitiveType) or type_.name not in _RANGED or types.get(other) != type_:
                continue
            low, high = self._source.frame().agg(f.min(quoted(other)), f.max(quoted(other))).collect()[0]
            if low is None:
                return pl.lit(value=False)
            inside = pl.col(column).is_between(pl.lit(low), pl.lit(high))
            condition = inside if condition is None else condition & inside
        return condition

    def _changed(self, files: Sequence[LiveFile]) -> list[MergeOutcome]:
        """Apply the clauses for rows of the table."""
        if not files:
            return []
        of_number = dict(enumerate(by_partition(files)))
        # computed once: which files are touched is known only then, and by that they are divided among tasks
        with lakeview_errors():
            met = self._met_files(of_number).localCheckpoint()
            touched = {row[0] for row in met.select(_FILE).distinct().collect()}
        outcomes = self._merged(met, {number: of_number[number] for number in sorted(touched)}) if touched else []
        if self._plan.of("not matched by source"):
            rest = [file for number, file in of_number.items() if number not in touched]
            alone = partial(_merge_alone, self._work, self._plan)
            outcomes += self._with_paths(run_parts(self._spark, parts(rest), alone))
        return outcomes

    def _merged(self, met: DataFrame, files: dict[int, LiveFile]) -> list[MergeOutcome]:
        """Apply the clauses to the files that source rows meet, those of a group by one task: the small ones among them
        share new files."""
        size = sum(file.task.size for file in files.values())
        groups = parts(list(files.values()), min(self._tasks(files), max(1, size // PACKED_BYTES)))
        number = iter(files)  # parts keep the order of the files
        pairs = [(next(number), place) for place, group in enumerate(groups) for _ in group]
        group_of = self._spark.createDataFrame(pairs, _GROUPS)
        rows = met.join(f.broadcast(group_of), _FILE)
        names = rows.columns
        columns = positions(rows)
        group_column = columns[names.index(_GROUP)]
        work, plan = self._work, self._plan  # a task gets what its function names, and must not get this object

        def merging(rows: pa.Table) -> pa.Table:  # Spark reads the annotations, which a partial has not
            return _merge_rows(work, plan, files, in_utc(rows.rename_columns(names)))

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
        schema = StructType([StructField(_FILE, IntegerType()), *fields])
        number = iter(files)  # parts keep the order of the files
        groups = parts(list(files.values()), self._tasks(files))
        numbered = [[(next(number), file) for file in group] for group in groups]
        keys = parts_frame(self._spark, numbered).mapInArrow(
            partial(_key_rows, self._work, columns, arrow_schema(schema)), schema
        )
        others = [f"{OWN}source{i}" for i in range(len(columns))]
        source = self._source.with_keys(self._keys, self._txn.schema, others)
        equal = [keys[quoted(name)] == source[quoted(other)] for name, other in zip(names, others, strict=True)]
        # Spark takes the keys, of any number of files, for as small as the list of the files, and would broadcast them
        if self._source.size()[1] <= BROADCAST_BYTES:
            source = f.broadcast(source)
        else:
            keys = keys.hint("merge")
        return keys.join(source, reduce(lambda a, b: a & b, equal)).drop(*names, *others)

    def _inserted(self, outcomes: Sequence[MergeOutcome]) -> list[MergeOutcome]:
        """Insert the source rows that matched none."""
        matches = pyroaring.BitMap64.union(*(o.met for o in outcomes)) if outcomes else pyroaring.BitMap64()
        inserting = partial(_insert_rows, self._work, self._plan, matches.serialize())
        source = self._source.frame().coalesce(max(1, self._source.size()[1] // PACKED_BYTES))  # each task adds a file
        return self._with_paths(collect(map_batches(source, inserting, OUTCOME)))

    def _with_paths(self, outcomes: Sequence[Any]) -> list[Any]:
        take_paths(self._txn, [o.done if isinstance(o, MergeOutcome) else o for o in outcomes])
        return list(outcomes)


# -- in tasks


def _key_rows(
    work: RowWork, columns: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The number of each file, and the keys that it has; a null matches nothing."""
    storage = work.storage()
    for part in parts_of(batches):
        for number, file in part:
            for frame in file.frames(storage, list(dict.fromkeys(columns))):
                keys = pl.DataFrame([frame[c].alias(n) for c, n in zip(columns, schema.names[1:], strict=True)])
                distinct = keys.unique().drop_nulls().to_arrow()
                numbers = pa.array([number] * distinct.num_rows, pa.int32())
                rows = pa.Table.from_arrays([numbers, *distinct.columns], names=schema.names)
                yield from rows.cast(schema).to_batches()


def _merge_rows(work: RowWork, plan: Merge, files: dict[int, LiveFile], table: pa.Table) -> pa.Table:
    """The clauses for rows of the table, of the files of one group and the source rows that have keys of them."""
    group = [files[number] for number in sorted(pc.unique(table.column(_FILE)).to_pylist())]
    frame = pl.DataFrame(pl.from_arrow(table.drop_columns([_FILE, _GROUP]))).unique(ROW, maintain_order=True)
    done = attempt(lambda: _merge_files(work, plan, group, frame.drop(ROW), frame[ROW]))
    return pa.Table.from_batches([outcome_batch([done])])


def _merge_alone(work: RowWork, plan: Merge, files: Sequence[LiveFile]) -> MergeOutcome:
    """The clauses for rows of the table, of files that no source row meets."""
    return _merge_files(work, plan, files, plan.source, pl.Series([], dtype=pl.Int64))


def _merge_files(
    work: RowWork, plan: Merge, files: Sequence[LiveFile], source: pl.DataFrame, ids: pl.Series
) -> MergeOutcome:
    counts: Counter[str] = Counter()
    matches = pyroaring.BitMap64()

    def do(rows: RowChanges, _: FileChanges) -> Sequence[Rearrangement]:
        merging = MergeRows(replace(plan, source=source), work.context.schema, rows, system_clock)
        merging.change(list(files), rows.storage)
        counts.update(merging.counts)
        matches.update(ids.gather(list(merging.met)).to_list())
        return ()

    done = work.run(do)
    del counts["numSourceRows"]
    return MergeOutcome(done, counts, matches)


def _insert_rows(
    work: RowWork, plan: Merge, met_bytes: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The clauses that insert, of the source rows of a task that are not among those that matched."""
    matches = pyroaring.BitMap64.deserialize(met_bytes)
    yield outcome_batch([attempt(lambda: _inserted_rows(work, plan, matches, batches))])


def _inserted_rows(
    work: RowWork, plan: Merge, matches: pyroaring.BitMap64, batches: Iterable[pa.RecordBatch]
) -> MergeOutcome:
    counts: Counter[str] = Counter()

    def do(rows: RowChanges, changes: FileChanges) -> Sequence[Rearrangement]:
        def inserted() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                frame = pl.DataFrame(pl.from_arrow(batch))
                unmet = [number not in matches for number in frame[ROW]]
                source = frame.drop(ROW).filter(pl.Series(unmet, dtype=pl.Boolean))
                merging = MergeRows(replace(plan, source=source), work.context.schema, rows, system_clock)
                tables: list[pa.Table] = []
                merging.insert(tables.append)
                counts.update(merging.counts)
                for table in tables:
                    yield from batches_of(table)

        adds = write_files(work.context, inserted(), storage=rows.storage)
        changes.adds += adds
        changes.paths += paths_of(adds)
        return ()

    done = work.run(do)
    del counts["numSourceRows"]
    done.whole_adds = list(done.adds)
    return MergeOutcome(done, counts, pyroaring.BitMap64())
