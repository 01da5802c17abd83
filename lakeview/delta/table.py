"""A Delta table: its log to snapshots, history and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from lakeview.delta.data.change_range import change_scan, commit_range
from lakeview.delta.data.ends import end_difference
from lakeview.delta.data.files import VersionFiles
from lakeview.delta.data.lifetimes import with_statistics
from lakeview.delta.data.readability import listed_versions, readable_versions
from lakeview.delta.data.scan import Scan
from lakeview.delta.data.statistics import physical_leaves, string_prefix
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.commits import raw_actions
from lakeview.delta.log.definitions import allows_v2_checkpoints
from lakeview.delta.log.history import History
from lakeview.delta.log.listing import listed_log
from lakeview.delta.log.paths import commit_name
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import version_at
from lakeview.delta.states import States
from lakeview.delta.write.operations import Operations
from lakeview.model.arguments import integer_of, optional_count, optional_integer
from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import ACTIONS
from lakeview.model.physical_file import PhysicalFile
from lakeview.model.range_read import RangeRead
from lakeview.model.snapshot import Snapshot, milliseconds
from lakeview.model.table import check_point
from lakeview.model.table_display import TableDisplay
from lakeview.predicates.evaluation import condition_of
from lakeview.rows.footers import listed_size, physical_file
from lakeview.rows.lazy import lazy_rows
from lakeview.rows.tasks import FileTask, of_files, select_columns
from lakeview.storage import Storage
from lakeview.storage.names_ahead import NamesAhead

if TYPE_CHECKING:
    from lakeview.model.findings import Finding


class DeltaTable(Operations, TableDisplay):
    """A Delta table at one address. Implements `lakeview.model.table.Table`; safe to use from several threads."""

    format = "delta"

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.log = TableLog(storage)
        """The log behind the table, for the writer."""
        self._history = History(self.log)
        self._states = States(self.log)
        self._folder = NamesAhead(storage)
        self._last_scan: Scan | None = None

    @property
    def address(self) -> str:
        return self.storage.root

    @property
    def latest_version(self) -> int:
        return self.log.latest

    def refresh(self) -> bool:
        """True if there is a newer version; costs one listing."""
        self._folder.forget()
        return self.log.refresh()

    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a version or a moment; the latest without either.

        VersionNotFoundError, CorruptTableError (gap, missing protocol or metadata, broken files),
        UnsupportedTableError (protocol version or feature by name), InvalidRequestError (a naive moment, a ref).
        Of a table that a catalog manages, published versions open by number, or by a moment before the newest of them;
        which version is the latest only the catalog knows, and asking for it is an UnsupportedTableError.
        """
        state = self.state(version, at, ref)
        files = self._files(state)  # raises what keeps it from being read first
        return Snapshot(self._states.describe(state), files, table=self)

    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first: at most `limit`, of versions below `before`. Works with any protocol.

        A page reads its own commits; where they remove files, as much before them as tells what these files were.
        """
        return self._history.commits(optional_count(limit, "limit"), optional_integer(before, "before"))

    def versions(self, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first; one listing of the table's folder tells which data files are gone. With `look=False`
        `readable` is null, and nothing but the log's folder is listed."""
        times = self._history.times()
        if not look:
            return listed_versions(self.log, times)
        return readable_versions(self.log, self._history, times, self._folder)

    def list_ahead(self) -> None:
        """Begins the listing of a remote table's folder that the next `versions()` needs."""
        self._folder.begin(self.log.latest)

    def schemas(self) -> pl.DataFrame:
        return self._history.schemas()

    def log_files(self) -> pl.DataFrame:
        """LOG_FILES of `_delta_log`, sidecars of its checkpoints among them."""
        has_sidecars = self.log.may_have_sidecars(partial(allows_v2_checkpoints, self.log))
        return listed_log(self.log, has_sidecars=has_sidecars)

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS of one commit, in the order recorded."""
        version = integer_of(version, "version")
        rows = raw_actions(self.log.commit_bytes(version), version, commit_name(version))
        return pl.DataFrame(rows, schema=ACTIONS, orient="row")

    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return self._files(self.state(version)).files(columns)

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return self._files(self.state(version)).statistics(columns)

    def sampled_statistics(self, version: int | None, share: float) -> pl.DataFrame:
        return self._files(self.state(version)).statistics(None, share)

    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        lives = self._history.lifetimes()
        return lives if columns is None else self._with_statistics(lives, columns, of_all=True)

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame:
        """As `lifetimes`, of the paths that a commit still recorded added or removed: of the other files, all but a few
        where the log of a large table was cleaned up, no statistics are read."""
        lives = self._history.lifetimes()
        has_changed = lives["added"].is_not_null() | lives["removed"].is_not_null()
        paths = lives["path"].filter(has_changed).unique()
        return self._with_statistics(lives.filter(pl.col("path").is_in(paths.implode())), columns, of_all=False)

    def _with_statistics(self, lives: pl.DataFrame, columns: Sequence[str], *, of_all: bool) -> pl.DataFrame:
        state = self.state()
        leaves = physical_leaves(self._states.schema(state), columns, state.metadata.partition_columns or ())
        prefix = string_prefix(state.properties)
        return with_statistics(lives, self.log, self._history.bases(), leaves, prefix, of_all=of_all)

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        state = self.state(version)
        return self._scan(state).plan(condition_of(where, self._states.schema(state)))

    def physical(self, path: str, version: int | None = None) -> PhysicalFile:
        state = self.state(version)
        size = listed_size(self._files(state).files(["path", "size"]), path, self.address)
        by_id = column_mapping_mode(state.table_protocol, state.properties) == "id"
        return physical_file(self.storage, path, size, self._states.schema(state), "id" if by_id else "name")

    def scan(
        self,
        version: int | None = None,
        *,
        at: datetime | None = None,
        ref: str | None = None,
        paths: Sequence[str] | None = None,
        row_tracking: bool = False,
    ) -> pl.LazyFrame:
        """The rows at a version, pinned now; filters prune files by partition values and statistics.

        `paths`: of these data files alone, by their paths in FILES; reading raises InvalidRequestError for one that the
        version has not.
        `row_tracking` adds `_row_id` and `_row_commit_version` (i64; null where the log does not say):
        InvalidRequestError if the table does not track its rows.
        Collecting raises DataFileMissingError for a file that is gone, UnsupportedTableError for a type without rows.
        """
        state = self.state(version, at, ref)
        self._states.require_parquet(state)
        scan = self._files(state).tracked_scan() if row_tracking else self._scan(state)
        return lazy_rows(of_files(scan.tasks, paths), scan.schema, self.storage)

    def tasks(
        self, version: int | None = None, columns: Sequence[str] | None = None, where: str | pl.Expr | None = None
    ) -> list[FileTask]:
        """The files a read needs, each as a value that another process can read by itself (`lakeview.rows.tasks`).

        `where` skips files, it does not filter rows.
        """
        state = self.state(version)
        self._states.require_parquet(state)
        schema = self._states.schema(state)
        tasks = self._scan(state).tasks(None if where is None else condition_of(where, schema))
        return select_columns((replace(t, roots=self.storage.config.roots) for t in tasks), schema, columns)

    def check(self, now: datetime | None = None) -> list[Finding]:
        """The log doctor: what the log breaks or leaves odd, worst first, then what is well.

        Works whatever the table's protocol asks and however broken it is. `now`: an aware moment by which files too
        young to be judged are left out. Costs the whole log and one listing of the folder.
        """
        from lakeview.delta.lint import check

        if now is not None:
            milliseconds(now)
        return check(self.log, now)

    def audit(self, start: int | None = None, end: int | None = None) -> pl.DataFrame:
        from lakeview.delta.audit import audit

        first, last = optional_integer(start, "version"), optional_integer(end, "version")
        return audit(self.log, self._history.times, first, last)

    # -- what the writer builds on

    def state(self, version: int | None = None, at: datetime | None = None, ref: str | None = None) -> Replay:
        """The replayed log at a version or a moment, protocol checked."""
        if ref is not None:
            raise InvalidRequestError(
                f"a Delta table has no ref called {ref}", fix="ask for a version or a moment", kind="unknown-ref"
            )
        check_point(version, at)
        if at is not None:
            version = version_at(self._history.times(), at, self.address)
        # a moment before the newest published commit is certain as well: nothing can come between any more
        certain = version is not None and (at is None or version < self.log.latest)
        return self._states.readable(self.log.latest if version is None else version, by_number=certain)

    # -- inside

    def _files(self, state: Replay) -> VersionFiles:
        return VersionFiles(state, self._states.schema(state), self._states.partitions(state), self.address)

    def _scan(self, state: Replay) -> Scan:
        scan = self._last_scan
        if scan is None or scan.state is not state:
            scan = self._last_scan = self._files(state).scan()  # for what it has read
        return scan

    def _difference(self, base: int, version: int | None) -> RangeRead:
        ends = [self.state(base), self.state(version)]
        for state in ends:
            self._states.require_parquet(state)
        first, last = ((state, self._states.schema(state)) for state in ends)
        mappings = self._states.mappings(*sorted(ends, key=lambda state: state.version))
        return end_difference(first, last, mappings, self.address).range_read(self.storage)

    def _changes(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        first, last = commit_range(start, end, self.log.latest, self._history.times, self.address)
        # also up to the latest version: of a table that a catalog manages, the log does not say which one that is
        self._states.require_parquet(self.state(end) if isinstance(end, int) else self.state(at=end))
        scan = change_scan(self.log, self.state, first, last)
        return RangeRead(scan.plan, partial(scan.rows, self.storage), scan.all_tasks)
