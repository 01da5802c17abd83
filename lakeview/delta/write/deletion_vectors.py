"""More deleted rows in files that stay: new deletion vectors, and the actions that put them in force (today's protocol,
Deletion Vectors)."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pyroaring

from lakeview.delta.log.actions import DeletionVectorDescriptor
from lakeview.delta.log.vector_paths import z85_encoded
from lakeview.delta.write.file_changes import FileChanges, add_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.model.clock import Clock
from lakeview.model.snapshot import milliseconds
from lakeview.rows.bitmaps import PORTABLE_MAGIC
from lakeview.storage import Storage

_VERSION = bytes([1])
_NUMBER = struct.Struct(">i")
_CHECKSUM = struct.Struct(">I")
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
    parts, offset, descriptors = [_VERSION], 1, []
    for bitmap in bitmaps:
        bitmap.run_optimize()
        data = PORTABLE_MAGIC.to_bytes(4, "little") + bitmap.serialize()
        parts += [_NUMBER.pack(len(data)), data, _CHECKSUM.pack(zlib.crc32(data))]
        descriptors.append(DeletionVectorDescriptor("u", name, len(data), len(bitmap), offset))
        offset += _NUMBER.size + len(data) + _CHECKSUM.size
    storage.put(path, b"".join(parts))
    return path, descriptors


def with_deletions(stats: str | None, rows: int) -> str:
    """Statistics of a file of so many physical rows that has a deletion vector: bounds that are no longer tight.

    "The numRecords statistic must be present and accurate for every file with a deletion vector" (today's protocol).
    """
    statistics = {} if stats is None else _STATISTICS.decode(stats)
    return msgspec.json.encode({**statistics, "numRecords": rows, "tightBounds": False}).decode()
