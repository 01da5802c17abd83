"""The live files that may hold the rows that a condition selects, in the order in which an operation changes them.

A checkpoint lists files by their paths, which are random. Files written together in that order would each cover the
whole range of a column that the data was written or clustered by, and no filter would skip one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import polars as pl

from lakeview.delta.data.row_tracking import tracked_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.data.statistics import physical_leaves
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.curve import MOST_COLUMNS, Places, interleave, spread
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.file_changes import LIVE_COLUMNS
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.live_statistics import with_documents
from lakeview.model.schema import Schema, leaf_name
from lakeview.predicates.tree import Node
from lakeview.storage import Storage


def live_files(
    base: Replay,
    definition: Definition,
    storage: Storage,
    where: pl.Expr | Node | None,
    clustering: Sequence[str] = (),
) -> list[LiveFile]:
    """The live files of a version that may hold rows for which a condition is true, all without one; in the order that
    `in_order` gives them for a table clustered by these columns, one partition after the other."""
    schema, tracked = definition.schema, None
    if definition.enables("rowTracking", "delta.enableRowTracking"):
        tracked = Schema((*schema.fields, *tracked_fields(schema, definition.properties)))
    scan = Scan(base, schema, definition.partitions, storage.root, tracked=tracked)
    adds, tasks = scan.files(where, LIVE_COLUMNS)
    rows = with_documents(adds, base).iter_rows(named=True)
    roots = storage.config.roots
    leaves = physical_leaves(schema, None, definition.partition_columns) if clustering else ()
    paths = [physical for path, physical, _ in leaves if leaf_name(path) in clustering]
    files = in_order([LiveFile(row, replace(t, roots=roots)) for row, t in zip(rows, tasks, strict=True)], paths)
    return sorted(files, key=_partition) if definition.partition_columns else files


def _partition(file: LiveFile) -> list[tuple[str, bool, str]]:
    return [(name, value is not None, value or "") for name, value in file.partition]


Path = tuple[str, ...]


def in_order(files: Sequence[LiveFile], clustering: Sequence[Path] = ()) -> list[LiveFile]:
    """The files in the order of their modification times, which is that of a curve where one was written along it.

    `clustering`: the columns that the table is clustered by, as its statistics name them; by their lower bounds files
    are ordered along a curve.
    """
    by_time = sorted(files, key=lambda file: file.row["modified"] or 0)
    if not clustering:
        return by_time
    documents = [_document(file.row["stats"]) for file in by_time]
    columns = [_ranks([_bound(d, ("minValues", *path)) for d in documents]) for path in clustering[:MOST_COLUMNS]]
    places = interleave(columns)
    return [by_time[i] for i in np.argsort(places, kind="stable")]


def _document(stats: str | None) -> Any:
    try:
        return msgspec.json.decode(stats or "{}")
    except (msgspec.DecodeError, RecursionError):  # of another writer
        return None


def _bound(document: Any, path: Path) -> tuple[int, Any]:
    """A bound as it can be compared with others: numbers come before texts, and before both one that is not there."""
    for part in path:
        document = document.get(part) if isinstance(document, dict) else None
    if isinstance(document, str):
        return 2, document
    return (1, document) if isinstance(document, int | float) else (0, 0)


def _ranks(values: Sequence[tuple[int, Any]]) -> Places:
    """The place of each value among all, spread over the bits of a curve."""
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return spread(np.array([ranks[value] for value in values], dtype=np.uint64), len(ranks))
