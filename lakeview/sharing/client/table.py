"""A shared table: what a sharing server tells of it to snapshots, listings and rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import polars as pl

from lakeview.delta.sharing import check_type_changes
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import Config, settings
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError, VersionNotFoundError
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import ACTIONS, COMMITS, LIFETIMES, SCHEMAS
from lakeview.model.physical import PhysicalFile
from lakeview.model.snapshot import Snapshot, TableMetadata, milliseconds
from lakeview.model.table import OneLine, RangeRead, check_point
from lakeview.predicates import predicate
from lakeview.rows.footers import listed_size, physical_file
from lakeview.rows.lazy import lazy_rows
from lakeview.rows.tasks import FileTask, select_columns
from lakeview.sharing.client.answers import Head
from lakeview.sharing.client.blocks import block_cache
from lakeview.sharing.client.changes import check_range, shared_changes
from lakeview.sharing.client.earliest_version import SharedPast
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.portable_tasks import portable_task, reach
from lakeview.sharing.client.profile import Profile, TableName, parse_address, read_profile
from lakeview.sharing.client.state import SharedState, head_of

_KEPT_STATES = 4


def open_shared(
    address: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    limits: Limits | None = None,
    clock: Clock = system_clock,
) -> SharedTable:
    """The table at `<profile>#<share>.<schema>.<table>`; `storage_options` are those of the profile's store.

    InvalidRequestError for another address, NotATableError if profile or table are not there, AccessDeniedError if the
    profile has expired or the server refuses it, StoreUnavailableError, SharingError.
    """
    parts = parse_address(os.fspath(address))
    if parts is None:
        raise InvalidRequestError(
            f"{os.fspath(address)} is no address of a shared table",
            fix="write it as profile.share#share.schema.table",
            kind="bad-address",
        )
    config = config or settings()
    profile = read_profile(parts[0], config=config, **dict(storage_options or {}))
    return SharedTable(profile, parts[1], config=config, limits=limits, clock=clock)


class SharedTable(OneLine):
    """A table that somebody shares. Implements `lakeview.model.table.Table`; safe to use from several threads.

    Only what the protocol tells is known: the newest version at once, earlier ones where their history is shared, no
    commits, no log. Files are read over signed URLs, piece by piece, and cached by their id (`client.blocks`).
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
        self.client = SharingClient(profile, limits=limits or reach(config or settings()), clock=clock)
        self._config = config or settings()
        self._blocks = block_cache()
        self._lock = threading.RLock()
        self._states: dict[int, SharedState] = {}
        self._past = SharedPast(self.client, table)
        head = head_of(self.client, table)
        self._latest = head.version
        self._kept(head, pinned=False)

    @property
    def address(self) -> str:
        """The profile's address and the table's name."""
        return f"{self.profile.address}#{self.name}"

    @property
    def latest_version(self) -> int:
        """The newest version seen by the last refresh."""
        return self._latest

    def refresh(self) -> bool:
        """True if there is a newer version; costs one request."""
        found = self.client.version(self.name)
        with self._lock:
            newer = found > self._latest
            self._latest = found
        return newer

    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a version or a moment, where its history is shared; the latest without either.

        VersionNotFoundError with the server's words where it gives none, UnsupportedTableError for a feature by name,
        InvalidRequestError (a naive moment, a ref). When a version was committed is not told: `timestamp` is None.
        """
        state = self._state(version, at, ref)
        return Snapshot(self._describe(state), state.listed.loader(), table=self)

    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:  # noqa: ARG002 (of none)
        """COMMITS, empty: a share tells nothing of commits."""
        return pl.DataFrame(schema=COMMITS)

    def versions(self, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first, at most a thousand; when they were committed is not told.

        Whether earlier ones may be read is asked of the server: about ten requests, one where it shares no history;
        with `look=False` none, and `readable` is null.
        """
        return self._past.versions(self._latest, look=look)

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS: the one of the latest version, at that version; since when it holds is not told."""
        state = self._state()
        row = (state.version, None, state.head.metadata.schema_string or "")
        return pl.DataFrame([row], schema=SCHEMAS, orient="row")

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS, empty: what a commit recorded is not shared. VersionNotFoundError for a version there is not."""
        self._check_version(version)
        return pl.DataFrame(schema=ACTIONS)

    def files(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES at a version; `path` is the file's id, which stays the same, and never its URL."""
        return self._state(version).listed.files(columns)

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS of the live files at a version; partition columns have none.

        InvalidRequestError for a column the schema does not have.
        """
        return self._state(version).listed.statistics(columns)

    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES of the live files: since when they are part of the table is not told, nor which ones were.

        With `columns`, their `statistics` too: a struct with one field for each, as in STATISTICS.
        """
        files = self.files(columns=["path", "deletion_vector", "size", "records", "deleted_records"])
        lives = files.select(
            "path",
            "deletion_vector",
            pl.lit(None, pl.Int64).alias("added"),
            pl.lit(None, pl.Int64).alias("removed"),
            "size",
            (pl.col("records") - pl.col("deleted_records")).alias("records"),
        ).select(LIFETIMES.names())
        told = pl.DataFrame() if columns is None else self.statistics(columns=columns)
        if told.width <= 2:  # no column was asked for but those that files are named by
            return lives
        each = told.select("_path", "_deletion_vector").with_columns(
            told.drop("_path", "_deletion_vector").to_struct("statistics")
        )
        each = each.rename({"_path": "path", "_deletion_vector": "deletion_vector"})
        return lives.join(each, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left")

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        """PLAN: which files a filter reads, and what spares the others."""
        state = self._state(version)
        return state.listed.scan().plan(predicate(where, state.schema))

    def physical(self, path: str, version: int | None = None) -> PhysicalFile:
        """How a file of a version is laid out inside: InvalidRequestError, DataFileMissingError, UnsupportedTableError
        for one that is no Parquet file, CorruptTableError."""
        state = self._state(version)
        size = listed_size(state.listed.files(["path", "size"]), path, self.address)
        return physical_file(state.files, path, size, state.schema)

    def scan(
        self,
        version: int | None = None,
        *,
        at: datetime | None = None,
        ref: str | None = None,
        row_tracking: bool = False,
    ) -> pl.LazyFrame:
        """The rows at a version, pinned now; filters and limits are hints to the server and hold here.

        `row_tracking` adds `_row_id` and `_row_commit_version`: InvalidRequestError if the table does not track its
        rows, or its server does not say so. Collecting raises DataFileMissingError for a file that is gone,
        VersionNotFoundError if the table has moved on and its history is not shared, UnsupportedTableError for a type
        without rows.
        """
        state = self._state(version, at, ref)
        _require_parquet(state, self.address)
        if not row_tracking:
            return lazy_rows(state.tasks, state.schema, state.files, enough=state.enough)
        scan, tracked = state.listed.tracked_scan()
        return lazy_rows(scan.tasks, tracked, state.files)

    def tasks(
        self, version: int | None = None, columns: Sequence[str] | None = None, where: str | pl.Expr | None = None
    ) -> list[FileTask]:
        """The files a read needs, each as a value that another process can read by itself, until its URL expires.

        `where` spares files, it does not filter rows. Tasks hold signed URLs: whoever has one can read its file.
        """
        state = self._state(version)
        _require_parquet(state, self.address)
        wanted = state.tasks(None if where is None else predicate(where, state.schema))
        urls = state.files.urls()
        return select_columns((portable_task(task, urls) for task in wanted), state.schema, columns)

    def check(self, now: datetime | None = None) -> list[Finding]:
        """What is known without a log: the profile, whether the table opens, whether its history is shared."""
        found: list[Finding] = []
        if now is not None:
            milliseconds(now)  # refuses a naive moment
            found += self.profile.findings(now)
        self._state()
        found += self._past.findings(self._latest)
        found.append(
            Finding(
                "log-not-shared",
                Severity.NOTE,
                "Its log is not shared",
                "commits, removed files and checkpoints of a shared table are known to its server only",
                rule="Delta Sharing protocol",
            )
        )
        return found

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
            return self._made(None, at)
        wanted = self._latest if version is None else version
        self._check_version(wanted)
        return self._made(wanted, None)

    def _check_version(self, version: int) -> None:
        if not 0 <= version <= self._latest:
            raise VersionNotFoundError(
                f"{self.address} has no version {version}: it is at {self._latest}",
                fix=f"ask for a version from 0 to {self._latest}",
            )

    def _made(self, version: int | None, at: datetime | None) -> SharedState:
        with self._lock:
            if version is not None and version in self._states:
                return self._states[version]
            pinned = version != self._latest
            head = head_of(self.client, self.name, version if pinned else None, at)
            if not pinned and head.version != version:  # it moved on since it was asked for its version
                head, pinned = head_of(self.client, self.name, version), True
            return self._kept(head, pinned=pinned)

    def _kept(self, head: Head, *, pinned: bool) -> SharedState:
        if head.version not in self._states:
            self._states[head.version] = SharedState(
                self.client, self.name, head, pinned=pinned, address=self.address, config=self._config,
                blocks=self._blocks,
            )  # fmt: skip
            while len(self._states) > _KEPT_STATES:
                del self._states[next(iter(self._states))]
        return self._states[head.version]

    def _changes(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        """From the change feed that the server shares; SharingError in its words where it shares none."""
        check_range(start, end, self._latest, self.address)
        found = shared_changes(self.client, self.name, start, end, self.address, self._config, self._blocks)
        return RangeRead(found.scan.plan, lambda: found.scan.rows(found.files))

    def _difference(self, base: int, version: int | None) -> RangeRead:
        """The changes of the commits after `base`: a server shares no other way that needs no more files."""
        last = self._latest if version is None else version
        if base >= last:
            raise InvalidRequestError(
                f"a shared table is compared forwards only, and version {base} does not come before {last}",
                fix="give the earlier version as the base",
                kind="bad-range",
            )
        return self._changes(base + 1, last)

    def _describe(self, state: SharedState) -> TableMetadata:
        metadata = state.head.metadata
        return TableMetadata(
            address=self.address,
            format=self.format,
            version=state.version,
            timestamp=None,
            schema=state.schema,
            partition_columns=tuple(metadata.partition_columns or ()),
            properties=metadata.properties,
            protocol=state.listed.table_protocol,
            id=metadata.id,
            name=metadata.name or self.name.name,
            description=metadata.description,
            created=None,
            data_format=metadata.format.provider,
        )


def _require_parquet(state: SharedState, address: str) -> None:
    provider = state.head.metadata.format.provider
    if provider.lower() != "parquet":
        raise UnsupportedTableError(
            f"{address} keeps its rows in {provider} files, which this reader does not read",
            fix="read the rows with the engine that wrote them",
            place="metaData.format.provider",
            kind="unsupported-data-format",
        )
    check_type_changes(state.schema)
