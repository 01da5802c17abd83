"""Names of data files for a narrow column."""

from __future__ import annotations

import polars as pl

UUID = r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""A UUID as a pattern; its group is the first digits."""

_WRITE_ID = r"(?:\b[0-9a-f]{32}-)"


def short_names(files: pl.Series) -> pl.Series:
    """Paths whose last part has a UUID, with the first digits of it: `part-c3274618….parquet`. They tell files apart;
    files of one write by Spark share the id before it, which is left out."""
    return files.str.replace(f"{_WRITE_ID}?{UUID}([^/]*)$", "$1\N{HORIZONTAL ELLIPSIS}$2")
