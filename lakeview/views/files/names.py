"""Names of data files for a narrow column."""

from urllib.parse import unquote, unquote_plus

import polars as pl

from lakeview.model.partition_texts import HIVE_NULL, unescape
from lakeview.model.printable import ELLIPSIS

UUID = r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""A UUID as a pattern; its group is the first digits."""

_NULL_TEXT = '="null"'
"""The text null in a partition's text."""

_WRITE_ID = r"(?:\b[0-9a-f]{32}-)"


def short_names(files: pl.Series) -> pl.Series:
    """Paths whose last part has a UUID, with the first digits of it: `part-c3274618….parquet`. They tell files apart;
    files of one write by Spark share the id before it, which is left out."""
    return files.str.replace(f"{_WRITE_ID}?{UUID}([^/]*)$", f"$1{ELLIPSIS}$2")


def names_apart(files: pl.Series) -> pl.Series:
    """`short_names` of several files without what follows the digits, where it is the same of all: `part-c3274618…`."""
    names = short_names(files)
    endings = names.str.extract(f"{ELLIPSIS}([^/]*)$")
    is_shared = names.len() > 1 and not endings.has_nulls() and endings.n_unique() == 1
    return names.str.replace(f"{ELLIPSIS}[^/]*$", ELLIPSIS) if is_shared else names


def with_short_paths(page: pl.DataFrame, folder: str) -> pl.DataFrame:
    """FILE_PAGE with `file` (String): the path below the folder that all begin with, and below its partition's, however
    the values are escaped in the names of folders."""
    names = page.select("partition_text", path=pl.col("path").str.strip_prefix(folder)).with_columns(
        folder=pl.col("path").str.extract("^(.*/)")
    )
    folders = names.select("folder", "partition_text").unique().drop_nulls()
    values = folders.select(unescape(pl.col("partition_text"))).to_series()
    pairs = zip(folders["folder"], folders["partition_text"].str.count_matches("/"), values, strict=True)
    lengths = folders.with_columns(length=pl.Series([_partition_length(*pair) for pair in pairs], dtype=pl.Int64))
    names = names.join(lengths, on=["folder", "partition_text"], how="left", maintain_order="left")
    return page.with_columns(names.select(file=pl.col("path").str.slice(pl.col("length").fill_null(0))).to_series())


def _partition_length(folder: str, slashes: int, partition: str) -> int:
    """Characters of the partition's own folders, of so many slashes between them, with which a folder begins."""
    own = "".join(f"{name}/" for name in folder.split("/")[: slashes + 1])
    texts = {decode(own).replace(f"={HIVE_NULL}", "=null") for decode in (str, unquote, unquote_plus)}
    return len(own) if f"{partition.replace(_NULL_TEXT, '=null')}/" in texts else 0
