"""A Parquet file to its footer, once it is certain that pyarrow survives a look at the column chunks.

pyarrow's C++ code throws at some of them (26.0: `ColumnChunkMetaData`, `Statistics`), and nothing on the way to Python
catches it: the process ends. Readers of rows are not concerned, whose exceptions are caught.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

FIRST_READ = 64 << 10
"""Bytes. Most footers are smaller, so that one request is enough."""

MAGIC = b"PAR1"
_END = 8
"""Bytes behind a footer: its length and the magic number."""

# kinds of values in Thrift's compact protocol
_BOOLEANS, _I32, _I64, _BINARY, _LIST, _SET, _MAP, _STRUCT = (1, 2), 5, 6, 8, 9, 10, 11, 12
_VARINTS = (4, _I32, _I64)
_LENGTHS = {1: 0, 2: 0, 3: 1, 7: 8, 13: 16}
"""Bytes of a value, for the kinds where it is always the same."""
_FIELD_NUMBERS = range(-(2**15), 2**15)

# Fields of parquet.thrift by their numbers, each with its kind and what is in it: those that are looked at, and lists,
# which pyarrow reads as the kind of parquet.thrift whatever kind they say.
_Struct = Mapping[int, tuple[int, Any]]
_STRUCTS: tuple[int, Any] = (_LIST, (_STRUCT, {}))
_STATISTICS: _Struct = dict.fromkeys((1, 2, 5, 6), (_BINARY, None))
_SIZES: _Struct = {1: (_I64, None), **dict.fromkeys((2, 3), (_LIST, (_I64, None)))}
_GEOSPATIAL: _Struct = {2: (_LIST, (_I32, None))}
_CHUNK_METADATA: _Struct = {
    1: (_I32, None), 2: (_LIST, (_I32, None)), 3: (_LIST, (_BINARY, None)), 4: (_I32, None), 8: _STRUCTS,
    12: (_STRUCT, _STATISTICS), 13: _STRUCTS, 16: (_STRUCT, _SIZES), 17: (_STRUCT, _GEOSPATIAL),
}  # fmt: skip
_COLUMN_KEY = 2
_CHUNK: _Struct = {3: (_STRUCT, _CHUNK_METADATA), 8: (_STRUCT, {_COLUMN_KEY: (_STRUCT, {})})}
_ROW_GROUP: _Struct = {1: (_LIST, (_STRUCT, _CHUNK)), 4: _STRUCTS}
_FILE: _Struct = {2: _STRUCTS, 4: (_LIST, (_STRUCT, _ROW_GROUP)), 5: _STRUCTS, 7: _STRUCTS}

_MOST_CODEC = 7
"""The greatest of CompressionCodec: LZ4_RAW."""
_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_FIXED = _TYPES[7]
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
"""Bytes of a value, as PLAIN encodes it."""

_ENCRYPTED = "it is encrypted with a key of its own"
_CUT = "its bounds are cut, and its values all have the same length"
"""As Rust's parquet cuts those of more than 64 bytes."""


def read_footer(handle: IO[bytes]) -> pq.FileMetaData:
    """The footer of a Parquet file. Errors as `footer_of`."""
    return footer_of(footer_bytes(handle))


def footer_bytes(handle: IO[bytes]) -> bytes:
    """The last bytes of a Parquet file, which begin with its footer."""
    size = handle.seek(0, 2)
    handle.seek(max(0, size - FIRST_READ))
    tail = handle.read(FIRST_READ)
    length = int.from_bytes(tail[-_END:-4], "little") + _END
    if tail[-4:] != MAGIC or length + len(MAGIC) > size:
        return tail  # `unchecked_footer` raises what is wrong
    if length > len(tail):
        handle.seek(size - length)
        tail = handle.read(length)
    return tail[-length:]


def footer_of(end: bytes) -> pq.FileMetaData:
    """The footer in the last bytes of a Parquet file, which begin with it. Errors as `unchecked_footer` and
    `check_chunks`."""
    metadata = unchecked_footer(end)
    check_chunks(metadata, end)
    return metadata


def unchecked_footer(end: bytes) -> pq.FileMetaData:
    """As `footer_of`, before its column chunks are checked: none of them may be looked at, only the schema and the sums
    of row groups. ArrowException or OSError as pyarrow raises them; ArrowInvalid for one longer than these bytes."""
    check_length(end)
    return pq.read_metadata(pa.BufferReader(MAGIC + end))


def check_length(end: bytes) -> None:
    """ArrowInvalid for bytes that are too few for a footer, and for a footer longer than they are."""
    if len(end) < _END:  # pyarrow would count the magic number before them as well
        raise pa.ArrowInvalid(f"it holds {len(end)} bytes, too few for a Parquet file")
    if end[-4:] == MAGIC and int.from_bytes(end[-_END:-4], "little") + _END > len(end):
        # pyarrow would take bytes of the magic number before them for its begin, which `check_chunks` does not see
        raise pa.ArrowInvalid("the footer is said to be longer than the file")


