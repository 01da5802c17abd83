"""Table: what tables of every format can do, and what they do alike. Readers make them; views, pages and notebooks use
them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lakeview.model import frames
from lakeview.model.arguments import integer_of, optional_integer
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError, VersionNotFoundError
from lakeview.model.findings import Finding
from lakeview.model.physical_file import PhysicalFile
from lakeview.model.range_read import RangeRead, RangeTasks, RowSides
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot, milliseconds


class Table(ABC):
    """A table opened from its address. Safe to use from several threads.

    A moment is an aware datetime; a naive one raises InvalidRequestError. Errors are those of `lakeview.model.errors`.
    What has an answer here is so for a format whose log is one line of versions that lists its files itself: no
    branches, no manifests, one partitioning.
    """

    format: str
    """delta, iceberg or sharing."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it was opened, normalised, without credentials."""

    @property
    @abstractmethod
    def latest_version(self) -> int:
        """The newest version seen by the last refresh."""

    @property
    def schema(self) -> Schema:
        """The columns of the latest version."""
        return self.snapshot().schema

    @abstractmethod
    def health(self) -> pl.DataFrame:
        """FINDINGS about the latest version, worst first: id, severity, title, evidence, remedy, command and more
        (`lv.inspect(table).health()`)."""

    @abstractmethod
    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a version, a moment or a named ref; the latest without any."""

    @abstractmethod
    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first: at most `limit` of them, of versions below `before`."""

    @abstractmethod
    def versions(self, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first: which can still be read, and why not. With `look=False` nothing is looked up for it,
        and `readable` is null: it costs what the log costs, however many files there are."""

    def list_ahead(self) -> None:
        """Begins what the next `versions()` has to list of a remote store, so that a caller who needs other answers
        before does not wait for it then. Raises nothing."""
        return

    @abstractmethod
    def schemas(self) -> pl.DataFrame:
        """SCHEMAS: one row for each version that changed the schema, oldest first."""

    @abstractmethod
    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS: what one commit recorded."""

    @abstractmethod
    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES with only these columns read."""

    @abstractmethod
    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS of the live files: `_path`, `_deletion_vector`, then for each leaf column one struct
        (`min, max, null_count, exact, null_count_exact`), parsed only for the columns asked. Partition
        columns of a Delta table have none. InvalidRequestError for a column that the schema does not have."""

    def sampled_statistics(self, version: int | None, share: float) -> pl.DataFrame | None:  # noqa: ARG002
        """STATISTICS of about this share of the files, drawn by a fixed seed; None where that saves nothing."""
        return None

    @abstractmethod
    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES: from when to when each file was part of the table, of its default branch. With `columns`,
        `statistics` too: a struct with one field for each, as in STATISTICS, in the types of the latest schema; and
        `written`, the rows of the file before any delete, where that is known apart from `records`.
        InvalidRequestError for a column that the latest schema does not have."""

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame | None:  # noqa: ARG002
        """`lifetimes` of the paths that a commit still recorded added or removed; None where a table reads no less for
        them than for all."""
        return None

    def refs(self) -> pl.DataFrame:
        """REFS: branches and tags; empty for a table that has one line of versions."""
        return pl.DataFrame(schema=frames.REFS)

    def ref_lifetimes(self, ref: str, columns: Sequence[str] | None = None) -> pl.DataFrame:  # noqa: ARG002
        """LIFETIMES along the versions of a branch or tag, with `columns` as `lifetimes`; VersionNotFoundError if there
        is none of this name."""
        raise _no_ref(ref)

    def ref_schemas(self, ref: str) -> pl.DataFrame:
        """SCHEMAS along the versions of a branch or tag; VersionNotFoundError if there is none of this name."""
        raise _no_ref(ref)

    def snapshot_log(self) -> pl.DataFrame:
        """SNAPSHOT_LOG: which version was current when; empty where the current version is the last one."""
        return pl.DataFrame(schema=frames.SNAPSHOT_LOG)

    def partition_specs(self) -> pl.DataFrame:
        """PARTITION_SPECS: empty where the partitioning of a table never changes."""
        return pl.DataFrame(schema=frames.PARTITION_SPECS)

    def format_versions(self) -> pl.DataFrame:
        """FORMAT_VERSIONS: empty where commits tell what a table asks of engines."""
        return pl.DataFrame(schema=frames.FORMAT_VERSIONS)

    def sort_orders(self) -> pl.DataFrame:
        """SORT_ORDERS: empty where none is declared."""
        return pl.DataFrame(schema=frames.SORT_ORDERS)

    def manifests(self, version: int | None = None) -> pl.DataFrame:  # noqa: ARG002
        """MANIFESTS of a version: empty where a log lists files itself."""
        return pl.DataFrame(schema=frames.MANIFESTS)

    def statistics_files(self) -> pl.DataFrame:
        """STATISTICS_FILES: empty where statistics lie in the log alone."""
        return pl.DataFrame(schema=frames.STATISTICS_FILES)

    def log_files(self) -> pl.DataFrame:
        """LOG_FILES: what the log itself takes, by one listing; empty where the log is not in sight."""
        return pl.DataFrame(schema=frames.LOG_FILES)

    @abstractmethod
    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        """PLAN: which files a filter would read, and what skips the others."""

    @abstractmethod
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

    @abstractmethod
    def physical(self, path: str, version: int | None = None) -> PhysicalFile:
        """How a file of a version is laid out inside; `path` as in FILES. Costs its footer: one request, seldom two.

        InvalidRequestError for a file the version has not, DataFileMissingError, UnsupportedTableError for one that is
        no Parquet file, CorruptTableError."""

    @abstractmethod
    def check(self, now: datetime | None = None) -> list[Finding]:
        """What the log breaks or leaves odd, worst first; works on tables that do not open. `now`: an aware moment by
        which files too young to be judged are left out."""

    def audit(self, start: int | None = None, end: int | None = None) -> pl.DataFrame:  # noqa: ARG002
        """AUDIT: for every commit from `start` to `end` (both included), law by law, whether the log proves that it
        kept its promise, shows a violation, or cannot tell. No data file is read. UnsupportedTableError for a table
        whose log is not shared."""
        raise UnsupportedTableError(
            f"{self.address} cannot be audited: its log is not shared",
            fix="audit the table where it lies",
            kind="log-not-shared",
        )

    @abstractmethod
    def refresh(self) -> bool:
        """True if there is a newer version; costs one listing and the new commits."""

    # -- what differs between versions, by what each format says of a range of commits and of two versions

    @abstractmethod
    def _changes(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        """The files that commits of a range changed."""

    @abstractmethod
    def _difference(self, base: int, version: int | None) -> RangeRead:
        """The files that one of two versions has alone."""

    def _commits(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        return self._changes(_bound(start), None if end is None else _bound(end))

    def _two_versions(self, base: int, version: int | None) -> RangeRead:
        return self._difference(integer_of(base, "base"), optional_integer(version, "version"))

    def changes(self, start: int | datetime, end: int | datetime | None = None) -> pl.LazyFrame:
        """The rows that commits `start` to `end` (both included; to the latest without it) inserted, updated, deleted.

        The table's columns at `end`, then CHANGES. A change feed is read where the table records one; elsewhere changes
        are derived from files and deletes, and an update is a delete and an insert: `changes_plan` says which. Moments
        stand for the commits between them. Filters on versions, times, kinds and partition columns skip files.

        VersionNotFoundError for commits that are not there, InvalidRequestError for a range that ends before it starts
        or that a schema change cuts in two, SharingError where a server shares no changes. Collecting raises
        DataFileMissingError, which names file and version.
        """
        return self._commits(start, end).rows()

    def changes_plan(self, start: int | datetime, end: int | datetime | None = None) -> pl.DataFrame:
        """CHANGES_PLAN: the files that `changes` reads, so that the cost is known before. Errors as `changes`."""
        return self._commits(start, end).plan()

    def difference(self, base: int, version: int | None = None) -> pl.LazyFrame:
        """The rows that a version (the latest without one) has and `base` has not (insert), and the reverse (delete).

        The later version's columns, then `_change_type`. Only files that one of the two has alone are read: a row that
        was copied from one to another is given twice, once each way. VersionNotFoundError, InvalidRequestError where
        the type of a column changed between. Collecting raises DataFileMissingError for a file of the two.
        """
        return self._two_versions(base, version).rows()

    def difference_sides(self, base: int, version: int | None = None) -> RowSides:
        """The rows of `difference` in two frames, one for each kind of change, the one with fewer bytes first; a shared
        table, whose server sends changes, has one frame of all kinds (None). Errors as `difference`."""
        diff = self._two_versions(base, version)
        return [(None, diff.rows())] if diff.sides is None else diff.sides()

    def difference_plan(self, base: int, version: int | None = None) -> pl.DataFrame:
        """CHANGES_PLAN: the files that `difference` reads, so that the cost is known before. Errors as `difference`."""
        return self._two_versions(base, version).plan()

    def change_tasks(self, start: int | datetime, end: int | datetime | None = None) -> RangeTasks:
        """`changes` for other processes; of a shared table with signed URLs, as its `tasks`. Errors as `changes`."""
        return self._commits(start, end).tasks()

    def difference_tasks(self, base: int, version: int | None = None) -> RangeTasks:
        """`difference` for other processes, as `change_tasks`."""
        return self._two_versions(base, version).tasks()


def check_point(version: int | None, at: datetime | None, ref: str | None = None) -> None:
    """InvalidRequestError if several of a version, a moment and a ref are given, a version that is no whole number, or
    a moment without a time zone."""
    if sum(each is not None for each in (version, at, ref)) > 1:
        raise InvalidRequestError("more than one of a version, a moment and a ref was given", fix="give one of them")
    optional_integer(version, "version")
    if at is not None:
        milliseconds(at)


def _bound(value: object) -> int | datetime:
    """One end of a range of commits. InvalidRequestError for what is neither a whole number nor an aware moment."""
    if isinstance(value, datetime):
        milliseconds(value)
        return value
    return integer_of(value, "a version")


def _no_ref(ref: str) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"there is no branch or tag {ref}: this table has one line of versions", fix="leave the ref out"
    )
