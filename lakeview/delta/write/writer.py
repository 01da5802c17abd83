"""Rows to data files with statistics: what an append, or a task of a cluster, writes before anything is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.data.file_statistics import in_calendar
from lakeview.delta.data.partition_values import serialize
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import decode_path
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.data_file import DataFile
from lakeview.delta.write.identity import Allocate
from lakeview.delta.write.row_rules import RowRules
from lakeview.delta.write.stored_columns import check_storable
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import VERSION
from lakeview.model.data_types import Field
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.rows.open_files import OpenFiles, portions, split_rows
from lakeview.storage import Storage, open_storage

ENGINE = f"lakeview/{VERSION}"


def write_files(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    *,
    data_change: bool = True,
    statistics: bool = True,
    clock: Clock = system_clock,
    storage: Storage | None = None,
    allocate: Allocate | None = None,
) -> list[AddFile]:
    """Write rows below the table's root, one file a partition and `rows_per_file` rows; nothing is committed.

    Batches are taken by column name, as `RowRules.conform` describes: a missing column is null or what the table
    computes, an unknown one is refused, and so is a value that the column's type does not hold exactly.
    `allocate` gives values of identity columns. InvalidRequestError for columns that do not fit, UnsupportedTableError
    where void columns leave nothing to write,
    ConstraintViolationError for rows that break a rule. On an error the files written so far are removed.
    """
    rows = conformed_rows(context, batches, clock, allocate)
    return write_conformed(context, rows, data_change=data_change, statistics=statistics, clock=clock, storage=storage)


def conformed_rows(
    context: WriteContext, batches: Iterable[pa.RecordBatch], clock: Clock, allocate: Allocate | None
) -> Iterator[pa.RecordBatch]:
    """Rows as the table has them, what it computes filled in and every rule kept. Errors as `write_files`."""
    rules = context.rules or RowRules(context.schema)
    first = 0
    for batch in portions(batches):
        yield rules.conform(batch, clock=clock, allocate=allocate, fill_missing=context.fill_missing, first=first)
        first += batch.num_rows


def write_conformed(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    *,
    data_change: bool = True,
    statistics: bool = True,
    clock: Clock = system_clock,
    storage: Storage | None = None,
) -> list[AddFile]:
    """As `write_files`, of rows that are in the table already, or were conformed: in the columns of the context's
    schema, those of `tracked` behind them. Memory holds a row group of rows, and of the encoded bytes of open files
    what their store keeps."""
    store = storage or open_storage(context.root)

    def new_file(values: dict[str, Any]) -> DataFile:
        return DataFile(context, values, store, clock, data_change=data_change, statistics=statistics)

    files = OpenFiles(new_file, rows_per_file=context.rows_per_file, target_bytes=context.target_bytes)
    try:
        return files.write_all(batches, lambda rows: _partitions(rows, context))
    except BaseException:
        discard(files.results, store)
        raise


def discard(adds: Sequence[AddFile], storage: Storage) -> None:
    """Remove data files that were written and will not be committed. What cannot be deleted stays for a vacuum."""
    storage.delete_each(decode_path(add.path) for add in adds)


def _partitions(
    table: pa.Table, context: WriteContext
) -> Iterable[tuple[tuple[str | None, ...], dict[str, Any], pa.Table]]:
    """Partitions by the text of their values, these values, and the rows that have them without the partition columns,
    or with them behind all others; in order of first appearance."""
    columns = context.partition_columns
    check_storable([f for f in context.schema if f.name not in columns])
    data = table.drop_columns(list(columns))
    if context.materialize_partitions:  # "placing them after the data columns"  delta protocol
        data = table.select([*data.schema.names, *columns])
    if not columns:
        yield (), {}, data
        return
    keys = pl.DataFrame([recordable(pl.Series(c, pl.from_arrow(table[c])), context.schema[c]) for c in columns])
    for values, part in split_rows(data, keys):
        yield tuple(map(serialize, values.values())), values, part  # NaN would be another key each time


def recordable(values: pl.Series, field: Field) -> pl.Series:
    """The values of a partition column, as they are. InvalidRequestError for one that the log has no text for,
    ConstraintViolationError for an empty text where null is not allowed.
    """
    # "An empty string for any type translates to a null partition value"  delta protocol, Partition Value Serialization
    if not field.nullable and values.dtype in (pl.String, pl.Binary):
        size = values.str.len_bytes() if values.dtype == pl.String else values.bin.size()
        if empty := int((size == 0).sum()):
            raise ConstraintViolationError(
                f"column {field.name} must not be null, and {empty:,} of the rows have an empty text in it, which is "
                "null in a partition column",
                fix="give the rows another value, or make the column nullable",
                place=field.name,
                kind="not-null",
            )
    if not in_calendar(values):
        raise _no_text(values.name, "a time before the year 1 or after 9999")
    if values.dtype == pl.Binary:
        try:
            for value in values.unique().drop_nulls():
                value.decode()
        except UnicodeDecodeError as error:
            raise _no_text(values.name, "bytes that are no UTF-8") from error
    return values


def _no_text(column: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {column} holds {what}, which no partition value can stand for",
        fix="leave the rows out, or partition by another column",
        place=column,
        kind="partition-value",
    )
