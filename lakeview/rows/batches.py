"""Frames of polars or Arrow to record batches."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import first_few

_AHEAD = 3
"""Batches that are read before they are asked for: each is held in memory. A row group is two or three of them: where
two are there, an optimize of large files takes a quarter more time (benches/bench_writer.py)."""

Frame: TypeAlias = pl.DataFrame | pa.Table | pa.RecordBatch | pa.RecordBatchReader


def batches_of(frame: Frame) -> Iterator[pa.RecordBatch]:
    """The rows in their order. InvalidRequestError for anything else than rows of polars or Arrow, and for values of
    Arrow that their type cannot have: it takes the bytes of texts on trust."""
    if isinstance(frame, pl.DataFrame):
        yield from _arrow(frame).to_batches()
    elif isinstance(frame, pa.Table):
        yield from map(_valid, frame.to_batches())
    elif isinstance(frame, pa.RecordBatch):
        yield _valid(frame)
    elif isinstance(frame, pa.RecordBatchReader):
        yield from map(_valid, frame)
    else:
        raise _no_rows(frame)


def schema_of(frame: Frame) -> pa.Schema:
    """The columns of rows, of which there may be none. InvalidRequestError as `batches_of`."""
    if isinstance(frame, pl.DataFrame):
        return _arrow(frame.clear()).schema
    if isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return frame.schema
    raise _no_rows(frame)


def read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, read by another thread while those before them are used (benches/bench_writer.py, optimize: a
    third of the time)."""
    with ThreadPoolExecutor(1, thread_name_prefix="lakeview-read") as thread:
        waiting = deque(thread.submit(next, batches, None) for _ in range(_AHEAD))
        while (batch := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, batches, None))
            yield batch


def one_pass(rows: Frame) -> bool:
    """Whether the rows are gone once they have been read."""
    return isinstance(rows, pa.RecordBatchReader)


def frame_from(rows: Frame) -> pl.DataFrame:
    """Rows as a frame of polars, in memory whole. InvalidRequestError as `batches_of`, and for types polars lacks."""
    if isinstance(rows, pl.DataFrame):
        if objects := [name for name, dtype in rows.schema.items() if dtype == pl.Object]:
            raise InvalidRequestError(
                f"column {objects[0]} holds Python objects, which no table holds",
                fix="cast it to a type that tables have",
                place=objects[0],
                kind="type-mismatch",
            )
        return rows
    table = pa.Table.from_batches(list(batches_of(rows)), schema=schema_of(rows))
    try:
        frame = pl.from_arrow(table)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        types = first_few((f"{field.name} {field.type}" for field in table.schema), most=10)
        raise InvalidRequestError(
            f"a column of the rows has a name or a type that cannot be merged ({types}): {error}",
            fix="rename columns, or cast wide decimals, intervals, run-end encoded columns and views of lists",
            kind="type-mismatch",
        ) from error
    assert isinstance(frame, pl.DataFrame)
    return frame


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidRequestError(
                f"column {name} holds a value that is no {column.type}: {error}",
                fix="correct the value, or give bytes that are no text in UTF-8 as a binary column",
                place=name,
                kind="invalid-value",
            ) from error
    return batch


def _no_rows(frame: object) -> InvalidRequestError:
    return InvalidRequestError(
        f"rows were given as {type(frame).__module__}.{type(frame).__qualname__}",
        fix="give a polars DataFrame (collect() a LazyFrame), or a pyarrow Table, RecordBatch or RecordBatchReader",
        kind="not-rows",
    )


def _arrow(frame: pl.DataFrame) -> pa.Table:
    for name in frame.columns:
        if "\0" in name:  # polars would panic
            raise InvalidRequestError(f"a column of the rows is called {name!r}", fix="rename it", place=repr(name))
    try:
        return frame.to_arrow()
    except pa.ArrowException as error:
        raise InvalidRequestError(
            f"a column of the rows has no Arrow type: {str(error).splitlines()[0]}",
            fix="cast columns of 128-bit integers and of Python objects to a type that tables have",
            kind="type-mismatch",
        ) from error
