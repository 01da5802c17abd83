"""Rows of one file that two writers deleted: their deletion vectors joined, so that neither has to begin again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.write.conflicts import Winner
from lakeview.delta.write.deletion_vectors import VectorChange
from lakeview.delta.write.file_changes import LIVE_COLUMNS
from lakeview.delta.write.live_files import LiveFile
from lakeview.storage import Storage


def join_vectors(
    changes: list[VectorChange], winner: Winner, storage: Storage, *, overlap: bool
) -> list[VectorChange] | None:
    """Our changes as they follow the winner's; None if the winner touched none of the files.

    Sound because a vector only names rows: the winner's rows stay deleted and so do ours. `overlap`: whether rows that
    both deleted make no difference to ours, as in a delete; rows that ours moved elsewhere would come back changed.
    CommitConflictError where they do, and where the winner's vector does not hold what was deleted before.
    """
    if not changes:
        return None
    touched = winner.added_again
    if not touched.intersection(change.file.key for change in changes):
        return None
    columns = ["key", "path", "deletion_vector", *LIVE_COLUMNS]
    rows = {row["key"]: row for row in winner.added_files.select(columns).to_dicts()}
    return [
        _join_vectors(change, rows[change.file.key], winner, storage, overlap) if change.file.key in touched else change
        for change in changes
    ]


def _join_vectors(
    change: VectorChange, row: dict[str, Any], winner: Winner, storage: Storage, overlap: bool
) -> VectorChange:
    vector = DeletionVector.of(row["vector"])
    theirs = None if vector is None else vector.bitmap(storage)
    if theirs is None or not change.before.issubset(theirs):
        raise winner.conflict(
            f"it brought rows of {change.file.key} back, which ours deletes from", "concurrent-delete-delete"
        )
    twice = theirs & change.positions
    if twice and not overlap:
        raise winner.conflict(
            f"both change {len(twice):,} rows of {change.file.key}, the first at position {min(twice):,}",
            "concurrent-delete-delete",
        )
    file = LiveFile({**change.file.row, **row}, replace(change.file.task, deleted_rows=vector))
    return VectorChange(file, theirs, change.positions - theirs, change.rows)
