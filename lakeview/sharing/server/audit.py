"""Requests to an audit log: a Delta table, written in batches by threads and once more at the end."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict, dataclass, fields
from datetime import datetime

import polars as pl
import pyarrow as pa

from lakeview.delta.sharing import DeltaTable, maintain
from lakeview.discovery import create_table, open_table
from lakeview.model.clock import Clock
from lakeview.model.errors import LakeviewError, NotATableError, UnsupportedTableError
from lakeview.model.printable import printable


@dataclass(slots=True)
class Entry:
    """One row of AUDIT in the making; `time` is aware."""

    time: datetime
    request_id: str
    recipient: str | None = None
    token_id: str | None = None
    client: str | None = None
    agent: str | None = None
    action: str = "list"
    share: str | None = None
    schema: str | None = None
    table: str | None = None
    version: int | None = None
    end_version: int | None = None
    hints: str | None = None
    file: str | None = None
    requests: int = 1
    files: int | None = None
    bytes: int = 0
    status: int = 0


_TYPES = {"str": pl.String(), "int": pl.Int64(), "datetime": pl.Datetime("us", "UTC")}

AUDIT = pl.Schema({field.name: _TYPES[str(field.type).partition(" ")[0]] for field in fields(Entry)})
"""One row a request; over the time between two writes are added up: requests for a file by recipient, table and file,
and those without a known token by where they came from, what they asked for and how they were answered.

`recipient`, `token_id`: null without a known token; `client`: the address it came from; `action`: list, version,
metadata, query, changes or file; `version`, for changes the first, with `end_version` the last; `hints`: the filter as
JSON text, its first 4,096 characters; `file`: its path below the table; `files` listed; `bytes` of the answer's body;
`status` of the answer. In every text characters that are not printable are escaped."""

_MAX_WAITING = 100_000
_LOG = logging.getLogger("lakeview.sharing.server")


_TEXTS = tuple(name for name, type_ in AUDIT.items() if type_ == pl.String())


class AuditLog:
    """Takes entries at once, writes them when asked to. Safe to use from several threads.

    When more than 100,000 entries wait, as the table cannot be written, the oldest are given up; the log says so.
    """

    def __init__(self, address: str, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._entries: list[Entry] = []
        self._alike: dict[tuple[object, ...], Entry] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._table: DeltaTable | None = None

    def add(self, entry: Entry) -> None:
        """Take one request. Control characters, line separators and marks of direction in its texts are escaped: a
        recipient chooses its User-Agent, and a terminal or a page shows it."""
        for name in _TEXTS:
            if (value := getattr(entry, name)) is not None:
                setattr(entry, name, printable(value))
        with self._lock:
            if (key := _alike(entry)) is None:
                self._entries.append(entry)
            elif (earlier := self._alike.get(key)) is not None:
                earlier.requests += entry.requests
                earlier.bytes += entry.bytes
            else:
                self._alike[key] = entry

    def flush(self) -> int:
        """Write what waits as one commit; how many rows. What cannot be written stays for the next time.

        Compacts small files and removes old ones at intervals: `lakeview.delta.maintenance`.
        """
        with self._writing:
            waiting = self._take_entries()
            if not waiting:
                return 0
            try:
                self._open_table().append(pl.DataFrame([asdict(e) for e in waiting], schema=AUDIT))
            except (LakeviewError, OSError, pl.exceptions.PolarsError, pa.ArrowException) as error:
                _LOG.error("the audit log cannot be written: %s", error)
                self._table = None  # which may have been moved away: it is opened again, or made
                with self._lock:
                    self._entries = [*waiting, *self._entries]
                return 0
            if maintain(self._open_table(), self._clock):
                self._table = None  # it has listed what is gone now
            return len(waiting)

    def _take_entries(self) -> list[Entry]:
        """What waits, the oldest first; it waits no more."""
        with self._lock:
            waiting = [*self._entries, *self._alike.values()]
            self._entries, self._alike = [], {}
        if (excess := len(waiting) - _MAX_WAITING) > 0:
            _LOG.error("%d entries of the audit log are lost", excess)
            del waiting[:excess]
        return waiting

    def _open_table(self) -> DeltaTable:
        if self._table is None:
            try:
                table = open_table(self._address)
            except NotATableError:
                columns = pl.DataFrame(schema=AUDIT).to_arrow().schema
                table = create_table(
                    self._address, columns, name="sharing audit", engine="lakeview share", clock=self._clock
                )
            if not isinstance(table, DeltaTable):
                raise UnsupportedTableError(
                    f"{self._address} is a table of format {table.format}, and the audit log is written as Delta",
                    fix="give the audit log another address",
                    place=self._address,
                    kind="unsupported-format",
                )
            self._table = table
        return self._table


def _alike(entry: Entry) -> tuple[object, ...] | None:
    """What requests have in common that are added up; None for one that stands for itself.

    A client without a token could otherwise write as many rows as it can send requests.
    """
    if entry.recipient is None:
        return entry.client, entry.action, entry.status
    if entry.action == "file" and entry.status < 400:
        return entry.recipient, entry.share, entry.schema, entry.table, entry.file
    return None
