"""Positions of deleted rows to deletion vector files and their descriptors (today's protocol, Deletion Vectors)."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence

import pyroaring

from lakeview.delta.log.actions import DeletionVectorDescriptor
from lakeview.delta.log.vector_paths import z85_encoded
from lakeview.rows.bitmaps import PORTABLE_MAGIC
from lakeview.storage import Storage

_VERSION = bytes([1])
_NUMBER = struct.Struct(">i")
_CHECKSUM = struct.Struct(">I")


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
