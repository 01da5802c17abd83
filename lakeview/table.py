"""Table: what tables of every format can do. Readers make them; views, pages and notebooks use them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import polars as pl

from lakeview.findings import Finding
from lakeview.snapshot import Snapshot


@runtime_checkable
class Table(Protocol):
    """A table opened from its address. Safe to use from several threads.

    A moment is an aware datetime; a naive one raises InvalidRequestError. Errors are those of `lakeview.errors`.
    """

    @property
    def format(self) -> str:
        """delta, iceberg or sharing."""

    @property
    def address(self) -> str:
        """Where it was opened, normalised, without credentials."""

    @property
    def latest_version(self) -> int:
        """The newest version seen by the last refresh."""

    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a version, a moment or a named ref; the latest without any."""

    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first: at most `limit` of them, of versions below `before`."""

    def versions(self) -> pl.DataFrame:
        """VERSIONS, newest first: which can still be read, and why not."""

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS: one row for each version that changed the schema, oldest first."""

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS: what one commit recorded."""

    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES with only these columns read."""

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS: `_path`, `_deletion_vector`, then for each leaf column one struct
        (`min, max, null_count, exact, null_count_exact`), parsed only for the columns asked."""

    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES: from when to when each file was part of the table."""

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        """PLAN: which files a filter would read, and what spares the others."""

    def scan(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> pl.LazyFrame:
        """The rows, lazily; filters prune files; the version is pinned at this call."""

    def changes(self, start: int | datetime, end: int | datetime | None = None) -> pl.LazyFrame:
        """The rows that commits `start` to `end` (both included) inserted, updated and deleted: the table's columns,
        then CHANGES."""

    def check(self, now: datetime | None = None) -> list[Finding]:
        """What the log breaks or leaves odd, worst first; works on tables that do not open. `now`: an aware moment by
        which files too young to be judged are left out."""

    def refresh(self) -> bool:
        """True if there is a newer version; costs one listing and the new commits."""
