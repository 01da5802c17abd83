"""Rows to the data files of a table: what an append, or a task of a cluster, writes before anything is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa

from lakeview.iceberg.metadata.single_values import single_value
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.data_file import DataFile, NewFile
from lakeview.iceberg.write.partition_tuples import Tuple, partitions
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, polars_type
from lakeview.rows.conform import conform_batch
from lakeview.rows.open_files import OpenFiles, portions
from lakeview.storage import Storage

_FIXES = {
    "unknown-column": "drop it, or add it to the table with the engine that owns it",
    "missing-field": "add it to the rows, as null if need be",
}


def write_files(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    storage: Storage,
    check: Callable[[pa.RecordBatch], None] | None = None,
) -> list[NewFile]:
    """Write rows below the table's data folder, a file for each partition and so many rows; nothing is committed.

    `check` raises for rows, in the table's columns, that are not to be written. Columns are found by name;
    InvalidRequestError and ConstraintViolationError as `conform_batch`, for rows that do not fit the table. On an error
    the files written so far are removed.
    """
    files = OpenFiles[Tuple, NewFile](
        lambda partition: DataFile(context, partition, storage),
        rows_per_file=context.rows_per_file,
        target_bytes=context.target_bytes,
    )
    try:
        return files.write_all(_conform_batches(context, batches, check), lambda rows: partitions(rows, context))
    except BaseException:
        discard([file.address for file in files.results], storage)
        raise


def check_columns_fit(source: pa.Schema, context: WriteContext) -> None:
    """Refuses rows of a schema whose columns or types can never fit, before there is a row."""
    conformed_batch(pa.RecordBatch.from_pylist([], source), context.schema)


def conformed_batch(batch: pa.RecordBatch, schema: Schema, first: int = 0) -> pa.RecordBatch:
    """The batch in the table's columns, as `conform_batch`; columns that it lacks hold their write default."""
    try:
        return conform_batch(_with_defaults(batch, schema), schema, first=first)
    except InvalidRequestError as error:
        error.fix = _FIXES.get(error.kind, error.fix)
        raise


def discard(addresses: Sequence[str], storage: Storage) -> list[str]:
    """Remove files that will not be committed; the addresses of those that the store did not remove."""
    return storage.delete_each(addresses)


def _conform_batches(
    context: WriteContext, batches: Iterable[pa.RecordBatch], check: Callable[[pa.RecordBatch], None] | None
) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in portions(batches):
        conformed = conformed_batch(batch, context.schema, first)
        if check is not None:
            check(conformed)
        yield conformed
        first += batch.num_rows


def _with_defaults(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    # "The write default for a field must be written if a field is not supplied to a write"
    exactly, own = set(batch.schema.names), {field.name for field in schema}
    other = {name.casefold() for name in exactly - own}  # as conform_batch: one that is another column's stands for it
    for field in schema:
        recorded = field.metadata.get("write-default")
        if recorded is not None and field.name not in exactly and field.name.casefold() not in other:
            value = pl.Series([single_value(recorded, field.type)], dtype=polars_type(field.type))
            column = value.new_from_index(0, batch.num_rows).to_arrow()
            batch = batch.append_column(field.name, column)
    return batch
