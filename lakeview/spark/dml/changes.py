"""Deletes, updates, rearrangements and copies of files, each file by one task."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import polars as pl
from pyspark.sql import SparkSession

from lakeview.delta.log.commits import predicates
from lakeview.delta.properties import value
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.deep_clone import FileCopy, copy_files
from lakeview.delta.write.definition_operations import commit_one
from lakeview.delta.write.first_commit import clone
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.optimize import (
    TARGET_BYTES,
    groups_of,
    optimize_context,
    optimize_metrics,
    order_columns,
    rewrite,
)
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_operations import RowOutcome, RowWork, change_files
from lakeview.delta.write.target import until_made
from lakeview.delta.write.transaction import Transaction
from lakeview.delta.write.whole_files import EVERY
from lakeview.model.clock import system_clock
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.runs import runs
from lakeview.predicates import predicate
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml.catalog import path_of
from lakeview.spark.dml.jobs import run_parts, take_paths, task_work, without_errors
from lakeview.spark.writer import ENGINE
from lakeview.storage import Storage, open_storage
from lakeview.storage.access import StoreAccess

_PART_BYTES = 128 << 20
"""Of the files of one task."""


def delete(spark: SparkSession, table: DeltaTable, where: str | None, user: str | None = None) -> int | None:
    """Delete the rows for which a condition is true, all without one; returns the version, None if there was none."""

    def do(txn: Transaction) -> None:
        condition = EVERY if where is None else predicate(where, txn.schema)
        if set(condition.meta.root_names()) <= set(txn.definition.partition_columns):
            txn.delete(where)  # whole files, by the log alone
        else:
            _change_rows(spark, txn, condition, None)

    condition = predicates(where)
    return until_made(lambda: commit_one(table, "DELETE", do, user=user, engine=ENGINE, predicate=condition))


def update(
    spark: SparkSession, table: DeltaTable, where: str | None, assignments: Mapping[str, str], user: str | None = None
) -> int | None:
    """Set columns of the rows for which a condition is true, of all without one; returns the version, None if there was
    none."""

    def do(txn: Transaction) -> None:
        _change_rows(spark, txn, EVERY if where is None else predicate(where, txn.schema), assignments)

    condition = predicates(where)
    return until_made(lambda: commit_one(table, "UPDATE", do, user=user, engine=ENGINE, predicate=condition))


def optimize(
    spark: SparkSession,
    table: DeltaTable,
    where: str | None,
    z_order_by: Sequence[str] = (),
    user: str | None = None,
) -> int | None:
    """Write small files again as few large ones, or all files along a curve; returns the version, None if all files are
    well as they are. Files of one partition are written by one task."""

    def do(txn: Transaction) -> None:
        condition = txn.on_partitions(where)
        columns = order_columns(txn.definition.schema, txn.definition.partition_columns, z_order_by)
        size: int = value(txn.definition.properties, "delta.targetFileSize") or TARGET_BYTES
        groups = groups_of(txn.live_files(condition), size, columns)
        outcomes = _run_groups(spark, txn, groups, partial(_rewrite, size, tuple(columns)))
        txn.take(outcomes, optimize_metrics([m for o in outcomes for m in o.moves]), only_deletes=True)

    parameters = {"predicate": predicates(where), "zOrderBy": msgspec.json.encode(list(z_order_by)).decode()}
    return until_made(lambda: commit_one(table, "OPTIMIZE", do, user=user, engine=ENGINE, **parameters))


def _change_rows(
    spark: SparkSession, txn: Transaction, condition: pl.Expr, assignments: Mapping[str, str] | None
) -> None:
    """Delete the rows for which a condition is true, or set columns of them."""
    txn.check_may_remove()
    txn.reads(condition)
    files = parts(by_partition(txn.live_files(condition)))
    outcomes = _run_groups(spark, txn, files, partial(_change, condition, assignments))
    txn.take(outcomes, {}, only_deletes=assignments is None)


def _run_groups(
    spark: SparkSession,
    txn: Transaction,
    groups: Sequence[list[LiveFile]],
    do: Callable[[RowWork, Sequence[LiveFile]], RowOutcome],
) -> list[RowOutcome]:
    """What tasks do, each to a group of files."""
    with task_work(txn) as work:
        return take_paths(txn, run_parts(spark, groups, partial(do, work)))


def by_partition(files: Iterable[LiveFile]) -> list[LiveFile]:
    """Files of one partition after each other: the small ones of a task that are written again share new files."""
    return sorted(files, key=lambda file: repr(file.partition))


def parts(files: Sequence[LiveFile], tasks: int = 1) -> list[list[LiveFile]]:
    """Files in runs, each for one task; about so many runs, where they are small."""
    most = min(_PART_BYTES, sum(file.task.size for file in files) // tasks)
    return list(runs(files, lambda file: file.task.size, most))


def _change(
    condition: pl.Expr, assignments: Mapping[str, str] | None, work: RowWork, files: Sequence[LiveFile]
) -> RowOutcome:
    name = "numDeletedRows" if assignments is None else "numUpdatedRows"

    def do(rows: RowChanges) -> None:
        rows.counts[name] += change_files(rows, files, condition, assignments)

    return work.run(do)


def _rewrite(size: int, z_order_by: Sequence[str], work: RowWork, group: Sequence[LiveFile]) -> RowOutcome:
    work = replace(work, context=optimize_context(work.context, size, z_order_by))
    return work.run(lambda rows: rewrite(rows.writer, rows.files, [group], z_order_by))


_COPIED_BYTES = 256 << 20
"""Of the files that one task copies."""


def clone_table(
    spark: SparkSession,
    table: DeltaTable,
    target: str,
    properties: Mapping[str, str],
    *,
    shallow: bool,
    replace: bool,
    **point: Any,
) -> DeltaTable:
    """A clone of the latest version, or of that at `version=` or `at=`, with `properties` besides its own; the files of
    one that is not shallow are copied by tasks of Spark. UnsupportedTableError with `replace`."""
    address = path_of(target) or target
    if replace:
        raise UnsupportedTableError(
            "lakeview clones to an address without a table",
            fix="clone to another address, or write toDF() to it",
            place=address,
            kind="unsupported-clone",
        )
    options = table.storage.options
    table.refresh()
    storage = open_storage(address, options=options, config=table.storage.config, decode=True)
    copy = None if shallow else partial(_copy_by_tasks, spark)
    clone(table, storage, system_clock, new_properties=properties, copy=copy, **point)
    return delta_table(address, "changed", "", StoreAccess(options))


def _copy_by_tasks(spark: SparkSession, copies: Sequence[FileCopy], source: Storage, target: Storage) -> None:
    copy_run = partial(
        _copy_run, source.root, StoreAccess.of(source), target.root, StoreAccess.of(target), source.config.roots
    )
    without_errors(run_parts(spark, list(runs(copies, lambda copy: copy.size, _COPIED_BYTES)), copy_run))


def _copy_run(
    root: str, access: StoreAccess, target: str, target_access: StoreAccess, roots: Sequence[str],
    copies: Sequence[FileCopy],
) -> None:  # fmt: skip
    copy_files(copies, access.open(root, roots), target_access.open(target, roots))
