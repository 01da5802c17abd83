"""One log entry into the log, exclusively: try, and where another writer was first, follow it or give up. Then what is
due after a commit: a version checksum, a checkpoint, and the cleanup of the log where the table wants it."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.log.commits import Commit, encode_actions
from lakeview.delta.log.paths import LOG_FOLDER, commit_name
from lakeview.delta.properties import value
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.checksum import write_checksum
from lakeview.delta.write.conflicts import SNAPSHOT
from lakeview.delta.write.entry import Entry, next_in_commit_time
from lakeview.delta.write.file_changes import FileChanges
from lakeview.delta.write.log_cleanup import clean_log
from lakeview.delta.write.rules import check_may_write
from lakeview.delta.write.target import Target
from lakeview.delta.write.writer import ENGINE
from lakeview.model.clock import Clock
from lakeview.model.errors import CommitConflictError, LakeviewError, StoreUnavailableError
from lakeview.storage import back_off
from lakeview.storage.exclusive import ExclusivePut

_ATTEMPTS = 200

_WINDOW_EVERY, _WINDOW = 4, 0.04
"""Writers that queue leave the log alone for so many seconds before each version that this number divides: engines that
take no turns commit then. A short pause of random length before every version takes as long in all, and leaves them
without any luck for twice as long (`benches/bench_contention.py`)."""


class CommitLoop:
    """The attempts of one transaction to become the next version.

    The store's reply to each is *won*, *lost* or *unknown*. An unknown one is settled by the log: `txn_id` is in the
    commit's own words, so that it is known again and never made twice.
    `unsure`: whether the commit is in the log, or may be there although it seemed to fail or was interrupted; its data
    files have to stay then.
    """

    def __init__(self, table: Target, txn_id: str) -> None:
        self._table = table
        self._storage = table.storage
        self._id = txn_id
        self._creation = ExclusivePut(table.storage, self._is_ours, self._outcome_unknown)

    @property
    def unsure(self) -> bool:
        """Whether the commit is in the log, or may be there although it seemed to fail or was interrupted."""
        return self._creation.unsure

    def run(self, base: int, encode: Callable[[int], bytes], follow: Callable[[Commit], None]) -> int:
        """Commit after version `base`; returns the version it became. `encode` gives the entry's bytes for a version,
        `follow` places ours after a commit that was first, or raises CommitConflictError.

        A lost attempt costs one listing and the winners' commits. CommitConflictError if too many were faster,
        StoreUnavailableError if the store did not answer; its kind is outcome-unknown where the commit may be there.
        """
        candidate = base + 1

        def write_ahead() -> None:  # written through to the disk while other writers have their turn
            self._storage.prepare(_path(candidate), encode(candidate))

        with self._storage.attempts(), self._storage.turn(write_ahead) as has_waited:
            if has_waited:
                candidate = self._follow(candidate, base, follow)
                if candidate % _WINDOW_EVERY == 0:  # else engines that take no turns starve
                    back_off(0, self._storage.remote, least=_WINDOW)
                    candidate = self._follow(candidate, candidate - 1, follow)
            for attempt in range(_ATTEMPTS):
                if self._creation.put(_path(candidate), encode(candidate)):
                    return candidate
                # who has lost often waits less: new arrivals let it pass
                back_off(0, self._storage.remote, share=1 / (1 + attempt))
                candidate = self._follow(candidate, candidate, follow)
        raise CommitConflictError(
            f"{_ATTEMPTS} commits in a row were won by other writers",
            fix="try again when fewer writers are at work",
            kind="too-many-attempts",
        )

    def _follow(self, first: int, last: int, follow: Callable[[Commit], None]) -> int:
        """Follow the commits from `first` on, of which those to `last` are in the log; the version after them."""
        self._table.refresh()
        latest = max(self._table.latest_version, last)
        for version in range(first, latest + 1):
            follow(self._table.log.commit(version))
        return latest + 1

    def _is_ours(self, path: str) -> bool:
        """Whether the commit of that name is ours."""
        version = int(path.removeprefix(f"{LOG_FOLDER}/").partition(".")[0])
        return self._table.log.commit(version).info.txn_id == self._id

    def _outcome_unknown(self, path: str, error: LakeviewError) -> StoreUnavailableError:
        name = path.removeprefix(f"{LOG_FOLDER}/")
        return StoreUnavailableError(
            f"whether version {int(name.partition('.')[0])} was committed is not known: {error.message}",
            fix=f"refresh the table: it was, if a new commit carries txnId {self._id}; its data files were kept",
            place=name,
            kind="outcome-unknown",
        )


def _path(version: int) -> str:
    return f"{LOG_FOLDER}/{commit_name(version)}"


def follow_up(
    table: Target, version: int, properties: Mapping[str, str], clock: Clock, *, is_reconciled: bool = True
) -> str | None:
    """Do what is due after the commit of a version; returns what failed of it: the commit is made, and the next
    checkpoint is due in a few commits. `is_reconciled`: as `write_checksum`."""
    every: int = value(properties, "delta.checkpointInterval") or 10
    try:
        table.refresh()
        if table.log.has_checksum(version - 1):  # a chain that some engine began goes on
            write_checksum(table, version, is_reconciled=is_reconciled)
        if version % every == 0:
            write_checkpoint(table, version)
            if value(properties, "delta.enableExpiredLogCleanup"):
                clean_log(table, dry_run=False, clock=clock)
    except (LakeviewError, OSError, ValueError, TypeError, pa.ArrowException, pl.exceptions.PolarsError) as error:
        return str(error)
    return None


def commit_info(
    table: Target,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, int],
    clock: Clock,
    user: str | None = None,
) -> int:
    """Commit what an operation did, and its user's name; returns the version. It follows every other commit.

    Errors as `CommitLoop.run`, and UnsupportedTableError if another commit made the table one that must not be written.
    """
    base = table.state().version
    entry = Entry(operation, dict(parameters), dict(metrics), user, None, ENGINE, clock)

    def encode(version: int) -> bytes:
        in_commit = next_in_commit_time(table.log, table.state(), version, clock())
        info = entry.info(
            read_version=base,
            blind=True,
            files=FileChanges(table.storage, clock),
            in_commit=in_commit,
            level=SNAPSHOT,
        )
        return encode_actions([("commitInfo", info)])

    def follow(winner: Commit) -> None:
        if winner.definition != (None, None):
            check_may_write(table)

    version = CommitLoop(table, entry.txn_id).run(base, encode, follow)
    table.refresh()
    follow_up(table, version, table.state().properties, clock)
    return version
