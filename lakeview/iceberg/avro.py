"""Avro container files to frames, columns found by field id: polars-avro where it can, fastavro where it cannot.

The header is written anew before decoding, the data blocks stay as they are: fields are called by their ids (`f100`),
and records without fields, which take no bytes and which the fast reader refuses, are left out.
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

from lakeview.errors import CorruptTableError, UnsupportedTableError

MAGIC = b"Obj\x01"
_SYNC = 16
_MAX_DEPTH = 64
_MAX_INFLATED = 2 << 30
_DEFLATE_RATIO = 1032
"""What deflate can grow a byte to at most: a block below the limit by this needs no measuring."""
_MEASURED_FROM = 64 << 20
_CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


@dataclass(frozen=True, slots=True)
class Block:
    """Records in a row: how many, and where their bytes lie in the file."""

    count: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """An Avro file taken apart. `schema`: with fields called by their ids; `metadata` as in the header; `body`: where
    the first block begins."""

    data: bytes
    metadata: Mapping[str, bytes]
    schema: Any
    codec: str
    sync: bytes
    body: int
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
        body = reader.at
        blocks = tuple(_blocks(reader, sync, codec))
    except (ValueError, EOFError, KeyError, TypeError, AttributeError, RecursionError, msgspec.DecodeError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error
    return Container(data, metadata, schema, codec, sync, body, blocks)


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
    inflated = 0
    while reader.at < len(reader.data):
        count, size = reader.long(), reader.long()
        start = reader.at
        content = reader.take(size)
        if reader.take(_SYNC) != sync:
            raise ValueError(f"the block at {start} is not followed by the file's marker")
        most = _most_bytes(content, codec)
        inflated += most
        if inflated > _MAX_INFLATED:
            raise ValueError(f"its blocks inflate to more than {_MAX_INFLATED:,} bytes")
        if not 0 <= count <= most:  # no record of ours takes less than a byte
            raise ValueError(f"the block at {start} claims {count} records in {most} bytes")
        blocks.append(Block(count, start, start + size))
    return blocks


def _most_bytes(content: bytes, codec: str) -> int:
    """How large a block can be: measured where the codec could make little bytes very many."""
    match codec:
        case "null":
            return len(content)
        case "deflate" if len(content) * _DEFLATE_RATIO <= _MEASURED_FROM:
            return len(content) * _DEFLATE_RATIO
        case "snappy":
            return _snappy_length(content)
    return len(inflate(content, codec))


def _snappy_length(content: bytes) -> int:
    """A snappy block says its own length first, in 7 bits a byte."""
    number = 0
    for shift, byte in enumerate(content[:5]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number
    raise ValueError("a snappy block does not tell its length")


def inflate(content: bytes, codec: str) -> bytes:
    """A block without its compression, ValueError if it is broken or larger than any block may be."""
    try:
        match codec:
            case "null":
                return content
            case "deflate":
                found = zlib.decompressobj(-15).decompress(content, _MAX_INFLATED)
            case "bzip2":
                found = bz2.BZ2Decompressor().decompress(content, _MAX_INFLATED)
            case "xz":
                found = lzma.LZMADecompressor().decompress(content, _MAX_INFLATED)
            case "snappy":
                length = _snappy_length(content)
                if length > _MAX_INFLATED:
                    raise ValueError(f"a block claims to inflate to {length:,} bytes")
                found = pa.Codec("snappy").decompress(content[:-4], length, asbytes=True)  # a checksum follows
            case _:
                with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
                    found = stream.read(_MAX_INFLATED)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, pa.ArrowException) as error:
        raise ValueError(f"a block cannot be inflated: {error}") from error
    if len(found) >= _MAX_INFLATED:
        raise ValueError(f"a block inflates to {_MAX_INFLATED:,} bytes or more")
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
        return {"name": name, "type": type_}

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
    whole = _header_bytes(container, container.codec) + container.data[container.body :]
    try:
        frame = polars_avro.read_avro(io.BytesIO(whole), batch_size=8192)
    except (polars_avro.AvroError, pl.exceptions.PolarsError, ValueError, OverflowError):
        frame = _slow_frame(container, path)
    if frame.height != container.records:
        raise corrupt(path, f"it holds {frame.height} records, and its blocks claim {container.records}")
    return frame


def _slow_frame(container: Container, path: str) -> pl.DataFrame:
    """The records by way of Python objects: for what the fast reader does not know."""
    rows = read_records(container, path)
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def read_records(container: Container, path: str) -> list[dict[str, Any]]:
    """The records as dicts, fields by their ids."""
    blocks = []
    try:
        for block in container.blocks:
            content = inflate(container.data[block.start : block.end], container.codec)
            blocks.append(_zigzag(block.count) + _zigzag(len(content)) + content + container.sync)
        whole = _header_bytes(container, "null") + b"".join(blocks)
        return [r for r in fastavro.reader(io.BytesIO(whole)) if isinstance(r, dict)]
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


def _header_bytes(container: Container, codec: str) -> bytes:
    parts = [MAGIC, _zigzag(2)]
    for key, value in (("avro.schema", msgspec.json.encode(container.schema)), ("avro.codec", codec.encode())):
        parts += [_zigzag(len(key)), key.encode(), _zigzag(len(value)), value]
    return b"".join([*parts, _zigzag(0), container.sync])


def _zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
