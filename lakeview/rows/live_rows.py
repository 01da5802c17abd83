"""Which rows of a Parquet file are given: batch by batch in the file's order, without those that are deleted."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from lakeview.model.errors import CorruptTableError
from lakeview.rows.arrays import numpy_to_arrow, without_views
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage


class LiveRows:
    """The rows of a task's file that are given, batch by batch in the file's order; reads its deletion vectors."""

    def __init__(self, task: FileTask, storage: Storage) -> None:
        self._deleted_rows = None if task.deleted_rows is None else task.deleted_rows.bitmap(storage)
        self._selected_rows = None if task.selected_rows is None else task.selected_rows.bitmap(storage)
        self._path = task.path
        self._position = 0

    @property
    def nothing(self) -> bool:
        """Whether no row is selected, so that the file need not be opened."""
        return self._selected_rows is not None and not self._selected_rows

    def check(self, rows: int) -> None:
        """CorruptTableError if positions lie beyond the file's rows: they must belong to another file."""
        for positions in (self._deleted_rows, self._selected_rows):
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
        if self._selected_rows is None:
            yield from file_batches(file, columns, batch_rows, threads=threads)
            return
        batches = partial(file.iter_batches, batch_size=batch_rows, columns=columns, use_threads=threads)
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if self._selected_rows.range_cardinality(self._position, self._position + rows):
                yield from batches(row_groups=[group])
            else:
                self._position += rows

    def of(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
        """The rows of the next batch that are neither deleted nor left out of the selection, and their positions."""
        start = self._position
        self._position += batch.num_rows
        if self._deleted_rows is None and self._selected_rows is None:
            return batch, np.arange(start, self._position)
        rows = np.full(batch.num_rows, fill_value=self._selected_rows is None)
        if self._selected_rows is not None:
            rows[self._here(self._selected_rows, start)] = True
        if self._deleted_rows is not None:
            rows[self._here(self._deleted_rows, start)] = False
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
    if groups == 1 and file.metadata.row_group(0).num_rows <= batch_rows:  # to begin with batches takes 60 us
        yield from file.read_row_group(0, columns=columns, use_threads=threads).to_batches()
    elif groups > 1 and any(map(_has_nested_dictionary, file.schema_arrow.types)):
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
