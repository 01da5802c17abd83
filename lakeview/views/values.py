"""Values of columns to the text that people read."""

import json
from datetime import datetime

import polars as pl

from lakeview.model.printable import ELLIPSIS, shorten, with_json_keys

TEXT_LENGTH = 80
"""Values longer than this are cut, with an ellipsis."""


DIGITS, FEW_DIGITS = 15, 6
"""Digits of a floating-point number: more would show how it is stored; and of one that a picture labels."""
_SINGLE_DIGITS = 7
_LAST_CHARACTER = "[\x7f\U0010ffff]$"
"""Of ASCII and of Unicode: what Delta Lake appends to a max that it cuts, so that no value is above it."""


def value_text(value: object, digits: int = DIGITS) -> str | None:
    """One value of a column as text: moments in ISO order, bytes in hex, nested values as JSON, long text cut; of a
    floating-point number at most so many significant digits."""
    match value:
        case None:
            return None
        case datetime():
            text = value.isoformat(sep=" ").removesuffix("+00:00")
        case bytes():
            text = value.hex()
        case float():
            # writers of Parquet record a min of 0.0 as -0.0 (parquet.thrift, ColumnOrder): adding 0 takes the sign away
            text = f"{value + 0.0:.{digits}g}" if abs(value) < 1e15 else repr(value)
        case bool():
            text = "true" if value else "false"
        case dict() | list():
            text = json.dumps(with_json_keys(value, value_text), ensure_ascii=False, default=value_text)
        case _:
            text = str(value)
    return shorten(text, TEXT_LENGTH)


def value_texts(values: pl.Series) -> pl.Series:
    """`value_text` of each value; each distinct value is formatted once."""
    digits = digits_of(values.dtype)
    if values.len() == 1:  # to look for others like it takes a hundred times as long
        return pl.Series([value_text(values.to_list()[0], digits)], dtype=pl.String)
    if values.dtype.is_nested():  # polars replaces no lists (2.1)
        return pl.Series(values.name, [value_text(value, digits) for value in values.to_list()], dtype=pl.String)
    distinct = values.unique()
    texts = pl.Series([value_text(value, digits) for value in distinct.to_list()], dtype=pl.String)
    return values.replace_strict(distinct, texts, default=None, return_dtype=pl.String) if values.len() else texts


def digits_of(dtype: pl.DataType) -> int:
    """Digits that values of this type have."""
    return _SINGLE_DIGITS if dtype == pl.Float32() else DIGITS


def bound_texts(bounds: pl.Series, exact: pl.Series) -> pl.Series:
    """`value_texts` of min or max. A time that is not `exact` is shown to the millisecond, as writers record it, where
    the bound is 999 microseconds later ("Timestamp columns are truncated down to milliseconds", delta protocol,
    Per-file Statistics); not the last moment of a second, which ends many a range as it is. A text that is none ends
    in an ellipsis, where writers end what they cut in the last character there is, which no font has."""
    if isinstance(bounds.dtype, pl.Datetime):
        microseconds = bounds.dt.microsecond()
        later = ~exact.fill_null(value=False) & (microseconds % 1_000 == 999) & (microseconds != 999_999)
        bounds = pl.select(pl.when(later).then(bounds.dt.truncate("1ms")).otherwise(bounds)).to_series()
    texts = value_texts(bounds)
    if bounds.dtype != pl.String:
        return texts
    cut = ~exact.fill_null(value=False) & texts.str.contains(_LAST_CHARACTER)
    return texts.str.replace(_LAST_CHARACTER, ELLIPSIS).zip_with(cut, texts)


def without_seconds(texts: pl.Series) -> pl.Series:
    """Timestamps as text, `2026-07-15 03:25` where the seconds are 0; other texts as they are."""
    return texts.str.replace(r"^(\d{4}-\d\d-\d\d \d\d:\d\d):00$", "$1")


def statistic(column: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Series:
    """One part of a column of STATISTICS that was unnested, such as `min`; nulls of a type where it has none."""
    return column[name] if name in column.columns else pl.Series(name, [None] * column.height, dtype=dtype)


def numbers(values: pl.Series) -> pl.Series:
    """Numbers as Float64; nulls for values of other types."""
    none = pl.Series([None], dtype=pl.Float64).new_from_index(0, values.len())
    return values.cast(pl.Float64) if values.dtype.is_numeric() else none
