"""The records of Avro files to frames, columns found by field id: polars-avro where it can, fastavro where it cannot.

A file is rewritten before decoding, its records as they are: blocks are inflated (`avro_container`), fields are
called by their ids (`f100`), and records without fields, which take no bytes and which the fast reader refuses, are
left out. Columns come in the types that are declared for them.
"""

import io
import struct
from collections.abc import Collection, Sequence
from functools import cache
from itertools import accumulate
from typing import Any
from uuid import uuid4

import fastavro
import msgspec
import polars as pl
import polars_avro
from fastavro.schema import SchemaParseException
from polars_avro._avro_rs import AvroSource

from lakeview.iceberg.manifests.avro_container import MAGIC, Block, Container, corrupt
from lakeview.iceberg.manifests.avro_schema import blank_record

_UNDECODED = (
    polars_avro.AvroError, pl.exceptions.PolarsError, pl.exceptions.PanicException, RuntimeError, SystemError,
    ValueError, OverflowError,
)  # fmt: skip
"""What the fast reader raises; SystemError is what a decoding error looks like from outside its own package,
RuntimeError a decimal of more digits than any has, and PanicException a value of one of several types."""


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
    mask = pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
    return frame.filter(mask.scatter(ends, False))


def _fast_frame(
    schema: Any, sync: bytes, containers: Sequence[Container], columns: Collection[str] | None
) -> pl.DataFrame:
    # The reader never comes back from bytes behind the last record of a block, nor from a block it cannot inflate. So
    # all records are given as one block, asked for as one batch, and the reader is not asked again; the function that
    # the package documents would ask. (polars-avro 0.13; the pin keeps it below 0.14.)
    blocks = [block for c in containers for block in c.blocks if block.count]
    data = _plain_file(schema, sync, blocks)
    source = AvroSource([lambda: io.BytesIO(data)], False, False)
    names = None if columns is None else [f["name"] for f in schema["fields"] if f["name"] in columns]
    if not blocks:
        return pl.DataFrame(source.schema()).clear()
    return pl.DataFrame(next(iter(source.batch_iter(sum(b.count for b in blocks), names))))


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


def require(frame: pl.DataFrame, columns: tuple[str, ...], path: str) -> None:
    """CorruptTableError for a file that lacks one of these fields."""
    if missing := [c for c in columns if c not in frame.columns]:
        raise corrupt(path, f"it lacks the field {missing[0].removeprefix('f')}, which every such file has")


def column(frame: pl.DataFrame, field_name: str, name: str, dtype: pl.DataType, path: str) -> pl.Series:
    """A column by its id in the declared type; nulls where the file does not have it. CorruptTableError for a column of
    a type from which there is no way."""
    if field_name not in frame.columns:
        return _nothing(name, dtype=dtype).clear(frame.height)
    series = frame[field_name].alias(name)
    if series.dtype == dtype:
        return series
    try:
        return _cast_series(series, dtype)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise corrupt(path, f"its field {field_name.removeprefix('f')} is {series.dtype}, not {dtype}") from error


_nothing = cache(pl.Series)
"""An empty column, to be made as many nulls as it takes: small manifests are mostly these."""


def _cast_series(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A series in a declared type; fields of structs that it lacks are null."""
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) and isinstance(series.dtype, pl.List):
        inner = series.dtype.inner
        if isinstance(inner, pl.Struct):
            names = {f.name for f in inner.fields}
            parts = [
                (pl.element().struct.field(f.name) if f.name in names else pl.lit(None)).cast(f.dtype).alias(f.name)
                for f in dtype.inner.fields
            ]
            return series.list.eval(pl.struct(parts))
    return series.cast(dtype)
