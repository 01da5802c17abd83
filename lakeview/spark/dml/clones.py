"""Clones of a Delta table, at the address that Delta's own calls name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.deep_clone import FileCopy, copy_files
from lakeview.delta.write.first_commit import clone
from lakeview.model.clock import system_clock
from lakeview.model.errors import LakeviewError, UnsupportedTableError
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml.catalog import path_of
from lakeview.spark.dml.jobs import run_parts
from lakeview.storage import Storage, open_storage
from lakeview.storage.access import StoreAccess

_PART_BYTES = 256 << 20
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
    runs: list[list[FileCopy]] = []
    room = 0
    for copy in copies:
        if not runs or copy.size > room:
            runs.append([])
            room = _PART_BYTES
        runs[-1].append(copy)
        room -= copy.size
    copy_run = partial(
        _copy_run, source.root, StoreAccess.of(source), target.root, StoreAccess.of(target), source.config.roots
    )
    for outcome in run_parts(spark, runs, copy_run):
        if isinstance(outcome, LakeviewError):
            raise outcome


def _copy_run(
    root: str, access: StoreAccess, target: str, target_access: StoreAccess, roots: Sequence[str],
    copies: Sequence[FileCopy],
) -> None:  # fmt: skip
    copy_files(copies, access.open(root, roots), target_access.open(target, roots))
