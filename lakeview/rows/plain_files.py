"""Files of a scan to frames: plain Parquet files many at a time by polars' own scan, the others one by one.

A file is plain if its rows are what it stores: it has the size that the log records, no row is deleted, and every
column that is asked for is there under one name in the very type of the table, or missing and null, or recorded in the
log. polars reads such files in threads and skips row groups by the filter. It refuses a file whose types differ from
those it is given, so names and types are right without a look at every footer; footers are read where columns go by
field id, and where polars refused. Each scan is collected whole: what fails is read again file by file, and no row is
given twice.

Partition values come from the log, which alone counts. Where the folders of a file say the very same (`day=2026-03-01`,
as Hive names them), polars may take the values from them: all files are one scan then, in place of a scan for each file
(benches/bench_rows.py, all partitions: a tenth of the CPU time).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, islice
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.model.arrow_types import arrow_type
from lakeview.model.data_types import Field
from lakeview.model.partition_texts import HIVE_NULL
from lakeview.model.schema import Schema
from lakeview.rows.arrays import values_to_arrow
from lakeview.rows.layouts import Layout, ParquetSource, expected_layout, is_stored, read_layout
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage
from lakeview.storage.local_opening import LocalFiles

_MOST_FILES = 1_000
_MOST_BYTES = 128 << 20
_LARGEST = 1 << 30
"""Bytes of the largest file that is collected whole: larger ones are read batch by batch."""

_SCAN_BYTES = 1 << 20
"""Bytes of files, on average, from which each is a scan of its own, with the values of the log as literals, where the
folders do not repeat them: a join by path takes 60 ms for a million rows, a scan nearly one whatever it reads
(benches/bench_rows.py, all partitions)."""

_AHEAD_BYTES = 8 << 20
"""Bytes of the largest file of a remote store that is read whole, ahead of its turn."""

_FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What a scan by polars fails with. Whatever it was, reading file by file gives the rows or the error of ours."""


@dataclass(frozen=True, slots=True)
class _File:
    """A task, and where its file lies on this machine."""

    task: FileTask
    path: str

    @property
    def columns(self) -> KeysView[str]:
        """The columns that the log records, and the file need not store."""
        return self.task.constants.keys()


def read_files(tasks: Iterable[FileTask], query: RowQuery, storage: Storage) -> Iterator[pl.DataFrame]:
    """The rows of files that satisfy a query; those of some thousand files at a time, plain files before the others.

    Errors as `read_task`.
    """
    reader = _PlainReader(query, storage)
    plain: dict[str, _File] = {}
    others: list[FileTask] = []
    size = 0
    for task in tasks:
        file = reader.candidate(task)
        # columns of the log are joined by path: a file that is there twice, or with other columns, is read by itself
        if file is None or file.path in plain or any(f.columns != file.columns for f in islice(plain.values(), 1)):
            others.append(task)
        else:
            plain[file.path] = file
            size += task.size
        if len(plain) + len(others) >= _MOST_FILES or size >= _MOST_BYTES:
            yield from chain(reader.frames(list(plain.values())), reader.one_by_one(others))
            plain, others, size = {}, [], 0
    yield from chain(reader.frames(list(plain.values())), reader.one_by_one(others))


class _PlainReader:
    """Reads the plain files of one query."""

    def __init__(self, query: RowQuery, storage: Storage) -> None:
        self._query = query
        self._storage = storage
        self._local_files = LocalFiles(storage)
        self._possible = storage.config.polars_parquet and all(is_stored(f.type) for f in query.schema)
        self._trusts_names = True

    def candidate(self, task: FileTask) -> _File | None:
        """The file of a task that may be plain. AccessDeniedError for one outside the roots."""
        if not self._possible or task.deleted_rows or task.selected_rows or task.fallbacks or task.size > _LARGEST:
            return None
        if task.source is not None and not isinstance(task.source, ParquetSource):
            return None
        if not any(f.name not in task.constants for f in self._query.schema):
            return None  # its number of rows is all that is needed
        try:
            file = self._local_files.find(task.path)
        except FileNotFoundError:  # reading it says so
            return None
        # polars aborts on some broken files: one that is not as long as it was written is left to pyarrow
        return None if file is None or file.size != task.size else _File(task, file.path)

    def frames(self, files: Sequence[_File]) -> Iterator[pl.DataFrame]:
        """The rows of files, some of which may turn out not to be plain."""
        if not files:
            return
        stored_fields = [f for f in self._query.schema if f.name not in files[0].columns]
        if self._trusts_names and all(f.task.source is None and f.task.match == "name" for f in files):
            plain_layout = expected_layout(stored_fields)
            frame = None if plain_layout is None else self._collect(files, plain_layout)
            if frame is not None:
                yield frame
                return
            self._trusts_names = False
        layouts: dict[Layout | None, list[_File]] = {}
        for file in files:
            layouts.setdefault(read_layout(file.task, file.path, stored_fields), []).append(file)
        for layout, alike in layouts.items():
            frame = None if layout is None else self._collect(alike, layout)
            yield from self.one_by_one(f.task for f in alike) if frame is None else (frame,)

    def one_by_one(self, tasks: Iterable[FileTask]) -> Iterator[pl.DataFrame]:
        """The rows of files, each read by itself; small Parquet files of a remote store ahead, several at once."""

        def read(task: FileTask) -> Iterable[pl.DataFrame]:
            frames = self._query.frames(read_task(task.select(self._query.schema.names), self._storage))
            is_parquet = task.source is None or isinstance(task.source, ParquetSource)
            ahead = self._storage.remote and is_parquet and task.size <= _AHEAD_BYTES
            return list(frames) if ahead else frames

        for frames in self._storage.each_ahead(read, tasks):
            yield from frames

    def _collect(self, files: Sequence[_File], layout: Layout) -> pl.DataFrame | None:
        """The rows of files of one layout, None if polars does not read them all."""
        try:
            rows = _scan(files, layout, self._query)
            if self._query.predicate is not None:
                rows = rows.filter(self._query.predicate)
            if not self._query.output:
                return pl.DataFrame(height=rows.select(pl.len()).collect().item())
            return rows.select(pl.selectors.by_name(*self._query.output)).collect()
        except _FAILURES:
            return None


