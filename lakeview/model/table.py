"""Table: what tables of every format can do. Readers make them; views, pages and notebooks use them.

How one data file is laid out inside is among it: row groups and column chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import polars as pl

from lakeview.model.findings import Finding
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot

PHYSICAL = pl.Schema(
    {
        "row_group": pl.Int64(),
        "group_records": pl.Int64(),
        "column": pl.String(),
        "stored_as": pl.String(),
        "physical_type": pl.String(),
        "logical_type": pl.String(),
        "codec": pl.String(),
        "encodings": pl.String(),
        "values": pl.Int64(),
        "null_count": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "compressed": pl.Int64(),
        "uncompressed": pl.Int64(),
        "dictionary": pl.Boolean(),
        "page_index": pl.Boolean(),
        "bloom_filter": pl.Boolean(),
    }
)
"""One row a column chunk of one data file, by row group. `group_records`: rows of the group; `column` as the table
calls it now, `stored_as` in the file; `encodings` joined by commas; `values` with nulls and repeats; what the chunk's
statistics say as text, null where they do not, or where the file has very many chunks; sizes in bytes."""


@dataclass(frozen=True, slots=True)
class PhysicalFile:
    """How one data file is laid out inside, as its footer says: `size` and `footer_size` in bytes, `records` physical
    rows; `created_by`: the library that wrote it; `chunks`: PHYSICAL."""

    path: str
    size: int
    footer_size: int
    records: int
    row_groups: int
    created_by: str | None
    parquet_version: str
    chunks: pl.DataFrame


@runtime_checkable
class Table(Protocol):
    """A table opened from its address. Safe to use from several threads.

    A moment is an aware datetime; a naive one raises InvalidRequestError. Errors are those of `lakeview.model.errors`.
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

    @property
    def schema(self) -> Schema:
        """The columns of the latest version."""

    def health(self) -> pl.DataFrame:
        """FINDINGS about the latest version, worst first."""

    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a version, a moment or a named ref; the latest without any."""

    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first: at most `limit` of them, of versions below `before`."""

    def versions(self, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first: which can still be read, and why not. With `look=False` nothing is looked up for it,
        and `readable` is null: it costs what the log costs, however many files there are."""

    def list_ahead(self) -> None:
        """Begins what the next `versions()` has to list of a remote store, so that a caller who needs other answers
        before does not wait for it then. Raises nothing."""

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS: one row for each version that changed the schema, oldest first."""

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS: what one commit recorded."""

    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES with only these columns read."""

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS: `_path`, `_deletion_vector`, then for each leaf column one struct
        (`min, max, null_count, exact, null_count_exact`), parsed only for the columns asked."""

    def sampled_statistics(self, version: int | None, share: float) -> pl.DataFrame | None:
        """STATISTICS of about this share of the files, drawn by a fixed seed; None where that saves nothing."""

    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES: from when to when each file was part of the table, of its default branch. With `columns`,
        `statistics` too: a struct with one field for each, as in STATISTICS; and `written`, the rows of the file before
        any delete, where that is known apart from `records`."""

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame | None:
        """`lifetimes` of the paths that a commit still recorded added or removed; None where a table reads no less for
        them than for all."""

    def refs(self) -> pl.DataFrame:
        """REFS: branches and tags; empty for a table that has one line of versions."""

    def ref_lifetimes(self, ref: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES along the versions of a branch or tag, with `columns` as `lifetimes`; VersionNotFoundError if there
        is none of this name."""

    def ref_schemas(self, ref: str) -> pl.DataFrame:
        """SCHEMAS along the versions of a branch or tag; VersionNotFoundError if there is none of this name."""

    def snapshot_log(self) -> pl.DataFrame:
        """SNAPSHOT_LOG: which version was current when; empty where the current version is the last one."""

    def partition_specs(self) -> pl.DataFrame:
        """PARTITION_SPECS: empty where the partitioning of a table never changes."""

    def format_versions(self) -> pl.DataFrame:
        """FORMAT_VERSIONS: empty where commits tell what a table asks of engines."""

    def sort_orders(self) -> pl.DataFrame:
        """SORT_ORDERS: empty where none is declared."""

    def manifests(self, version: int | None = None) -> pl.DataFrame:
        """MANIFESTS of a version: empty where a log lists files itself."""

    def statistics_files(self) -> pl.DataFrame:
        """STATISTICS_FILES: empty where statistics lie in the log alone."""

    def log_files(self) -> pl.DataFrame:
        """LOG_FILES: what the log itself takes, by one listing; empty where the log is not in sight."""

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        """PLAN: which files a filter would read, and what skips the others."""

    def scan(
        self,
        version: int | None = None,
        *,
        at: datetime | None = None,
        ref: str | None = None,
        paths: Sequence[str] | None = None,
    ) -> pl.LazyFrame:
        """The rows, lazily; filters prune files; the version is pinned at this call. `paths`: of these data files
        alone, by their paths in FILES."""

    def changes(self, start: int | datetime, end: int | datetime | None = None) -> pl.LazyFrame:
        """The rows that commits `start` to `end` (both included) inserted, updated and deleted: the table's columns,
        then CHANGES."""

    def changes_plan(self, start: int | datetime, end: int | datetime | None = None) -> pl.DataFrame:
        """CHANGES_PLAN: the files that `changes` reads, so that the cost is known before."""

    def physical(self, path: str, version: int | None = None) -> PhysicalFile:
        """How a file of a version is laid out inside; `path` as in FILES. Costs its footer: one request, seldom two.

        InvalidRequestError for a file the version has not, UnsupportedTableError for one that is no Parquet file."""

    def difference(self, base: int, version: int | None = None) -> pl.LazyFrame:
        """The rows that a version has and another one, `base`, has not (insert), and the reverse (delete), from their
        files alone: the later one's columns, then `_change_type`. A row that was only copied is given both ways."""

    def difference_sides(self, base: int, version: int | None = None) -> RowSides:
        """The rows of `difference` by the kind of their change, to be read one kind after the other."""

    def difference_plan(self, base: int, version: int | None = None) -> pl.DataFrame:
        """CHANGES_PLAN: the files that `difference` reads, so that the cost is known before."""

    def check(self, now: datetime | None = None) -> list[Finding]:
        """What the log breaks or leaves odd, worst first; works on tables that do not open. `now`: an aware moment by
        which files too young to be judged are left out."""

    def audit(self, start: int | None = None, end: int | None = None) -> pl.DataFrame:
        """AUDIT: for every commit from `start` to `end` (both included), law by law, whether the log proves that it
        kept its promise, shows a violation, or cannot tell. No data file is read."""

    def refresh(self) -> bool:
        """True if there is a newer version; costs one listing and the new commits."""


RangeTasks: TypeAlias = tuple[Schema, list[tuple[Any, str | None]]]
"""Columns of rows, and the files to read: `lakeview.rows.tasks.FileTask` each, and the kind of change of its rows, None
where they say it."""

RowSides: TypeAlias = list[tuple[str | None, pl.LazyFrame]]
"""Rows of CHANGES by the kind of change that all rows of a frame have, fewer bytes first; None where a frame has rows
of several kinds."""
