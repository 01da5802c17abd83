"""Files that come and files that go to a snapshot of the table: manifests, manifest list and metadata file, tried until
one is the next."""

import secrets
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl

from lakeview.iceberg.metadata.documents import metadata_document
from lakeview.iceberg.metadata.locate import FOLDER, read_metadata
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import Target, check_commits, check_continues, commits_of
from lakeview.iceberg.write.context import WriteContext, recorded_location
from lakeview.iceberg.write.data_file import NewFile
from lakeview.iceberg.write.manifest import ManifestList, new_manifest
from lakeview.iceberg.write.metadata_file import NewSnapshot, StreamBatch
from lakeview.iceberg.write.removal import Removal, TouchedManifest, removed_counts
from lakeview.iceberg.write.rewritten_manifest import context_of_spec, rewrite_manifest
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import VERSION
from lakeview.model.errors import CommitConflictError, LakeviewError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import back_off

_ATTEMPTS = 200
_TOTALS: Mapping[str, tuple[str, str]] = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-delete-files": ("", "removed-delete-files"),
    "total-position-deletes": ("", "removed-position-deletes"),
    "total-equality-deletes": ("", "removed-equality-deletes"),
}
"""Totals of summaries, and the counts that they go up and down by."""


class _Change(NamedTuple):
    """What a snapshot is made of: `parents`: MANIFESTS that stay; `records`: of new ones; `removed`: counts of what
    went."""

    parents: pl.DataFrame
    records: Sequence[Mapping[str, Any]]
    removals: Mapping[str, int]


ENGINE: Mapping[str, str] = {"engine-name": "lakeview", "engine-version": VERSION}
"""What the summary of a snapshot says of its writer."""


@dataclass(frozen=True)
class CommitOptions:
    """How a change is committed. `engine`: as ENGINE; `without_catalog`: no catalog owns the table in its folder;
    `batch`: of a stream, which is committed once."""

    clock: Clock = system_clock
    engine: Mapping[str, str] = field(default_factory=lambda: ENGINE)
    without_catalog: bool = False
    batch: StreamBatch | None = None


