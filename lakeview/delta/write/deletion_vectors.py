"""More deleted rows in files that stay: new deletion vectors, and the actions that put them in force (today's protocol,
Deletion Vectors); and rows of one file that another writer deleted meanwhile: the vectors of both joined, so that
neither has to begin again, and where ours wrote the file again, deleted from where the rows are now."""

import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyroaring

from lakeview.delta.data.deletion_vectors import CHECKSUM, FILE_VERSION, NUMBER, DeletionVector, z85_encoded
from lakeview.delta.log.actions import AddFile, DeletionVectorDescriptor
from lakeview.delta.log.paths import decode_path
from lakeview.delta.log.record_counts import records_of
from lakeview.delta.write.conflicts import Winner
from lakeview.delta.write.file_changes import LIVE_COLUMNS, FileChanges, add_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.model.clock import Clock
from lakeview.model.snapshot import milliseconds
from lakeview.rows.bitmaps import PORTABLE_MAGIC
from lakeview.storage import Storage

_STATISTICS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file of so many physical `rows` of which those at `positions` go, beside those at `before`."""

    file: LiveFile
    before: pyroaring.BitMap64
    positions: pyroaring.BitMap64
    rows: int


def replace_vectors(
    pending: Sequence[VectorChange], changes: FileChanges, storage: Storage, prefix: str, clock: Clock
) -> None:
    """Write one deletion vector file for all; each data file is removed, and added again with its new vector unless
    no row of it is left."""
    now = milliseconds(clock())
    remaining = [c for c in pending if not c.file.has_only(storage, len(c.before) + len(c.positions))]
    for change in pending:
        changes.remove(change.file.row, now, data_change=True)
    path, descriptors = write_vectors([c.before | c.positions for c in remaining], storage, prefix)
    if path is not None:
        changes.paths.append(path)
    for change, descriptor in zip(remaining, descriptors, strict=True):
        row = change.file.row
        stats = with_deletions(row["stats"], change.rows)
        changes.adds.append(add_of(row, deletion_vector=descriptor, stats=stats, data_change=True))


def write_vectors(
    bitmaps: Sequence[pyroaring.BitMap64], storage: Storage, prefix: str = ""
) -> tuple[str | None, list[DeletionVectorDescriptor]]:
    """One file below the table's root that holds all the vectors: its path, None without any, and their descriptors.

    `prefix`: a folder, for tables whose files begin with random characters.
    """
    if not bitmaps:
        return None, []
    number = uuid.uuid4()
    path = f"{prefix}/deletion_vector_{number}.bin" if prefix else f"deletion_vector_{number}.bin"
    name = prefix + z85_encoded(number.bytes)
    parts, offset, descriptors = [FILE_VERSION], 1, []
    for bitmap in bitmaps:
        bitmap.run_optimize()
        data = PORTABLE_MAGIC.to_bytes(4, "little") + bitmap.serialize()
        parts += [NUMBER.pack(len(data)), data, CHECKSUM.pack(zlib.crc32(data))]
        descriptors.append(DeletionVectorDescriptor("u", name, len(data), len(bitmap), offset))
        offset += NUMBER.size + len(data) + CHECKSUM.size
    storage.put(path, b"".join(parts))
    return path, descriptors


def with_deletions(stats: str | None, rows: int) -> str:
    """Statistics of a file of so many physical rows that has a deletion vector: bounds that are no longer tight.

    "The numRecords statistic must be present and accurate for every file with a deletion vector" (today's protocol).
    """
    statistics = {} if stats is None else _STATISTICS.decode(stats)
    return msgspec.json.encode({**statistics, "numRecords": rows, "tightBounds": False}).decode()


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
    keys = winner.added_again
    vectors = {row["key"]: row for row in winner.added_files.select("key", "deletion_vector", "vector").to_dicts()}
    rearrangements = []
    for move in moves:
        met = keys.intersection(file.key for file in move.files)
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
    for file, earlier in zip(move.files, move.deletions, strict=True):
        row = vectors.get(file.key)
        if row is None:
            files.append(file)
            deletions.append(earlier)
            continue
        vector = DeletionVector.of(row["vector"])
        later = pyroaring.BitMap64() if vector is None else vector.bitmap(storage)
        if not earlier.issubset(later):
            raise winner.conflict(f"it brought rows of {file.key} back, which ours moved", "concurrent-delete-delete")
        changes.withdraw({file.key})
        files.append(LiveFile({**file.row, **row}, file.task))
        changes.remove(files[-1].row, now, data_change=False)
        deletions.append(later)
    later_move = replace(move, files=tuple(files), deletions=tuple(deletions))
    changes.withdraw({decode_path(add.path) for add in move.adds})
    changes.adds += _with_vectors(move.adds, pyroaring.BitMap64(_places(later_move)), changes, storage)
    return later_move


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
    keys = winner.added_again
    if not keys.intersection(change.file.key for change in changes):
        return None
    columns = ["key", "path", "deletion_vector", *LIVE_COLUMNS]
    rows = {row["key"]: row for row in winner.added_files.select(columns).to_dicts()}
    return [
        _join_vectors(change, rows[change.file.key], winner, storage, overlap) if change.file.key in keys else change
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
