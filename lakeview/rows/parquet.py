"""Data files to record batches conformed to a table's schema: Parquet here, files of other formats by their source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeview.model.config import task_settings
from lakeview.model.data_types import Field
from lakeview.model.errors import CorruptTableError, DataFileMissingError, LakeviewError, UnsupportedTableError
from lakeview.rows.arrays import numpy_to_arrow, values_to_arrow
from lakeview.rows.casts import conform_array
from lakeview.rows.field_places import field_places
from lakeview.rows.live_rows import LiveRows
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
    with errors_of(task):
        for batch in task.source.batches(task, store, batch_rows):
            yield live.of(batch)[0]


class StoredRows(NamedTuple):
    """Live rows of a Parquet file as it stores them, their positions, and what makes the task's columns of them."""

    columns: Columns
    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]


def stored_batches(
    task: FileTask,
    storage: Storage,
    batch_rows: int = BATCH_ROWS,
    columns: Columns | None = None,
    *,
    threads: bool = True,
) -> Iterator[StoredRows]:
    """The rows of a Parquet file before they are conformed; those that are deleted or not selected are left out.

    `columns`: those of another file, which serve for this one too if it is alike; `threads`: whether columns are
    decoded at once. Errors as `read_task`.
    """
    live = LiveRows(task, storage)
    if live.nothing:
        return
    ahead = storage.remote
    with errors_of(task), ExitStack() as stack:
        handle = stack.enter_context(storage.open(task.path, task.size))
        small = None if ahead else _small_file(handle, task.size)
        file = stack.enter_context(
            pq.ParquetFile(
                small or handle,
                coerce_int96_timestamp_unit="us",  # through nanoseconds it would wrap years before 1677 and after 2262
                pre_buffer=ahead,
                buffer_size=0 if ahead or small is not None else _READ_BYTES,
            )
        )
        num_rows = file.metadata.num_rows
        live.check(num_rows)
        schema = file.schema_arrow
        if columns is None or not columns.serve(task, schema):
            columns = Columns(task, schema)
        for batch in live.batches(file, columns.inputs, batch_rows, threads=threads and small is None):
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
def errors_of(task: FileTask) -> Iterator[None]:
    """Turns the errors of reading the file of a task into ours, which name it: as `read_task`."""
    try:
        yield
    except DataFileMissingError:  # its store has said it in words of its own
        raise
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
    """The columns of a task, made of the batches of its file. `inputs`: the columns of the file that are needed;
    `have_dictionaries`: whether any of them is one of dictionaries."""

    def __init__(self, task: FileTask, file_schema: pa.Schema) -> None:
        self._schema = task.schema
        self._file_schema = file_schema
        self._match = task.match
        self._target = task.schema.as_nullable().to_arrow()
        self._constants = _log_values(task)
        self._fallbacks = {name: f for name, f in task.fallbacks.items() if name in task.schema}
        stored_fields = [f for f in task.schema if f.name not in task.constants]
        names = file_schema.names  # a list that is built on each access
        places = field_places(list(file_schema), stored_fields, task.match)
        self._sources = {f.name: names[i] for f, i in zip(stored_fields, places, strict=True) if i is not None}
        self.inputs = list(dict.fromkeys(self._sources.values()))
        types = file_schema.types  # by place: of two columns of one name `field` gives none
        self.have_dictionaries = any("dictionary<" in str(types[i]) for i in places if i is not None)  # nested ones too

    def serve(self, task: FileTask, file_schema: pa.Schema) -> bool:
        """Whether the columns of another file are made in the same way."""
        # by their texts: 0.0 equals -0.0, and NaN nothing
        return (
            not self._fallbacks
            and not any(name in self._schema for name in task.fallbacks)
            and task.match == self._match
            and task.schema == self._schema
            and repr(_log_values(task)) == repr(self._constants)
            and self._file_schema.equals(file_schema, check_metadata=task.match == "id")  # field ids are metadata
        )

    def conform(self, task: FileTask, batch: pa.RecordBatch, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The task's columns of one batch, whose rows lie at these positions. Errors as `read_task`."""
        with errors_of(task):
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
        return conform_array(array, field, target, self._match)


def _log_values(task: FileTask) -> dict[str, Any]:
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
