"""What the tables of every format do alike, for their readers to inherit."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import cast

import polars as pl

from lakeview.model.arguments import integer_of, optional_integer
from lakeview.model.errors import InvalidRequestError, LakeviewError, UnsupportedTableError, VersionNotFoundError
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
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.model.table import RangeTasks, RowSides, Table


@dataclass(frozen=True, slots=True)
class RangeRead:
    """The files that differ between two versions, ready to be listed as CHANGES_PLAN or read.

    `tasks`: the same for other processes. `sides`: the rows by kind, None where a file has rows of several kinds.
    """

    plan: Callable[[], pl.DataFrame]
    rows: Callable[[], pl.LazyFrame]
    tasks: Callable[[], RangeTasks]
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

    def _commits(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        return self._changes(_bound(start), None if end is None else _bound(end))

    def _two_versions(self, base: int, version: int | None) -> RangeRead:
        return self._difference(integer_of(base, "base"), optional_integer(version, "version"))

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

    def sampled_statistics(self, version: int | None, share: float) -> pl.DataFrame | None:  # noqa: ARG002
        """None: the statistics of all files are read with their names."""
        return None

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame | None:  # noqa: ARG002
        """None: nothing is saved by leaving out files where a log does not say which commits touched."""
        return None

    def list_ahead(self) -> None:
        """Nothing: `versions()` lists no folder."""

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