class SnapshotCommit:
    """One change of a table's files, as a commit that follows those of others: the manifest of new files stays as it
    is, the list and the metadata file are written again, and what is removed is checked against what was committed.

    A commit that fails before the metadata file is there leaves the table as it was; the files it wrote are removed.
    """

    def __init__(
        self,
        table: Target,
        context: WriteContext,
        files: Sequence[NewFile],
        options: CommitOptions,
        removal: Removal | None = None,
    ) -> None:
        self._table = table
        self._context = context
        self._files = files
        self._removal = removal
        self._options = options
        self._storage = table.state.storage
        self._id = uuid.uuid4()
        self._snapshot_id = secrets.randbelow(2**63 - 1) + 1
        self._new_manifests: list[dict[str, Any]] = []
        self._rewrites: dict[tuple[str, frozenset[str]], dict[str, Any]] = {}
        self._paths: list[str] = []
        self._commits = commits_of(table, self._snapshot_id)

    def run(self) -> int | None:
        """Commit; the id of the new snapshot, None where the table has the batch already.

        CommitConflictError if the table's definition changed since the files were written, if another writer changed
        what is removed, or if too many were faster;
        StoreUnavailableError if the store did not answer: its kind is outcome-unknown where the commit may be there.
        """
        try:
            is_committed = self._commit()
        except BaseException as error:
            leftovers = self._discard_all()
            if leftovers and isinstance(error, LakeviewError):
                error.add_note(f"files that no snapshot names were left behind: {', '.join(leftovers)}")
            raise
        if not is_committed:
            self._discard_all()
            return None
        with suppress(LakeviewError):  # it is committed; the next call looks again
            self._table.refresh()
        return self._snapshot_id

    def _discard_all(self) -> list[str]:
        """Remove what was written, unless a snapshot may name it; the addresses of what the store did not remove."""
        if self._commits.unsure:
            return []
        return self._storage.delete_each([*(file.address for file in self._files), *self._paths])

    def _commit(self) -> bool:
        """False where the table has the batch already."""
        if self._files:
            data, record = new_manifest(self._context, self._files, self._snapshot_id)
            self._new_manifests = [self._put_manifest(self._table.state, data, record)]
        with self._storage.turn() as has_waited, self._storage.attempts():
            if has_waited:
                self._table.refresh()
            for attempt in range(_ATTEMPTS):
                if self._is_repeated():
                    return False
                if self._attempt(attempt):
                    return True
                # who has lost often waits less: new arrivals let it pass
                back_off(0, self._storage.remote, share=1 / (1 + attempt))
                self._table.refresh()
        raise CommitConflictError(
            f"{_ATTEMPTS} commits in a row were won by other writers",
            fix="try again when fewer writers are at work",
            kind="too-many-attempts",
        )

    def _is_repeated(self) -> bool:
        metadata = self._table.state.metadata
        own = self._snapshot_id in metadata.snapshots
        batch = self._options.batch
        return not own and batch is not None and batch.is_committed(metadata)

    def _attempt(self, attempt: int) -> bool:
        state = self._table.state
        if self._snapshot_id in state.metadata.snapshots:  # an attempt that seemed to be lost was not
            return True
        check_commits(self._table, without_catalog=self._options.without_catalog)
        if not self._context.is_current(state):
            raise CommitConflictError(
                f"the columns, partition spec or format of {self._table.address} changed while the rows were written",
                fix="write again: the rows are then checked against the table as it is now",
                place=self._table.address,
                kind="metadata-changed",
            )
        base = state.metadata_file.path
        document = metadata_document(read_metadata(self._storage, base), base)
        change = self._change(state)
        check_continues(state, document, sum(r["added_rows_count"] + r["existing_rows_count"] for r in change.records))
        path = f"{FOLDER}/snap-{self._snapshot_id}-{attempt}-{self._id}.avro"
        data, snapshot = self._manifest_list(state, document, change, self._absolute_path(state, path))
        self._paths.append(path)
        self._storage.put(path, data)
        if not self._commits.commit(state, document, snapshot, self._absolute_path(state, base)):
            return False
        # those of attempts that were lost
        in_use = {path, *(str(r["manifest_path"]).rpartition("/")[2] for r in change.records)}
        self._storage.delete_each(o for o in self._paths if o not in in_use and o.rpartition("/")[2] not in in_use)
        return True

    def _change(self, state: State) -> _Change:
        """What becomes of the current snapshot. CommitConflictError where it has changed too much."""
        metadata = state.metadata
        parents = state.tree.manifests(metadata.snapshots.get(metadata.current_snapshot_id))
        if self._removal is None:
            return _Change(parents, self._new_manifests, {})
        self._removal.check(state, self._table.address)
        deletes = self._removal.delete_files(state)
        manifests = list(self._removal.manifests_with(state, deletes))
        records = [self._rewrite(state, each) for each in manifests]
        # "manifests ... that contain no live files" need not be listed
        dead = ((pl.col("added_files_count") == 0) & (pl.col("existing_files_count") == 0)).fill_null(value=False)
        paths = [str(each.manifest["manifest_path"]) for each in manifests]
        stay = parents.filter(~pl.col("manifest_path").is_in(paths) & ~dead)
        return _Change(stay, [*self._new_manifests, *records], removed_counts(self._removal.files, deletes))

    def _rewrite(self, state: State, touched_manifest: TouchedManifest) -> dict[str, Any]:
        """The record of the manifest in place of another one, written once for all attempts that remove the same of
        it: which delete files apply to nothing else may change from one to the next."""
        key = str(touched_manifest.manifest["manifest_path"]), touched_manifest.keys
        if key not in self._rewrites:
            entries = state.tree.whole_entries(touched_manifest.manifest)
            entries = entries.filter(entries["status"] != 2)
            spec_id = int(entries["spec_id"][0])
            context = context_of_spec(self._context, state, spec_id)
            is_removed = touched_manifest.is_removed(entries)
            new = rewrite_manifest(touched_manifest.manifest, entries, is_removed, context, self._snapshot_id)
            self._rewrites[key] = self._put_manifest(state, *new)
        return self._rewrites[key]

    def _put_manifest(self, state: State, data: bytes, record: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{FOLDER}/{self._id}-m{len(self._rewrites) + len(self._new_manifests)}.avro"
        self._paths.append(path)
        self._storage.put(path, data)
        return {**record, "manifest_path": self._absolute_path(state, path), "manifest_length": len(data)}

    def _manifest_list(
        self, state: State, document: Mapping[str, object], change: _Change, recorded_path: str
    ) -> tuple[bytes, NewSnapshot]:
        """The manifest list after the current snapshot, and the snapshot that has it."""
        metadata = state.metadata
        parent = metadata.snapshots.get(metadata.current_snapshot_id)
        parent_id = None if parent is None else parent.snapshot_id
        sequence = 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1
        next_row_id = document.get("next-row-id") or 0
        first_row_id = next_row_id if metadata.format_version > 2 and isinstance(next_row_id, int) else None
        manifest_list = ManifestList(metadata.format_version, change.parents, change.records, sequence, first_row_id)
        snapshot = NewSnapshot(
            self._snapshot_id,
            parent_id,
            sequence,
            # "last-updated-ms" of one that follows is never before: time travel goes by it
            max(milliseconds(self._options.clock()), (metadata.last_updated_ms or 0) + 1),
            recorded_path,
            self._summary(state, parent, change.removals),
            metadata.current_schema_id,
            first_row_id,
            None if first_row_id is None else manifest_list.added_rows,
            {} if (batch := self._options.batch) is None else batch.properties(self._snapshot_id),
        )
        return manifest_list.encode(self._snapshot_id, parent_id), snapshot

    def _summary(self, state: State, parent: SnapshotEntry | None, removals: Mapping[str, int]) -> dict[str, str]:
        """What the snapshot reports."""
        partitions = {(self._context.spec.spec_id, *map(repr, file.partition)) for file in self._files}
        if self._removal is not None:
            partitions |= self._removal.partitions(self._context, state)
        counts = {
            "added-data-files": len(self._files), "added-records": sum(file.records for file in self._files),
            "added-files-size": sum(file.size for file in self._files),
        }  # fmt: skip
        changes = {**{name: count for name, count in counts.items() if count}, **removals}
        # "append -- Only data files were added and no files were removed", "delete -- Data files were removed ..."
        operation = "append" if not removals else "overwrite" if self._files else "delete"
        numbers = {**changes, "changed-partition-count": len(partitions), **_totals(parent, changes)}
        engine, batch = self._options.engine, self._options.batch
        own = engine if batch is None else {**engine, **batch.summary}
        return {"operation": operation, **{name: str(count) for name, count in numbers.items()}, **own}

    def _absolute_path(self, state: State, path: str) -> str:
        return f"{recorded_location(state)}/{path}"


def _totals(parent: SnapshotEntry | None, changes: Mapping[str, int]) -> dict[str, int]:
    """The totals of a snapshot; one is left out where that of the parent is not known."""
    totals = {}
    for total, (added_key, removed_key) in _TOTALS.items():
        text = "0" if parent is None else parent.summary.get(total)
        earlier = whole(text, None) if isinstance(text, str) else None
        if earlier is not None:
            totals[total] = max(earlier + changes.get(added_key, 0) - changes.get(removed_key, 0), 0)
    return totals
