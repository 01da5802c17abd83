"""Offsets of a stream to the files between them, alike for all formats: the rows of a version, then what each later one
adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask, select_columns
from lakeview.spark.streams import StreamOptions, no_offset, other_table

if TYPE_CHECKING:
    from lakeview.delta.table import DeltaTable
    from lakeview.iceberg.table import IcebergTable


@dataclass(frozen=True)
class Offset:
    """What a stream has read: all files before number `index` of `version`. `initial`: of all files that the version
    has, else of those that its commit adds. `table`: the id of the table. `first`: version, index and initial of the
    offset at which the stream began; None in checkpoints of older releases. VERSION: the key of `version` in these."""

    table: str
    version: int
    index: int
    initial: bool
    first: list[Any] | None = None

    VERSION: ClassVar = "version"

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """An offset of a checkpoint. InvalidRequestError if it is none of ours."""
        match value, value.get("first", [0, 0, False]):
            case (
                {"table": str(table), cls.VERSION: int(version), "index": int(index), "initial": bool(initial), **rest},
                [int(), int(), bool()],
            ) if rest.keys() <= {"first"}:
                return cls(table, version, index, initial, value.get("first"))
        raise no_offset(value)

    def json(self) -> dict[str, Any]:
        """As a checkpoint records it: one that says no beginning stays as it was."""
        first = {} if self.first is None else {"first": self.first}
        return {
            "table": self.table, self.VERSION: self.version, "index": self.index, "initial": self.initial, **first,
        }  # fmt: skip

    def begin_of(self, end: Self) -> Self:
        """The start of a batch that ends at `end`, where Spark says that it is this one: of the first batch, Spark
        records the end alone, and asks for the beginning again after a restart, when the table may have grown."""
        if end.first is None or end.first == self.first:
            return self
        version, index, initial = end.first
        return replace(end, version=version, index=index, initial=initial)

    def is_before(self, stop: Self) -> bool:
        """Whether the files from this offset to `stop` are of its version and of later ones."""
        return (self.version, not self.initial) < (stop.version, not stop.initial)


class RowStream(ABC):
    """The files of a table in the order in which a stream reads them. `version`: the one whose columns the stream has.

    A version that takes rows away stops the stream unless an option says what to do.
    """

    OFFSET: ClassVar = Offset
    table: DeltaTable | IcebergTable

    def __init__(self, options: StreamOptions, version: int, columns: list[str]) -> None:
        self._options = options
        self._version = version
        self._columns = columns
        self._tasks: dict[tuple[int, bool], list[FileTask]] = {}

    @property
    def latest(self) -> int:
        """The newest version, after one listing."""
        self.table.refresh()
        return self.table.latest_version

    def first(self) -> dict[str, Any]:
        """Where a new stream begins."""
        offset = self._first(self.latest)
        return replace(offset, first=[offset.version, offset.index, offset.initial]).json()

    def end(
        self, start: Mapping[str, Any], until: int | None, max_files: int | None, max_bytes: int | None
    ) -> dict[str, Any]:
        """How far a batch goes: at most so many files and bytes, at least one file, no further than `until`, the newest
        version without it."""
        newest = self.latest
        offset, last = self._parse(start), newest if until is None else until
        files = size = 0
        while (following := self._after(offset, last)) is not None:
            for task in self._files(offset)[offset.index :]:
                full = max_files is not None and files >= max_files
                if full or (max_bytes is not None and files and size + task.size > max_bytes):
                    return offset.json()
                files, size = files + 1, size + task.size
                offset = replace(offset, index=offset.index + 1)
            offset = following
        return offset.json()

    def between(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[FileTask]:
        """The files from one offset to another."""
        stop = self._parse(end)
        yield from self._between(self._parse(start).begin_of(stop), stop)

    def _between(self, start: Offset, stop: Offset) -> Iterator[FileTask]:
        offset: Offset | None = start
        while offset is not None and offset.is_before(stop):
            yield from self._files(offset)[offset.index :]
            offset = self._after(offset)
        if offset is not None and offset.index < stop.index:
            yield from self._files(offset)[offset.index : stop.index]

    def _parse(self, value: Mapping[str, Any]) -> Offset:
        """As `Offset.parse`; InvalidRequestError for an offset of another table, too."""
        offset: Offset = self.OFFSET.parse(value)
        if offset.table != self._table_id:
            raise other_table(self.table.address, offset.table, self._table_id)
        return offset

    def _files(self, offset: Offset) -> list[FileTask]:
        """The files of the version of an offset; those of the last two that were asked for are remembered."""
        key = offset.version, offset.initial
        if key not in self._tasks:
            tasks = select_columns(self._tasks_of(*key), self.schema, self._columns)
            self._tasks = {**dict([*self._tasks.items()][-1:]), key: tasks}
        return self._tasks[key]

    @cached_property
    def schema(self) -> Schema:
        """The columns that the stream can have."""
        return self.table.snapshot(self._version).schema

    @property
    def _table_id(self) -> str:
        return str(self.table.snapshot(self._version).id)

    @abstractmethod
    def _first(self, latest: int) -> Offset:
        """Where a new stream of a table at this version begins."""

    @abstractmethod
    def _after(self, offset: Offset, last: int | None = None) -> Offset | None:
        """The offset behind the files of an offset's version; None behind version `last`."""

    @abstractmethod
    def _tasks_of(self, version: int, initial: bool) -> list[FileTask]:
        """All files of a version, or those that its commit adds. InvalidRequestError for other columns, and for a
        commit that takes rows away where no option says what to do."""
