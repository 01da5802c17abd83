"""Avro container files to frames, columns found by field id: polars-avro where it can, fastavro where it cannot.

The file is written anew before decoding, its records as they are: blocks are inflated here, where their size is
bounded, fields are called by their ids (`f100`), and records
without fields, which take no bytes and which the fast reader refuses, are left out.
"""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import uuid4

import fastavro
import msgspec
import polars as pl
import polars_avro
import pyarrow as pa
from fastavro.schema import SchemaParseException
from polars_avro._avro_rs import AvroSource

from lakeview.iceberg.manifests.avro_schema import blank_record, readable_schema
from lakeview.model import limits
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError

MAGIC = b"Obj\x01"
_SYNC = 16
_UNDECODED = (polars_avro.AvroError, pl.exceptions.PolarsError, RuntimeError, SystemError, ValueError, OverflowError)
"""What the fast reader raises; SystemError is what a decoding error looks like from outside its own package, and
RuntimeError a decimal of more digits than any has."""
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


class _Headers:
    """Headers that were read lately: a writer begins all of its files alike, up to their markers."""

    def __init__(self) -> None:
        self._lately: tuple[tuple[bytes, Mapping[str, bytes]], ...] = ()

    def of(self, reader: _Reader) -> Mapping[str, bytes]:
        """The metadata at the beginning of a file; the reader stands behind it then."""
        for header, found in self._lately:
            if reader.data.startswith(header):
                reader.at = len(header)
                return found
        reader.take(len(MAGIC))
        found = _header(reader)
        if reader.at <= _MOST_HEADER:
            self._lately = ((reader.data[: reader.at], found), *self._lately[: _MOST_HEADERS - 1])
        return found


_headers = _Headers()


def _header(reader: _Reader) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    while count := reader.long():
        if count < 0:
            count = -count
            reader.long()  # the block's size in bytes
        for _ in range(count):
            key = reader.take(reader.long()).decode()
            found[key] = reader.take(reader.long())
    return found


def _blocks(reader: _Reader, sync: bytes, codec: str) -> list[Block]:
    blocks = []
    room = limits.AVRO_BYTES
    while reader.at < len(reader.data):
        count, size = reader.long(), reader.long()
        start = reader.at
        packed = reader.take(size)
        if reader.take(_SYNC) != sync:
            raise ValueError(f"the block at {start} is not followed by the file's marker")
        content = inflate(packed, codec, room)
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


def inflate(packed: bytes, codec: str, limit: int = limits.AVRO_BYTES) -> bytes:
    """A block without its compression; ValueError if it is broken, or longer than `limit`."""
    try:
        match codec:
            case "null":
                found = packed
            case "deflate":
                found = _finished(zlib.decompressobj(-15), packed, limit)
            case "bzip2":
                found = _finished(bz2.BZ2Decompressor(), packed, limit)
            case "xz":
                found = _finished(lzma.LZMADecompressor(), packed, limit)
            case "snappy":
                length = _snappy_length(packed)
                if length > limit:
                    raise ValueError(f"a block claims to inflate to {length:,} bytes")
                found = pa.Codec("snappy").decompress(packed[:-4], length, asbytes=True)  # a checksum follows
            case _:
                with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                    found = stream.read(limit + 1)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, pa.ArrowException) as error:
        raise ValueError(f"a block cannot be inflated: {error}") from error
    if len(found) > limit:
        raise ValueError(f"its blocks inflate to more than {limits.AVRO_BYTES:,} bytes")
    return found


def _finished(inflator: Any, packed: bytes, limit: int) -> bytes:
    """The whole of a compressed stream, or one byte more than allowed."""
    found: bytes = inflator.decompress(packed, limit + 1)
    if len(found) <= limit and not inflator.eof:
        raise ValueError("a block's compressed bytes are cut off")
    return found


def read_frame(container: Container, path: str, columns: Collection[str] | None = None) -> pl.DataFrame:
    """The records as a frame: one column a field, called by its id. CorruptTableError if they cannot be decoded.

    `columns`: those that are wanted, the others may be missing.
    """
    try:
        frame = _fast_frame(container.schema, container.sync, [container], columns)
    except _UNDECODED:
        frame = _slow_frame(container, path)
    if frame.height != container.records:
        raise corrupt(path, f"it holds {frame.height} records, and its blocks claim {container.records}")
    return frame


def read_joined(
    containers: Sequence[Container], witness: str, columns: Collection[str] | None = None
) -> pl.DataFrame | None:
    """The records of files of the same schema, one file after the other, decoded at once: a file of few costs far less.

    Behind each file's records stands one of ours, with a text in the column `witness` that no file can know. Where it
    comes back in its place, every file holds what its blocks claim; else None: they are to be read one by one, which
    tells the broken one.
    """
    schema, sync, text = containers[0].schema, containers[0].sync, str(uuid4())
    try:
        ours = Container({}, schema, sync, (Block(1, blank_record(schema, text)),))
        frame = _fast_frame(schema, sync, [part for c in containers for part in (c, ours)], columns)
    except (*_UNDECODED, KeyError, TypeError):
        return None
    ends = [end - 1 for end in accumulate(c.records + 1 for c in containers)]
    if witness not in frame.columns or frame[witness].dtype != pl.String() or frame.height != ends[-1] + 1:
        return None
    if not (frame[witness].gather(ends) == text).fill_null(False).all():
        return None
    kept = pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
    return frame.filter(kept.scatter(ends, False))


def _fast_frame(
    schema: Any, sync: bytes, containers: Sequence[Container], columns: Collection[str] | None
) -> pl.DataFrame:
    # The reader never comes back from bytes behind the last record of a block, nor from a block it cannot inflate. So
    # all records are given as one block, asked for as one batch, and the reader is not asked again; the function that
    # the package documents would ask. (polars-avro 0.13; the pin keeps it below 0.14.)
    blocks = [block for c in containers for block in c.blocks if block.count]
    data = _plain_file(schema, sync, blocks)
    source = AvroSource([lambda: io.BytesIO(data)], False, False)
    wanted = None if columns is None else [f["name"] for f in schema["fields"] if f["name"] in columns]
    if not blocks:
        return pl.DataFrame(source.schema()).clear()
    return pl.DataFrame(next(iter(source.batch_iter(sum(b.count for b in blocks), wanted))))


def _slow_frame(container: Container, path: str) -> pl.DataFrame:
    """The records by way of Python objects: for what the fast reader does not know."""
    rows = read_records(container, path)
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def read_records(container: Container, path: str) -> list[dict[str, Any]]:
    """The records as dicts, fields by their ids."""
    data = _plain_file(container.schema, container.sync, [block for block in container.blocks if block.count])
    try:
        return [r for r in fastavro.reader(io.BytesIO(data)) if isinstance(r, dict)]
    except (
        ValueError,
        EOFError,
        TypeError,
        LookupError,
        ArithmeticError,
        struct.error,
        RecursionError,
        SchemaParseException,
    ) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def _plain_file(schema: Any, sync: bytes, blocks: Sequence[Block]) -> bytes:
    """A file without compression, with this schema, all records in one block."""
    parts = [MAGIC, _zigzag(2)]
    for key, value in (("avro.schema", msgspec.json.encode(schema)), ("avro.codec", b"null")):
        parts += [_zigzag(len(key)), key.encode(), _zigzag(len(value)), value]
    parts += [_zigzag(0), sync]
    if blocks:
        parts += [_zigzag(sum(b.count for b in blocks)), _zigzag(sum(len(b.content) for b in blocks))]
        parts += [*(b.content for b in blocks), sync]
    return b"".join(parts)


def _zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
