"""A shared table: what a sharing server sends of it to snapshots, listings and rows."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NoReturn

import polars as pl

from lakeview.delta.sharing import live_lifetimes
from lakeview.model.arguments import integer_of
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import Config, settings
from lakeview.model.errors import UnsupportedTableError, VersionNotFoundError
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import ACTIONS, COMMITS, SCHEMAS
from lakeview.model.physical_file import PhysicalFile
from lakeview.model.range_read import RangeRead
from lakeview.model.snapshot import Snapshot, milliseconds
from lakeview.model.table import check_point
from lakeview.model.table_display import TableDisplay
from lakeview.predicates.evaluation import condition_of
from lakeview.rows.footers import listed_size, physical_file
from lakeview.rows.lazy import lazy_rows
from lakeview.rows.tasks import FileTask, of_files, select_columns
from lakeview.sharing.client.answers import Head
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.portable_tasks import check_range, portable_task, range_after, reach, shared_changes
from lakeview.sharing.client.profile import Profile, TableName
from lakeview.sharing.client.range_file import block_cache
from lakeview.sharing.client.state import SharedState, head_of, history_findings, shared_versions

_MAX_STATES = 4


class SharedTable(TableDisplay):
    """A table that a sharing server shares. Implements `lakeview.model.table.Table`; safe to use from several threads.

    Only what the protocol carries is known: the newest version at once, earlier ones where their history is shared, no
    commits, no log. Files are read over signed URLs, piece by piece, and cached by their id (`client.signed_files`).
    """

    format = "sharing"

    def __init__(
        self,
        profile: Profile,
        table: TableName,
        *,
        config: Config | None = None,
        limits: Limits | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.profile = profile
        self.name = table
        self._config = config or settings()
        self.client = SharingClient(profile, limits=limits or reach(self._config), clock=clock)
        self._blocks = block_cache()
        self._lock = threading.RLock()
        self._states: dict[int, SharedState] = {}
        head = head_of(self.client, table)
        self._latest = head.version
        self._remember(head, is_pinned=False)

    @property
    def address(self) -> str:
        """The profile's address and the table's name."""
        return f"{self.profile.address}#{self.name}"

    @property
    def latest_version(self) -> int:
        return self._latest

    def refresh(self) -> bool:
        """True if there is a newer version, or an older one: another table has taken its place. Costs one request."""
        version = self.client.version(self.name)
        with self._lock:
            before, self._latest = self._latest, version
            if version < before:
                self._states.clear()
        return version != before

    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a version or a moment, where its history is shared; the latest without either.

        VersionNotFoundError with the server's words where it gives none, UnsupportedTableError for a feature by name,
        InvalidRequestError (a naive moment, a ref). When a version was committed is not shared: `timestamp` is None.
        """
        state = self._state(version, at, ref)
        return Snapshot(state.describe(), state.listed_files, table=self)

    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:  # noqa: ARG002 (of none)
        """COMMITS, empty: a share has none."""
        return pl.DataFrame(schema=COMMITS)

    def versions(self, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first, at most a thousand; when they were committed is not shared.

        Whether earlier ones may be read is asked of the server: about ten requests, one where it shares no history;
        with `look=False` none, and `readable` is null.
        """
        return shared_versions(self.client, self.name, self._latest, look=look)

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS: the one of the latest version, at that version; since when it holds is not shared."""
        state = self._state()
        row = (state.version, None, state.head.metadata.schema_string or "")
        return pl.DataFrame([row], schema=SCHEMAS, orient="row")

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS, empty: what a commit recorded is not shared. VersionNotFoundError for a version there is not."""
        self._check_version(integer_of(version, "version"))
        return pl.DataFrame(schema=ACTIONS)

    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES at a version; `path` is the file's id, which stays the same, and never its URL."""
        return self._state(version).listed_files.files(columns)

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return self._state(version).listed_files.statistics(columns)

    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES of the live files: since when they are part of the table is not shared, nor which ones were.

        With `columns`, their `statistics` too: a struct with one field for each, as in STATISTICS.
        """
        files = self.files(columns=["path", "deletion_vector", "size", "records", "deleted_records"])
        return live_lifetimes(files, None if columns is None else self.statistics(columns=columns))

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        state = self._state(version)
        return state.listed_files.scan().plan(condition_of(where, state.schema))

    def physical(self, path: str, version: int | None = None) -> PhysicalFile:
        state = self._state(version)
        size = listed_size(state.listed_files.files(["path", "size"]), path, self.address)
        return physical_file(state.files, path, size, state.schema)

    def scan(
        self,
        version: int | None = None,
        *,
        at: datetime | None = None,
        ref: str | None = None,
        paths: Sequence[str] | None = None,
        row_tracking: bool = False,
    ) -> pl.LazyFrame:
        """The rows at a version, pinned now; filters and limits are hints to the server and hold here.

        `paths`: of these data files alone, by their paths in FILES; reading raises InvalidRequestError for one that the
        version has not.
        `row_tracking` adds `_row_id` and `_row_commit_version`: InvalidRequestError if the table does not track its
        rows, or its server does not say so. Collecting raises DataFileMissingError for a file that is gone,
        VersionNotFoundError if the table has moved on and its history is not shared, UnsupportedTableError for a type
        without rows.
        """
        state = self._state(version, at, ref)
        state.require_rows()
        if not row_tracking:
            enough = state.enough if paths is None else None
            return lazy_rows(of_files(state.tasks, paths), state.schema, state.files, enough=enough)
        scan = state.listed_files.tracked_scan()
        return lazy_rows(of_files(scan.tasks, paths), scan.schema, state.files)

    def tasks(
        self, version: int | None = None, columns: Sequence[str] | None = None, where: str | pl.Expr | None = None
    ) -> list[FileTask]:
        """The files a read needs, each as a value that another process can read by itself, until its URL expires.

        `where` skips files, it does not filter rows. A task holds a signed URL: every holder can read its file.
        """
        state = self._state(version)
        state.require_rows()
        needed_tasks = state.tasks(None if where is None else condition_of(where, state.schema))
        files, urls = state.files, state.files.urls()
        return select_columns((portable_task(task, urls, files.server) for task in needed_tasks), state.schema, columns)

    def check(self, now: datetime | None = None) -> list[Finding]:
        """What is known without a log: the profile, whether the table opens, whether its history is shared."""
        if now is not None:
            milliseconds(now)  # refuses a naive moment
        self._state()
        return [
            *(self.profile.findings(now) if now is not None else ()),
            *history_findings(self.client, self.name, self._latest),
            Finding(
                "log-not-shared",
                Severity.NOTE,
                "Its log is not shared",
                "commits, removed files and checkpoints of a shared table are known to its server only",
                rule="Delta Sharing protocol",
            ),
        ]

    def transaction(self, operation: str = "WRITE", **_: Any) -> NoReturn:
        """UnsupportedTableError: a share is read, not written."""
        raise UnsupportedTableError(
            f"{self.address} is shared to be read, and cannot be written ({operation})",
            fix="write the table where it lies",
            kind="unsupported-format",
        )

    # -- inside

    def _state(self, version: int | None = None, at: datetime | None = None, ref: str | None = None) -> SharedState:
        if ref is not None:
            self.ref_lifetimes(ref)  # says that there is none
        check_point(version, at)
        if at is not None:
            return self._load(None, at)
        version = self._latest if version is None else version
        self._check_version(version)
        return self._load(version, None)

    def _check_version(self, version: int) -> None:
        if not 0 <= version <= self._latest:
            raise VersionNotFoundError(
                f"{self.address} has no version {version}: it is at {self._latest}",
                fix=f"ask for a version from 0 to {self._latest}",
            )

    def _load(self, version: int | None, at: datetime | None) -> SharedState:
        with self._lock:
            if version is not None and version in self._states:
                return self._states[version]
            is_pinned = version != self._latest
            head = head_of(self.client, self.name, version if is_pinned else None, at)
            if not is_pinned and head.version != version:  # it moved on since it was asked for its version
                head, is_pinned = head_of(self.client, self.name, version), True
            return self._remember(head, is_pinned=is_pinned)

    def _remember(self, head: Head, *, is_pinned: bool) -> SharedState:
        if head.version not in self._states:
            self._states[head.version] = SharedState(
                self.client, self.name, head, is_pinned=is_pinned, address=self.address, config=self._config,
                blocks=self._blocks,
            )  # fmt: skip
            while len(self._states) > _MAX_STATES:
                del self._states[next(iter(self._states))]
        return self._states[head.version]

    def _changes(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        """From the change feed that the server shares; SharingError in its words where it shares none."""
        check_range(start, end, self._latest, self.address)
        feed = shared_changes(self.client, self.name, start, end, self.address, self._config, self._blocks)
        return RangeRead(feed.scan.plan, lambda: feed.scan.rows(feed.files), feed.tasks)

    def _difference(self, base: int, version: int | None) -> RangeRead:
        """The changes of the commits after `base`: a server shares no other way that needs no more files."""
        return self._changes(*range_after(base, self._latest if version is None else version))
