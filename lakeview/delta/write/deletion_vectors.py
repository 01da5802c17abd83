"""More deleted rows in files that stay: new deletion vectors, and the actions that put them in force (today's protocol,
Deletion Vectors); and rows of one file that another writer deleted meanwhile: the vectors of both joined, so that
neither has to begin again, and where ours wrote the file again, deleted from where the rows are now."""

import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import pyroaring

from lakeview.delta.data.deletion_vectors import CHECKSUM, FILE_VERSION, NUMBER, DeletionVector, z85_encoded
from lakeview.delta.log.actions import AddFile, DeletionVectorDescriptor
from lakeview.delta.log.paths import decode_path
from lakeview.delta.log.record_counts import records_of
from lakeview.delta.write.conflicts import Winner
from lakeview.delta.write.file_changes import LIVE_COLUMNS, FileChanges, add_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.rows.bitmaps import PORTABLE_MAGIC

_STATISTICS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file of so many physical `rows` of which those at `positions` go, beside those at `before`."""

    file: LiveFile
    before: pyroaring.BitMap64
    positions: pyroaring.BitMap64
    rows: int


def replace_vectors(pending: Sequence[VectorChange], files: FileChanges, prefix: str) -> None:
    """Write one deletion vector file for all; each data file is removed, and added again with its new vector unless
    no row of it is left."""
    remaining = [c for c in pending if not c.file.has_only(files.storage, len(c.before) + len(c.positions))]
    for change in pending:
        files.remove(change.file.row, data_change=True)
    descriptors = write_vectors([c.before | c.positions for c in remaining], files, prefix)
    for change, descriptor in zip(remaining, descriptors, strict=True):
        row = change.file.row
        stats = with_deletions(row["stats"], change.rows)
        files.adds.append(add_of(row, deletion_vector=descriptor, stats=stats, data_change=True))


def write_vectors(
    bitmaps: Sequence[pyroaring.BitMap64], files: FileChanges, prefix: str = ""
) -> list[DeletionVectorDescriptor]:
    """Write one file below the table's root that holds all the vectors; their descriptors.

    `prefix`: a folder, for tables whose files begin with random characters.
    """
    if not bitmaps:
        return []
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
    files.storage.put(path, b"".join(parts))
    files.paths.append(path)
    return descriptors


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


def follow_deletes(moves: Sequence[Rearrangement], winner: Winner, changes: FileChanges) -> list[Rearrangement]:
    """The rearrangements as they follow a commit that deleted rows of their files by deletion vectors.

    A row's new place is known, since rows kept their order: it gets a deletion vector there.
    CommitConflictError where the order changed, or the winner brought rows back.
    """
    later_files = _files_after(winner, [file for move in moves for file in move.files])
    return [
        _follow(move, later_files, winner, changes) if any(file.key in later_files for file in move.files) else move
        for move in moves
    ]


def _follow(
    move: Rearrangement, later_files: Mapping[str, LiveFile], winner: Winner, changes: FileChanges
) -> Rearrangement:
    if not move.is_ordered:
        raise winner.conflict("it deleted rows that ours put in another order", "concurrent-delete-delete")
    files = [later_files.get(file.key, file) for file in move.files]
    deletions = []
    for file, earlier in zip(files, move.deletions, strict=True):
        is_later = file.key in later_files
        deletions.append(_deletions_after(file, earlier, winner, "moved") if is_later else earlier)
        if is_later:
            changes.withdraw({file.key})
            changes.remove(file.row, data_change=False)
    later_move = replace(move, files=tuple(files), deletions=tuple(deletions))
    changes.withdraw({decode_path(add.path) for add in move.adds})
    changes.adds += _with_vectors(move.adds, pyroaring.BitMap64(_places(later_move)), changes)
    return later_move


def _files_after(winner: Winner, files: Sequence[LiveFile]) -> dict[str, LiveFile]:
    """Those of some files whose deletion vectors a commit changed, as it added them, by their keys."""
    if not files or not (keys := winner.added_again.intersection(file.key for file in files)):
        return {}
    columns = ["key", "path", "deletion_vector", *LIVE_COLUMNS]
    rows = {row["key"]: row for row in winner.added_files.select(columns).to_dicts()}
    return {
        file.key: LiveFile(
            {**file.row, **rows[file.key]},
            replace(file.task, deleted_rows=DeletionVector.of(rows[file.key]["vector"])),
        )
        for file in files
        if file.key in keys
    }


def _deletions_after(file: LiveFile, before: pyroaring.BitMap64, winner: Winner, what: str) -> pyroaring.BitMap64:
    """The positions that are deleted after a commit; CommitConflictError unless those `before` it are among them.
    `what` ours did to the rows."""
    later = file.deletions(winner.storage)
    if not before.issubset(later):
        raise winner.conflict(f"it brought rows of {file.key} back, which ours {what}", "concurrent-delete-delete")
    return later


def _places(move: Rearrangement) -> Iterator[int]:
    """Where the rows are that were deleted since the files were read, counted over all files that were written."""
    start = 0
    for before, later, rows in zip(move.before, move.deletions, move.rows, strict=True):
        # a row's place among those that were live: its position, less the deleted ones in front of it
        yield from (start + position - before.rank(position) for position in later - before)
        start += rows - len(before)


def _with_vectors(adds: Sequence[AddFile], places: pyroaring.BitMap64, changes: FileChanges) -> list[AddFile]:
    """The files with deletion vectors that name these rows; one without a row left is not added."""
    start, parts = 0, []
    for add in adds:
        rows = records_of(add.stats)
        assert rows is not None, "ours, and written with statistics"
        inside = places & pyroaring.BitMap64(range(start, start + rows))
        parts.append((add, pyroaring.BitMap64(place - start for place in inside), rows))
        start += rows
    waiting = iter(write_vectors([bits for _, bits, rows in parts if 0 < len(bits) < rows], changes))
    return [
        msgspec.structs.replace(add, deletion_vector=next(waiting), stats=with_deletions(add.stats, rows))
        if bits
        else add
        for add, bits, rows in parts
        if len(bits) < rows
    ]


def join_vectors(changes: list[VectorChange], winner: Winner, *, overlap: bool) -> list[VectorChange] | None:
    """Our changes as they follow the winner's; None if the winner touched none of the files.

    Sound because a vector only names rows: the winner's rows stay deleted and so do ours. `overlap`: whether rows that
    both deleted make no difference to ours, as in a delete; rows that ours moved elsewhere would come back changed.
    CommitConflictError where they do, and where the winner's vector does not hold what was deleted before.
    """
    later_files = _files_after(winner, [change.file for change in changes])
    if not later_files:
        return None
    return [
        _join_vectors(change, later_files[change.file.key], winner, overlap)
        if change.file.key in later_files
        else change
        for change in changes
    ]


def _join_vectors(change: VectorChange, file: LiveFile, winner: Winner, overlap: bool) -> VectorChange:
    theirs = _deletions_after(file, change.before, winner, "deletes from")
    twice = theirs & change.positions
    if twice and not overlap:
        raise winner.conflict(
            f"both change {len(twice):,} rows of {file.key}, the first at position {min(twice):,}",
            "concurrent-delete-delete",
        )
    return VectorChange(file, theirs, change.positions - theirs, change.rows)