def _scan(files: Sequence[_File], layout: Layout, query: RowQuery) -> pl.LazyFrame:
    """All columns of the query's schema, lazily."""
    log_fields = [f for f in query.schema if f.name in files[0].columns]
    if not log_fields:
        return _stored_rows(files, layout, query)
    if all(repeats_values(file.path, file.task.constants) for file in files):
        return _stored_rows(files, layout, query, folders=files[0].columns)
    values = list(_log_values(files, log_fields, query))
    if sum(file.task.size for file in files) >= (len(files) - 1) * _SCAN_BYTES:
        scans = [_stored_rows([file], layout, query) for file in files]
        return pl.concat(
            rows.with_columns(pl.lit(column[i : i + 1]).first().alias(column.name) for column in values)
            for i, rows in enumerate(scans)
        )
    path = max([*filter(None, layout), *query.schema.names], key=len) + "_"  # a name that none of them is
    log = pl.DataFrame([pl.Series(path, [f.path for f in files]), *values]).lazy()
    return _stored_rows(files, layout, query, path).join(log, on=path, how="left", maintain_order="left")


def _stored_rows(
    files: Sequence[_File],
    layout: Layout,
    query: RowQuery,
    path: str | None = None,
    folders: Collection[str] = (),
) -> pl.LazyFrame:
    """The columns that files store, lazily; those that they lack are null. `path`: of a column for their paths;
    `folders`: the columns that all folders with an equals sign name."""
    columns = [f.name for f in query.schema if f.name not in files[0].columns]
    places = dict(zip(columns, layout, strict=True))
    names = {column: name for name, column in places.items() if column is not None}
    rows = pl.scan_parquet(
        [f.path for f in files],
        schema={column: query.types[name] for column, name in names.items()},
        extra_columns="ignore",
        glob=False,
        hive_schema={name: query.types[name] for name in folders} or None,
        hive_partitioning=bool(folders),
        include_file_paths=path,
    )
    new_names = {column: name for column, name in names.items() if column != name}
    nulls = [pl.lit(None, query.types[name]).alias(name) for name, column in places.items() if column is None]
    rows = rows.rename(new_names) if new_names else rows
    return rows.with_columns(nulls) if nulls else rows


def _log_values(files: Sequence[_File], columns: Sequence[Field], query: RowQuery) -> Iterator[pl.Series]:
    """The values that the log has of these columns, one for each file."""
    for column in columns:
        values = values_to_arrow([file.task.constants[column.name] for file in files], arrow_type(column.type))
        yield pl.Series(column.name, values).cast(query.types[column.name])


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Columns and rows of files that polars asks for.

    `schema`: the columns to read, of the output and of the predicate, in the table's order; `types`: theirs in polars;
    `output`: the names to give, in this order; `predicate`: which rows, all without one.
    """

    schema: Schema
    types: pl.Schema
    output: list[str]
    predicate: pl.Expr | None = None

    def frames(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        """The rows of record batches in `schema` that satisfy the predicate, in the columns of the output."""
        for batch in batches:
            frame = self._frame(batch)
            yield self.output_columns(frame if self.predicate is None else frame.filter(self.predicate))

    def output_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns of the output, addressed without patterns; without any, the same number of rows."""
        if not self.output or frame.columns == self.output:  # those of many chunks would be copied
            return frame
        return frame.select([frame[name] for name in self.output])

    def _frame(self, batch: pa.RecordBatch) -> pl.DataFrame:
        names = self.schema.names
        if not names:
            return pl.DataFrame(height=batch.num_rows)
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        frame.columns = names  # polars gives a column without a name one of its own
        types = self.types
        # one by one: DataFrame.cast takes a name such as ^x$ for a pattern, and minutes over thousands of columns
        return pl.DataFrame({s.name: s if s.dtype == types[s.name] else s.cast(types[s.name]) for s in frame})


_COLUMN = re.compile(r"\w[\w.-]*", re.ASCII)
_TEXT = re.compile(r"(?!null$)[a-z0-9][\w.-]*", re.ASCII | re.IGNORECASE)
"""Texts that are spelled alike in a path, and are no word for null."""


def repeats_values(path: str, values: Mapping[str, Any]) -> bool:
    """Whether the path of a file has a folder for each of these columns, named after the column and its value, and no
    other part that could be taken for one."""
    *folders, name = path.split("/")
    pairs = {folder for folder in folders if "=" in folder}
    return (
        "=" not in name
        and len(pairs) == len(values)
        and all(_COLUMN.fullmatch(c) is not None and f"{c}={_folder_text(v)}" in pairs for c, v in values.items())
    )


def _folder_text(value: Any) -> str | None:
    if value is None:
        return HIVE_NULL
    if type(value) is str:
        return value if _TEXT.fullmatch(value) else None
    return str(value) if type(value) in (int, date) else None
