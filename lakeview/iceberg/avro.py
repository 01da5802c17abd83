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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import msgspec
import polars as pl
import polars_avro
import pyarrow as pa
from polars_avro._avro_rs import AvroSource

from lakeview.errors import CorruptTableError, LakeviewError, UnsupportedTableError

MAGIC = b"Obj\x01"
_SYNC = 16
_MAX_DEPTH = 64
_MAX_INFLATED = 1 << 30
_CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


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


def open_container(data: bytes, path: str, names: Mapping[str, int] | None = None) -> Container:
    """An Avro file taken apart and checked: every block whole, followed by the marker, of a bounded size.

    `names`: the ids of fields that carry none, by name. CorruptTableError ("corrupt-file") if it is no whole Avro file.
    """
    try:
        if not data.startswith(MAGIC):
            raise ValueError("it does not begin as an Avro file does")
        reader = _Reader(data)
        reader.take(len(MAGIC))
        metadata = _header(reader)
        sync = reader.take(_SYNC)
        codec = metadata.get("avro.codec", b"null").decode()
        if codec not in _CODECS:
            raise UnsupportedTableError(
                f"{path} is compressed with {codec[:40]}, which is not read", place=path, kind="unsupported-codec",
                fix="have the table's manifests rewritten with deflate or zstd",
            )  # fmt: skip
        schema = _Renamed(names or {}).type(msgspec.json.decode(metadata.get("avro.schema", b"")), 0)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ValueError("its schema is no record with fields")
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
    room = _MAX_INFLATED
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


def inflate(packed: bytes, codec: str, limit: int = _MAX_INFLATED) -> bytes:
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
        raise ValueError(f"its blocks inflate to more than {_MAX_INFLATED:,} bytes")
    return found


def _finished(inflator: Any, packed: bytes, limit: int) -> bytes:
    """The whole of a compressed stream, or one byte more than allowed."""
    found: bytes = inflator.decompress(packed, limit + 1)
    if len(found) <= limit and not inflator.eof:
        raise ValueError("a block's compressed bytes are cut off")
    return found


class _Renamed:
    """A schema with its fields called by their ids, entries of maps `key` and `value`, and no field without bytes."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names
        self._known: dict[str, Any] = {}
        self._counter = 0

    def type(self, found: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("its schema is nested too deep, or in itself")
        if isinstance(found, list):
            branches = [self.type(b, depth + 1) for b in found]
            # Branches without bytes leave only the branch's number: BigQuery has a nullable record without fields.
            return "long" if all(b in ("null", None) for b in branches) and len(branches) > 1 else branches
        if isinstance(found, str):
            return found if found in _PRIMITIVES else self.type(self._named(found), depth + 1)
        match found["type"]:
            case "record":
                self._remember(found)
                fields = [self._field(f, depth) for f in found["fields"]]
                self._counter += 1
                kept = [f for f in fields if f["type"] is not None]
                return {"type": "record", "name": f"r{self._counter}", "fields": kept} if kept else None
            case "array":
                return self._array(found, depth)
            case "map":
                return {"type": "map", "values": self._with_bytes(self.type(found["values"], depth + 1))}
            case "fixed" | "enum":
                self._remember(found)
                self._counter += 1
                return {k: v for k, v in found.items() if k not in ("namespace", "aliases")} | {
                    "name": f"r{self._counter}"
                }
            case list() | dict() as inner:
                return self.type(inner, depth + 1)
        return self.type(found["type"], depth + 1) if found["type"] not in _PRIMITIVES else _plain(found)

    def _remember(self, found: Any) -> None:
        for name in (found["name"], f"{found.get('namespace', '')}.{found['name']}"):
            self._known[name] = found

    def _named(self, name: str) -> Any:
        if name not in self._known:
            raise ValueError(f"its schema names the type {name[:80]}, which it does not have")
        return self._known[name]

    def _field(self, found: Any, depth: int) -> dict[str, Any]:
        field_id = found.get("field-id", self._names.get(found["name"]))
        name = f"f{field_id}" if isinstance(field_id, int) and field_id >= 0 else found["name"]
        type_ = self.type(found["type"], depth + 1)
        return {"name": name, "type": None if type_ == "null" else type_}

    def _array(self, found: Any, depth: int) -> dict[str, Any]:
        items = self._with_bytes(self.type(found["items"], depth + 1))
        if found.get("logicalType") == "map" and isinstance(items, dict) and len(items.get("fields", ())) == 2:
            pairs = zip(items["fields"], ("key", "value"), strict=True)
            items = {**items, "fields": [{**f, "name": name} for f, name in pairs]}
        return {"type": "array", "items": items}

    def _with_bytes(self, items: Any) -> Any:
        if items in (None, "null"):  # any number of them would fit into no bytes at all
            raise ValueError("its schema has lists of elements that take no bytes")
        return items


def _plain(found: Mapping[str, Any]) -> Any:
    """A primitive with what changes how it is read."""
    kept = {k: found[k] for k in ("type", "logicalType", "precision", "scale", "adjust-to-utc") if k in found}
    return kept if len(kept) > 1 else found["type"]


def read_frame(container: Container, path: str) -> pl.DataFrame:
    """The records as a frame: one column a field, called by its id. CorruptTableError if they cannot be decoded."""
    try:
        frame = _fast_frame(container)
    except (polars_avro.AvroError, pl.exceptions.PolarsError, SystemError, ValueError, OverflowError):
        # SystemError: what a decoding error of the fast reader looks like from outside its own package
        frame = _slow_frame(container, path)
    if frame.height != container.records:
        raise corrupt(path, f"it holds {frame.height} records, and its blocks claim {container.records}")
    return frame


def _fast_frame(container: Container) -> pl.DataFrame:
    # The reader never comes back from bytes behind the last record of a block, nor from a block it cannot inflate. So
    # all records are given as one block, asked for as one batch, and the reader is not asked again; the function that
    # the package documents would ask. (polars-avro 0.13; the pin keeps it below 0.14.)
    data = _plain_file(container)
    source = AvroSource([lambda: io.BytesIO(data)], False, False)
    if not container.records:
        return pl.DataFrame(source.schema()).clear()
    return pl.DataFrame(next(iter(source.batch_iter(container.records, None))))


def _slow_frame(container: Container, path: str) -> pl.DataFrame:
    """The records by way of Python objects: for what the fast reader does not know."""
    rows = read_records(container, path)
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def read_records(container: Container, path: str) -> list[dict[str, Any]]:
    """The records as dicts, fields by their ids."""
    try:
        return [r for r in fastavro.reader(io.BytesIO(_plain_file(container))) if isinstance(r, dict)]
    except (
        ValueError,
        EOFError,
        TypeError,
        IndexError,
        KeyError,
        OverflowError,
        struct.error,
        RecursionError,
    ) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def _plain_file(container: Container) -> bytes:
    """The file without compression, with the schema changed, all its records in one block."""
    parts = [MAGIC, _zigzag(2)]
    for key, value in (("avro.schema", msgspec.json.encode(container.schema)), ("avro.codec", b"null")):
        parts += [_zigzag(len(key)), key.encode(), _zigzag(len(value)), value]
    parts += [_zigzag(0), container.sync]
    contents = [block.content for block in container.blocks if block.count]
    if contents:
        parts += [_zigzag(container.records), _zigzag(sum(map(len, contents))), *contents, container.sync]
    return b"".join(parts)


def _zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
