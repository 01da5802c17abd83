"""Deletion vectors as other writers leave them: row positions to bytes, files, inline text and descriptors."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import pyroaring

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
PORTABLE, NATIVE = 1681511377, 1681511376

Descriptor = dict[str, Any]


def buckets(bitmaps: Mapping[int, bytes], count: int | None = None) -> bytes:
    """The portable layout around 32-bit bitmaps by the high halves of their positions; `count` lies about how many."""
    parts = [struct.pack("<I", key) + bitmap for key, bitmap in bitmaps.items()]
    return struct.pack("<Iq", PORTABLE, len(parts) if count is None else count) + b"".join(parts)


def portable(positions: Iterable[int], *, runs: bool = False) -> bytes:
    """Positions in the layout that writers use today; `runs`: as runs where that is shorter."""
    bitmap = pyroaring.BitMap64(positions)
    if runs:
        bitmap.run_optimize()
    return struct.pack("<I", PORTABLE) + bytes(bitmap.serialize())


def native(positions: Iterable[int], order: str = ">") -> bytes:
    """Positions in the layout of early writers: one 32-bit bitmap for each high half from 0 on, empty ones too."""
    by_key: dict[int, list[int]] = {}
    for position in positions:
        by_key.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    bitmaps = [bytes(pyroaring.BitMap(by_key.get(key, [])).serialize()) for key in range(max(by_key, default=-1) + 1)]
    header = struct.pack(f"{order}Ii", NATIVE, len(bitmaps))
    return header + b"".join(struct.pack(f"{order}i", len(b)) + b for b in bitmaps)


def array_container(*values: int, count: int | None = None) -> bytes:
    """A 32-bit bitmap of one array container with these values in this order; `count` lies about how many."""
    cardinality = len(values) if count is None else count
    header = struct.pack("<IIHHI", 12346, 1, 0, (cardinality - 1) & 0xFFFF, 16)
    return header + struct.pack(f"<{len(values)}H", *values)


def run_container(*runs: tuple[int, int]) -> bytes:
    """A 32-bit bitmap of one run container: (first value, how many more)."""
    body = b"".join(struct.pack("<HH", *run) for run in runs)
    return struct.pack("<IBHHH", 12347, 1, 0, 0, len(runs)) + body


def z85(data: bytes) -> str:
    """Z85 (ZeroMQ RFC 32) of whole groups of four bytes."""
    text = ""
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        text += "".join(Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def z85_padded(data: bytes) -> str:
    """Z85 of any number of bytes, as the Rust crate pads: a short last group is led by `#`, one for each byte less."""
    whole = len(data) // 4 * 4
    rest = data[whole:]
    if not rest:
        return z85(data)
    missing = 4 - len(rest)
    return z85(data[:whole]) + "#" * missing + z85(bytes(missing) + rest)[missing:]


def inline(data: bytes, cardinality: int) -> Descriptor:
    """A descriptor that carries the bytes itself, filled with zeros to whole groups as Spark does."""
    filled = data + bytes(-len(data) % 4)
    return {"storageType": "i", "pathOrInlineDv": z85(filled), "sizeInBytes": len(data), "cardinality": cardinality}


def deleting(*positions: int) -> Descriptor:
    """An inline descriptor that deletes these rows."""
    return inline(portable(positions), len(set(positions)))


def entry(data: bytes) -> bytes:
    """One deletion vector as a file holds it: its size, its bytes, their checksum."""
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def vector_file(*vectors: bytes) -> tuple[bytes, list[int]]:
    """The bytes of a file with these deletion vectors, and the offset of each."""
    data, offsets = b"\x01", []
    for vector in vectors:
        offsets.append(len(data))
        data += entry(vector)
    return data, offsets


def relative(name: uuid.UUID, data: bytes, cardinality: int, *, offset: int = 1, prefix: str = "") -> Descriptor:
    """A descriptor of a vector in `<prefix>/deletion_vector_<name>.bin` below the table's root."""
    return {
        "storageType": "u", "pathOrInlineDv": prefix + z85(name.bytes), "offset": offset, "sizeInBytes": len(data),
        "cardinality": cardinality,
    }  # fmt: skip


def absolute(path: str, data: bytes, cardinality: int, *, offset: int = 1) -> Descriptor:
    """A descriptor of a vector in the file at a recorded path."""
    return {
        "storageType": "p", "pathOrInlineDv": path, "offset": offset, "sizeInBytes": len(data),
        "cardinality": cardinality,
    }  # fmt: skip
