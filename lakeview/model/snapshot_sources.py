"""What a snapshot reads from: the loader of its frames, and the table behind it."""

from collections.abc import Sequence
from typing import Protocol

import polars as pl

from lakeview.model.frames import DOMAIN_METADATA, FILES, RULES, TOMBSTONES, TRANSACTIONS


class SnapshotLoader(Protocol):
    """Where a snapshot's frames come from. Each is called at most once for the same columns, from one thread. What a
    format does not have is empty."""

    def files(self, columns: Sequence[str] | None) -> pl.DataFrame:
        """FILES with these columns, or all."""

    def delete_files(self) -> pl.DataFrame:
        """Files that delete rows (Iceberg), as FILES."""
        return pl.DataFrame(schema=FILES)

    def tombstones(self) -> pl.DataFrame:
        """TOMBSTONES."""
        return pl.DataFrame(schema=TOMBSTONES)

    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS."""
        return pl.DataFrame(schema=TRANSACTIONS)

    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA."""
        return pl.DataFrame(schema=DOMAIN_METADATA)

    def rules(self) -> pl.DataFrame:
        """RULES."""
        return pl.DataFrame(schema=RULES)


class SnapshotTable(Protocol):
    """The table that a snapshot was read from, as far as the snapshot asks it."""

    @property
    def latest_version(self) -> int:
        """The newest version seen by the last refresh."""

    def refs(self) -> pl.DataFrame:
        """REFS."""

    def scan(self, version: int | None = None) -> pl.LazyFrame:
        """The rows of a version."""

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS of a version."""

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        """PLAN of a version."""


def as_declared(table: SnapshotTable, version: int) -> int | None:
    """What to ask a table for to get a version with the columns it has now: None for the newest one of a table with
    branches, whose columns may have changed since it was written; else the version."""
    newest = version == table.latest_version and not table.refs().is_empty()
    return None if newest else version
