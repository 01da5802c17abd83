"""Avro files taken apart: header, schema with fields called by their ids, blocks inflated to a bounded size."""

import bz2
import lzma
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lakeview.iceberg.manifests.avro_schema import readable_schema
from lakeview.model import limits
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError

MAGIC = b"Obj\x01"

_SYNC = 16

_MOST_HEADERS, _MOST_HEADER = 8, 1 << 16

_CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")


@dataclass(frozen=True, slots=True)
class Block:
    """Records in a row: how many, and their bytes without compression."""

    count: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Container:
    """An Avro file taken apart. `schema`: with fields called by their ids; `metadata` as in the header."""

    metadata: Mapping[str, bytes]
    schema: Any
    sync: bytes
    blocks: tuple[Block, ...]

    @property
    def records(self) -> int:
        """How many records the file holds."""
        return sum(b.count for b in self.blocks)


class _Reader:
    """Bytes with a position. EOFError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise EOFError(f"{length} bytes are due at {self.at}, and the file ends at {len(self.data)}")
        self.at += length
        return self.data[self.at - length : self.at]

    def long(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise ValueError(f"a number at {self.at} is longer than 64 bits")


def open_container(
    data: bytes, path: str, names: Mapping[str, int] | None = None, inner: str | None = None
) -> Container:
    """An Avro file taken apart and checked: every block whole, followed by the marker, of a bounded size.

    `names`: the ids of fields that carry none, by name; `inner`: a record whose fields are to stand beside the others.
    CorruptTableError ("corrupt-file") if it is no whole Avro file.
    """
    try:
        if not data.startswith(MAGIC):
            raise ValueError("it does not begin as an Avro file does")
        reader = _Reader(data)
        metadata = _headers.of(reader)
        sync = reader.take(_SYNC)
        codec = metadata.get("avro.codec", b"null").decode()
        if codec not in _CODECS:
            raise UnsupportedTableError(
                f"{path} is compressed with {codec[:40]}, which is not read", place=path, kind="unsupported-codec",
                fix="have the table's manifests rewritten with deflate or zstd",
            )  # fmt: skip
        schema = readable_schema(metadata.get("avro.schema", b""), frozenset((names or {}).items()), inner)
        blocks = tuple(_blocks(reader, sync, codec))
    except LakeviewError:
        raise
    except (ValueError, EOFError, KeyError, TypeError, AttributeError, RecursionError, msgspec.DecodeError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error
    return Container(metadata, schema, sync, blocks)


def corrupt(path: str, what: str) -> CorruptTableError:
    """The error for an Avro file that cannot be read."""
    return CorruptTableError(
        f"{path} cannot be read: {what.splitlines()[0]}",
        fix="restore the file from a backup, or read a snapshot without it",
        place=path,
        kind="corrupt-file",
    )


def corrupt_manifest(
    message: str, path: str, fix: str = "have the table's manifests rewritten by the engine that owns it"
) -> CorruptTableError:
    """The error for a file of the table that can be read, and contradicts itself or the table."""
    return CorruptTableError(message, fix=fix, place=path, kind="corrupt-file")


class _Headers:
    """Headers that were read lately: a writer begins all of its files alike, up to their markers."""

    def __init__(self) -> None:
        self._lately: tuple[tuple[bytes, Mapping[str, bytes]], ...] = ()

    def of(self, reader: _Reader) -> Mapping[str, bytes]:
        """The metadata at the beginning of a file; the reader stands behind it then."""
        for header, metadata in self._lately:
            if reader.data.startswith(header):
                reader.at = len(header)
                return metadata
        reader.take(len(MAGIC))
        metadata = _header(reader)
        if reader.at <= _MOST_HEADER:
            self._lately = ((reader.data[: reader.at], metadata), *self._lately[: _MOST_HEADERS - 1])
        return metadata


_headers = _Headers()


def _header(reader: _Reader) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    while count := reader.long():
        if count < 0:
            count = -count
            reader.long()  # the block's size in bytes
        for _ in range(count):
            key = reader.take(reader.long()).decode()
            metadata[key] = reader.take(reader.long())
    return metadata


def _blocks(reader: _Reader, sync: bytes, codec: str) -> list[Block]:
    blocks = []
    room = limits.AVRO_BYTES
    while reader.at < len(reader.data):
        count, size = reader.long(), reader.long()
        start = reader.at
        data = reader.take(size)
        if reader.take(_SYNC) != sync:
            raise ValueError(f"the block at {start} is not followed by the file's marker")
        content = inflate(data, codec, room)
        room -= len(content)
        if not 0 <= count <= len(content):  # no record of ours takes less than a byte
            raise ValueError(f"the block at {start} claims {count} records in {len(content)} bytes")
        blocks.append(Block(count, content))
    return blocks


def _snappy_length(content: bytes) -> int:
    """A snappy block says its own length first, in 7 bits a byte."""
    number = 0
    for shift, byte in enumerate(content[:5]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number
    raise ValueError("a snappy block does not tell its length")


def inflate(data: bytes, codec: str, limit: int = limits.AVRO_BYTES) -> bytes:
    """A block without its compression; ValueError if it is broken, or longer than `limit`."""
    try:
        match codec:
            case "null":
                block = data
            case "deflate":
                block = _inflate_rest(zlib.decompressobj(-15), data, limit)
            case "bzip2":
                block = _inflate_rest(bz2.BZ2Decompressor(), data, limit)
            case "xz":
                block = _inflate_rest(lzma.LZMADecompressor(), data, limit)
            case "snappy":
                length = _snappy_length(data)
                if length > limit:
                    raise ValueError(f"a block claims to inflate to {length:,} bytes")
                block = pa.Codec("snappy").decompress(data[:-4], length, asbytes=True)  # a checksum follows
            case _:
                with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                    block = stream.read(limit + 1)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, pa.ArrowException) as error:
        raise ValueError(f"a block cannot be inflated: {error}") from error
    if len(block) > limit:
        raise ValueError(f"its blocks inflate to more than {limits.AVRO_BYTES:,} bytes")
    return block


def _inflate_rest(inflator: Any, data: bytes, limit: int) -> bytes:
    """The whole of a compressed stream, or one byte more than allowed."""
    block: bytes = inflator.decompress(data, limit + 1)
    if len(block) <= limit and not inflator.eof:
        raise ValueError("a block's compressed bytes are cut off")
    return block
