"""The open tables of the configuration: each is opened once, on first use, and closed when it is shared no more."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakeview.delta.sharing import DeltaTable
from lakeview.discovery import open_table
from lakeview.iceberg.table import IcebergTable
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import CorruptTableError
from lakeview.sharing.server.catalogue import Place
from lakeview.sharing.server.delta_source import DeltaSource
from lakeview.sharing.server.iceberg_source import IcebergSource
from lakeview.sharing.server.refresh import ANOTHER_TABLE
from lakeview.sharing.server.refusals import unsupported_form
from lakeview.sharing.server.settings import Settings, TableEntry
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.shared_views import ViewSource
from lakeview.sharing.server.source import Source
from lakeview.storage.byte_cache import ByteBoundedCache


class TableHandle:
    """One shared table at run time. `turn`: only one request at a time looks for new versions, so that a slow store
    holds one thread and no other table; `loading`: only one at a time loads a version. A request for the table's
    version waits for the first of them only."""

    def __init__(self, entry: TableEntry) -> None:
        self.entry = entry
        self.turn = asyncio.Lock()
        self.loading = asyncio.Lock()
        self.opening = threading.Lock()
        self.source: Source | None = None


@dataclass(frozen=True)
class RequestedTable:
    """A table as one request sees it: open, and its latest version at that moment. All methods block."""

    place: Place
    sources: Sources
    source: Source
    latest: int

    def version(self, version: int | None, moment: datetime | None) -> int:
        """The version that a number or a timestamp asks for, the latest without either. 400 outside what is shared."""
        if version is None and moment is None:
            return self.latest
        return self.within(self.source.version_at(moment) if version is None and moment is not None else version or 0)

    def within(self, version: int) -> int:
        """A version that is shared. 400 for any other."""
        self.source.require_shared(version, self.place.table.start_version, self.latest)
        return version

    def shared_version(self, version: int) -> SharedVersion:
        """One version, loaded or from the cache."""
        return self.sources.version(self.source, version)

    def past(self, version: int) -> SharedVersion:
        """One version whose data files all exist. 400 if some are gone."""
        if version != self.latest:
            self.source.require_files(version)
        return self.shared_version(version)


class Sources:
    """The open tables, and a cache of their versions that is bounded in bytes."""

    def __init__(self, settings: Settings, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._handles: dict[str, TableHandle] = {}
        # by the open table, not by its id: one that was moved or recreated has the same id
        self._versions: ByteBoundedCache[tuple[Source, int], SharedVersion] = ByteBoundedCache(
            settings.cache_bytes, lambda version: version.size, growing=True
        )
        self._lock = threading.Lock()
        self._settings = settings

    def configure(self, settings: Settings) -> None:
        """Take up changed settings: tables whose entries changed are opened again."""
        entries = {t.id: t for s in settings.shares for c in s.schemas for t in c.tables}
        with self._lock:
            self._settings = settings
            self._handles = {k: o for k, o in self._handles.items() if entries.get(k) == o.entry}

    def of(self, entry: TableEntry) -> TableHandle:
        """The table of an entry, which may not be open yet."""
        assert entry.id is not None
        with self._lock:
            handle = self._handles.get(entry.id)
            if handle is None or handle.entry != entry:
                handle = self._handles[entry.id] = TableHandle(entry)
            return handle

    def open(self, handle: TableHandle) -> Source:
        """Open a table on first use; blocks. Errors of `lakeview.model.errors`."""
        with handle.opening:
            if handle.source is None:
                handle.source = self._open(handle.entry)
            return handle.source

    def current(self, place: Place) -> RequestedTable:
        """A table with its latest version by now; blocks. One that was deleted and recreated is opened again.

        Errors of `lakeview.model.errors`.
        """
        handle = self.of(place.table)
        source = self.open(handle)
        try:
            return RequestedTable(place, self, source, source.refresh())
        except CorruptTableError as error:
            if error.kind != ANOTHER_TABLE:
                raise
        with handle.opening:
            if handle.source is source:
                handle.source = None
        source = self.open(handle)
        return RequestedTable(place, self, source, source.refresh())

    def _open(self, entry: TableEntry) -> Source:
        table = open_table(entry.location, storage_options=_signing(entry) or None)
        if entry.view is not None:
            return ViewSource(entry, table, self._settings.views, self._clock)
        match table:
            case DeltaTable():
                return DeltaSource(table, tell_sizes=self._settings.tell_sizes)
            case IcebergTable():
                return IcebergSource(table)
        raise unsupported_form(f"tables of format {table.format} cannot be shared")

    def version(self, source: Source, version: int) -> SharedVersion:
        """One version of an open table, loaded or from the cache; blocks."""
        shared_version = self._versions.get((source, version))
        if shared_version is None:
            shared_version = source.at(version)
        self._versions.put((source, version), shared_version)
        return shared_version


def _signing(entry: TableEntry) -> dict[str, Any]:
    """The storage options of a table. On S3 the fourth version of signatures is asked for: with the second, which boto3
    still prefers for URLs, clients built on the Delta kernel take an address for a local file."""
    options = dict(entry.storage_options)
    if entry.location.startswith("s3://"):
        options["config_kwargs"] = {"signature_version": "s3v4", **options.get("config_kwargs", {})}
    return options
