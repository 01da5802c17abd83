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
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import VERSION
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Field
from lakeview.storage import Storage, open_storage

ENGINE = f"lakeview/{VERSION}"
_MOST_BYTES = 1 << 30
"""Of one batch."""

_GROUP_ROWS, _GROUP_BYTES = 262_144, 64 << 20
"""Rows in memory before they become a row group."""

_OPEN_BYTES = 256 << 20
"""Encoded bytes in memory, of all open files together, before the largest is closed."""

_FULL = 0.9
"""A file of this share of the target is closed: a small rest is no part worth writing."""


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
    rows = conformed_rows(context, batches, clock, allocate)
    return write_conformed(context, rows, data_change=data_change, statistics=statistics, clock=clock, storage=storage)


def conformed_rows(
    context: WriteContext, batches: Iterable[pa.RecordBatch], clock: Clock, allocate: Allocate | None
) -> Iterator[pa.RecordBatch]:
    """Rows as the table has them, what it computes filled in and every rule kept. Errors as `write_files`."""
    rules = context.rules or RowRules(context.schema)
    first = 0
    for batch in _portions(batches):
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
    schema, those of `tracked` behind them. Memory holds a row group of rows, and the encoded bytes of open files."""
    store = storage or open_storage(context.root)
    files = _OpenFiles(context, store, clock, data_change=data_change, statistics=statistics)
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            pending.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= min(_GROUP_ROWS, context.rows_per_file) or size >= _GROUP_BYTES:
                files.write(pending)
                pending, rows, size = [], 0, 0
        if pending:
            files.write(pending)
        return files.close()
    except BaseException:
        discard(files.adds, store)
        raise


class _OpenFiles:
    """The files that rows go to, one a partition; `adds`: of those that are written whole."""

    def __init__(
        self, context: WriteContext, storage: Storage, clock: Clock, *, data_change: bool, statistics: bool
    ) -> None:
        self._context = context
        self._storage = storage
        self._clock = clock
        self._data_change = data_change
        self._statistics = statistics
        self._open: dict[tuple[str | None, ...], DataFile] = {}
        self.adds: list[AddFile] = []

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write rows to the files of their partitions; files that are large enough are closed."""
        for values, rows in _partitions(pa.Table.from_batches(batches), self._context):
            key = tuple(serialize(value) for value in values.values())  # NaN would be another key each time
            start, bytes_per_row = 0, rows.nbytes / rows.num_rows
            while start < rows.num_rows:
                file = self._open.get(key) or self._open.setdefault(key, DataFile(self._context, values))
                part = rows.slice(start, self._room(file, bytes_per_row))
                file.write(part)
                start += part.num_rows
                bytes_per_row = file.size / file.rows  # compressed, which the first part could not know
                if self._is_full(file):
                    self._close(key)
        while self._open and sum(file.size for file in self._open.values()) > _OPEN_BYTES:
            self._close(max(self._open, key=lambda key: self._open[key].size))

    def close(self) -> list[AddFile]:
        """Close the files that are still open; the adds of all."""
        for key in list(self._open):
            self._close(key)
        return self.adds

    def _close(self, key: tuple[str | None, ...]) -> None:
        file = self._open.pop(key)
        self.adds.append(
            file.close(self._storage, self._clock, data_change=self._data_change, statistics=self._statistics)
        )

    def _room(self, file: DataFile, bytes_per_row: float) -> int:
        """How many rows a file still takes."""
        room = self._context.rows_per_file - file.rows
        if self._context.target_bytes is not None and bytes_per_row:
            room = min(room, int((self._context.target_bytes - file.size) / bytes_per_row))
        return max(1, room)

    def _is_full(self, file: DataFile) -> bool:
        target = self._context.target_bytes
        return file.rows >= self._context.rows_per_file or (target is not None and file.size >= _FULL * target)


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


def _partitions(table: pa.Table, context: WriteContext) -> Iterable[tuple[dict[str, Any], pa.Table]]:
    """Partition values and the rows that have them, without the partition columns; in order of first appearance."""
    columns = context.partition_columns
    data = table.drop_columns(list(columns))
    if not columns:
        yield {}, data
        return
    keys = pl.DataFrame([_recordable(pl.Series(c, pl.from_arrow(table[c])), context.schema[c]) for c in columns])
    groups = keys.with_row_index("\0row").group_by(list(columns), maintain_order=True).agg("\0row")
    for row in groups.iter_rows(named=True):
        indices = row.pop("\0row")
        yield row, data.take(pa.array(indices, pa.int64()))


def _recordable(values: pl.Series, field: Field) -> pl.Series:
    """The values of a partition column. InvalidRequestError for one that the log has no text for,
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
