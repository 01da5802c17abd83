"""Rows that another writer deleted from files which ours wrote again: deleted from where they are now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyroaring

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import decode_path
from lakeview.delta.log.record_counts import records_of
from lakeview.delta.write.conflicts import Winner
from lakeview.delta.write.deletion_vectors import with_deletions, write_vectors
from lakeview.delta.write.file_changes import FileChanges
from lakeview.delta.write.live_files import LiveFile
from lakeview.storage import Storage


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Files whose rows were written to other files.

    `rows`: the physical rows of each; `before`: the positions that each had deleted when it was read; `deletions`:
    those that it has by now; `is_ordered`: whether the rows follow each other in `adds` as they do in `files`, so that
    a row's new place is known.
    """

    files: tuple[LiveFile, ...]
    rows: tuple[int, ...]
    before: tuple[pyroaring.BitMap64, ...]
    deletions: tuple[pyroaring.BitMap64, ...]
    adds: tuple[AddFile, ...]
    is_ordered: bool


def follow_deletes(
    moves: Sequence[Rearrangement], winner: Winner, changes: FileChanges, storage: Storage, now: int
) -> list[Rearrangement]:
    """The rearrangements as they follow a commit that deleted rows of their files by deletion vectors.

    A row's new place is known, since rows kept their order: it gets a deletion vector there. `now` in milliseconds.
    CommitConflictError where the order changed, or the winner brought rows back.
    """
    if not moves:
        return []
    touched = winner.added_again
    vectors = {row["key"]: row for row in winner.added_files.select("key", "deletion_vector", "vector").to_dicts()}
    rearrangements = []
    for move in moves:
        met = touched.intersection(file.key for file in move.files)
        rearrangements.append(
            _follow(move, winner, {k: vectors[k] for k in met}, changes, storage, now) if met else move
        )
    return rearrangements


def _follow(
    move: Rearrangement,
    winner: Winner,
    vectors: Mapping[str, Mapping[str, Any]],
    changes: FileChanges,
    storage: Storage,
    now: int,
) -> Rearrangement:
    if not move.is_ordered:
        raise winner.conflict("it deleted rows that ours put in another order", "concurrent-delete-delete")
    files, deletions = [], []
    for file, deleted in zip(move.files, move.deletions, strict=True):
        row = vectors.get(file.key)
        if row is None:
            files.append(file)
            deletions.append(deleted)
            continue
        vector = DeletionVector.of(row["vector"])
        later = pyroaring.BitMap64() if vector is None else vector.bitmap(storage)
        if not deleted.issubset(later):
            raise winner.conflict(f"it brought rows of {file.key} back, which ours moved", "concurrent-delete-delete")
        changes.withdraw({file.key})
        files.append(LiveFile({**file.row, **row}, file.task))
        changes.remove(files[-1].row, now, data_change=False)
        deletions.append(later)
    followed = replace(move, files=tuple(files), deletions=tuple(deletions))
    changes.withdraw({decode_path(add.path) for add in move.adds})
    changes.adds += _with_vectors(move.adds, pyroaring.BitMap64(_places(followed)), changes, storage)
    return followed


def _places(move: Rearrangement) -> Iterator[int]:
    """Where the rows are that were deleted since the files were read, counted over all files that were written."""
    start = 0
    for before, later, rows in zip(move.before, move.deletions, move.rows, strict=True):
        # a row's place among those that were live: its position, less the deleted ones in front of it
        yield from (start + position - before.rank(position) for position in later - before)
        start += rows - len(before)


def _with_vectors(
    adds: Sequence[AddFile], places: pyroaring.BitMap64, changes: FileChanges, storage: Storage
) -> list[AddFile]:
    """The files with deletion vectors that name these rows; one without a row left is not added."""
    start, parts = 0, []
    for add in adds:
        rows = records_of(add.stats)
        assert rows is not None, "ours, and written with statistics"
        inside = places & pyroaring.BitMap64(range(start, start + rows))
        parts.append((add, pyroaring.BitMap64(place - start for place in inside), rows))
        start += rows
    bitmaps = [bits for _, bits, rows in parts if 0 < len(bits) < rows]
    path, descriptors = write_vectors(bitmaps, storage)
    if path is not None:
        changes.paths.append(path)
    waiting = iter(descriptors)
    return [
        msgspec.structs.replace(add, deletion_vector=next(waiting), stats=with_deletions(add.stats, rows))
        if bits
        else add
        for add, bits, rows in parts
        if len(bits) < rows
    ]
