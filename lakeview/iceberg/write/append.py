"""New data files to a snapshot of the table: manifest, manifest list and metadata file, tried until one is the next."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress

from lakeview.iceberg.metadata.locate import FOLDER, read_metadata
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import metadata_document
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import Target, commits_of
from lakeview.iceberg.write.context import WriteContext, recorded_location
from lakeview.iceberg.write.data_file import NewFile
from lakeview.iceberg.write.files import discard
from lakeview.iceberg.write.manifest import manifest_record, write_manifest
from lakeview.iceberg.write.manifest_list import ManifestList
from lakeview.iceberg.write.metadata_file import NewSnapshot
from lakeview.iceberg.write.writability import check_commits, check_continues
from lakeview.model.clock import Clock
from lakeview.model.config import VERSION
from lakeview.model.errors import CommitConflictError, LakeviewError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import back_off

_ATTEMPTS = 200


class Append:
    """One append, as a commit that follows those of others: the manifest stays as it is, the list and
    the metadata file are written again.

    Whoever fails before the metadata file is there leaves the table as it was, and the files that it wrote are removed.
    """

    def __init__(
        self,
        table: Target,
        context: WriteContext,
        files: Sequence[NewFile],
        *,
        clock: Clock,
        engine: Mapping[str, str],
        without_catalog: bool,
    ) -> None:
        self._table = table
        self._context = context
        self._files = files
        self._clock = clock
        self._engine = engine
        self._without_catalog = without_catalog
        self._storage = table.state.storage
        self._id = uuid.uuid4()
        self._snapshot_id = secrets.randbelow(2**63 - 1) + 1
        self._manifest = f"{FOLDER}/{self._id}-m0.avro"
        self._written: list[str] = []
        self._commits = commits_of(table, self._snapshot_id)

    def run(self) -> int:
        """Commit; the id of the new snapshot.

        CommitConflictError if the table's definition changed since the files were written, or too many were faster;
        StoreUnavailableError if the store did not answer: its kind is outcome-unknown where the commit may be there.
        """
        try:
            self._commit()
        except BaseException as error:
            if not self._commits.unsure:
                left = discard([*(file.address for file in self._files), *self._written], self._storage)
                if left and isinstance(error, LakeviewError):
                    error.add_note(f"files that no snapshot names were left behind: {', '.join(left)}")
            raise
        with suppress(LakeviewError):  # it is committed; the next call looks again
            self._table.refresh()
        return self._snapshot_id

    def _commit(self) -> None:
        path = self._manifest
        data = write_manifest(self._context, self._files, self._snapshot_id)
        self._written.append(path)
        self._storage.put(path, data)
        record = manifest_record(
            self._context, self._files, self._snapshot_id, self._recorded(self._table.state, path), len(data)
        )
        with self._storage.turn() as waited, self._storage.attempts():
            if waited:
                self._table.refresh()
            for attempt in range(_ATTEMPTS):
                if self._attempt(record, attempt):
                    return
                # who has lost often waits less: new arrivals let it pass
                back_off(0, self._storage.remote, share=1 / (1 + attempt))
                self._table.refresh()
        raise CommitConflictError(
            f"{_ATTEMPTS} commits in a row were won by other writers",
            fix="try again when fewer writers are at work",
            kind="too-many-attempts",
        )

    def _attempt(self, record: Mapping[str, object], attempt: int) -> bool:
        state = self._table.state
        if self._snapshot_id in state.metadata.snapshots:  # an attempt that seemed to be lost was not
            return True
        check_commits(self._table, without_catalog=self._without_catalog)
        if not self._context.is_current(state):
            raise CommitConflictError(
                f"the columns, partition spec or format of {self._table.address} changed while the rows were written",
                fix="write again: the rows are then held against the table as it is now",
                place=self._table.address,
                kind="metadata-changed",
            )
        base = state.found.path
        document = metadata_document(read_metadata(self._storage, base), base)
        check_continues(state, document, sum(file.records for file in self._files))
        path = f"{FOLDER}/snap-{self._snapshot_id}-{attempt}-{self._id}.avro"
        data, snapshot = self._manifest_list(state, document, record, self._recorded(state, path))
        self._written.append(path)
        self._storage.put(path, data)
        if not self._commits.commit(state, document, snapshot, self._recorded(state, base)):
            return False
        # those of attempts that were lost
        discard([other for other in self._written if other not in (path, self._manifest)], self._storage)
        return True

    def _manifest_list(
        self, state: State, document: Mapping[str, object], record: Mapping[str, object], recorded_path: str
    ) -> tuple[bytes, NewSnapshot]:
        """The manifest list after the current snapshot, and the snapshot that has it."""
        metadata = state.metadata
        parent = metadata.snapshots.get(metadata.current_snapshot_id)
        parent_id = None if parent is None else parent.snapshot_id
        sequence = 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1
        next_row_id = document.get("next-row-id") or 0
        first_row_id = next_row_id if metadata.format_version > 2 and isinstance(next_row_id, int) else None
        manifests = state.tree.manifests(parent)
        found = ManifestList(metadata.format_version, manifests, [record], sequence, first_row_id)
        snapshot = NewSnapshot(
            self._snapshot_id,
            parent_id,
            sequence,
            # "last-updated-ms" of one that follows is never before: time travel goes by it
            max(milliseconds(self._clock()), (metadata.last_updated_ms or 0) + 1),
            recorded_path,
            self._summary({} if parent is None else parent.summary, first=parent is None),
            metadata.current_schema_id,
            first_row_id,
            None if first_row_id is None else found.added_rows,
        )
        return found.encode(self._snapshot_id, parent_id), snapshot

    def _summary(self, before: Mapping[str, object], *, first: bool) -> dict[str, str]:
        """What the snapshot reports; a total is left out where that of its parent is not known."""
        rows, size = sum(file.records for file in self._files), sum(file.size for file in self._files)
        partitions = len({tuple(map(repr, file.partition)) for file in self._files})
        added = {
            "total-data-files": len(self._files), "total-records": rows, "total-files-size": size,
            "total-delete-files": 0, "total-position-deletes": 0, "total-equality-deletes": 0,
        }  # fmt: skip
        totals = {}
        for name, count in added.items():
            text = before.get(name)
            total = 0 if first else whole(text, None) if isinstance(text, str) else None
            if total is not None:
                totals[name] = str(total + count)
        return {
            "operation": "append", "added-data-files": str(len(self._files)), "added-records": str(rows),
            "added-files-size": str(size), "changed-partition-count": str(partitions), **totals, **self._engine,
        }  # fmt: skip

    def _recorded(self, state: State, path: str) -> str:
        return f"{recorded_location(state)}/{path}"


ENGINE: Mapping[str, str] = {"engine-name": "lakeview", "engine-version": VERSION}
"""What the summary of a snapshot says of its writer."""
