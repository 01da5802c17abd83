"""What the server asks of a shared table, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import polars as pl

from lakeview.server.shared_version import SharedVersion
from lakeview.sharing.protocol import ResponseFormat
from lakeview.storage import Storage


@dataclass(frozen=True, slots=True)
class ChangesWanted:
    """Which changes, and how they are written. `start` and `end` are both included.

    `feed`: recorded change files take the place of a version's own files, and each version must have recorded changes.
    `metadata`, `protocol`: those of later versions are told as well.
    """

    start: int
    end: int
    response_format: ResponseFormat
    scheme: str
    feed: bool
    metadata: bool
    protocol: bool


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Some lines of changes: `rows`, and lines that stand before one of them, by its number in the batch."""

    rows: pl.DataFrame
    between: tuple[tuple[int, bytes], ...] = ()


class Source(Protocol):
    """A shared table. Methods block; each may raise the errors of `lakeview.errors`, or a Refusal."""

    @property
    def storage(self) -> Storage:
        """Where its files lie."""

    def refresh(self) -> int:
        """Look for newer versions; the latest. CorruptTableError of the kind `another-table` if it has to be opened
        anew."""

    def at(self, version: int) -> SharedVersion:
        """One version."""

    def version_at(self, moment: datetime) -> int:
        """The version that was the latest at a moment. Refusal outside the table's life."""

    def first_from(self, moment: datetime, first: int) -> int:
        """The earliest version at or after a moment, and not before the version `first`. Refusal after the latest."""

    def require_since(self, moment: datetime, first: int) -> None:
        """Refusal for a moment before the earliest version that the log records and that is shared (`first`): what
        changed between the moment and that version cannot be given."""

    def require_shared(self, version: int, first: int, latest: int) -> None:
        """Refusal for a version after the latest, before the first that is shared, or beside the way between them."""

    def require_files(self, version: int) -> None:
        """Refusal if data files of a past version are gone."""

    def needed_between(self, start: int, end: int, *, feed: bool) -> frozenset[str]:
        """Reader features that the changes of a range need, in lower case: what lives only inside it among them."""

    def changes(self, wanted: ChangesWanted) -> Iterator[ChangeBatch]:
        """The lines of a range of versions, oldest first."""
