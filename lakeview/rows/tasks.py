"""Data files to read, as values that can travel to another process: which columns, which rows, and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import polars as pl
import pyarrow as pa
import pyroaring

from lakeview.model.arguments import names_of
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.field_places import Match
from lakeview.storage import Storage


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
    `deleted_rows`: the rows at these positions are left out; `selected_rows`: only those rows are given.
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
    deleted_rows: RowPositions | None = None
    selected_rows: RowPositions | None = None
    match: Match = "name"
    fallbacks: Mapping[str, Fallback] = field(default_factory=dict, hash=False)
    source: RowSource | None = None
    roots: tuple[str, ...] = ()

    @property
    def known_rows(self) -> int | None:
        """How many rows the task gives; None where some of the file's are left out, or their number is unknown."""
        return self.records if self.deleted_rows is None and self.selected_rows is None else None

    def select(self, names: Sequence[str]) -> FileTask:
        """The same file, only these columns."""
        return replace(self, schema=self.schema.select(names))


def select_columns(tasks: Iterable[FileTask], schema: Schema, names: Sequence[str] | None) -> list[FileTask]:
    """Returns tasks that yield `schema` with only these of its columns, all without names.

    InvalidRequestError for a column that is not there, also where there is no task.
    """
    selected_schema = schema if names is None else schema.select(names_of(names, "columns"))
    return [task if names is None else replace(task, schema=selected_schema) for task in tasks]


def of_files(
    tasks: Callable[[pl.Expr | None], Iterable[FileTask]], paths: Sequence[str] | None
) -> Callable[[pl.Expr | None], Iterable[FileTask]]:
    """`tasks` (what a filter needs) of these files alone, by the path that a task has; all of them without `paths`.

    The function raises InvalidRequestError for a path that no task has, whatever the filter.
    """
    if paths is None:
        return tasks
    selection = frozenset(names_of(paths, "paths"))

    def some(where: pl.Expr | None) -> list[FileTask]:
        matches = [task for task in tasks(where) if task.path in selection]
        missing = sorted(selection - {task.path for task in matches})
        if missing and where is not None:  # skipped by the filter, or not there at all
            missing = sorted(selection - {task.path for task in tasks(None)})
        if missing:
            raise InvalidRequestError(
                f"the version has no data file {missing[0]}",
                fix="take paths from the files of this version",
                place=missing[0],
            )
        return matches

    return some
