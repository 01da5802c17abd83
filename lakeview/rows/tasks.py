"""Data files to rows: Parquet to record batches conformed to a table's schema, and to a LazyFrame that prunes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyroaring
from polars.io.plugins import register_io_source

from lakeview.model.config import settings
from lakeview.model.errors import CorruptTableError, DataFileMissingError, LakeviewError, UnsupportedTableError
from lakeview.model.schema import Field, Schema, polars_type
from lakeview.rows.casts import Match, conformed, located
from lakeview.storage import Storage, open_storage

BATCH_ROWS = 65_536
_NOTHING = pl.Null()
_FEW_ROWS = 128


class RowPositions(Protocol):
    """Positions of rows in one data file, from 0 over all its row groups: a value that can travel to another process.

    What stands for it is a small frozen dataclass (a descriptor, or the bytes themselves), never a loaded bitmap.
    """

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:
        """The positions, read when called: DataFileMissingError or CorruptTableError if they are not there whole."""


class RowSource(Protocol):
    """Reads the files of a format that finds its columns in its own way: a small frozen value, as RowPositions."""

    def batches(self, task: FileTask, storage: Storage, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of the task's file in `task.schema`, everything nullable, in the file's order; none is left out."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """What a column holds where the file has null, or no such column: a number, or one plus the row's position."""

    value: int | None
    plus_position: bool = False


@dataclass(frozen=True, slots=True)
class FileTask:
    """One data file to read, as a value that can travel to another process.

    `path`: decoded, relative to `root` or absolute; `schema`: the columns to yield, in order; `constants`: values of
    columns that the log records and the file need not hold, by name; `size` in bytes, 0 where unknown, `records` if
    known (physical).
    `deleted`: the rows at these positions are left out; `selected`: only the rows at these positions are given.
    `fallbacks`: for columns of type long, by name, what takes the place of null.
    `match`: how columns are found in the file, at every level: by physical name, or by Parquet field id.
    `source`: what reads the file in place of the Parquet reader here; then constants, fallbacks and match are its own.
    `roots`: where the table's files may lie beside its own folder, for a process that has no roots configured.
    """

    root: str
    path: str
    schema: Schema
    constants: Mapping[str, Any] = field(default_factory=dict, hash=False)
    size: int = 0
    records: int | None = None
    deleted: RowPositions | None = None
    selected: RowPositions | None = None
    match: Match = "name"
    fallbacks: Mapping[str, Fallback] = field(default_factory=dict, hash=False)
    source: RowSource | None = None
    roots: tuple[str, ...] = ()

    def select(self, names: Sequence[str]) -> FileTask:
        """The same file, only these columns."""
        return replace(self, schema=self.schema.select(list(names)))


def read_task(task: FileTask, storage: Storage | None = None, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of one file in `task.schema`, in the file's order, everything nullable, timestamps in microseconds.

    Deleted rows are left out. A column the file lacks is null, one the schema lacks is left out, a partition value of
    the log wins over the file's. DataFileMissingError if the file is gone, CorruptTableError if it is no Parquet file,
    UnsupportedTableError for a type that has no rows.
    """
    store = storage or _store(task)
    target = task.schema.relaxed().to_arrow()
    kept = _Kept(task, store)
    if kept.nothing:
        return
    try:
        if task.source is not None:
            for batch in task.source.batches(task, store, batch_rows):
                yield kept.of(batch)[0]
            return
        # INT96 through nanoseconds would wrap years before 1677 and after 2262
        with store.open(task.path) as handle, pq.ParquetFile(handle, coerce_int96_timestamp_unit="us") as file:
            kept.check(file.metadata.num_rows)
            columns = _Columns(task, file.schema_arrow, target)
            for batch in kept.batches(file, columns.read, batch_rows):
                batch.validate(full=True)  # text that is no UTF-8 would bring polars down
                try:
                    yield columns.of(*kept.of(batch))
                except (CorruptTableError, UnsupportedTableError) as error:  # it knows the column, and not the file
                    raise type(error)(
                        f"{error.message}, in data file {task.path}", fix=error.fix, place=task.path, kind=error.kind
                    ) from error
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


class _Kept:
    """The rows to give of each batch; batches are told in the order they lie in the file."""

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

    def batches(self, file: pq.ParquetFile, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The batches of a file, for `of` one by one; row groups without a selected row are passed over."""
        if self._selected is None or not columns:
            yield from _batches(file, columns, batch_rows)
            return
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if self._selected.range_cardinality(self._position, self._position + rows):
                yield from file.iter_batches(batch_size=batch_rows, columns=columns, row_groups=[group])
            else:
                self._position += rows

    def of(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Int64Array]:
        """The rows of the next batch that are neither deleted nor left out of the selection, and their positions."""
        start = self._position
        self._position += batch.num_rows
        if self._deleted is None and self._selected is None:
            return batch, pa.arange(start, self._position)
        rows = pyroaring.BitMap64(range(start, self._position))
        if self._selected is not None:
            rows &= self._selected
        if self._deleted is not None:
            rows -= self._deleted
        positions = pa.array(rows.to_array(), pa.int64())
        if len(rows) == batch.num_rows:
            return batch, positions
        return batch.take(pc.subtract(positions, start)), positions


def _store(task: FileTask) -> Storage:
    """The store of a task that came without one; roots configured in this process hold, whatever the task says."""
    config = settings()
    return open_storage(task.root, config=config if config.roots else replace(config, roots=task.roots))


class _Columns:
    """The columns of a task, made of the batches of its file."""

    def __init__(self, task: FileTask, held: pa.Schema, target: pa.Schema) -> None:
        self._task = task
        self._target = target
        wanted = [f for f in task.schema if f.name not in task.constants]
        names = held.names  # a list made anew each time it is asked for
        places = located(list(held), wanted, task.match)
        self._sources = {f.name: names[i] for f, i in zip(wanted, places, strict=True) if i is not None}
        self.read = list(dict.fromkeys(self._sources.values()))

    def of(self, batch: pa.RecordBatch, positions: pa.Int64Array) -> pa.RecordBatch:
        """The task's columns of one batch, whose rows lie at these positions."""
        arrays = []
        for wanted, target in zip(self._task.schema, self._target.types, strict=True):
            array = self._array(wanted, target, batch)
            fallback = self._task.fallbacks.get(wanted.name)
            if fallback is not None and array.null_count:
                value = pa.scalar(fallback.value, pa.int64())
                array = pc.coalesce(array, pc.add(positions, value) if fallback.plus_position else value)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._target) if arrays else batch

    def _array(self, wanted: Field, target: pa.DataType, batch: pa.RecordBatch) -> pa.Array:
        if wanted.name in self._task.constants:
            return pa.repeat(pa.scalar(self._task.constants[wanted.name], type=target), batch.num_rows)
        source = self._sources.get(wanted.name)
        if source is None:
            return pa.nulls(batch.num_rows, target)
        array = batch.column(batch.schema.get_field_index(source))
        return conformed(array, wanted, target, self._task.match)


