"""What is read of the difference between two versions: a plan, rows, and tasks for other processes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from lakeview.model.schema import Schema

RangeTasks: TypeAlias = tuple[Schema, list[tuple[Any, str | None]]]
"""Columns of rows, and the files to read: `lakeview.rows.tasks.FileTask` each, and the kind of change of its rows, None
where they say it."""

RowSides: TypeAlias = list[tuple[str | None, pl.LazyFrame]]
"""Rows of CHANGES by the kind of change that all rows of a frame have, fewer bytes first; None where a frame has rows
of several kinds."""


@dataclass(frozen=True, slots=True)
class RangeRead:
    """The files that differ between two versions, ready to be listed as CHANGES_PLAN or read.

    `tasks`: the same for other processes. `sides`: the rows by kind, None where a file has rows of several kinds.
    """

    plan: Callable[[], pl.DataFrame]
    rows: Callable[[], pl.LazyFrame]
    tasks: Callable[[], RangeTasks]
    sides: Callable[[], RowSides] | None = None
