"""Scan tasks to a LazyFrame whose filters prune files, and whose columns are the only ones read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from lakeview.model.schema import Schema, readable_type
from lakeview.rows.parquet import BATCH_ROWS, read_task
from lakeview.rows.plain_files import RowQuery, read_files
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage

_FEW_ROWS = 128

ReadTask: TypeAlias = Callable[[FileTask, Storage], Iterator[pa.RecordBatch]]
"""A file to its batches."""


def lazy_rows(
    tasks: Callable[[pl.Expr | None], Iterable[FileTask]],
    schema: Schema,
    storage: Storage,
    read: ReadTask | None = None,
    enough: Callable[[int], Iterable[FileTask]] | None = None,
) -> pl.LazyFrame:
    """A LazyFrame over files. `tasks` gives the files a filter needs; only needed columns are read, batch by batch.

    `enough` gives files that hold so many rows, for a preview of a table whose whole list costs a request.
    `read` gives the batches of one file in place of `read_task`. A column of a type that cannot be read is null, and
    asking for it is an UnsupportedTableError that names it: the other columns are read without it.
    """
    readable = {f.name: readable_type(f.type) for f in schema}
    unreadable = frozenset(name for name, type_ in readable.items() if type_ is None)
    types = pl.Schema({name: pl.Null() if type_ is None else type_ for name, type_ in readable.items()})

    def query(with_columns: list[str] | None, predicate: pl.Expr | None) -> RowQuery:
        output = schema.names if with_columns is None else with_columns
        inputs = set(output) | set(() if predicate is None else predicate.meta.root_names())
        names = [n for n in schema.names if n in inputs]
        if refused_columns := [n for n in names if n in unreadable]:
            schema.select(refused_columns).to_polars()  # raises, and names the column
        return RowQuery(schema.select(names), types, output, predicate)

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        row_query = query(with_columns, predicate)
        if n_rows is None:
            yield from _frames(tasks(predicate), row_query, storage, read)
        elif n_rows:
            files = tasks(None) if enough is None else enough(n_rows)
            every = replace(row_query, output=row_query.schema.names, predicate=None)
            for frame in _head(_frames(files, every, storage, read, n_rows), n_rows):
                # polars filters the first rows, and does not take the first ones that a filter leaves
                yield row_query.output_columns(frame if predicate is None else frame.filter(predicate))

    return register_io_source(source, schema=types, is_pure=True)


def _frames(
    files: Iterable[FileTask], query: RowQuery, storage: Storage, read: ReadTask | None, n_rows: int | None = None
) -> Iterator[pl.DataFrame]:
    """The rows of files; `n_rows`: how many of them are taken."""
    if read is not None:
        return _one_by_one(files, query, lambda task: read(task, storage))
    if n_rows is not None and n_rows <= BATCH_ROWS:
        # a preview decodes few rows: a small file may hold values that inflate to gigabytes a batch
        return _one_by_one(files, query, lambda task: read_task(task, storage, max(_FEW_ROWS, n_rows)))
    return read_files(files, query, storage)


def _one_by_one(
    files: Iterable[FileTask], query: RowQuery, read: Callable[[FileTask], Iterator[pa.RecordBatch]]
) -> Iterator[pl.DataFrame]:
    for task in files:
        yield from query.frames(read(task.select(query.schema.names)))


def _head(frames: Iterator[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    for frame in frames:
        yield frame.head(rows)
        rows -= frame.height
        if rows <= 0:
            return
