"""One log entry into the log, exclusively: try, and where another writer was first, follow it or give up."""

from __future__ import annotations

from collections.abc import Callable

from lakeview.delta.log.commits import Commit
from lakeview.delta.log.paths import LOG_FOLDER, commit_name
from lakeview.delta.write.target import Target
from lakeview.model.errors import CommitConflictError, LakeviewError, StoreUnavailableError
from lakeview.storage import back_off

_ATTEMPTS = 200
_REPEATS = 3
"""How often a put whose outcome is not known is sent again: it settles the outcome, whatever it finds."""


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
        self.unsure = False

    def run(self, base: int, encode: Callable[[int], bytes], follow: Callable[[Commit], None]) -> int:
        """Commit after version `base`; returns the version it became. `encode` gives the entry's bytes for a version,
        `follow` places ours after a commit that was first, or raises CommitConflictError.

        A lost attempt costs one listing and the winners' commits. CommitConflictError if too many were faster,
        StoreUnavailableError if the store did not answer; its kind is outcome-unknown where the commit may be there.
        """
        candidate = base + 1
        with self._storage.turn() as waited, self._storage.attempts():
            if waited:
                candidate = self._follow(candidate, base, follow)
            for attempt in range(_ATTEMPTS):
                if self._put(candidate, encode(candidate)):
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

    def _put(self, version: int, data: bytes) -> bool:
        """True if that version is ours, false if it is another's."""
        for attempt in range(_REPEATS):
            self.unsure = True
            try:
                self._storage.put_if_absent(f"{LOG_FOLDER}/{commit_name(version)}", data)
                return True
            except FileExistsError:
                return self._is_ours(version)  # an earlier try of the store's own may have made it
            except StoreUnavailableError as error:
                if self._is_ours(version):  # the reply was lost after the file was made
                    return True
                # what a remote store was sent may still arrive; a local call is over when it returns
                self.unsure = self._storage.remote
                if not self.unsure:
                    raise
                if attempt + 1 == _REPEATS:
                    raise self._outcome_unknown(version, error) from error
                back_off(attempt, self._storage.remote)
            except LakeviewError:  # refused: only an earlier request may have made it
                self.unsure = attempt > 0
                raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _is_ours(self, version: int) -> bool:
        """Whether the commit of that version is ours; StoreUnavailableError where the store does not say."""
        path = f"{LOG_FOLDER}/{commit_name(version)}"
        self.unsure = True
        try:
            ours = self._storage.exists(path) and self._table.log.commit(version).info.txn_id == self._id
        except StoreUnavailableError as error:
            raise self._outcome_unknown(version, error) from error
        self.unsure = ours
        return ours

    def _outcome_unknown(self, version: int, error: LakeviewError) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"whether version {version} was committed is not known: {error.message}",
            fix=f"refresh the table: it was, if a new commit carries txnId {self._id}; its data files were kept",
            place=commit_name(version),
            kind="outcome-unknown",
        )
