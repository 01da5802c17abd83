"""Parts of an operation to Spark tasks, and what the tasks did back to the driver: actions of files, never rows."""

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakeview.delta.write.row_operations import RowOutcome, RowWork
from lakeview.delta.write.transaction import Transaction
from lakeview.model.errors import LakeviewError
from lakeview.spark.aborted_writes import remove_files
from lakeview.spark.failures import lakeview_errors

T = TypeVar("T")

OUTCOME = "outcome binary"
"""The column that a task gives back: a pickle of what it did, or of the LakeviewError that stopped it."""


def parts_frame(spark: SparkSession, parts: Sequence[object]) -> DataFrame:
    """One row a part, each in a task of its own: column `part`, its pickle."""
    rows = [(pickle.dumps(part),) for part in parts]
    return spark.createDataFrame(rows, "part binary").repartition(max(1, len(parts)))


def parts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The parts of a task's rows. They come from the driver of the same job, and from nowhere else."""
    for batch in batches:
        for part in batch.column("part"):
            yield pickle.loads(part.as_py())


def attempt(do: Callable[[], T]) -> T | LakeviewError:
    """What a part gives, or the error of ours that stopped it: raised in a task, it would be tried again, and reach
    the user inside a stack of Java's."""
    try:
        return do()
    except LakeviewError as error:
        return error


def outcome_batch(outcomes: Sequence[object]) -> pa.RecordBatch:
    """OUTCOME of these."""
    return pa.RecordBatch.from_pydict({"outcome": pa.array([pickle.dumps(o) for o in outcomes], pa.binary())})


def run_parts(spark: SparkSession, parts: Sequence[T], do: Callable[[T], object]) -> list[Any]:
    """What each part gives, done by tasks of Spark."""
    if not parts:
        return []

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts_of(batches):
            yield outcome_batch([attempt(partial(do, part))])

    return collect(parts_frame(spark, parts).mapInArrow(task, OUTCOME))


def collect(outcomes: DataFrame) -> list[Any]:
    """What tasks gave back in OUTCOME, errors among them; errors of Spark as `lakeview_errors`."""
    with lakeview_errors():
        rows = outcomes.select("outcome").collect()
    return [pickle.loads(row[0]) for row in rows]


@contextmanager
def task_work(transaction: Transaction) -> Iterator[RowWork]:
    """How tasks change rows for a transaction. When the context ends, data files go that they wrote and that the
    transaction is not told of by `take_paths`: of tasks that Spark ended, and of all tasks where a job fails.

    Of a remote store files are listed where a job fails only; files of deletion vectors stay for a vacuum.
    """
    work, write_id = transaction.row_work(), uuid.uuid4().hex
    storage = work.storage()
    is_listed = True
    try:
        yield replace(work, context=replace(work.context, write_id=write_id))
        is_listed = not storage.remote
    finally:
        if is_listed:
            flat = work.context.one_folder and not work.context.feed
            prefix = f"part-{write_id}" if flat else write_id
            remove_files(storage, prefix, one_folder=flat, besides=transaction.files.paths)


def take_paths(transaction: Transaction, outcomes: Sequence[RowOutcome | LakeviewError]) -> list[RowOutcome]:
    """As `without_errors`; the transaction removes the files of the outcomes if it fails."""
    for outcome in outcomes:
        if isinstance(outcome, RowOutcome):
            transaction.files.paths += outcome.paths
    return without_errors(outcomes)


def without_errors(outcomes: Sequence[T | LakeviewError]) -> list[T]:
    """The outcomes; raises the first error among them."""
    for outcome in outcomes:
        if isinstance(outcome, LakeviewError):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, LakeviewError)]
