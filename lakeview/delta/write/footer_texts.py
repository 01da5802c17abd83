"""Bounds of texts from the footer of a data file that was just written."""

from collections.abc import Iterator, Mapping
from typing import IO

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
        leaf += num_leaves(field.type)
    return places


def text_bounds(
    file: IO[bytes], footer: pq.FileMetaData, columns: Mapping[str, int]
) -> Iterator[tuple[str, int, tuple[str | None, str | None]]]:
    """The name of each column, its nulls and its bounds, once for every row group; None where all texts are null.

    From the footer, since the encoder compared them: to do it again takes a tenth of an update
    (benches/bench_writer.py).
    """
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        for name, leaf in columns.items():
            statistics = group.column(leaf).statistics
            if statistics.has_min_max:
                yield name, statistics.null_count, (statistics.min, statistics.max)
            elif statistics.num_values:  # Arrow records no text of more than 4,096 bytes
                values = pl.Series(pl.from_arrow(_read_column(file, i, name)))
                yield name, statistics.null_count, (values.min(), values.max())  # type: ignore[misc]  # texts
            else:
                yield name, statistics.null_count, (None, None)


def _read_column(file: IO[bytes], group: int, name: str) -> pa.ChunkedArray:
    return pq.ParquetFile(file).read_row_group(group, columns=[name])[name]


def num_leaves(type_: pa.DataType) -> int:
    """How many leaves of a file a column of this type is."""
    return sum(num_leaves(type_.field(i).type) for i in range(type_.num_fields)) or 1
