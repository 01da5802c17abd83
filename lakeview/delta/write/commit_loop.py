"""One log entry into the log, exclusively: try, and where another writer was first, follow it or give up."""

from __future__ import annotations

from collections.abc import Callable

from lakeview.delta.features import check_writable
from lakeview.delta.log.paths import LOG_FOLDER, commit_name
from lakeview.delta.write.conflicts import Intent, check_conflict
from lakeview.delta.write.rules import active_features
from lakeview.delta.write.target import Target
from lakeview.model.errors import CommitConflictError, LakeviewError, StoreUnavailableError
from lakeview.storage import back_off

_ATTEMPTS = 50


class CommitLoop:
    """The attempts of one transaction to become the next version.

    `txn_id` is in the commit's own words, so that a commit whose reply was lost is known again and never made twice.
    `unsure`: whether the commit may be in the log although it seemed to fail; its data files have to stay then.
    """

    def __init__(self, table: Target, txn_id: str) -> None:
        self._table = table
        self._storage = table.storage
        self._id = txn_id
        self.unsure = False

    def run(self, base: int, encode: Callable[[int], bytes], intent: Intent) -> int:
        """Commit after version `base`; returns the version it became. `encode` gives the entry's bytes for a version.

        CommitConflictError if a winning commit collides with `intent` or too many were faster, UnsupportedTableError
        if one of them made the table one we must not write, StoreUnavailableError if the store did not answer; its
        kind is outcome-unknown where the commit may be there.
        """
        candidate = base + 1
        for attempt in range(_ATTEMPTS):
            try:
                self._storage.put_if_absent(f"{LOG_FOLDER}/{commit_name(candidate)}", encode(candidate))
                return candidate
            except FileExistsError:
                if self._is_ours(candidate):  # an earlier try of the store's own may have made it
                    return candidate
            except StoreUnavailableError as error:
                if self._is_ours(candidate):  # the reply was lost after the file was made
                    return candidate
                # what a remote store was sent may still arrive; a local call is over when it returns
                self.unsure = self._storage.remote
                if not self.unsure:
                    raise
                raise self._outcome_unknown(candidate, error) from error
            back_off(attempt, self._storage.remote)
            candidate = self._rebase(candidate, intent)
        raise CommitConflictError(
            f"{_ATTEMPTS} commits in a row were won by other writers",
            fix="try again when fewer writers are at work",
            kind="too-many-attempts",
        )

    def _rebase(self, first: int, intent: Intent) -> int:
        """Hold every commit that won since against ours; the version to try next."""
        self._table.refresh()
        latest = self._table.latest_version
        for version in range(first, latest + 1):
            check_conflict(self._table.log.commit(version), intent, self._storage.root)
        newest = self._table.state()
        check_writable(newest.table_protocol, active_features(newest.metadata), self._storage.root)
        return latest + 1

    def _is_ours(self, version: int) -> bool:
        """Whether the commit of that version is ours; StoreUnavailableError where the store does not say."""
        path = f"{LOG_FOLDER}/{commit_name(version)}"
        self.unsure = True
        try:
            ours = self._storage.exists(path) and self._table.log.commit(version).info.txn_id == self._id
        except StoreUnavailableError as error:
            raise self._outcome_unknown(version, error) from error
        self.unsure = False
        return ours

    def _outcome_unknown(self, version: int, error: LakeviewError) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"whether version {version} was committed is not known: {error.message}",
            fix=f"refresh the table: it was, if a new commit carries txnId {self._id}; its data files were kept",
            place=commit_name(version),
            kind="outcome-unknown",
        )
