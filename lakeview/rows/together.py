"""Parquet files to rows, many small ones at once: what a batch costs beside its rows is paid once for all of them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeview.model.errors import LakeviewError
from lakeview.rows.parquet import BATCH_ROWS, StoredRows, stored_batches
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage

_BYTES = 16 << 20
"""Bytes of stored rows that are conformed at once: a small file can hold long texts, of which a column of Arrow's takes
no more than 2 GiB."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of files that follow each other, in the columns of their tasks. `files`: the numbers of their tasks,
    ascending, one of a large file more than once; `ends`: where in `rows` those of each end; `positions`: where each
    row lies in its file, ascending in each."""

    rows: pa.RecordBatch
    files: Sequence[int]
    ends: Sequence[int]
    positions: Numbers

    def by_file(self, rows: Numbers) -> Iterator[tuple[int, slice]]:
        """The numbers of the tasks that have some of these rows (by their places here, ascending, one may be there more
        than once), and where in `rows` those of each are."""
        places = [0, *np.searchsorted(rows, self.ends).tolist()]
        for number, (start, end) in zip(self.files, pairwise(places), strict=True):
            if start < end:
                yield number, slice(start, end)


def read_together(tasks: Sequence[FileTask], storage: Storage) -> Iterator[Portion]:
    """The rows of Parquet files as `read_task` gives them, of tasks with one schema. A portion is a batch at most,
    and of long rows less.

    Rows of files that are alike are conformed together (benches/bench_writer.py, 1,000 files). The thread that asks
    decodes them: what other threads allocate stays with the allocator, a quarter of the peak of a merge of 2M rows, and
    they take no less CPU. Errors as `read_task`.
    """
    parts: list[tuple[int, StoredRows]] = []
    rows = size = 0
    columns = None
    for number, task in enumerate(tasks):
        for rows_of_file in stored_batches(task, storage, columns=columns, threads=False):
            columns = rows_of_file.columns
            more, more_bytes = rows_of_file.rows.num_rows, _bytes(rows_of_file)
            # those of a large file are not copied
            if parts and (rows + more > BATCH_ROWS or size + more_bytes > _BYTES):
                yield _portion(parts, tasks)
                parts, rows, size = [], 0, 0
            parts.append((number, rows_of_file))
            rows += more
            size += more_bytes
            if rows >= BATCH_ROWS or size >= _BYTES:  # a whole batch is not kept beside the next
                yield _portion(parts, tasks)
                parts, rows, size = [], 0, 0
    if parts:
        yield _portion(parts, tasks)


def _bytes(stored_rows: StoredRows) -> int:
    """What counts against the bound: all of it where there are dictionaries, whose one text can be that of all rows."""
    return _BYTES if stored_rows.columns.have_dictionaries else stored_rows.rows.get_total_buffer_size()


def _portion(parts: Sequence[tuple[int, StoredRows]], tasks: Sequence[FileTask]) -> Portion:
    alike = groupby(parts, key=lambda part: id(part[1].columns))
    positions = [stored_rows.positions for _, stored_rows in parts]
    return Portion(
        _whole([_conform(list(run), tasks) for _, run in alike]),
        [number for number, _ in parts],
        list(accumulate(map(len, positions))),
        positions[0] if len(positions) == 1 else np.concatenate(positions),
    )


def _conform(parts: Sequence[tuple[int, StoredRows]], tasks: Sequence[FileTask]) -> pa.RecordBatch:
    """The rows of files that are alike, in the columns of their tasks."""
    if len(parts) > 1:
        with suppress(pa.ArrowException, LakeviewError):  # one by one, the error names the file
            rows = _whole([stored_rows.rows for _, stored_rows in parts])
            return parts[0][1].columns.of(rows, np.concatenate([stored_rows.positions for _, stored_rows in parts]))
    return _whole([stored_rows.columns.conform(tasks[number], *stored_rows[1:]) for number, stored_rows in parts])


def _whole(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
