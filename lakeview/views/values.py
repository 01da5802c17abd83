"""Values of columns to the text that people read."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from lakeview.model.printable import shorten

TEXT_LENGTH = 80
"""Values longer than this are cut, with an ellipsis."""


def value_text(value: object) -> str | None:
    """One value of a column as text: moments in ISO order, bytes in hex, long text cut."""
    match value:
        case None:
            return None
        case datetime():
            text = value.isoformat(sep=" ").removesuffix("+00:00")
        case bytes():
            text = value.hex()
        case float():
            text = f"{value:g}" if abs(value) < 1e15 else repr(value)
        case bool():
            text = "true" if value else "false"
        case _:
            text = str(value)
    return shorten(text, TEXT_LENGTH)


def value_texts(values: pl.Series) -> pl.Series:
    """`value_text` of each value; each distinct value is formatted once."""
    distinct = values.unique()
    texts = pl.Series([value_text(value) for value in distinct.to_list()], dtype=pl.String)
    return values.replace_strict(distinct, texts, default=None, return_dtype=pl.String) if values.len() else texts


def bound_texts(bounds: pl.Series, exact: pl.Series) -> pl.Series:
    """`value_texts` of min or max. A time that is not `exact` is shown to the millisecond, as writers record it, where
    the bound is 999 microseconds later ("Timestamp columns are truncated down to milliseconds", delta protocol,
    Per-file Statistics)."""
    if isinstance(bounds.dtype, pl.Datetime):
        later = ~exact.fill_null(value=False) & (bounds.dt.microsecond() % 1_000 == 999)
        bounds = pl.select(pl.when(later).then(bounds.dt.truncate("1ms")).otherwise(bounds)).to_series()
    return value_texts(bounds)


def statistic(column: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Series:
    """One part of a column of STATISTICS that was unnested, such as `min`; nulls of a type where it has none."""
    return column[name] if name in column.columns else pl.Series(name, [None] * column.height, dtype=dtype)
