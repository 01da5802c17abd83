"""Statistics of files that are in a table, counted again from their rows."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyroaring

from lakeview.delta.data.file_statistics import FileStatistics
from lakeview.delta.write.deletion_vectors import with_deletions
from lakeview.delta.write.live_files import LiveFile, ahead
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.stored_columns import stored_table, with_variant_binaries


def recompute_statistics(txn: PendingCommit, where: pl.Expr | None) -> int:
    """Add files again with statistics counted from their rows, `dataChange` false; returns how many.

    Statistics are of all rows of a file, those that a deletion vector names among them; then bounds are not tight.
    """
    context = txn.context()
    data = pa.schema([f for f in context.schema.as_nullable().to_arrow() if f.name not in context.partition_columns])

    def text(file: LiveFile) -> str:
        statistics = FileStatistics(context.indexed_columns, prefix=context.string_prefix)
        columns = with_variant_binaries(context.schema.select(data.names))
        for batch in file.batches(txn.storage, columns, deleted=pyroaring.BitMap64()):
            statistics.add(stored_table(pa.Table.from_batches([batch]), list(columns)))
        document = statistics.text()
        return document if file.row["vector"] is None else with_deletions(document, statistics.records)

    files = txn.live_files(where)
    for file, stats in zip(files, ahead(text, files), strict=True):
        if stats != file.row["stats"]:
            txn.files.add_again(file.row, stats)
    return len(txn.files.adds)
