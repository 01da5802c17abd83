"""Table: what tables of every format can do. Readers make them; views, pages and notebooks use them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import polars as pl

from lakeview.model.errors import InvalidRequestError, LakeviewError, UnsupportedTableError, VersionNotFoundError
from lakeview.model.findings import Finding
from lakeview.model.frames import (
    FORMAT_VERSIONS,
    LOG_FILES,
    MANIFESTS,
    PARTITION_SPECS,
    REFS,
    SNAPSHOT_LOG,
    SORT_ORDERS,
    STATISTICS_FILES,
)
from lakeview.model.physical import PhysicalFile
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot, milliseconds


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

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS: one row for each version that changed the schema, oldest first."""

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS: what one commit recorded."""

    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES with only these columns read."""

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS: `_path`, `_deletion_vector`, then for each leaf column one struct
        (`min, max, null_count, exact, null_count_exact`), parsed only for the columns asked."""

    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES: from when to when each file was part of the table, of its default branch. With `columns`,
        `statistics` too: a struct with one field for each, as in STATISTICS; and `written`, the rows of the file before
        any delete, where that is known apart from `records`."""

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


@dataclass(frozen=True, slots=True)
class RangeRead:
    """The files that differ between two versions, ready to be listed as CHANGES_PLAN or read.

    `tasks`: the same for other processes, None where the files cannot be read elsewhere. `sides`: the rows by kind,
    None where a file has rows of several kinds.
    """

    plan: Callable[[], pl.DataFrame]
    rows: Callable[[], pl.LazyFrame]
    tasks: Callable[[], RangeTasks] | None = None
    sides: Callable[[], RowSides] | None = None


