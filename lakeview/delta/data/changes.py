"""A range of versions to the rows they inserted, updated and deleted: first a plan, then its files, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.casts import Match
from lakeview.delta.data.deletion_vectors import DeletionVector, Difference
from lakeview.delta.data.partition_values import partition_columns, partition_fields
from lakeview.errors import CorruptTableError, DataFileMissingError
from lakeview.expressions import Bounds, Path, may_match, parse
from lakeview.rows import FileTask, RowPositions, lazy_rows, read_task
from lakeview.schema import Field, PrimitiveType, Schema
from lakeview.snapshot import CHANGES, CHANGES_PLAN
from lakeview.storage import Storage

CHANGE_TYPE, VERSION, TIMESTAMP = CHANGES.names()
_OWN = (
    Field(CHANGE_TYPE, PrimitiveType("string")),
    Field(VERSION, PrimitiveType("long")),
    Field(TIMESTAMP, PrimitiveType("timestamp")),
)
_SLICE = 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """What holds from a version on: its schema, its partition columns, and whether it records a change feed."""

    version: int
    schema: Schema
    partition_columns: tuple[str, ...]
    feed: bool


def change_schema(schema: Schema) -> Schema:
    """The table's columns, then those of a change; one of the table's that bears such a name is suffixed `_`."""
    taken = {*CHANGES.names(), *schema.names}
    fields = []
    for field in schema:
        name = field.name
        while name in CHANGES.names() or (name != field.name and name in taken):
            name += "_"
        taken.add(name)
        fields.append(field if name == field.name else _renamed(field, name))
    return Schema((*fields, *_OWN))


def _renamed(field: Field, name: str) -> Field:
    return replace(field, name=name, physical_name=field.physical_name or field.name)


class ChangeScan:
    """The files that hold the changes of a range of versions, ready to be pruned and read.

    `files`: CHANGE_FILES with `timestamp` and `layout`, the position in `layouts` of what held at the version;
    `schema`: the table's at the end of the range, which rows are read as; `root`: the table's address.
    """

    def __init__(self, files: pl.DataFrame, layouts: Sequence[Layout], schema: Schema, match: Match, root: str) -> None:
        self._files = files
        self._schema = change_schema(schema)
        self._match = match
        self._root = root
        self._feeds = [layout.feed for layout in layouts]
        by_name = dict(zip(schema.names, self._schema, strict=False))
        found = [partition_fields(layout.schema, layout.partition_columns) for layout in layouts]
        self._partitions = [[by_name[f.name] for f in fields] for fields in found]

    def plan(self) -> pl.DataFrame:
        """CHANGES_PLAN."""
        feed = pl.col("layout").replace_strict(dict(enumerate(self._feeds)), return_dtype=pl.Boolean)
        recorded = pl.col("change_type").is_null()
        source = pl.when(recorded | feed).then(pl.lit("feed")).otherwise(pl.lit("derived"))
        return self._files.with_columns(source.alias("source")).select(CHANGES_PLAN.names())

    def rows(self, storage: Storage) -> pl.LazyFrame:
        """The changed rows; filters on versions, times, kinds of change and partition columns spare files."""
        return lazy_rows(self.tasks, self._schema, storage, _read)

    def tasks(self, where: pl.Expr | None) -> Iterator[FileTask]:
        """The files a filter needs, by version; each yields the whole schema of changes."""
        files = self._files
        if where is not None:
            files = files.filter(may_match(parse(where), _Known(files, self._every()).bounds, files.height))
        for part in files.iter_slices(_SLICE):
            for same in part.partition_by("layout", maintain_order=True):
                yield from self._tasks(same, self._partitions[same["layout"][0]])

    def _every(self) -> list[Field]:
        """The partition columns that every version of the range is partitioned by."""
        return [f for f in self._partitions[0] if all(f in fields for fields in self._partitions)]

    def _tasks(self, files: pl.DataFrame, partitions: Sequence[Field]) -> Iterator[FileTask]:
        values = pl.DataFrame({s.name: s for s in partition_columns(files["partition_values"], partitions)})
        constants = values.to_dicts() if partitions else [{}] * files.height
        for file, known in zip(files.iter_rows(named=True), constants, strict=True):
            own: dict[str, Any] = {VERSION: file["version"], TIMESTAMP: file["timestamp"]}
            if file["change_type"] is not None:
                own[CHANGE_TYPE] = file["change_type"]
            yield FileTask(
                self._root,
                file["path"],
                self._schema,
                {**known, **own},
                file["size"] or 0,
                deleted=DeletionVector.of(file["deleted"]),
                selected=_selected(file),
                match=self._match,
            )


def _selected(file: Mapping[str, Any]) -> RowPositions | None:
    wanted, without = DeletionVector.of(file["selected"]), DeletionVector.of(file["without"])
    return wanted if wanted is None or without is None else Difference(wanted, without)


class _Known:
    """What the log says of the columns of changes before a file is read."""

    def __init__(self, files: pl.DataFrame, partitions: Iterable[Field]) -> None:
        self._files = files
        self._partitions = {f.name: f for f in partitions}

    def bounds(self, path: Path) -> Bounds | None:
        """Bounds of one column, None when nothing is known of it."""
        match path:
            case (name,) if name in self._partitions:
                return _exactly(partition_columns(self._files["partition_values"], [self._partitions[name]])[0])
            case ("_commit_version",):
                return _exactly(self._files["version"])
            case ("_commit_timestamp",):
                return _exactly(self._files["timestamp"].cast(pl.Datetime("us", "UTC")))
            case ("_change_type",):
                known = self._files["change_type"]
                one = _exactly(known)  # a change data file says it row by row
                return replace(one, nulls=one.nulls.set(known.is_null(), None))
        return None


def _exactly(values: pl.Series) -> Bounds:
    """Bounds of a column that has one value in each file, null for null."""
    one = pl.Series([1] * values.len(), dtype=pl.Int64)
    return Bounds(values, values, values.is_not_null(), values.is_null().cast(pl.Int64), one)


def _read(task: FileTask, storage: Storage) -> Iterator[pa.RecordBatch]:
    """The batches of one file of changes. Errors as `read_task`; they name the version."""
    version = task.constants[VERSION]
    recorded = CHANGE_TYPE in task.schema and CHANGE_TYPE not in task.constants
    try:
        for batch in read_task(task, storage):
            if recorded and batch.column(task.schema.names.index(CHANGE_TYPE)).null_count:
                raise CorruptTableError(
                    f"change data file {task.path} of version {version} has rows without {CHANGE_TYPE}",
                    fix="leave the version out, or read what it added and removed as two versions of the table",
                    place=task.path,
                    kind="corrupt-data-file",
                )
            yield batch
    except DataFileMissingError as error:
        raise DataFileMissingError(
            f"the changes of version {version} need {error.place}, which is not in the store: perhaps it was vacuumed",
            fix="restore it, or ask for changes of later versions",
            place=error.place,
        ) from error
