"""Files that a commit adds or removes whole, as change data: where a commit has any, readers look at nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.partition_values import partition_columns
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.file_actions import PARTITION_VALUES
from lakeview.delta.log.paths import decode_path
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.stored_columns import with_variant_binaries
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask


def record_whole_files(
    work: RowChanges, definition: Definition, adds: Sequence[AddFile], removes: Sequence[Mapping[str, Any]]
) -> None:
    """Write the rows of files that come as `insert`, and of files that go as `delete`.

    "When the change data feed is enabled and a version has cdc actions, readers must only read those" (today's
    protocol, Add CDC File). `removes`: rows of FILE_ACTIONS with REMOVAL_COLUMNS.
    """
    added = [(decode_path(a.path), a.size, a.partition_values or {}, None) for a in adds]
    removed = [
        (r["path"], r["size"] or 0, dict(r["partition_values"] or {}), DeletionVector.of(r["vector"])) for r in removes
    ]
    for change, files in (("insert", added), ("delete", removed)):
        if files:
            work.record(change, _batches(_tasks(work, definition, files), work))


def _tasks(
    work: RowChanges,
    definition: Definition,
    files: Sequence[tuple[str, int, Mapping[str, str | None], DeletionVector | None]],
) -> Iterator[FileTask]:
    storage = work.storage
    maps = pl.Series("values", [dict(values) for _, _, values, _ in files], dtype=PARTITION_VALUES)
    typed = pl.DataFrame({s.name: s for s in partition_columns(maps, definition.partitions)})
    constants = typed.to_dicts() if definition.partitions else [{}] * len(files)
    for (path, size, _, vector), values in zip(files, constants, strict=True):
        yield FileTask(
            storage.root,
            path,
            with_variant_binaries(work.context.schema),
            values,
            size,
            deleted_rows=vector,
            match="id" if definition.properties.get("delta.columnMapping.mode", "").lower() == "id" else "name",
            roots=storage.config.roots,
        )


def _batches(tasks: Iterable[FileTask], work: RowChanges) -> Iterator[pa.RecordBatch]:
    for task in tasks:
        yield from read_task(task, work.storage)
