"""The live files that may hold the rows that a condition selects, as an operation changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from lakeview.delta.data.row_tracking import tracked_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.data.statistics import physical_leaves
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.file_changes import LIVE_COLUMNS
from lakeview.delta.write.file_order import in_order
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
    `in_order` gives them for a table clustered by these columns."""
    schema, tracked = definition.schema, None
    if definition.enables("rowTracking", "delta.enableRowTracking"):
        tracked = Schema((*schema.fields, *tracked_fields(schema, definition.properties)))
    scan = Scan(base, schema, definition.partitions, storage.root, tracked=tracked)
    adds, tasks = scan.files(where, LIVE_COLUMNS)
    rows = with_documents(adds, base).iter_rows(named=True)
    roots = storage.config.roots
    leaves = physical_leaves(schema, None, definition.partition_columns) if clustering else ()
    paths = [physical for path, physical, _ in leaves if leaf_name(path) in clustering]
    return in_order([LiveFile(row, replace(t, roots=roots)) for row, t in zip(rows, tasks, strict=True)], paths)
