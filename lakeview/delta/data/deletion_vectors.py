"""Deletion vector descriptors to the files they name and to the positions of deleted rows (today's protocol, Deletion
Vectors); Z85 text."""

from __future__ import annotations

import base64
import re
import struct
import uuid
import zlib
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyroaring

from lakeview.delta.log.paths import canonical, decode_path
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CorruptTableError, DataFileMissingError
from lakeview.rows.bitmaps import corrupt_vector, position_bitmap
from lakeview.storage import Storage

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_LETTERS = frozenset(_Z85)
_UUID_LETTERS = 20
_UUID_BYTES = 16
_OFFSET = re.compile(r"@[0-9]+$")


def vector_file(storage_type: str, path_or_inline_dv: str) -> str | None:
    """The file a deletion vector lies in, relative to the table's root or absolute; None for an inline one.

    CorruptTableError for a storage type or a name that no protocol knows.
    """
    match storage_type:
        case "i":
            return None
        case "p":  # "the same format as the path field in the add/remove actions"
            return decode_path(path_or_inline_dv)
        case "u" if len(path_or_inline_dv) >= _UUID_LETTERS:
            prefix, name = path_or_inline_dv[:-_UUID_LETTERS], path_or_inline_dv[-_UUID_LETTERS:]
            folder = f"{prefix}/" if prefix else ""
            number = z85_decoded(name, path_or_inline_dv)
            if len(number) != _UUID_BYTES:  # a padded chunk is a byte shorter
                raise corrupt_vector(path_or_inline_dv, f"its name stands for {len(number)} bytes, not for a UUID")
            return f"{folder}deletion_vector_{uuid.UUID(bytes=number)}.bin"
    text = f"{storage_type}{path_or_inline_dv}"
    raise corrupt_vector(text, f"storage type {storage_type!r} with a text of {len(path_or_inline_dv)} letters")


def file_of(unique_id: str) -> str | None:
    """The file in a deletion vector's unique id (`storageType`, `pathOrInlineDv`, `@offset`); errors as above."""
    return vector_file(unique_id[:1], _OFFSET.sub("", unique_id[1:]))


def vector_keys(unique_ids: pl.Series, root: str, *, strict: bool = True) -> pl.Series:
    """The keys of the files that deletion vectors lie in, inline ones left out; errors as `file_of`, unless not
    `strict`: then a vector without a readable id names none."""
    names: list[str | None] = []
    for unique_id in unique_ids.drop_nulls().unique():
        with nullcontext() if strict else suppress(CorruptTableError):
            names.append(file_of(unique_id))
    return canonical(pl.Series("key", [n for n in names if n is not None], dtype=pl.String), root)


def z85_encoded(data: bytes) -> str:
    """Bytes, a multiple of four, as Z85 text."""
    return base64.b85encode(data).decode().translate(_TO_Z85)


def z85_decoded(text: str, place: str) -> bytes:
    """Z85 text (ZeroMQ RFC 32) as bytes, five letters to four; CorruptTableError names `place`.

    A last group that begins with one to three `#` stands for that many bytes less: no whole group can begin so. That
    is how writers in Rust pad; Spark pads with zero bytes instead.
    """
    tail = text[-5:]
    missing = len(tail) - len(tail.lstrip("#")) if len(tail) == 5 else 0
    text = f"{text[: len(text) - len(tail)]}{'0' * missing}{tail[missing:]}"
    if len(text) % 5 or missing > 3 or not _LETTERS.issuperset(text):
        raise corrupt_vector(place, "its text is not Z85")
    try:
        data = base64.b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise corrupt_vector(place, "its text is not Z85: a group stands for more than four bytes") from error
    last = len(data) - 4
    if missing and any(data[last : last + missing]):
        raise corrupt_vector(place, "its text is not Z85: the last group stands for more bytes than it says")
    return data[:last] + data[last + missing :] if missing else data


