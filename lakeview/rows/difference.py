"""The files of two versions to the rows that only one of them may have: what both hold cancels out and is not read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
import pyroaring

from lakeview.model.change_columns import CHANGE_TYPE, change_schema
from lakeview.model.frames import CHANGES_PLAN
from lakeview.model.range_read import RangeRead, RangeTasks, RowSides
from lakeview.model.schema import Schema
from lakeview.rows.lazy import lazy_rows
from lakeview.rows.tasks import FileTask, RowPositions
from lakeview.storage import Storage

INSERT, DELETE = "insert", "delete"


@dataclass(frozen=True, slots=True)
class Without:
    """The positions that one holds and another does not. Implements `lakeview.rows.tasks.RowPositions`."""

    positions: RowPositions
    other: RowPositions | None

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:
        """The positions, read when called; errors as those of the two."""
        bitmap = self.positions.bitmap(storage)
        return bitmap if self.other is None else bitmap - self.other.bitmap(storage)


@dataclass(frozen=True, slots=True)
class Difference:
    """The files to read of the base (`deletes`) and of the other version (`inserts`), all in one `schema`."""

    base: int
    version: int
    deletes: tuple[FileTask, ...]
    inserts: tuple[FileTask, ...]
    schema: Schema

    @property
    def _files(self) -> list[tuple[str, FileTask]]:
        """All files to read with the kind of change of their rows, those of the base first."""
        return [*((DELETE, task) for task in self.deletes), *((INSERT, task) for task in self.inserts)]

    def plan(self) -> pl.DataFrame:
        """CHANGES_PLAN: those of the base first; `version`: which of the two holds the file."""
        versions = {DELETE: self.base, INSERT: self.version}
        rows = [
            (versions[kind], kind, task.path, task.known_rows, task.size or None, "derived")
            for kind, task in self._files
        ]
        return pl.DataFrame(rows, schema=CHANGES_PLAN, orient="row")

    def tasks(self) -> RangeTasks:
        """The columns of `rows`, and the files to read with the kind of change of their rows."""
        fields = change_schema(self.schema).fields[: len(self.schema) + 1]
        names = {field.name: other.name for field, other in zip(self.schema, fields, strict=False)}
        pairs: list[tuple[FileTask, str | None]] = []
        for kind, task in self._files:
            constants = {names.get(n, n): value for n, value in task.constants.items()}
            schema = Schema(change_schema(task.schema).fields[: len(self.schema)])
            pairs.append((replace(task, schema=schema, constants=constants), kind))
        return Schema(fields), pairs

    def rows(self, storage: Storage) -> pl.LazyFrame:
        """The rows of these files: the columns of the schema, then `_change_type` (insert, delete), as CHANGES."""
        return pl.concat([self._side(DELETE, self.deletes, storage), self._side(INSERT, self.inserts, storage)])

    def range_read(self, storage: Storage) -> RangeRead:
        """The difference as tables of every format give it."""
        return RangeRead(self.plan, partial(self.rows, storage), self.tasks, partial(self.sides, storage))

    def sides(self, storage: Storage) -> RowSides:
        """The rows of `rows` by the kind of their change, fewer bytes first."""
        sides = sorted(
            ((DELETE, self.deletes), (INSERT, self.inserts)), key=lambda side: sum(task.size for task in side[1])
        )
        return [(kind, self._side(kind, tasks, storage)) for kind, tasks in sides]

    def _side(self, kind: str, tasks: Sequence[FileTask], storage: Storage) -> pl.LazyFrame:
        names = change_schema(self.schema).names[: len(self.schema)]  # one of the table's may be called _change_type
        schema = next((task.schema for task in tasks), self.schema)
        rows = lazy_rows(lambda _where: iter(tasks), schema, storage)
        rows = rows.rename(dict(zip(self.schema.names, names, strict=True)))
        return rows.with_columns(pl.lit(kind).alias(CHANGE_TYPE))


def difference(
    base: tuple[int, Sequence[FileTask]], version: tuple[int, Sequence[FileTask]], schema: Schema
) -> Difference:
    """What the files of two versions do not share. All tasks yield `schema`.

    A file of both with the same deletes is left out; of one whose deletes differ just the rows that those name are
    read. Rows that were copied to another file are in both sides: who adds them up finds no difference.
    """
    before = {task.path: task for task in base[1]}
    after = {task.path: task for task in version[1]}
    deletes = tuple(only_in(before, after))
    inserts = tuple(only_in(after, before))
    return Difference(base[0], version[0], deletes, inserts, schema)


def only_in(mine: Mapping[str, FileTask], other: Mapping[str, FileTask]) -> Iterator[FileTask]:
    """The rows of one version that another lacks: its own files, and of files of both the rows deleted only there."""
    for path, task in mine.items():
        there = other.get(path)
        if there is None or there.constants != task.constants:  # added again to another partition: other rows
            yield task
        elif there.deleted_rows is not None and there.deleted_rows != task.deleted_rows:
            yield replace(task, deleted_rows=None, selected_rows=Without(there.deleted_rows, task.deleted_rows))
