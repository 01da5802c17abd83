"""Rows to data files, one a partition: each is written row group by row group, and closed when it is large enough."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_FILE = 2_000_000
_MOST_BYTES = 1 << 30
"""Of one batch."""

_GROUP_ROWS, _GROUP_BYTES = 131_072, 64 << 20
"""Rows in memory before they become a row group: twice as many take a sixth more memory in a merge of large files
(benches/bench_writer.py)."""

_OPEN_BYTES = 256 << 20
"""Encoded bytes of all open files together, in memory or in hidden files, before the largest is closed."""

_FULL = 0.9
"""A file of this share of the target is closed: a small rest is no part worth writing."""

_PUTS, _PUT_BYTES = 8, 32 << 20
"""Files that are put into a remote store at once while others are written, and their bytes: an append to 97 partitions
takes a fifth of the time where a request takes 30 ms. On this machine it would take a fifth more CPU, and no less time.
"""

_ENCODERS = 2
"""Files that rows are written to at once: an append to 97 partitions takes a quarter less time, and no more
CPU (benches/bench_writer.py)."""

_SAMPLE = 4_096

Values = TypeVar("Values")
Result = TypeVar("Result")
Facts = TypeVar("Facts", covariant=True)


class OpenFile(Protocol[Facts]):
    """A data file that is being written."""

    @property
    def rows(self) -> int:
        """Rows so far."""

    @property
    def size(self) -> int:
        """Bytes so far."""

    def write(self, rows: pa.Table) -> None:
        """Write a part of the rows, as one row group."""

    def close(self) -> Facts:
        """Put the file into its store; what is to be committed of it."""

    def discard(self) -> None:
        """Leave nothing of a file that will not be whole."""


Split: TypeAlias = Callable[[pa.Table], Iterable[tuple[Hashable, Values, pa.Table]]]
"""Splits rows: what each partition is known by, its values, and the rows as its files hold them."""


class OpenFiles(Generic[Values, Result]):
    """The files that rows go to. `new_file` begins one for the values of a partition; `remote`: their store is.

    Memory holds a row group of rows, and of the encoded bytes of open files what their store keeps. After an error
    nothing more is written, and `discard` ends the files that are open.
    """

    def __init__(
        self,
        new_file: Callable[[Values], OpenFile[Result]],
        split: Split[Values],
        *,
        rows_per_file: int = ROWS_PER_FILE,
        target_bytes: int | None = None,
        remote: bool = False,
    ) -> None:
        self._new_file = new_file
        self._split = split
        self._rows_per_file = rows_per_file
        self._target_bytes = target_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._open: dict[Hashable, OpenFile[Result]] = {}
        self._outcomes: list[Future[Result]] = []
        self._pending_puts: deque[tuple[Future[Result], int]] = deque()
        self._error: BaseException | None = None
        self._threads = ThreadPoolExecutor(_PUTS, thread_name_prefix="lakeview-put") if remote else None

    def write_all(self, batches: Iterable[pa.RecordBatch]) -> list[Result]:
        """Write all rows; the results of their files. On an error the open files are discarded."""
        try:
            for batch in batches:
                self.write(batch)
            return self.close()
        except BaseException:
            self.discard()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows, and write those of a row group."""
        if not batch.num_rows:
            return
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        most = min(_GROUP_ROWS, self._rows_per_file)
        # another batch like it would be too many
        if self._pending_rows + batch.num_rows > most or self._pending_bytes >= _GROUP_BYTES:
            self._write_pending()

    def close(self) -> list[Result]:
        """Write the rest; the results of all files."""
        self._write_pending()
        for key in list(self._open):
            self._close(key)
        self._end_threads()
        return [outcome.result() for outcome in self._outcomes]

    def discard(self) -> None:
        """Leave nothing of files that are not whole."""
        while self._open:
            self._open.popitem()[1].discard()
        self._end_threads()

    @property
    def results(self) -> list[Result]:
        """Of the files that are written whole."""
        return [outcome.result() for outcome in self._outcomes if outcome.exception() is None]

    def _end_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()

    def _write_pending(self) -> None:
        pending, self._pending = self._pending, []
        self._pending_rows = self._pending_bytes = 0
        if pending:
            self._write(self._split(pa.Table.from_batches(pending)))

    def _write(self, parts: Iterable[tuple[Hashable, Values, pa.Table]]) -> None:
        """Write rows to the files of their partitions, two at once; files that are large enough are closed."""
        writes: list[tuple[Hashable, OpenFile[Result], pa.Table]] = []
        for key, values, rows in parts:
            file = self._file(key, values)
            if self._room(file, rows.nbytes / rows.num_rows) >= rows.num_rows:
                writes.append((key, file, rows))
            else:
                self._write_in_files(key, values, rows)
        if len(writes) == 1:
            writes[0][1].write(writes[0][2])
        else:
            threads = ThreadPoolExecutor(_ENCODERS, thread_name_prefix="lakeview-encode")
            try:
                deque(threads.map(lambda write: write[1].write(write[2]), writes), maxlen=0)
            finally:
                threads.shutdown(cancel_futures=True)
        for key, file, _ in writes:
            if self._is_full(file):
                self._close(key)
        while self._open and sum(file.size for file in self._open.values()) > _OPEN_BYTES:
            self._close(max(self._open, key=lambda key: self._open[key].size))

    def _write_in_files(self, key: Hashable, values: Values, rows: pa.Table) -> None:
        """Write rows to as many files as they take."""
        start, bytes_per_row = 0, rows.nbytes / rows.num_rows
        while start < rows.num_rows:
            file = self._file(key, values)
            part = rows.slice(start, self._room(file, bytes_per_row))
            file.write(part)
            start += part.num_rows
            bytes_per_row = file.size / file.rows  # compressed, which the first part could not know
            if self._is_full(file):
                self._close(key)

    def _file(self, key: Hashable, values: Values) -> OpenFile[Result]:
        return self._open.get(key) or self._open.setdefault(key, self._new_file(values))

    def _close(self, key: Hashable) -> None:
        """Put a file into its store; a small one into a remote store while others are written."""
        size = self._open[key].size
        if self._threads is None or size > _PUT_BYTES:
            outcome: Future[Result] = Future()
            outcome.set_result(self._put(self._open.pop(key)))
        else:
            while sum(more for _, more in self._pending_puts) + size > _PUT_BYTES:
                self._pending_puts.popleft()[0].result()
            outcome = self._threads.submit(self._put, self._open.pop(key))
            self._pending_puts.append((outcome, size))
        self._outcomes.append(outcome)

    def _put(self, file: OpenFile[Result]) -> Result:
        """Close a file; none after one that failed: a store that is away would be asked for each of them."""
        try:
            if self._error is not None:
                raise self._error
            return file.close()
        except BaseException as error:
            self._error = error
            file.discard()
            raise

    def _room(self, file: OpenFile[Result], bytes_per_row: float) -> int:
        """How many rows a file still takes."""
        room = self._rows_per_file - file.rows
        if self._target_bytes is not None and bytes_per_row:
            room = min(room, int((self._target_bytes - file.size) / bytes_per_row))
        return max(1, room)

    def _is_full(self, file: OpenFile[Result]) -> bool:
        target = self._target_bytes
        return file.rows >= self._rows_per_file or (target is not None and file.size >= _FULL * target)