def check_chunks(metadata: pq.FileMetaData, end: bytes) -> None:
    """ArrowInvalid for a column chunk that pyarrow throws at: of another type than its column, by a codec that Parquet
    has not, with bounds shorter than a value, or with histograms of other levels than the column has (parquet.thrift,
    ColumnMetaData, Statistics, SizeStatistics); ArrowNotImplementedError for a sound one that it throws at: encrypted
    with a key of its own, or with a bound of fixed-length bytes that its writer cut.

    `end`: the bytes that the footer is in.
    """
    try:
        # pyarrow has read all of it, so that lengths and depths are within its limits
        fields, _ = _struct(end, 0, _FILE)
    except (IndexError, KeyError, ValueError) as error:
        raise pa.ArrowInvalid(f"the footer is no sound Thrift: {error}") from error
    columns = [_Column.of(metadata.schema.column(i)) for i in range(metadata.num_columns)]
    for group in fields.get(4, ()):
        chunks = group.get(1, ())
        if len(chunks) != len(columns):
            raise pa.ArrowInvalid(f"a row group has {len(chunks)} columns, and the schema {len(columns)}")
        for chunk, column in zip(chunks, columns, strict=True):
            if why := _fault(chunk, column):
                refusal = pa.ArrowNotImplementedError if why in (_ENCRYPTED, _CUT) else pa.ArrowInvalid
                raise refusal(f"column {column.path}: {why}")


class _Column(NamedTuple):
    """A leaf of the schema. `type`: its place among _TYPES; `width`: bytes of a value, 0 where they differ."""

    path: str
    physical: str
    type: int
    width: int
    most_repetition: int
    most_definition: int

    @classmethod
    def of(cls, column: pq.ColumnSchema) -> _Column:
        """Read once: each is looked at for every row group."""
        physical = column.physical_type
        width = column.length if physical == _FIXED else _WIDTHS.get(physical, 0)
        levels = column.max_repetition_level, column.max_definition_level
        return cls(column.path, physical, _TYPES.index(physical), width, *levels)


def _fault(chunk: Mapping[int, Any], column: _Column) -> str | None:
    if _COLUMN_KEY in chunk.get(8, ()):
        return _ENCRYPTED
    fields = chunk.get(3, {})
    if fields.get(1, 0) != column.type:
        return f"a chunk is of another type than {column.physical}"
    if not 0 <= fields.get(4, 0) <= _MOST_CODEC:
        return f"it is compressed by codec {fields[4]}, which Parquet has not"
    if any(0 < len(bound) < column.width for bound in fields.get(12, {}).values()):
        return _CUT if column.physical == _FIXED else f"a bound is shorter than a value of {column.width} bytes"
    sizes = fields.get(16, {})
    if 1 in sizes and column.physical != "BYTE_ARRAY":
        return f"it counts the bytes of texts, and holds {column.physical}"
    for field, most in ((2, column.most_repetition), (3, column.most_definition)):
        if sizes.get(field, 0) not in (0, most + 1):
            return f"a histogram has {sizes[field]} levels, and the column {most + 1}"
    return None


def _struct(data: bytes, at: int, fields: _Struct) -> tuple[dict[int, Any], int]:
    """The values of these fields of a struct, and where it ends; of a list, of whose elements nothing is wanted, its
    length."""
    values: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        if step := head >> 4:
            number += step
        else:
            number, at = _integer(data, at)
        if number not in _FIELD_NUMBERS:  # pyarrow takes 65538 for 2
            raise ValueError(f"field {number} has no number of 16 bits")
        kind = head & 15
        expected_kind, inner = fields.get(number, (None, None))
        if kind != expected_kind:
            if kind in _VARINTS and data[at] < 128:  # most are, which is a third of the time
                at += 1
            else:
                at = _after(data, at, kind)
        elif number in values:
            raise ValueError(f"field {number} is there twice")
        else:
            values[number], at = _value(data, at, kind, inner)
    return values, at + 1


def _value(data: bytes, at: int, kind: int, inner: Any) -> tuple[Any, int]:
    if kind == _BINARY:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind == _STRUCT:
        return _struct(data, at, inner)
    if kind != _LIST:
        return _integer(data, at)
    element, size, at = _list(data, at)
    expected_kind, inner = inner
    if size and element != expected_kind:
        raise ValueError(f"elements of kind {element} where {expected_kind} was expected")
    if not inner:
        return size, _after_each(data, at, (element,), size)
    values = []
    for _ in range(size):
        value, at = _value(data, at, element, inner)
        values.append(value)
    return values, at


def _after(data: bytes, at: int, kind: int) -> int:
    """Where a value ends."""
    if kind in _VARINTS:
        while data[at] & 128:
            at += 1
        return at + 1
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == _STRUCT:
        return _struct(data, at, {})[1]
    if kind in (_LIST, _SET):
        element, size, at = _list(data, at)
        return _after_each(data, at, (element,), size)
    if kind == _MAP:
        size, at = _varint(data, at)
        return _after_each(data, at + 1, (data[at] >> 4, data[at] & 15), size) if size else at
    return at + _LENGTHS[kind]


def _after_each(data: bytes, at: int, kinds: tuple[int, ...], size: int) -> int:
    """Where the elements of a collection end, each of values of these kinds."""
    for _ in range(size):
        for kind in kinds:
            at = at + 1 if kind in _BOOLEANS else _after(data, at, kind)  # those of a field are in its kind
    return at


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """The kind of the elements, how many there are, and where the first is."""
    head = data[at]
    if head >> 4 < 15:
        return head & 15, head >> 4, at + 1
    size, at = _varint(data, at + 1)
    return head & 15, size, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) & 128:
        value |= (byte & 127) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1
