"""A shared table of any format: its versions, what is refused of them, and its changes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

import polars as pl

from lakeview.delta.sharing import DeltaTable
from lakeview.iceberg.table import IcebergTable
from lakeview.sharing.protocol.messages import ResponseFormat
from lakeview.sharing.server.refresh import look_again
from lakeview.sharing.server.refusals import after_latest, before_earliest
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.storage import Storage


class CommitRow(NamedTuple):
    """A row of changes: so many rows after the first row of a version. It may be a row of a later version."""

    version: int
    row: int


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Which changes, and how they are written. `start` and `end` are both included.

    `feed`: recorded change files take the place of a version's own files, and each version must have recorded changes.
    `metadata`, `protocol`: those of later versions are sent as well. `begin`: where a later page begins.
    """

    start: int
    end: int
    response_format: ResponseFormat
    scheme: str
    feed: bool
    metadata: bool
    protocol: bool
    begin: CommitRow


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Some lines of changes: `rows`, and lines that stand before one of them, by its number in the batch.

    `begins`: rows of the batch, in ascending order, and which rows of their commits they are: the first row of the
    batch, and the row at which each version begins (a version without rows begins where the next one does).
    """

    rows: pl.DataFrame
    between: tuple[tuple[int, bytes], ...]
    begins: tuple[tuple[int, CommitRow], ...]

    def position(self, row: int) -> CommitRow:
        """Where a page begins whose first row is this one of the batch: before the lines that stand before the row."""
        first = next((commit for at, commit in self.begins if at == row), None)
        if first is not None:
            return first
        at, commit = max((begin for begin in self.begins if begin[0] < row), key=itemgetter(0))
        return CommitRow(commit.version, commit.row + row - at)


class Source(ABC):
    """A shared table. Methods block; each may raise the errors of `lakeview.model.errors`, or a Refusal."""

    _table: DeltaTable | IcebergTable

    @property
    def storage(self) -> Storage:
        """Where its files lie."""
        return self._table.storage

    def refresh(self) -> int:
        """Look for newer versions; the latest. CorruptTableError of the kind `another-table` if it has to be opened
        again."""
        look_again(self._table)
        return self._table.latest_version

    @abstractmethod
    def at(self, version: int) -> SharedVersion:
        """One version."""

    @abstractmethod
    def times(self, first: int = 0) -> pl.DataFrame:
        """`version` and `timestamp` of what led to the latest version, oldest first, from a version on."""

    def version_at(self, moment: datetime) -> int:
        """The version that was the latest at a moment. Refusal outside the table's life."""
        times = self.times()
        if moment < times["timestamp"][0]:
            raise before_earliest(times["timestamp"][0])
        if moment > times["timestamp"][-1]:
            raise after_latest(times["timestamp"][-1])
        return int(times.filter(pl.col("timestamp") <= moment)["version"][-1])

    def first_from(self, moment: datetime, first: int) -> int:
        """The earliest version at or after a moment, and not before the version `first`. Refusal after the latest."""
        later = self.times(first).filter(pl.col("timestamp") >= moment)
        if later.is_empty():
            raise after_latest(self.times()["timestamp"][-1])
        return int(later["version"][0])

    def require_since(self, moment: datetime, first: int) -> None:
        """Refusal for a moment before the earliest version that the log records and that is shared (`first`): what
        changed between the moment and that version cannot be given."""
        earliest = self.times(first)["timestamp"].first()
        if isinstance(earliest, datetime) and moment < earliest:
            raise before_earliest(earliest)

    @abstractmethod
    def require_shared(self, version: int, first: int, latest: int) -> None:
        """Refusal for a version after the latest, before the first that is shared, or on a branch off the line between
        them."""

    @abstractmethod
    def require_files(self, version: int) -> None:
        """Refusal if data files of a past version are gone."""

    def features_between(self, start: int, end: int, *, feed: bool) -> frozenset[str]:  # noqa: ARG002 (of no range)
        """Reader features that the changes of a range need, in lower case: those used only inside it among them."""
        return frozenset()

    @abstractmethod
    def changes(self, change_range: ChangeRange) -> Iterator[ChangeBatch]:
        """The lines of a range of versions, oldest first."""
