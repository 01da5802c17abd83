"""The live files that may hold the rows that a condition selects, in the order in which an operation changes them, and
which of their rows it means.

A checkpoint lists files by their paths, which are random. Files written together in that order would each cover the
whole range of a column that the data was written or clustered by, and no filter would skip one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.row_tracking import tracked_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.data.statistics import physical_leaves
from lakeview.delta.log.record_counts import records_of
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.checkpoint.struct_statistics import with_documents
from lakeview.delta.write.curve import MOST_COLUMNS, Places, interleave, spread
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.file_changes import LIVE_COLUMNS
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema, leaf_name
from lakeview.predicates.tree import Node
from lakeview.rows.parquet import errors_of, read_task
from lakeview.rows.tasks import Fallback, FileTask
from lakeview.rows.together import Portion, read_together
from lakeview.storage import Storage

POSITION = "\0position"
"""The column of a row's position in its file, from 0: no column of a table can be called so."""

_TOGETHER_BYTES = 1 << 20
"""Bytes of files that are checked against a condition together."""

_TOGETHER_ROWS = 131_072
"""Their rows: a file of few bytes can hold a million of equal ones."""

FILES_AT_ONCE = 2
"""Files, or groups of small ones, that are read while the rows of one are changed."""

_POSITION_FIELD = Field(POSITION, PrimitiveType("long"))


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions in memory, as a task takes them. Implements `lakeview.rows.tasks.RowPositions`."""

    bits: pyroaring.BitMap64 = field(hash=False)

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:  # noqa: ARG002 (nothing is read)
        return self.bits


class FileRows(NamedTuple):
    """Rows of a file in memory, and their positions in it, ascending."""

    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One live data file. `row`: FILE_ACTIONS with LIVE_COLUMNS; `task`: how its rows are read; `in_memory`: all live
    rows as they are written again, of a small file that was read with others."""

    row: dict[str, Any]
    task: FileTask
    in_memory: Sequence[FileRows] | None = field(default=None, hash=False)

    @property
    def key(self) -> str:
        """Its canonical path."""
        return str(self.row["key"])

    @property
    def partition(self) -> tuple[tuple[str, str | None], ...]:
        """Its partition values, alike for all files of a partition."""
        return tuple(sorted(dict(self.row["partition_values"] or {}).items()))

    def deletions(self, storage: Storage) -> pyroaring.BitMap64:
        """The positions that its deletion vector names."""
        vector = DeletionVector.of(self.row["vector"])
        return pyroaring.BitMap64() if vector is None else vector.bitmap(storage)

    def without(self, positions: pyroaring.BitMap64) -> LiveFile:
        """The same file, without the rows that its deletion vector names, which has been read."""
        return replace(self, task=replace(self.task, deleted_rows=Positions(positions))) if positions else self

    def physical_rows(self, storage: Storage) -> int:
        """Rows in the file: what its statistics say, else its footer."""
        count = records_of(self.row["stats"])
        return self._footer_rows(storage) if count is None else count

    def has_only(self, storage: Storage, count: int) -> bool:
        """Whether so many deleted rows are all rows of the file: its footer says it, since a file goes with its last
        row, and a writer may have recorded too few."""
        return count >= self.physical_rows(storage) and count >= self._footer_rows(storage)

    def stored_columns(self, storage: Storage) -> list[pa.Field]:
        """The columns as the file has them, by its footer. Errors as `read_task`."""
        with errors_of(self.task), storage.open(self.task.path, self.task.size) as handle:
            return list(pq.read_schema(handle))

    def _footer_rows(self, storage: Storage) -> int:
        with storage.open(self.task.path, self.task.size) as handle, pq.ParquetFile(handle) as file:
            return int(file.metadata.num_rows)

    def batches(
        self,
        storage: Storage,
        schema: Schema,
        *,
        selection: pyroaring.BitMap64 | None = None,
        without: pyroaring.BitMap64 | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Its live rows in these columns, or those at the positions of a `selection`, or all those `without` others."""
        task = replace(self.task, schema=schema)
        if selection is not None:
            task = replace(task, selected_rows=Positions(selection))
        if without is not None:
            task = replace(task, deleted_rows=Positions(without))
        yield from read_task(task, storage)

    def batches_with_positions(
        self, storage: Storage, schema: Schema, *, selection: pyroaring.BitMap64 | None = None
    ) -> Iterator[pa.RecordBatch]:
        """As `batches`, with POSITION behind the columns."""
        fallbacks = {**self.task.fallbacks, POSITION: Fallback(0, plus_position=True)}
        columns = Schema((*schema, _POSITION_FIELD))
        positions = self.task.selected_rows if selection is None else Positions(selection)
        yield from read_task(replace(self.task, schema=columns, fallbacks=fallbacks, selected_rows=positions), storage)


def together(files: Sequence[LiveFile]) -> Iterator[list[LiveFile]]:
    """The files in their order, small ones in groups that are read at once."""
    group: list[LiveFile] = []
    size = rows = 0
    for file in files:
        count = records_of(file.row["stats"])
        more = _TOGETHER_ROWS if count is None else count
        if group and (size + file.task.size > _TOGETHER_BYTES or rows + more > _TOGETHER_ROWS):
            yield group
            group, size, rows = [], 0, 0
        group.append(file)
        size += file.task.size
        rows += more
    if group:
        yield group


def portions_of(files: Sequence[LiveFile], storage: Storage, schema: Schema) -> Iterator[Portion]:
    """The live rows of files in these columns, small ones together."""
    return read_together([replace(file.task, schema=schema) for file in files], storage)


def positions_of(frame: pl.DataFrame) -> pyroaring.BitMap64:
    """The values of POSITION."""
    return pyroaring.BitMap64(frame[POSITION].to_numpy().astype("uint64"))


def live_files(
    base: Replay,
    definition: Definition,
    storage: Storage,
    where: pl.Expr | Node | None,
    clustering: Sequence[str] = (),
) -> list[LiveFile]:
    """The live files of a version that may hold rows for which a condition is true, all without one; in the order that
    `in_order` gives them for a table clustered by these columns, one partition after the other."""
    schema, tracked_schema = definition.schema, None
    if definition.enables("rowTracking", "delta.enableRowTracking"):
        tracked_schema = Schema((*schema.fields, *tracked_fields(schema, definition.properties)))
    scan = Scan(base, schema, definition.partitions, storage.root, tracked_schema=tracked_schema)
    adds, tasks = scan.files(where, LIVE_COLUMNS)
    rows = with_documents(adds, base).iter_rows(named=True)
    roots = storage.config.roots
    leaves = physical_leaves(schema, None, definition.partition_columns) if clustering else ()
    paths = [physical for path, physical, _ in leaves if leaf_name(path) in clustering]
    files = in_order([LiveFile(row, replace(t, roots=roots)) for row, t in zip(rows, tasks, strict=True)], paths)
    return sorted(files, key=_partition) if definition.partition_columns else files


def _partition(file: LiveFile) -> list[tuple[str, bool, str]]:
    return [(name, value is not None, value or "") for name, value in file.partition]


Path = tuple[str, ...]


def in_order(files: Sequence[LiveFile], clustering: Sequence[Path] = ()) -> list[LiveFile]:
    """The files in the order of their modification times, which is that of a curve where one was written along it.

    `clustering`: the columns that the table is clustered by, as its statistics name them; by their lower bounds files
    are ordered along a curve.
    """
    by_time = sorted(files, key=lambda file: file.row["modified"] or 0)
    if not clustering:
        return by_time
    documents = [_document(file.row["stats"]) for file in by_time]
    columns = [_ranks([_bound(d, ("minValues", *path)) for d in documents]) for path in clustering[:MOST_COLUMNS]]
    places = interleave(columns)
    return [by_time[i] for i in np.argsort(places, kind="stable")]


def _document(stats: str | None) -> Any:
    try:
        return msgspec.json.decode(stats or "{}")
    except (msgspec.DecodeError, RecursionError):  # of another writer
        return None


def _bound(document: Any, path: Path) -> tuple[int, Any]:
    """A bound as it can be compared with others: numbers come before texts, and before both one that is not there."""
    for part in path:
        document = document.get(part) if isinstance(document, dict) else None
    if isinstance(document, str):
        return 2, document
    return (1, document) if isinstance(document, int | float) else (0, 0)


def _ranks(values: Sequence[tuple[int, Any]]) -> Places:
    """The place of each value among all, spread over the bits of a curve."""
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return spread(np.array([ranks[value] for value in values], dtype=np.uint64), len(ranks))
