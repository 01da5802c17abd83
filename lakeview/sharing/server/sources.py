"""Entries of the configuration to open tables: each opened once, on first use, forgotten when it is shared no more."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from lakeview.delta.sharing import DeltaTable
from lakeview.discovery import open_table
from lakeview.iceberg.table import IcebergTable
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import CorruptTableError
from lakeview.sharing.server.delta_source import DeltaSource
from lakeview.sharing.server.iceberg_source import IcebergSource
from lakeview.sharing.server.refresh import ANOTHER_TABLE
from lakeview.sharing.server.refusals import unsupported
from lakeview.sharing.server.settings import Settings, TableEntry
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.shared_views import ViewSource
from lakeview.sharing.server.source import Source
from lakeview.storage.byte_cache import ByteBoundedCache


class Opened:
    """One shared table at run time. `turn`: only one request at a time looks for new versions, so that a slow store
    holds one thread and no other table; `loading`: only one at a time loads a version. A request for the table's
    version waits for the first of them only."""

    def __init__(self, entry: TableEntry) -> None:
        self.entry = entry
        self.turn = asyncio.Lock()
        self.loading = asyncio.Lock()
        self.opening = threading.Lock()
        self.source: Source | None = None


class Sources:
    """The open tables. Versions that were asked for are kept, so many bytes of them."""

    def __init__(self, settings: Settings, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._opened: dict[str, Opened] = {}
        # by the open table, not by its id: one that lies elsewhere now, or was made anew, has the same id
        self._versions: ByteBoundedCache[tuple[Source, int], SharedVersion] = ByteBoundedCache(
            settings.cache_bytes, lambda version: version.size, growing=True
        )
        self._lock = threading.Lock()
        self._settings = settings

    def configure(self, settings: Settings) -> None:
        """Take up changed settings: tables that are shared otherwise than before are opened again."""
        entries = {t.id: t for s in settings.shares for c in s.schemas for t in c.tables}
        with self._lock:
            self._settings = settings
            self._opened = {k: o for k, o in self._opened.items() if entries.get(k) == o.entry}

    def of(self, entry: TableEntry) -> Opened:
        """The table of an entry, not yet opened perhaps."""
        assert entry.id is not None
        with self._lock:
            found = self._opened.get(entry.id)
            if found is None or found.entry != entry:
                found = self._opened[entry.id] = Opened(entry)
            return found

    def open(self, opened: Opened) -> Source:
        """Open a table on first use; blocks. Errors of `lakeview.model.errors`."""
        with opened.opening:
            if opened.source is None:
                opened.source = self._open(opened.entry)
            return opened.source

    def current(self, opened: Opened) -> tuple[Source, int]:
        """An open table and its latest version by now; blocks. One that was deleted and made anew is opened anew.

        Errors of `lakeview.model.errors`.
        """
        source = self.open(opened)
        try:
            return source, source.refresh()
        except CorruptTableError as error:
            if error.kind != ANOTHER_TABLE:
                raise
        with opened.opening:
            if opened.source is source:
                opened.source = None
        source = self.open(opened)
        return source, source.refresh()

    def _open(self, entry: TableEntry) -> Source:
        table = open_table(entry.location, storage_options=_signing(entry) or None)
        if entry.view is not None:
            return ViewSource(entry, table, self._settings.views, self._clock)
        match table:
            case DeltaTable():
                return DeltaSource(table, tell_sizes=self._settings.tell_sizes)
            case IcebergTable():
                return IcebergSource(table)
        raise unsupported(f"tables of format {table.format} cannot be shared")

    def version(self, source: Source, version: int) -> SharedVersion:
        """One version of an open table, loaded or remembered; blocks."""
        found = self._versions.get((source, version))
        if found is None:
            found = source.at(version)
        self._versions.put((source, version), found)
        return found


def _signing(entry: TableEntry) -> dict[str, Any]:
    """The storage options of a table. On S3 the fourth version of signatures is asked for: with the second, which boto3
    still prefers for URLs, clients built on the Delta kernel take an address for a local file."""
    options = dict(entry.storage_options)
    if entry.location.startswith("s3://"):
        options["config_kwargs"] = {"signature_version": "s3v4", **options.get("config_kwargs", {})}
    return options
