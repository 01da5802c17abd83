"""A Parquet file in memory to nulls and bounds of its columns of text, from the footer: the encoder compared them.

To compare them again takes a tenth of the time that an update takes (benches/bench_writer.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


def text_columns(schema: pa.Schema) -> dict[str, int]:
    """The columns of text with the place of each among the leaves of the file. Fields of structs are no columns."""
    places: dict[str, int] = {}
    leaf = 0
    for field in schema:
        if pa.types.is_string(field.type):
            places[field.name] = leaf
        leaf += _num_leaves(field.type)
    return places


def text_bounds(
    data: bytes, footer: pq.FileMetaData, columns: Mapping[str, int]
) -> Iterator[tuple[str, int, tuple[str | None, str | None]]]:
    """The name of each column, its nulls and its bounds, once for every row group; None where all texts are null."""
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        for name, leaf in columns.items():
            statistics = group.column(leaf).statistics
            if statistics.has_min_max:
                yield name, statistics.null_count, (statistics.min, statistics.max)
            elif statistics.num_values:  # Arrow records no text of more than 4,096 bytes
                values = pl.Series(pl.from_arrow(_read_column(data, i, name)))
                yield name, statistics.null_count, (values.min(), values.max())  # type: ignore[misc]  # texts
            else:
                yield name, statistics.null_count, (None, None)


def _read_column(data: bytes, group: int, name: str) -> pa.ChunkedArray:
    return pq.ParquetFile(pa.BufferReader(data)).read_row_group(group, columns=[name])[name]


def _num_leaves(type_: pa.DataType) -> int:
    return sum(_num_leaves(type_.field(i).type) for i in range(type_.num_fields)) or 1
