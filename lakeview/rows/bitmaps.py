"""Serialised deletion vectors to 64-bit roaring bitmaps: the portable layout, and the native one of early writers.

Delta's deletion vectors and Iceberg's share it: four bytes of magic, the number of buckets, then for each 32-bit high
half a standard 32-bit roaring bitmap. Sizes are compared with the bytes there are before anything is allocated, and
the bitmap library checks every container (order, cardinality, bounds): a bitmap that comes out of here is sound.
"""

import struct

import pyroaring

from lakeview.model import limits
from lakeview.model.errors import CorruptTableError

PORTABLE_MAGIC = 1681511377
NATIVE_MAGIC = 1681511376

_PORTABLE_HEADER = struct.Struct("<Iq")
_KEY = struct.Struct("<I")
_EMPTY_BITMAP = 8  # bytes of a 32-bit bitmap without containers: no bucket is smaller
_PREFIX = "Invalid bitmap after deserialization: "
_WORDS = {"Could not deserialize bitmap": "its containers are cut short or out of order"}


def position_bitmap(data: bytes, place: str) -> pyroaring.BitMap64:
    """The positions in a serialised deletion vector, magic included; `place` is named in errors.

    Nothing is expanded: run and bitmap containers stay what they are, so that memory follows the bytes given, whatever
    number of rows they claim. CorruptTableError if the bytes are no such bitmap.
    """
    if len(data) < 4:
        raise corrupt_vector(place, f"it holds {len(data)} bytes, too few for a bitmap")
    little, big = (int.from_bytes(data[:4], order) for order in ("little", "big"))
    if little == PORTABLE_MAGIC:
        return _portable(data, place)
    if big == NATIVE_MAGIC:  # the protocol's own inline example
        return _native(data, ">", place)
    if little == NATIVE_MAGIC:  # what early Spark wrote to files
        return _native(data, "<", place)
    raise corrupt_vector(place, f"it begins with {data[:4].hex()}, which is no magic number of a deletion vector")


def _portable(data: bytes, place: str) -> pyroaring.BitMap64:
    if len(data) < _PORTABLE_HEADER.size:
        raise corrupt_vector(place, "it ends within its header")
    _, buckets = _PORTABLE_HEADER.unpack_from(data)
    _check_count(buckets, len(data) - _PORTABLE_HEADER.size, _KEY.size + _EMPTY_BITMAP, place)
    return _deserialize(data[4:], place)  # what follows the magic is the bitmap library's own format


def _native(data: bytes, order: str, place: str) -> pyroaring.BitMap64:
    """int32 number of buckets, then for each bucket from key 0 on an int32 length and a 32-bit bitmap."""
    number = struct.Struct(f"{order}i")
    if len(data) < 8:
        raise corrupt_vector(place, "it ends within its header")
    (buckets,) = number.unpack_from(data, 4)
    _check_count(buckets, len(data) - 8, number.size + _EMPTY_BITMAP, place)
    parts = [struct.pack("<q", buckets)]
    at = 8
    for key in range(buckets):
        if len(data) - at < number.size:
            raise corrupt_vector(place, f"it ends before bucket {key} of {buckets}")
        (length,) = number.unpack_from(data, at)
        at += number.size
        if not _EMPTY_BITMAP <= length <= len(data) - at:
            raise corrupt_vector(place, f"bucket {key} claims {length:,} bytes of {len(data) - at:,}")
        parts += [_KEY.pack(key), data[at : at + length]]
        at += length
    return _deserialize(b"".join(parts), place)


def _check_count(buckets: int, room: int, smallest: int, place: str) -> None:
    if not 0 <= buckets <= room // smallest:
        raise corrupt_vector(place, f"it claims {buckets:,} buckets in {room:,} bytes")


def _deserialize(data: bytes, place: str) -> pyroaring.BitMap64:
    try:
        bitmap = pyroaring.BitMap64.deserialize(data)
    except (ValueError, IndexError) as error:
        raise corrupt_vector(place, _WORDS.get(str(error), str(error).removeprefix(_PREFIX))) from error
    if bitmap and bitmap.max() >> 32 >= limits.BITMAP_KEY:
        raise corrupt_vector(place, "it names a position beyond 63 bits")
    return bitmap


def corrupt_vector(place: str, what: str) -> CorruptTableError:
    """The error for a deletion vector that cannot be trusted: rows must not come back to life."""
    return CorruptTableError(
        f"deletion vector {place} cannot be read: {what}",
        fix="restore it from a backup, or read a version without it",
        place=place,
        kind="corrupt-deletion-vector",
    )
