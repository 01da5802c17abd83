"""Names of data files for a narrow column."""

import polars as pl

from lakeview.model.printable import ELLIPSIS

UUID = r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""A UUID as a pattern; its group is the first digits."""

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
