"""Rows to data files with statistics: what an append, or a task of a cluster, writes before anything is committed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.config import VERSION
from lakeview.delta.data.file_statistics import file_statistics, in_calendar
from lakeview.delta.data.partition_values import serialize
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import decode_path, encode_path
from lakeview.errors import ConstraintViolationError, InvalidRequestError
from lakeview.schema import Schema
from lakeview.snapshot import milliseconds
from lakeview.storage import Storage, open_storage

Clock = Callable[[], datetime]

ENGINE = f"lakeview/{VERSION}"
ROWS_PER_FILE = 2_000_000
_INDEXED_COLUMNS = 32


def system_clock() -> datetime:
    """The wall clock, for writers that are given none."""
    return datetime.now(UTC)  # noqa: TID251 (the one default; whatever depends on time takes a clock)


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What writing files of a table takes, as a value that can travel to another process.

    `root`: the table's address; `schema`: what rows are written as; `indexed_columns`: leaves that get statistics
    (`delta.dataSkippingNumIndexedCols`; -1 is all).
    """

    root: str
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    rows_per_file: int = ROWS_PER_FILE
    indexed_columns: int = _INDEXED_COLUMNS
    compression: str = field(default="zstd")


def write_files(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    *,
    data_change: bool = True,
    statistics: bool = True,
    clock: Clock = system_clock,
    storage: Storage | None = None,
) -> list[AddFile]:
    """Write rows below the table's root, one file a partition and `rows_per_file` rows; nothing is committed.

    Batches are taken by column name: a missing column is null, an unknown one is refused. InvalidRequestError for
    columns that do not fit, ConstraintViolationError for a null where the schema allows none. On an error the files
    written so far are removed.
    """
    store = storage or open_storage(context.root)
    adds: list[AddFile] = []
    pending: list[pa.RecordBatch] = []
    rows = 0
    try:
        for batch in batches:
            pending.append(_conformed(batch, context.schema))
            rows += batch.num_rows
            if rows >= context.rows_per_file:
                adds += _flush(pending, context, store, data_change, statistics, clock)
                pending, rows = [], 0
        adds += _flush(pending, context, store, data_change, statistics, clock)
    except BaseException:
        discard(adds, store)
        raise
    return adds


def discard(adds: Sequence[AddFile], storage: Storage) -> None:
    """Remove data files that were written and will not be committed."""
    for add in adds:
        storage.delete(decode_path(add.path))


def _conformed(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    unknown = [n for n in batch.schema.names if n not in schema]
    if unknown:
        raise InvalidRequestError(
            f"the rows have a column {unknown[0]} that the table has not",
            fix="drop it, or add it to the table in the same transaction with evolve()",
            place=unknown[0],
            kind="unknown-column",
        )
    target = schema.relaxed().to_arrow()
    arrays = []
    for f, strict in zip(target, schema.to_arrow(), strict=True):
        index = batch.schema.get_field_index(f.name)
        array = pa.nulls(batch.num_rows, f.type) if index < 0 else _cast(batch.column(index), f)
        _check_nulls(array, strict, f.name)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _check_nulls(array: pa.Array, wanted: pa.Field, name: str) -> None:
    """ConstraintViolationError if a column, or a part of one, is null where the schema allows none."""
    if not wanted.nullable and array.null_count:
        raise ConstraintViolationError(
            f"column {name} must not be null, and {array.null_count:,} of the rows have none",
            fix="fill the values, or make the column nullable",
            place=name,
            kind="not-null",
        )
    if pa.types.is_struct(wanted.type):
        there = array.filter(array.is_valid()) if array.null_count else array
        for i, inner in enumerate(wanted.type):
            _check_nulls(there.field(i), inner, f"{name}.{inner.name}")
    elif pa.types.is_list(wanted.type):
        _check_nulls(array.flatten(), wanted.type.value_field, f"{name}.element")


def _cast(array: pa.Array, wanted: pa.Field) -> pa.Array:
    try:
        return array if array.type == wanted.type else array.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            f"column {wanted.name} is {array.type} and does not fit {wanted.type}: {str(error).splitlines()[0]}",
            fix="cast the column before writing",
            place=wanted.name,
            kind="type-mismatch",
        ) from error


def _flush(
    batches: list[pa.RecordBatch],
    context: WriteContext,
    storage: Storage,
    data_change: bool,
    statistics: bool,
    clock: Clock,
) -> list[AddFile]:
    table = pa.Table.from_batches(batches, schema=context.schema.relaxed().to_arrow())
    if not table.num_rows:
        return []
    adds: list[AddFile] = []
    try:
        for values, rows in _partitions(table, context.partition_columns):
            for start in range(0, rows.num_rows, context.rows_per_file):
                part = rows.slice(start, context.rows_per_file)
                adds.append(_write(part, values, context, storage, data_change, statistics, clock))
    except BaseException:
        discard(adds, storage)
        raise
    return adds


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
    pq.write_table(rows, buffer, compression=context.compression, version="2.6", coerce_timestamps="us")
    data = buffer.getvalue()
    recorded = {name: serialize(value) for name, value in values.items()}
    # "Data files MUST be uniquely named and MUST NOT be overwritten"
    path = "/".join(
        [*(_folder(n, t) for n, t in recorded.items()), f"part-{uuid.uuid4()}.c000.{context.compression}.parquet"]
    )
    storage.put(path, data)
    return AddFile(
        path=encode_path(path),
        size=len(data),
        partition_values=recorded,
        modification_time=milliseconds(clock()),
        data_change=data_change,
        stats=file_statistics(rows, context.indexed_columns) if statistics else None,
    )


def _folder(name: str, value: str | None) -> str:
    """A partition folder as Hive names it; only a convention: the log holds the value."""
    text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe=" !$&'()*+,;@~-._")
    return f"{quote(name, safe=' !$&()+,;@~-._')}={text}"
