"""Data files that another engine wrote for a table to the statistics that our own writer records of their rows."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.data.file_statistics import FileStatistics, Path
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.footer_texts import num_leaves


@dataclass(frozen=True)
class FileFacts:
    """What is known of a data file: its rows, the document of its statistics, and the nulls of columns by their names
    in the file."""

    rows: int
    stats: str
    nulls: dict[str, int]


def footer_facts(file: IO[bytes], context: WriteContext, not_null: Collection[str] = ()) -> FileFacts | None:
    """What `read_facts` gives, where the footer alone says it; else None."""
    return _facts(file, context, not_null, reads_columns=False)


def read_facts(file: IO[bytes], context: WriteContext, not_null: Collection[str] = ()) -> FileFacts:
    """The statistics of the leaves that `context` indexes, and the nulls of the columns `not_null`, by their names in
    the file.

    From the footer; a column of which it does not say enough is read: lists and maps, texts that are too long for it,
    and floating-point numbers with NaN among them, which it has for a bound.
    """
    facts = _facts(file, context, not_null, reads_columns=True)
    assert facts is not None
    return facts


def _facts(
    file: IO[bytes], context: WriteContext, not_null: Collection[str], *, reads_columns: bool
) -> FileFacts | None:
    parquet = pq.ParquetFile(file)
    statistics = FileStatistics(context.indexed_columns, prefix=context.string_prefix)
    nulls: dict[str, int] = {}
    for field, leaves in _columns(parquet.schema_arrow):
        if field.name not in not_null and not any(path in context.indexed_columns for path, _, _ in leaves):
            continue
        parts = _parts(parquet.metadata, leaves)
        if parts is not None:
            for path, count, bounds in parts:
                statistics.add_leaf(path, count, bounds)
            nulls[field.name] = sum(count for _, count, _ in parts)
        elif reads_columns:
            column = parquet.read(columns=[field.name]).select([field.name])
            statistics.add(column)
            nulls[field.name] = column[0].null_count
        else:
            return None
    statistics.records = parquet.metadata.num_rows
    return FileFacts(statistics.records, statistics.text(), {name: nulls[name] for name in not_null})


_Leaf = tuple[Path, pa.DataType, int]


def _columns(schema: pa.Schema) -> Iterator[tuple[pa.Field, list[_Leaf]]]:
    """The columns of a file with their leaves."""
    place = 0
    for field in schema:
        yield field, list(_leaves(field, (), place))
        place += num_leaves(field.type)


def _leaves(field: pa.Field, above: Path, place: int) -> Iterator[_Leaf]:
    """What is reached through structs alone: its path, its type, and the place of its first leaf in the file."""
    path = (*above, field.name)
    if not pa.types.is_struct(field.type):
        yield path, field.type, place
        return
    for inner in field.type:
        yield from _leaves(inner, path, place)
        place += num_leaves(inner.type)


def _parts(footer: pq.FileMetaData, leaves: Sequence[_Leaf]) -> list[tuple[Path, int, pl.Series]] | None:
    """Of each leaf and row group the nulls, and values whose bounds are those of the leaf; None where the footer does
    not say all of them."""
    parts = []
    for path, type_, place in leaves:
        if pa.types.is_nested(type_):
            return None
        for number in range(footer.num_row_groups):
            statistics = footer.row_group(number).column(place).statistics
            if statistics is None or not statistics.has_null_count:
                return None
            values = _bounds(statistics, type_)
            if values is None:
                return None
            parts.append((path, statistics.null_count, pl.Series(pl.from_arrow(values))))
    return parts


def _bounds(statistics: pq.Statistics, type_: pa.DataType) -> pa.Array | None:
    """The least and the greatest of the values, none of a type without bounds; None where the footer has others."""
    if pa.types.is_binary(type_) or pa.types.is_boolean(type_) or not statistics.num_values:
        return pa.array([], type_)
    if not statistics.has_min_max:
        return None
    if pa.types.is_temporal(type_):  # no days of Python's: it has none before the year 1
        days = pa.types.is_date32(type_)
        return _raw(statistics, pa.int32() if days else pa.int64()).cast(type_)
    bounds: list[Any] = [statistics.min, statistics.max]
    if pa.types.is_floating(type_):
        if any(math.isnan(bound) for bound in bounds):
            return None
        bounds = [bound + 0.0 for bound in bounds]  # writers give zero the sign that makes bounds wider
    return pa.array(bounds, type_)


def _raw(statistics: pq.Statistics, type_: pa.DataType) -> pa.Array:
    return pa.array([statistics.min_raw, statistics.max_raw], type_)