class TableBody:
    """What tables of every format do alike, in terms of the Table protocol. A reader's table inherits it and says how
    it resolves a range of commits and two versions."""

    def _changes(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        """The files that commits of a range changed."""
        raise NotImplementedError

    def _difference(self, base: int, version: int | None) -> RangeRead:
        """The files that one of two versions has alone."""
        raise NotImplementedError

    def audit(self: Table, start: int | None = None, end: int | None = None) -> pl.DataFrame:  # noqa: ARG002 (no log)
        """UnsupportedTableError: only tables whose log can be read are audited."""
        raise UnsupportedTableError(
            f"{self.address} cannot be audited: its log is not shared",
            fix="audit the table where it lies",
            kind="log-not-shared",
        )

    def changes(self, start: int | datetime, end: int | datetime | None = None) -> pl.LazyFrame:
        """The rows that commits `start` to `end` (both included; to the latest without it) inserted, updated, deleted.

        The table's columns at `end`, then CHANGES. A change feed is read where the table records one; elsewhere changes
        are derived from files and deletes, and an update is a delete and an insert: `changes_plan` says which. Moments
        stand for the commits between them. Filters on versions, times, kinds and partition columns skip files.

        VersionNotFoundError for commits that are not there, InvalidRequestError for a range that ends before it starts
        or that a schema change cuts in two, SharingError where a server shares no changes. Collecting raises
        DataFileMissingError, which names file and version.
        """
        return self._changes(start, end).rows()

    def changes_plan(self, start: int | datetime, end: int | datetime | None = None) -> pl.DataFrame:
        """CHANGES_PLAN: the files that `changes` reads, so that the cost is known before. Errors as `changes`."""
        return self._changes(start, end).plan()

    def difference(self, base: int, version: int | None = None) -> pl.LazyFrame:
        """The rows that a version (the latest without one) has and `base` has not (insert), and the reverse (delete).

        The later version's columns, then `_change_type`. Only files that one of the two has alone are read: a row that
        was copied from one to another is given twice, once each way. VersionNotFoundError, InvalidRequestError where
        the type of a column changed between. Collecting raises DataFileMissingError for a file of the two.
        """
        return self._difference(base, version).rows()

    def difference_sides(self, base: int, version: int | None = None) -> RowSides:
        """The rows of `difference` in two frames, one for each kind of change, the one with fewer bytes first; a shared
        table, whose server sends changes, has one frame of all kinds (None). Errors as `difference`."""
        found = self._difference(base, version)
        return [(None, found.rows())] if found.sides is None else found.sides()

    def difference_plan(self, base: int, version: int | None = None) -> pl.DataFrame:
        """CHANGES_PLAN: the files that `difference` reads, so that the cost is known before. Errors as `difference`."""
        return self._difference(base, version).plan()

    def change_tasks(self, start: int | datetime, end: int | datetime | None = None) -> RangeTasks:
        """`changes` for other processes. UnsupportedTableError for a shared table; else errors as `changes`."""
        return _tasks_of(self._changes(start, end))

    def difference_tasks(self, base: int, version: int | None = None) -> RangeTasks:
        """`difference` for other processes, as `change_tasks`."""
        return _tasks_of(self._difference(base, version))

    @property
    def schema(self: Table) -> Schema:
        """The columns of the latest version."""
        return self.snapshot().schema

    def health(self: Table) -> pl.DataFrame:
        """The findings about the latest version, worst first: id, severity, title, evidence, remedy, command and more
        (`lv.inspect(table).health()`)."""
        # above this layer: imported by name when it is asked for
        return cast("pl.DataFrame", importlib.import_module("lakeview.inspection").inspect(self).health())

    def __repr__(self: Table) -> str:
        return f"{type(self).__name__}({self.address!r}, latest={self.latest_version})"

    def _repr_html_(self: Table) -> str:
        heading = f"<p><b>{escape(self.address)}</b> · {escape(self.format)}</p>"
        try:
            return heading + self.snapshot()._repr_html_()
        except LakeviewError as error:
            return f"{heading}<p>{escape(error.message)}</p>"


class OneLine(TableBody):
    """What a table answers whose log is one line of versions that lists its files itself: no branches, no manifests,
    one partitioning. A reader of such a format inherits it."""

    def refs(self) -> pl.DataFrame:
        """REFS, empty."""
        return pl.DataFrame(schema=REFS)

    def ref_lifetimes(self, ref: str, columns: Sequence[str] | None = None) -> pl.DataFrame:  # noqa: ARG002 (of none)
        """VersionNotFoundError: there are no refs."""
        raise _no_ref(ref)

    def ref_schemas(self, ref: str) -> pl.DataFrame:
        """VersionNotFoundError: there are no refs."""
        raise _no_ref(ref)

    def snapshot_log(self) -> pl.DataFrame:
        """SNAPSHOT_LOG, empty."""
        return pl.DataFrame(schema=SNAPSHOT_LOG)

    def partition_specs(self) -> pl.DataFrame:
        """PARTITION_SPECS, empty."""
        return pl.DataFrame(schema=PARTITION_SPECS)

    def format_versions(self) -> pl.DataFrame:
        """FORMAT_VERSIONS, empty."""
        return pl.DataFrame(schema=FORMAT_VERSIONS)

    def sort_orders(self) -> pl.DataFrame:
        """SORT_ORDERS, empty."""
        return pl.DataFrame(schema=SORT_ORDERS)

    def manifests(self, version: int | None = None) -> pl.DataFrame:  # noqa: ARG002 (of any version)
        """MANIFESTS, empty."""
        return pl.DataFrame(schema=MANIFESTS)

    def statistics_files(self) -> pl.DataFrame:
        """STATISTICS_FILES, empty."""
        return pl.DataFrame(schema=STATISTICS_FILES)

    def log_files(self) -> pl.DataFrame:
        """LOG_FILES, empty: the place of the log is unknown."""
        return pl.DataFrame(schema=LOG_FILES)


def _tasks_of(read: RangeRead) -> RangeTasks:
    if read.tasks is None:
        raise UnsupportedTableError(
            "the changes of a shared table are read by one process alone",
            fix="read them with lakeview.open_table(address).changes(...)",
            kind="log-not-shared",
        )
    return read.tasks()


def check_point(version: int | None, at: datetime | None, ref: str | None = None) -> None:
    """InvalidRequestError if several of a version, a moment and a ref are given, or a moment without a time zone."""
    if sum(each is not None for each in (version, at, ref)) > 1:
        raise InvalidRequestError("more than one of a version, a moment and a ref was given", fix="give one of them")
    if at is not None:
        milliseconds(at)


def _no_ref(ref: str) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"there is no branch or tag {ref}: this table has one line of versions", fix="leave the ref out"
    )
