"""The footer of one Parquet file to the bytes of its columns and row groups."""

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.model.physical_file import PhysicalFile
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform
from lakeview.views.timeline.lifetimes import additions
from lakeview.views.units import format_bytes, format_moment, format_version

COLUMN_CHUNKS = pl.Schema(
    {
        "column": pl.String(),
        "stored_as": pl.String(),
        "type": pl.String(),
        "codec": pl.String(),
        "encodings": pl.String(),
        "compressed": pl.Int64(),
        "uncompressed": pl.Int64(),
        "share": pl.Float64(),
        "ratio": pl.Float64(),
        "per_value": pl.Float64(),
        "null_count": pl.Int64(),
        "dictionary": pl.Boolean(),
        "page_index": pl.Boolean(),
        "bloom_filter": pl.Boolean(),
        "structures": pl.String(),
    }
)
"""One row a column of one file, the largest first. `type`: how its values are stored, and what they mean; `codec` and
`encodings` of all its chunks, joined by commas; sizes in bytes, `share` of the bytes of all columns, `ratio` of bytes
before to after compression, `per_value`: compressed bytes a value; `null_count` null where a chunk does not count;
`dictionary`, `page_index`, `bloom_filter`: true if every chunk has one; `structures`: those it has, in words."""

ROW_GROUPS = pl.Schema(
    {
        "row_group": pl.Int64(),
        "records": pl.Int64(),
        "compressed": pl.Int64(),
        "uncompressed": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
    }
)
"""One row a row group, in order; sizes in bytes; the range is that of one chosen column, null without statistics."""


_SHORT_TYPES = {
    "precision=": "",
    "scale=": "",
    "bitWidth=": "",
    "timeUnit=": "",
    "isSigned=true": "signed",
    "isSigned=false": "unsigned",
    "isAdjustedToUTC=true": "UTC",
    "isAdjustedToUTC=false": "no zone",
}
"""Parts of a logical type that pyarrow writes, and what is shown: `Decimal(30, 6)`, `Timestamp(UTC, microseconds)`."""


def column_chunks(file: PhysicalFile) -> pl.DataFrame:
    """COLUMN_CHUNKS of a file."""

    def join_texts(name: str) -> pl.Expr:
        return pl.col(name).str.split(", ").explode(empty_as_null=True, keep_nulls=True).unique().sort().str.join(", ")

    logical = pl.col("logical_type").str.replace_all(r", (is_from|force_set)_converted_type=\w+", "")
    logical = logical.str.replace_many(_SHORT_TYPES)
    type_ = (
        pl.when(pl.col("logical_type").is_null())
        .then("physical_type")
        .otherwise(format_expression("{} ({})", logical, "physical_type"))
    )
    every = ("dictionary", "page_index", "bloom_filter")
    columns = file.chunks.group_by("column", "stored_as", maintain_order=True).agg(
        type_.first().alias("type"),
        join_texts("codec").alias("codec"),
        join_texts("encodings").alias("encodings"),
        pl.col("compressed", "uncompressed", "values").sum(),
        pl.when(pl.col("null_count").is_not_null().all()).then(pl.col("null_count").sum()).alias("null_count"),
        pl.col(every).all(),
    )
    size = pl.col("compressed")
    return (
        columns.with_columns(
            share=pl.when(size.sum() > 0).then(size / size.sum()),
            ratio=pl.when(size > 0).then(pl.col("uncompressed") / size),
            per_value=pl.when(pl.col("values") > 0).then(size / pl.col("values")),
            structures=pl.concat_str(  # of a dictionary the encodings tell
                *(pl.when(name).then(pl.lit(name.replace("_", " "))) for name in every[1:]),
                separator=", ",
                ignore_nulls=True,
            ),
        )
        .sort("compressed", descending=True, maintain_order=True)
        .pipe(conform, COLUMN_CHUNKS)
    )


def codecs(chunks: pl.DataFrame) -> str | None:
    """The codecs of all COLUMN_CHUNKS, joined by commas; None where none is recorded."""
    names = chunks["codec"].str.split(", ").explode(empty_as_null=True, keep_nulls=True).unique().drop_nulls().sort()
    return ", ".join(names) or None


def row_groups(file: PhysicalFile, column: str | None = None) -> pl.DataFrame:
    """ROW_GROUPS of a file, with the range of a column named as in PHYSICAL."""
    own = pl.col("column") == (column if column is not None else "")
    return (
        file.chunks.group_by("row_group")
        .agg(
            pl.col("group_records").first().alias("records"),
            pl.col("compressed", "uncompressed").sum(),
            pl.col("min_text", "max_text").filter(own).first(),
        )
        .sort("row_group")
        .pipe(conform, ROW_GROUPS)
    )


def logged_facts(snapshot: Snapshot, lifetimes: pl.DataFrame, path: str) -> dict[str, str | None]:
    """What the log says of one file of a snapshot, names to text; None is unknown, {} for a file it has not."""
    live = snapshot.files.filter(pl.col("path") == path)
    if live.is_empty():
        other = snapshot.delete_files.filter(pl.col("path") == path)
        return {"size": format_bytes(other["size"][0])} if other.height else {}
    file = live.row(0, named=True)
    versions = additions(lifetimes.filter(pl.col("path") == path))["added"].drop_nulls()
    facts = {
        "partition": file["partition_text"],
        "size": format_bytes(file["size"]),
        "rows, by the log": None if file["records"] is None else f"{file['records']:,}",
        "rows deleted": None if file["deleted_records"] is None else f"{file['deleted_records']:,}",
        "added by": None if versions.is_empty() else format_version(int(versions[0])),
        "modified, UTC": None if file["modified"] is None else format_moment(file["modified"]),
    }
    if file["partition_text"] is None:
        del facts["partition"]
    return facts
