"""How one data file is laid out inside: row groups and column chunks."""

from dataclasses import dataclass

import polars as pl

PHYSICAL = pl.Schema(
    {
        "row_group": pl.Int64(),
        "group_records": pl.Int64(),
        "column": pl.String(),
        "stored_as": pl.String(),
        "physical_type": pl.String(),
        "logical_type": pl.String(),
        "codec": pl.String(),
        "encodings": pl.String(),
        "values": pl.Int64(),
        "null_count": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "compressed": pl.Int64(),
        "uncompressed": pl.Int64(),
        "dictionary": pl.Boolean(),
        "page_index": pl.Boolean(),
        "bloom_filter": pl.Boolean(),
    }
)
"""One row a column chunk of one data file, by row group. `group_records`: rows of the group; `column` as the table
calls it now, `stored_as` in the file; `encodings` joined by commas; `values` with nulls and repeats; what the chunk's
statistics say as text, null where they do not, or where the file has very many chunks; sizes in bytes."""


@dataclass(frozen=True, slots=True)
class PhysicalFile:
    """How one data file is laid out inside, as its footer says: `size` and `footer_size` in bytes, `records` physical
    rows; `created_by`: the library that wrote it; `chunks`: PHYSICAL."""

    path: str
    size: int
    footer_size: int
    records: int
    row_groups: int
    created_by: str | None
    parquet_version: str
    chunks: pl.DataFrame
