"""Commit coordinators: exclusive creation of files on stores that cannot exclude a second writer by themselves.

A coordinator gives each address to one writer: the *claim*, which holds the file's bytes, decides who created it. The
file is put after the claim. A writer that stops between the two leaves an unfinished claim; the next writer that wants
the same address puts the claimed bytes there. Putting the same bytes twice changes nothing but the file's time, so that
two writers may finish one claim. All writers of a table have to use the same coordinator.
"""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from lakeview.model.errors import InvalidRequestError, StoreUnavailableError
from lakeview.storage.interface import Storage

UNCLAIMED = "coordinator-unavailable"
"""The kind of StoreUnavailableError of a coordinator that could not be asked: no claim was made."""

_SECONDS = 30.0
"""How long a writer waits for another one's transaction."""


class CommitCoordinator(ABC):
    """Claims of addresses, shared by all writers. Safe to use from several threads and processes."""

    @abstractmethod
    def claim(self, address: str, data: bytes) -> bool:
        """Claim an address for these bytes, durably. False if it is claimed already, finished or not.

        StoreUnavailableError where it cannot be; of kind UNCLAIMED only if no claim was made.
        """

    @abstractmethod
    def unfinished_bytes(self, address: str) -> bytes | None:
        """The bytes of a claim whose file may not be put yet; None for a finished claim and for none."""

    @abstractmethod
    def finish(self, address: str) -> None:
        """Note that the file of a claim is there. The address stays claimed."""

    def put_if_absent(self, store: Storage, path: str, data: bytes) -> None:
        """Create a file whole, or raise FileExistsError.

        An unfinished claim of another writer is finished first. StoreUnavailableError after the claim means that the
        file is decided and not there yet: the next writer puts it.
        """
        if store.exists(path):  # before the claim: after it, another writer may have finished ours
            raise FileExistsError(path)
        address = store.resolve(path)
        if self.claim(address, data):
            self._put(store, path, data)
            with suppress(StoreUnavailableError):  # the file is there; who meets the claim puts the same bytes again
                self.finish(address)
            return
        claim = self.unfinished_bytes(address)
        if claim is not None:
            self._put(store, path, claim)
            self.finish(address)
        raise FileExistsError(path)

    def _put(self, store: Storage, path: str, data: bytes) -> None:
        """Put the file of a claim; StoreUnavailableError for each failure, refused access too.

        The file is decided all the same: a caller that took the commit for failed and removed its data files would
        break the table, once the next writer puts the commit.
        """
        try:
            store.put(path, data)
        except OSError as error:  # the errors of stores, refused access among them
            raise StoreUnavailableError(
                f"{path} is claimed in the commit coordinator, and could not be put: {error}",
                fix="repair the access to the store; the next writer puts the file",
                place=path,
                kind="claimed",
            ) from error


class SqliteCoordinator(CommitCoordinator):
    """Claims in a SQLite file of this machine: for writers of one machine, or of several that share its file system
    with working locks. `path` is created if it is not there."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(os.path.expanduser(path))
        with self._transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS claims (address TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID")

    def claim(self, address: str, data: bytes) -> bool:
        with self._transaction() as connection:
            cursor = connection.execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", (address, data))
            return cursor.rowcount == 1

    def unfinished_bytes(self, address: str) -> bytes | None:
        with self._transaction() as connection:
            row = connection.execute("SELECT data FROM claims WHERE address = ?", (address,)).fetchone()
            return None if row is None else row[0]

    def finish(self, address: str) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE claims SET data = NULL WHERE address = ?", (address,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction that is durable when the block ends. A connection each: SQLite's belong to one thread."""
        kind = UNCLAIMED
        try:
            with closing(sqlite3.connect(self._path, timeout=_SECONDS, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                kind = "claim-unknown"  # it may be durable although its end fails
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreUnavailableError(
                f"the commit coordinator {self._path} could not be used: {error}",
                fix="check the file, its folder and the disk, then try again",
                place=self._path,
                kind=kind,
            ) from error


def coordinator_of(option: object) -> CommitCoordinator | None:
    """The coordinator of the storage option `commit_coordinator`: one itself, or `sqlite:///<path>`.

    InvalidRequestError for anything else.
    """
    match option:
        case None:
            return None
        case CommitCoordinator():
            return option
        case str() if option.startswith("sqlite:///") and len(option) > len("sqlite:///"):
            return SqliteCoordinator("/" + option.removeprefix("sqlite:///").lstrip("/"))
    raise InvalidRequestError(
        "commit_coordinator names no commit coordinator",
        fix="give sqlite:///<absolute path of a file>, or a CommitCoordinator",
        place="commit_coordinator",
    )
