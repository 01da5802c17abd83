"""Groups of files to the rows that an operation looks for, and small files to all rows where they are written again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyroaring

from lakeview.delta.write.live_files import FILES_AT_ONCE, FileRows, LiveFile, portions_of, together
from lakeview.model.schema import Schema
from lakeview.rows.matching import frame_of, matching_rows
from lakeview.rows.together import Portion
from lakeview.storage import Storage
from lakeview.storage.interface import ahead

_MOSTLY = 0.75
"""The share of files with rows that change from which on all columns are read at once."""

_IN_MEMORY_BYTES = 64 << 20
"""Bytes of rows of a group that are in memory at once: small files can hold one long text in each of their rows."""


@dataclass(frozen=True, slots=True)
class RowsNeeded:
    """The rows of small files that are written again, in the columns of `schema`: where `all_may_go`, of those alone
    that keep some."""

    schema: Schema
    all_may_go: bool


class GroupReader:
    """Reads groups of files, in threads: the columns of `schema`, by which rows are found, and of small files that have
    such rows all of them, if there are `rows_needed`. Once most files had such rows, all columns are read at once: it
    takes longer to open a file and begin to decode it than to decode a column (benches/bench_writer.py, 1,000 files).
    """

    def __init__(self, storage: Storage, schema: Schema, rows_needed: RowsNeeded | None) -> None:
        self.storage = storage
        self.schema = schema
        self.rows_needed = rows_needed
        self._alike = rows_needed is not None and all(rows_needed.schema[name] == schema[name] for name in schema.names)
        self._files = self._changing = 0

    def group(self, files: Sequence[LiveFile]) -> FileGroup:
        """A group of files, to be read."""
        return FileGroup(self, files, at_once=self._alike and self._changing > _MOSTLY * self._files)

    def count(self, files: int, changing: int) -> None:
        """Note how many files had rows that change. One thread may overwrite what another counts: no more than time is
        lost by it."""
        self._files += files
        self._changing += changing


class FileGroup:
    """Files of one group, which are read together."""

    def __init__(self, reader: GroupReader, files: Sequence[LiveFile], *, at_once: bool) -> None:
        self._reader = reader
        self._files = files
        self._rows_needed = reader.rows_needed if len(files) > 1 else None  # a large file is read batch by batch
        self._whole: list[Portion] | None = [] if self._rows_needed and at_once else None
        self._counts = np.zeros(len(files), np.int64)

    def portions(self) -> Iterator[Portion]:
        """The live rows of all files, in the columns by which rows are found."""
        schema, size = self._reader.schema, 0
        if self._rows_needed is not None and self._whole is not None:
            schema = self._rows_needed.schema
        for portion in portions_of(self._files, self._reader.storage, schema):
            np.add.at(self._counts, portion.files, np.diff(portion.ends, prepend=0))
            if self._whole is not None:
                size += portion.rows.nbytes
                self._whole.append(portion)
                if size > _IN_MEMORY_BYTES:
                    self._rows_needed = self._whole = None
            yield replace(portion, rows=portion.rows.select(self._reader.schema.names))

    def with_rows(self, changing: Sequence[int]) -> Sequence[LiveFile]:
        """The files, with rows in memory where they are needed, unless those of the group take too many bytes.
        `changing`: how many rows of each change or go."""
        if self._rows_needed is None:
            return self._files
        self._reader.count(len(changing), sum(map(bool, changing)))
        all_may_go, counts = self._rows_needed.all_may_go, self._counts.tolist()
        numbers = [n for n, rows in enumerate(changing) if rows and not (all_may_go and rows == counts[n])]
        parts: dict[int, list[FileRows]] = {number: [] for number in numbers}
        portions: Iterator[Portion] | list[Portion] | None = self._whole
        if portions is None:
            files = [self._files[number] for number in numbers]
            portions = portions_of(files, self._reader.storage, self._rows_needed.schema)
        else:
            numbers = list(range(len(self._files)))
        size = 0
        for portion in portions:
            size += portion.rows.nbytes
            if size > _IN_MEMORY_BYTES:
                return self._files  # they are read again, some at a time
            for place, part in portion.by_file(np.arange(portion.rows.num_rows)):
                if numbers[place] in parts:
                    rows = portion.rows.slice(part.start, part.stop - part.start)
                    parts[numbers[place]].append(FileRows(rows, portion.positions[part]))
        return [replace(file, in_memory=parts[n]) if n in parts else file for n, file in enumerate(self._files)]


def matches_of(
    files: Sequence[LiveFile], storage: Storage, where: pl.Expr, rows_needed: RowsNeeded | None = None
) -> Iterator[tuple[LiveFile, pyroaring.BitMap64]]:
    """The files, and of each the positions of its live rows for which a condition is true; null is not true. Of small
    files it is evaluated once for many: to begin takes longer than to evaluate it for some thousand rows. They come
    with their rows in memory where there are `rows_needed`.

    InvalidRequestError (kind bad-predicate) where it is none, or cannot be evaluated.
    """
    if not files:
        return
    schema = files[0].task.schema
    names = [n for n in dict.fromkeys(where.meta.root_names()) if n in schema]
    reader = GroupReader(storage, schema.select(names), rows_needed)
    for group in ahead(lambda group: _matches(reader.group(group), len(group), where), together(files), FILES_AT_ONCE):
        yield from group


def _matches(group: FileGroup, files: int, where: pl.Expr) -> list[tuple[LiveFile, pyroaring.BitMap64]]:
    matches = [pyroaring.BitMap64() for _ in range(files)]
    for portion in group.portions():
        rows = np.flatnonzero(matching_rows(frame_of(portion.rows), where).to_numpy())
        positions = portion.positions[rows].astype(np.uint64)
        for number, part in portion.by_file(rows):
            matches[number] |= pyroaring.BitMap64(positions[part])
    return list(zip(group.with_rows([len(positions) for positions in matches]), matches, strict=True))