def drop_encoder(encoder: pq.ParquetWriter | None) -> None:
    """End the encoder of a file that is closed and will not be whole. One whose store failed has no footer, and would
    print that as an error when it is collected."""
    if encoder is not None:
        with suppress(OSError, RuntimeError):
            encoder.close()


def split_rows(rows: pa.Table, keys: pl.DataFrame) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The values of `keys`, a row for each of the rows, and the rows that have them; in order of first appearance.

    -0.0 and 0.0 are two values, which polars takes for one. Rows that have one value each are given as they are: a
    fifth of an optimize of partitions (benches/bench_writer.py).
    """
    # by place: polars takes a name like ^x$ for a pattern, and all rows for one group
    columns = [values.alias(f"{i}") for i, values in enumerate(keys)]
    signs = [(1 / values < 0).alias(f"-{values.name}") for values in columns if values.dtype.is_float()]
    signed_keys = pl.DataFrame([*columns, *signs])
    if all(values.eq_missing(values.head(1)).all() for values in signed_keys):  # not grouped, and not copied
        yield keys.row(0, named=True), rows
        return
    groups = signed_keys.with_row_index("row").group_by(signed_keys.columns, maintain_order=True).agg("row")
    firsts, counts = keys[groups["row"].list.first()], groups["row"].list.len()
    rows, start = rows.take(groups["row"].explode().to_arrow()), 0
    for values, count in zip(firsts.iter_rows(named=True), counts, strict=True):
        yield values, rows.slice(start, count)
        start += count


def portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches small enough for Arrow's `string` and `binary`, which hold 2 GB of text each: large ones in halves."""
    for batch in batches:
        if batch.nbytes <= _MOST_BYTES or batch.num_rows < 2:
            yield batch
        else:
            middle = batch.num_rows // 2
            yield from portions([batch.slice(0, middle), batch.slice(middle)])


def repeating_columns(rows: pa.Table) -> list[str] | bool:
    """The columns that are worth a dictionary: those whose values repeat, by a sample of them.

    One for every column takes twice the time, and a third more bytes where ids and measures do not repeat
    (benches/bench_writer.py). Of nested columns Arrow decides.
    """
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    sample = rows.slice(rows.num_rows // 2, _SAMPLE)
    half = sample.num_rows // 2
    return [name for name in rows.schema.names if _values(sample[name]).n_unique() <= half]


def _values(column: pa.ChunkedArray) -> pl.Series:
    """A column as polars takes it, which counts different values in a fifth of Arrow's time: uuids as their bytes."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return pl.Series(column)
