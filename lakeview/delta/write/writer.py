"""Rows to data files with statistics: what an append, or a task of a cluster, writes before anything is committed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeview.delta.data.file_statistics import file_statistics, in_calendar
from lakeview.delta.data.partition_values import serialize
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import decode_path, encode_path
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.identity import Allocate
from lakeview.delta.write.row_rules import RowRules
from lakeview.delta.write.stored_columns import stored_name, stored_table
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import VERSION
from lakeview.model.errors import InvalidRequestError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage, open_storage

ENGINE = f"lakeview/{VERSION}"
_SAMPLE = 4_096
_MOST_BYTES = 1 << 30
"""Of rows in memory before they become files."""


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
    `allocate` gives values of identity columns. InvalidRequestError for columns that do not fit,
    ConstraintViolationError for rows that break a rule. On an error the files written so far are removed.
    """
    rules = context.rules or RowRules(context.schema)

    def conformed() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in _portions(batches):
            yield rules.conform(batch, clock=clock, allocate=allocate, fill_missing=context.fill_missing, first=first)
            first += batch.num_rows

    return write_conformed(
        context, conformed(), data_change=data_change, statistics=statistics, clock=clock, storage=storage
    )


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
    schema, those of `tracked` behind them."""
    store = storage or open_storage(context.root)
    adds: list[AddFile] = []
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for batch in batches:
            pending.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= context.rows_per_file or size >= _MOST_BYTES:
                adds += _flush(pending, context, store, data_change, statistics, clock)
                pending, rows, size = [], 0, 0
        adds += _flush(pending, context, store, data_change, statistics, clock)
    except BaseException:
        discard(adds, store)
        raise
    return adds


def _portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches small enough for Arrow's `string` and `binary`, which hold 2 GB of text each: large ones in halves."""
    for batch in batches:
        if batch.nbytes <= _MOST_BYTES or batch.num_rows < 2:
            yield batch
        else:
            middle = batch.num_rows // 2
            yield from _portions([batch.slice(0, middle), batch.slice(middle)])


def discard(adds: Sequence[AddFile], storage: Storage) -> None:
    """Remove data files that were written and will not be committed."""
    for add in adds:
        storage.delete(decode_path(add.path))


def _flush(
    batches: list[pa.RecordBatch],
    context: WriteContext,
    storage: Storage,
    data_change: bool,
    statistics: bool,
    clock: Clock,
) -> list[AddFile]:
    if not any(batch.num_rows for batch in batches):
        return []
    table = pa.Table.from_batches(batches)
    adds: list[AddFile] = []
    try:
        for values, rows in _partitions(table, context.partition_columns):
            start, bytes_per_row = 0, rows.nbytes / max(rows.num_rows, 1)
            while start < rows.num_rows:
                part = rows.slice(start, _rows_of_a_file(context, bytes_per_row))
                adds.append(_write(part, values, context, storage, data_change, statistics, clock))
                start += part.num_rows
                bytes_per_row = (adds[-1].size or 0) / part.num_rows  # compressed, which the first file could not know
    except BaseException:
        discard(adds, storage)
        raise
    return adds


def _rows_of_a_file(context: WriteContext, bytes_per_row: float) -> int:
    if context.target_bytes is None or not bytes_per_row:
        return context.rows_per_file
    return max(1, min(context.rows_per_file, int(context.target_bytes / bytes_per_row)))


def _partitions(table: pa.Table, columns: Sequence[str]) -> Iterable[tuple[dict[str, Any], pa.Table]]:
    """Partition values and the rows that have them, without the partition columns; in order of first appearance."""
    data = table.drop_columns(list(columns))
    if not columns:
        yield {}, data
        return
    keys = pl.DataFrame([_recordable(pl.Series(c, pl.from_arrow(table[c]))) for c in columns])
    groups = keys.with_row_index("\0row").group_by(list(columns), maintain_order=True).agg("\0row")
    for row in groups.iter_rows(named=True):
        indices = row.pop("\0row")
        yield row, data.take(pa.array(indices, pa.int64()))


def _recordable(values: pl.Series) -> pl.Series:
    """The values of a partition column; InvalidRequestError for one that the log has no text for."""
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


def _write(
    rows: pa.Table,
    values: dict[str, Any],
    context: WriteContext,
    storage: Storage,
    data_change: bool,
    statistics: bool,
    clock: Clock,
) -> AddFile:
    buffer = BytesIO()
    stored = stored_table(rows, [f for f in (*context.schema, *context.tracked) if f.name in rows.schema.names])
    pq.write_table(
        stored,
        buffer,
        compression=context.compression,
        version="2.6",
        coerce_timestamps="us",
        use_dictionary=_repeating(stored),
    )
    data = buffer.getvalue()
    recorded = {stored_name(context.schema[name]): serialize(value) for name, value in values.items()}
    # "Data files MUST be uniquely named and MUST NOT be overwritten"
    unique = str(uuid.uuid4())
    prefix = context.folder_prefix()
    folders = [prefix] if prefix else [_folder(*v) for v in recorded.items()]
    codec = "" if context.compression == "none" else f".{context.compression}"
    if context.change_data:
        folders.insert(0, "_change_data")
    path = "/".join([*folders, f"{'cdc' if context.change_data else 'part'}-{unique}.c000{codec}.parquet"])
    storage.put(path, data)
    return AddFile(
        path=encode_path(path),
        size=len(data),
        partition_values=recorded,
        modification_time=milliseconds(clock()),
        data_change=data_change,
        stats=file_statistics(stored, context.indexed, prefix=context.string_prefix) if statistics else None,
    )


def _repeating(rows: pa.Table) -> list[str] | bool:
    """The columns that are worth a dictionary: those whose values repeat, by a sample of them.

    One for every column takes twice the time, and a third more bytes where ids and measures do not repeat
    (benches/bench_writer.py). Of nested columns Arrow decides.
    """
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    sample = rows.slice(rows.num_rows // 2, _SAMPLE)
    half = sample.num_rows // 2
    return [name for name in rows.schema.names if pc.count_distinct(sample[name], mode="all").as_py() <= half]


def _folder(name: str, value: str | None) -> str:
    """A partition folder as Hive names it; only a convention: the log holds the value."""
    text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe=" !$&'()*+,;@~-._")
    return f"{quote(name, safe=' !$&()+,;@~-._')}={text}"
