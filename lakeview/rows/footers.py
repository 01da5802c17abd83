"""A Parquet file's footer to what it says of itself: row groups, column chunks, encodings, bytes. No row is read."""

from collections.abc import Iterator
from typing import NoReturn

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.model import limits
from lakeview.model.arguments import text_of
from lakeview.model.errors import CorruptTableError, DataFileMissingError, InvalidRequestError, UnsupportedTableError
from lakeview.model.physical_file import PHYSICAL, PhysicalFile
from lakeview.model.printable import shorten
from lakeview.model.schema import Schema
from lakeview.rows.field_places import Match, field_places
from lakeview.rows.footer_reader import FIRST_READ, MAGIC, footer_of
from lakeview.storage import Storage

_ENCRYPTED = b"PARE"
_OTHERS = {b"Obj\x01": "an Avro file", b"ORC": "an ORC file", b"PFA1": "a Puffin file", _ENCRYPTED: "an encrypted file"}
_TEXT_LENGTH = 80


def listed_size(files: pl.DataFrame, path: str, address: str) -> int:
    """The size of a file by FILES; InvalidRequestError for one that is not among them: no other file is opened."""
    sizes = files.filter(pl.col("path") == text_of(path, "path"))["size"]
    if not sizes.len():
        raise InvalidRequestError(
            f"{path} is no file of this version of {address}",
            fix="choose one of its files, or the version that held it",
            place="file",
            kind="unknown-file",
        )
    if (size := sizes[0]) is None:
        raise CorruptTableError(
            f"the log of {address} records a size that no file has for {path}",
            fix="have the file rewritten by the engine that owns the table",
            place=path,
            kind="corrupt-file",
        )
    return int(size)


def physical_file(
    storage: Storage,
    path: str,
    size: int,
    schema: Schema | None = None,
    match: Match = "name",
    *,
    recorded_path: str = "",
) -> PhysicalFile:
    """What the footer of a Parquet file of `size` bytes says: one request, two where the footer is large.

    `schema` and `match` give its columns the names the table has for them now; `recorded_path`: the path in
    the log. DataFileMissingError, UnsupportedTableError for a file of another kind or one that pyarrow
    cannot look into, CorruptTableError for a broken footer.
    """
    name = recorded_path or path
    try:
        tail = storage.read_range(path, max(0, size - FIRST_READ), min(size, FIRST_READ))
        if len(tail) < 12 or tail[-4:] != MAGIC:
            _refuse(storage, path, name, size, tail)
        length = int.from_bytes(tail[-8:-4], "little")
        if length + 12 > size:
            raise _footer_error(name, f"its footer of {length:,} bytes is longer than the file of {size:,}")
        if length + 8 > len(tail):
            tail = storage.read_range(path, size - length - 8, length + 8)
    except DataFileMissingError:
        raise
    except FileNotFoundError as error:
        raise DataFileMissingError(
            f"data file {name} is in the log and not in the store",
            fix="restore it, or read another version: the table's versions tell which are whole",
            place=name,
        ) from error
    try:
        metadata = footer_of(tail[-(length + 8) :])
        return PhysicalFile(
            path=name,
            size=size,
            footer_size=length,
            records=metadata.num_rows,
            row_groups=metadata.num_row_groups,
            created_by=metadata.created_by or None,
            parquet_version=metadata.format_version,
            chunks=_chunks(metadata, _names(metadata, schema, match)),
        )
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedTableError(
            f"pyarrow cannot look into {name}: {error}",
            fix="look at it with the engine that wrote it",
            place=name,
            kind="unsupported-data-format",
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise _footer_error(name, (str(error) or type(error).__name__).splitlines()[0]) from error


def _refuse(storage: Storage, path: str, name: str, size: int, tail: bytes) -> NoReturn:
    head = storage.read_range(path, 0, 4)
    for magic, kind in _OTHERS.items():
        if head.startswith(magic) or tail[-4:] == magic:
            raise UnsupportedTableError(
                f"{name} is {kind}, and only the layout of Parquet files can be read",
                fix="look at it with the engine that wrote it",
                place=name,
                kind="unsupported-data-format",
            )
    raise _footer_error(name, f"it does not end as a Parquet file of {size:,} bytes does")


def _footer_error(name: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"data file {name} cannot be looked into: {why}",
        fix="restore the file from a backup, or read a version without it",
        place=name,
        kind="corrupt-data-file",
    )


def _names(metadata: pq.FileMetaData, schema: Schema | None, match: Match) -> dict[str, str]:
    """What the table calls the file's top-level columns now; what it does not have keeps the file's name."""
    if schema is None:
        return {}
    try:
        file_fields = list(metadata.schema.to_arrow_schema())
        places = field_places(file_fields, list(schema), match)
    except pa.ArrowException:  # a type that Arrow has not, or a file without ids: its own names will do
        return {}
    return {file_fields[place].name: f.name for f, place in zip(schema, places, strict=True) if place is not None}


def _chunks(metadata: pq.FileMetaData, names: dict[str, str]) -> pl.DataFrame:
    ranges = metadata.num_row_groups * metadata.num_columns <= limits.COLUMN_CHUNKS
    rows = list(_rows(metadata, names, ranges))
    return pl.DataFrame(rows, schema=PHYSICAL, orient="row")


def _rows(metadata: pq.FileMetaData, names: dict[str, str], ranges: bool) -> Iterator[tuple[object, ...]]:
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    logical = [str(leaf.logical_type) for leaf in leaves]
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for i in range(row_group.num_columns):
            chunk = row_group.column(i)
            path_in_file = chunk.path_in_schema
            first, dot, rest = path_in_file.partition(".")
            low, high, nulls = _range(chunk) if ranges else (None, None, None)
            yield (
                group,
                row_group.num_rows,
                f"{names.get(first, first)}{dot}{rest}",
                path_in_file,
                chunk.physical_type,
                None if logical[i] == "None" else logical[i],
                chunk.compression,
                ", ".join(chunk.encodings),
                chunk.num_values,
                nulls,
                low,
                high,
                chunk.total_compressed_size,
                chunk.total_uncompressed_size,
                chunk.has_dictionary_page,
                chunk.has_column_index,
                chunk.bloom_filter_offset is not None,
            )


def _range(chunk: pq.ColumnChunkMetaData) -> tuple[str | None, str | None, int | None]:
    try:
        statistics = chunk.statistics
        if statistics is None:
            return None, None, None
        nulls = statistics.null_count if statistics.has_null_count else None
        if not statistics.has_min_max:
            return None, None, nulls
        return _text(statistics.min), _text(statistics.max), nulls
    except (pa.ArrowException, ValueError, OverflowError):  # a type whose ends Arrow cannot tell, or no such moment
        return None, None, None


def _text(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return shorten(text, _TEXT_LENGTH)
