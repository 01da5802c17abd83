"""Data files to record batches conformed to a table's schema: Parquet here, files of other formats by their source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyroaring

from lakeview.model.config import task_settings
from lakeview.model.data_types import Field
from lakeview.model.errors import CorruptTableError, DataFileMissingError, LakeviewError, UnsupportedTableError
from lakeview.rows.arrays import numpy_to_arrow, values_to_arrow
from lakeview.rows.casts import conformed
from lakeview.rows.field_places import located
from lakeview.rows.plain_arrays import without_views
from lakeview.rows.tasks import Fallback, FileTask
from lakeview.storage import Storage, open_storage

BATCH_ROWS = 65_536

_READ_BYTES = 256 << 10
"""Bytes of a column that are read at once from a local file. Of a remote one all columns of a row group are fetched in
few requests, and held until its rows are given. A local file of no more bytes is read at once, and decoded by the
thread that asks for it: to hand its columns to others takes longer (benches/bench_writer.py, 1,000 files)."""


def read_task(task: FileTask, storage: Storage | None = None, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of one file in `task.schema`, in the file's order, everything nullable, timestamps in microseconds.

    Deleted rows are left out. A column the file lacks is null, one the schema lacks is left out, a partition value of
    the log wins over the file's. DataFileMissingError if the file is gone, CorruptTableError if it is no Parquet file,
    UnsupportedTableError for a type that has no rows.
    """
    store = storage or task_storage(task)
    if task.source is None:
        for columns, rows, positions in stored_batches(task, store, batch_rows):
            yield columns.conform(task, rows, positions)
        return
    live = LiveRows(task, store)
    if live.nothing:
        return
    with _errors_of(task):
        for batch in task.source.batches(task, store, batch_rows):
            yield live.of(batch)[0]


class StoredRows(NamedTuple):
    """Live rows of a Parquet file as it stores them, their positions, and what makes the task's columns of them."""

    columns: Columns
    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]


def stored_batches(
    task: FileTask, storage: Storage, batch_rows: int = BATCH_ROWS, columns: Columns | None = None
) -> Iterator[StoredRows]:
    """The rows of a Parquet file before they are conformed; those that are deleted or not selected are left out.

    `columns`: those of another file, which serve for this one too if it is alike. Errors as `read_task`.
    """
    live = LiveRows(task, storage)
    if live.nothing:
        return
    ahead = storage.remote
    with _errors_of(task), ExitStack() as stack:
        handle = stack.enter_context(storage.open(task.path, task.size))
        small = None if ahead else _small_file(handle, task.size)
        file = stack.enter_context(
            pq.ParquetFile(
                small or handle,
                coerce_int96_timestamp_unit="us",  # through nanoseconds it would wrap years before 1677 and after 2262
                pre_buffer=ahead,
                buffer_size=0 if ahead else _READ_BYTES,
            )
        )
        num_rows = file.metadata.num_rows
        live.check(num_rows)
        schema = file.schema_arrow
        if columns is None or not columns.serve(task, schema):
            columns = Columns(task, schema)
        for batch in live.batches(file, columns.inputs, batch_rows, threads=small is None):
            batch.validate(full=True)  # text that is no UTF-8 would bring polars down
            yield StoredRows(columns, *live.of(batch))
        live.check_whole(num_rows)


def _small_file(handle: IO[bytes], size: int) -> pa.BufferReader | None:
    """All of a file if it is small; None for others, and for one that is not of the size that the log records, which
    are left at their start. The size of a hostile log may be negative."""
    if not 0 <= size <= _READ_BYTES:
        return None
    data = handle.read(size + 1)
    if len(data) == size:
        return pa.BufferReader(data)
    handle.seek(0)
    return None