NUMBER = struct.Struct(">i")
CHECKSUM = struct.Struct(">I")
FILE_VERSION = bytes([1])
_NEAR = 64 * 1024
"""Up to here reading from the start of a file costs less than a second request."""


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Which rows of one data file are deleted: the descriptor of an add or remove action, without the rows.

    `storage_type`: u (file below the table's root), p (file by absolute path), i (inline); `size_in_bytes` of the
    serialised bitmap; `cardinality`: rows deleted. Implements `lakeview.rows.tasks.RowPositions`.
    """

    storage_type: str
    path_or_inline_dv: str
    offset: int | None
    size_in_bytes: int
    cardinality: int

    @staticmethod
    def of(vector: Mapping[str, Any] | None) -> DeletionVector | None:
        """The value for one row of FILE_ACTIONS.vector; None without one.

        CorruptTableError for a descriptor that lacks a required field.
        """
        if vector is None:
            return None
        fields = {name: vector[name] for name in DeletionVector.__slots__}
        if missing := [name for name, value in fields.items() if value is None and name != "offset"]:
            raise corrupt_vector(str(fields["path_or_inline_dv"]), f"its descriptor has no {missing[0]}")
        return DeletionVector(**fields)

    @property
    def path(self) -> str | None:
        """The file it lies in, relative to the table's root or absolute; None for an inline one.

        CorruptTableError for a storage type or a name that no protocol knows.
        """
        return vector_file(self.storage_type, self.path_or_inline_dv)

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:
        """The positions it deletes, checked against its size, its checksum and its cardinality.

        DataFileMissingError if its file is gone; CorruptTableError for any disagreement: ignoring one would bring
        deleted rows back. AccessDeniedError for a file outside the table and the allowed roots.
        """
        path = self.path
        if path is None:
            place = "inline"
            data = self._inline(place)
        else:
            place = path
            data = self._from_file(path, storage)
        bitmap = position_bitmap(data, place)
        if len(bitmap) != self.cardinality:
            raise corrupt_vector(place, f"it deletes {len(bitmap):,} rows, and the log says {self.cardinality:,}")
        return bitmap

    def _inline(self, place: str) -> bytes:
        data = z85_decoded(self.path_or_inline_dv, place)
        # writers pad to whole groups of four bytes: what is beyond the size is filling
        if not 0 <= len(data) - self.size_in_bytes < 4:
            raise corrupt_vector(place, f"it holds {len(data):,} bytes, and the log says {self.size_in_bytes:,}")
        return data[: self.size_in_bytes]

    def _from_file(self, path: str, storage: Storage) -> bytes:
        if self.storage_type == "p" and not is_absolute(path):
            raise _missing(path, f"deletion vector file {path} is no absolute path: no store can hold it")
        start = self.offset or 0  # "Interpret as 0 if absent"
        if start < 0 or self.size_in_bytes < 0:
            raise corrupt_vector(path, f"the log says {self.size_in_bytes:,} bytes at {start:,}")
        try:
            version, entry = self._parts(path, start, storage)
        except DataFileMissingError:
            raise
        except FileNotFoundError as error:
            what = f"deletion vector file {path} is in the log of {storage.root} but not in the store"
            raise _missing(path, what) from error
        if version != FILE_VERSION:
            first_byte = version.hex() or "nothing"
            raise corrupt_vector(path, f"its file begins with {first_byte}; 01 is the one known version")
        if len(entry) < NUMBER.size:
            raise corrupt_vector(path, f"it lies at byte {start:,}, from which on its file has {len(entry)} bytes")
        (size,) = NUMBER.unpack_from(entry)
        if size != self.size_in_bytes:
            raise corrupt_vector(path, f"it holds {size:,} bytes, and the log says {self.size_in_bytes:,}")
        if len(entry) < NUMBER.size + size + CHECKSUM.size:
            raise corrupt_vector(path, f"{size:,} bytes at {start:,} reach beyond the file's {start + len(entry):,}")
        data, checksum = entry[NUMBER.size : -CHECKSUM.size], entry[-CHECKSUM.size :]
        if checksum != CHECKSUM.pack(zlib.crc32(data)):
            raise corrupt_vector(path, "its checksum does not fit its bytes")
        return data

    def _parts(self, path: str, start: int, storage: Storage) -> tuple[bytes, bytes]:
        """The file's version byte, and the entry at `start`: size, bitmap and checksum, cut short where the file ends.

        A file may hold the vectors of thousands of data files: only the one asked for is read.
        """
        length = NUMBER.size + self.size_in_bytes + CHECKSUM.size
        if start <= _NEAR:  # one request, not two
            data = storage.read_range(path, 0, start + length)
            return data[:1], data[start:]
        return storage.read_range(path, 0, 1), storage.read_range(path, start, length)


def _missing(path: str, what: str) -> DataFileMissingError:
    return DataFileMissingError(
        what, place=path,
        fix="restore it, or read another version: without it deleted rows cannot be told from live ones",
    )  # fmt: skip
