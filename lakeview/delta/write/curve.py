"""Rows to the order of a curve through several columns, so that each file covers a small range of all of them.

The place of a row is made of the quantile that each of its values lies in, bit by bit in turn (a Z-order curve).
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from lakeview.rows.arrays import numpy_to_arrow

_BITS = 10
"""Of each column: 1,024 quantiles."""

MOST_COLUMNS = 6
"""Their bits fill a number of 64."""

_SAMPLE = 200_000
_MEMORY_BYTES = 64 << 20
"""Rows that are sorted at once; more are divided by their place on the curve first, and wait on disk."""

Places = npt.NDArray[np.uint64]


def in_curve_order(batches: Callable[[], Iterator[pa.RecordBatch]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows in order of their places. `batches` is called twice: once for the quantiles, once for the rows.

    Memory stays below a few times 64 MiB of rows, whatever their number.
    """
    bounds, size = _bounds(batches(), columns)
    parts = max(1, -(-size // _MEMORY_BYTES))
    if parts == 1:
        yield from _in_order(list(batches()), bounds)
        return
    with tempfile.TemporaryDirectory(prefix="lakeview-order-") as folder:
        yield from _by_parts(batches(), bounds, parts, Path(folder))


def _bounds(batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> tuple[dict[str, pl.Series], int]:
    """The ends of the quantiles of each column, by a sample of its values; and the bytes of all rows."""
    sample: list[pl.DataFrame] = []
    count = size = step = 0
    for batch in batches:
        size += batch.nbytes
        rows = pl.DataFrame({name: pl.from_arrow(batch.column(name)) for name in columns})
        step = max(1, count // _SAMPLE)  # the more there are, the fewer of each batch
        sample.append(rows.gather_every(step))
        count += rows.height
    every = pl.concat(sample) if sample else pl.DataFrame({name: [] for name in columns})
    return {name: _ends(every[name]) for name in columns}, size


def _ends(values: pl.Series) -> pl.Series:
    ordinals = _ordinal(values).drop_nulls().sort()
    if ordinals.is_empty():
        return ordinals
    where = np.linspace(0, ordinals.len() - 1, min(2**_BITS, ordinals.len())).astype(np.int64)
    return ordinals.gather(where).unique(maintain_order=True)


def _ordinal(values: pl.Series) -> pl.Series:
    """Values that can be searched: polars searches no truth values, and takes a name such as ^x$ for a pattern."""
    plain = values.alias("values")
    return plain.cast(pl.Int8) if plain.dtype == pl.Boolean else plain


def _places(batch: pa.RecordBatch, bounds: dict[str, pl.Series]) -> Places:
    """Where on the curve each row lies."""
    numbers = []
    for name, ends in bounds.items():
        if ends.is_empty():  # every value is null
            numbers.append(np.zeros(batch.num_rows, dtype=np.uint64))
            continue
        values = _ordinal(pl.Series("values", pl.from_arrow(batch.column(name))))
        quantile = ends.search_sorted(values.fill_null(ends[0]), side="right").to_numpy().astype(np.uint64)
        numbers.append(spread(quantile, len(ends) + 1))
        numbers[-1][values.is_null().to_numpy()] = 0
    return interleave(numbers)


def spread(ranks: Places, count: int) -> Places:
    """Numbers below `count` as numbers of the curve: few values spread over all bits."""
    return ranks * np.uint64(2**_BITS) // np.uint64(count)


def interleave(columns: Sequence[Places]) -> Places:
    """Places on the curve, of the numbers of each column: bit by bit in turn."""
    places = np.zeros(len(columns[0]), dtype=np.uint64)
    for i, numbers in enumerate(columns):
        for bit in range(_BITS):
            places |= ((numbers >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * len(columns) + i)
    return places


def _in_order(batches: Sequence[pa.RecordBatch], bounds: dict[str, pl.Series]) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    table = pa.Table.from_batches(batches).combine_chunks()
    places = np.concatenate([_places(batch, bounds) for batch in batches])
    yield from table.take(numpy_to_arrow(np.argsort(places, kind="stable"))).to_batches()


def _by_parts(
    batches: Iterator[pa.RecordBatch], bounds: dict[str, pl.Series], parts: int, folder: Path
) -> Iterator[pa.RecordBatch]:
    """Each part of the curve in a file of its own, then one part after the other in memory."""
    top = 2 ** (_BITS * len(bounds))
    writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
    try:
        for batch in batches:
            part_of = (_places(batch, bounds).astype(np.float64) * parts / top).astype(np.int64)
            for part in np.unique(part_of):
                if part not in writers:
                    writers[part] = pa.ipc.new_stream(str(folder / str(part)), batch.schema)
                writers[part].write_batch(batch.take(numpy_to_arrow(np.flatnonzero(part_of == part))))
    finally:
        for writer in writers.values():
            writer.close()
    for part in sorted(writers):
        with pa.OSFile(str(folder / str(part))) as file:
            yield from _in_order(list(pa.ipc.open_stream(file)), bounds)