@contextmanager
def _errors_of(task: FileTask) -> Iterator[None]:
    """Turns the errors of reading a file into ours, which name it."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataFileMissingError(
            f"data file {task.path} is in the log of {task.root} but not in the store",
            fix="restore it, or read another version: the table's versions tell which are whole",
            place=task.path,
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, LakeviewError):  # access denied, or a store that does not answer: not the file's fault
            raise
        raise CorruptTableError(
            f"data file {task.path} cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}",
            fix="restore the file from a backup, or read a version without it",
            place=task.path,
            kind="corrupt-data-file",
        ) from error


def task_storage(task: FileTask) -> Storage:
    """The store of a task that came without one; roots configured in this process win over those of the task."""
    return open_storage(task.root, config=task_settings(task.roots))


class Columns:
    """The columns of a task, made of the batches of its file. `inputs`: the columns of the file that are needed."""

    def __init__(self, task: FileTask, file_schema: pa.Schema) -> None:
        self._schema = task.schema
        self._file_schema = file_schema
        self._match = task.match
        self._target = task.schema.relaxed().to_arrow()
        self._constants = _recorded(task)
        self._fallbacks = {name: f for name, f in task.fallbacks.items() if name in task.schema}
        stored_fields = [f for f in task.schema if f.name not in task.constants]
        names = file_schema.names  # a list that is built on each access
        places = located(list(file_schema), stored_fields, task.match)
        self._sources = {f.name: names[i] for f, i in zip(stored_fields, places, strict=True) if i is not None}
        self.inputs = list(dict.fromkeys(self._sources.values()))

    def serve(self, task: FileTask, file_schema: pa.Schema) -> bool:
        """Whether the columns of another file are made in the same way."""
        # by their texts: 0.0 equals -0.0, and NaN nothing
        return (
            not self._fallbacks
            and not any(name in self._schema for name in task.fallbacks)
            and task.match == self._match
            and task.schema == self._schema
            and repr(_recorded(task)) == repr(self._constants)
            and self._file_schema.equals(file_schema, check_metadata=task.match == "id")  # field ids are metadata
        )

    def conform(self, task: FileTask, batch: pa.RecordBatch, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The task's columns of one batch, whose rows lie at these positions. Errors as `read_task`."""
        with _errors_of(task):
            try:
                return self.of(batch, positions)
            except (CorruptTableError, UnsupportedTableError) as error:  # it names the column, and not the file
                raise type(error)(
                    f"{error.message}, in data file {task.path}", fix=error.fix, place=task.path, kind=error.kind
                ) from error

    def of(self, batch: pa.RecordBatch, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """As `conform`, of the rows of any files that these columns serve; errors name no file."""
        arrays = []
        for field, target in zip(self._schema, self._target.types, strict=True):
            array = self._array(field, target, batch)
            fallback = self._fallbacks.get(field.name)
            arrays.append(array if fallback is None else _with_fallback(array, fallback, positions))
        return pa.RecordBatch.from_arrays(arrays, schema=self._target) if arrays else batch

    def _array(self, field: Field, target: pa.DataType, batch: pa.RecordBatch) -> pa.Array:
        if field.name in self._constants:
            return pa.repeat(values_to_arrow([self._constants[field.name]], target)[0], batch.num_rows)
        source = self._sources.get(field.name)
        if source is None:
            return pa.nulls(batch.num_rows, target)
        array = batch.column(batch.schema.get_field_index(source))
        return conformed(array, field, target, self._match)


def _recorded(task: FileTask) -> dict[str, Any]:
    """The values of the task's columns that the log records."""
    return {f.name: task.constants[f.name] for f in task.schema if f.name in task.constants} if task.constants else {}


def _with_fallback(array: pa.Array, fallback: Fallback, positions: npt.NDArray[np.int64]) -> pa.Array:
    if not array.null_count:
        return array
    value = values_to_arrow([fallback.value], pa.int64())[0]
    if not fallback.plus_position:
        return pc.coalesce(array, value)
    places = numpy_to_arrow(positions)
    values = places if fallback.value == 0 else pc.add(places, value)
    return values if array.null_count == len(array) else pc.coalesce(array, values)


class LiveRows:
    """The rows of a task's file that are given, batch by batch in the file's order; reads its deletion vectors."""

    def __init__(self, task: FileTask, storage: Storage) -> None:
        self._deleted = None if task.deleted is None else task.deleted.bitmap(storage)
        self._selected = None if task.selected is None else task.selected.bitmap(storage)
        self._path = task.path
        self._position = 0

    @property
    def nothing(self) -> bool:
        """Whether no row is selected, so that the file need not be opened."""
        return self._selected is not None and not self._selected

    def check(self, rows: int) -> None:
        """CorruptTableError if positions lie beyond the file's rows: they must belong to another file."""
        for positions in (self._deleted, self._selected):
            last = positions.max() if positions else -1
            if last >= rows:
                raise CorruptTableError(
                    f"data file {self._path} holds {rows:,} rows, and its deletion vector names row {last:,}",
                    fix="restore file or deletion vector from a backup, or read a version without them",
                    place=self._path,
                    kind="corrupt-deletion-vector",
                )

    def check_whole(self, rows: int) -> None:
        """ArrowInvalid unless so many rows came: a broken footer makes Arrow leave rows out, without a word."""
        if self._position != rows:
            raise pa.ArrowInvalid(f"its footer counts {rows:,} rows, and {self._position:,} are in it")

    def batches(
        self, file: pq.ParquetFile, columns: list[str], batch_rows: int, *, threads: bool
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a file, for `of` one by one; row groups without a selected row are passed over. `threads`:
        whether columns are decoded at once."""
        if not columns:
            yield from _empty_batches(file.metadata.num_rows, batch_rows)
            return
        if self._selected is None:
            yield from file_batches(file, columns, batch_rows, threads=threads)
            return
        batches = partial(file.iter_batches, batch_size=batch_rows, columns=columns, use_threads=threads)
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if self._selected.range_cardinality(self._position, self._position + rows):
                yield from batches(row_groups=[group])
            else:
                self._position += rows

    def of(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
        """The rows of the next batch that are neither deleted nor left out of the selection, and their positions."""
        start = self._position
        self._position += batch.num_rows
        if self._deleted is None and self._selected is None:
            return batch, np.arange(start, self._position)
        rows = np.full(batch.num_rows, fill_value=self._selected is None)
        if self._selected is not None:
            rows[self._here(self._selected, start)] = True
        if self._deleted is not None:
            rows[self._here(self._deleted, start)] = False
        positions = np.flatnonzero(rows) + start
        if len(positions) == batch.num_rows:
            return batch, positions
        return without_views(batch).filter(numpy_to_arrow(rows)), positions

    def _here(self, positions: pyroaring.BitMap64, start: int) -> npt.NDArray[np.int64]:
        """Those of the batch that begins at `start`, from 0."""
        inside = positions & pyroaring.BitMap64(range(start, self._position))
        return np.frombuffer(inside.to_array(), np.uint64).astype(np.int64) - start


def file_batches(
    file: pq.ParquetFile, columns: list[str], batch_rows: int, *, threads: bool = True
) -> Iterator[pa.RecordBatch]:
    """All batches of some columns of a file, row groups across; `threads` as of `LiveRows.batches`."""
    batches = partial(file.iter_batches, batch_size=batch_rows, columns=columns, use_threads=threads)
    groups = file.metadata.num_row_groups
    if groups > 1 and any(map(_has_nested_dictionary, file.schema_arrow.types)):
        # each row group has a dictionary of its own, and Arrow (pyarrow 26.0) puts those of two in no nested array
        for group in range(groups):
            yield from batches(row_groups=[group])
    else:
        yield from batches()


def _has_nested_dictionary(type_: pa.DataType) -> bool:
    return not pa.types.is_dictionary(type_) and "dictionary<" in str(type_)


def _empty_batches(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of which only the number of rows matters."""
    for start in range(0, rows, batch_rows):
        empty = pa.nulls(min(batch_rows, rows - start))
        yield pa.RecordBatch.from_arrays([empty], names=["_"])