def _batches(file: pq.ParquetFile, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    if columns:
        yield from file.iter_batches(batch_size=batch_rows, columns=columns)
        return
    rows = file.metadata.num_rows  # only the number of rows matters
    for start in range(0, rows, batch_rows):
        empty = pa.nulls(min(batch_rows, rows - start))
        yield pa.RecordBatch.from_arrays([empty], names=["_"])


def lazy_rows(
    tasks: Callable[[pl.Expr | None], Iterable[FileTask]],
    schema: Schema,
    storage: Storage,
    read: Callable[[FileTask, Storage], Iterator[pa.RecordBatch]] = read_task,
    enough: Callable[[int], Iterable[FileTask]] | None = None,
) -> pl.LazyFrame:
    """A LazyFrame over files. `tasks` gives the files a filter needs; only needed columns are read, batch by batch.

    `enough` gives files that hold so many rows, for a preview of a table whose whole list costs a request.
    `read` gives the batches of one file, as `read_task` does. A column of a type that cannot be read stands there as
    nulls, and asking for it is an UnsupportedTableError that names it: the other columns are read without it.
    """
    unread = frozenset(schema.unreadable)
    types = pl.Schema({f.name: _NOTHING if f.name in unread else polars_type(f.type) for f in schema})

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        output = schema.names if with_columns is None else with_columns
        needed = set(output) | set(() if predicate is None else predicate.meta.root_names())
        names = [n for n in schema.names if n in needed]
        if asked := [n for n in names if n in unread]:
            schema.select(asked).to_polars()  # raises, and names the column
        left = n_rows
        first = enough(n_rows) if enough is not None and predicate is None and n_rows is not None else None
        for task in tasks(predicate) if first is None else first:
            if left is not None and left <= 0:
                return
            few = read is read_task and predicate is None and left is not None
            # a preview decodes few rows: a small file may hold values that inflate to gigabytes a batch
            found = read_task(task.select(names), storage, max(_FEW_ROWS, min(left or 0, BATCH_ROWS))) if few else None
            for batch in found or read(task.select(names), storage):
                if left is not None and left <= 0:
                    return
                frame = _frame(batch, names, types)
                frame = frame if predicate is None else frame.filter(predicate)
                frame = frame.select([frame[n] for n in output]) if output else frame
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame

    return register_io_source(source, schema=types, is_pure=True)


def _frame(batch: pa.RecordBatch, names: list[str], types: pl.Schema) -> pl.DataFrame:
    if not names:
        return pl.DataFrame(height=batch.num_rows)
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    frame.columns = names  # polars gives a column without a name one of its own
    # one by one: DataFrame.cast takes a name such as ^x$ for a pattern, and minutes over thousands of columns
    return pl.DataFrame({s.name: s if s.dtype == types[s.name] else s.cast(types[s.name]) for s in frame})
