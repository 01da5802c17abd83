"""Rows of any table to what a browser shows rightly: long numbers, nested values and bytes as text."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import streamlit as st

from lakeview.app.components import frame
from lakeview.app.widths import ALL_DIGITS, SENTENCE, heading_width, longest
from lakeview.model.printable import ELLIPSIS
from lakeview.views.values import DIGITS

OWN_COLUMNS = "own-columns-"
"""What the keys of tables with the columns of the user's table begin with: they may be of any width."""
MOST_CHARACTERS = 10_000
MOST_BYTES = 1_000
EXACT = 2**53
"""A browser's numbers are exact up to here."""
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_MOST_SECONDS = 8 * 10**12
"""Polars writes no timestamp further from 1970, 250,000 years; such ones are shown as recorded, a number of units."""


def table(rows: pl.DataFrame, *, key: str, height: int = 420) -> None:
    """The rows as a table."""
    cells = as_shown(rows)
    with st.container(key=f"{OWN_COLUMNS}{key}"):
        kinds = zip(cells.columns, rows.dtypes, strict=True)
        frame(cells, {name: _column(cells[name], of) for name, of in kinds}, key=key, height=height)


def as_shown(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what a browser would show wrongly as text: whole numbers beyond 2**53, floats that are no numbers,
    decimals of more than 15 digits, booleans, times, nested values (as JSON), bytes (in hex); texts of more than 10,000
    characters are cut."""
    rows = rows.rename(printable_names(rows.columns))
    # a series' methods take a name like ^x$ for a pattern: columns are looked at under a name of ours
    return pl.DataFrame({name: _as_shown(rows[name].alias("values")) for name in rows.columns})


def printable_names(names: list[str]) -> dict[str, str]:
    """New names for columns whose names hold the character 0: with it no frame is handed to a browser."""
    new_names: dict[str, str] = {}
    for name in names:
        new_name = name.replace("\0", "\N{SYMBOL FOR NULL}")
        while new_name != name and (new_name in names or new_name in new_names.values()):
            new_name += "_"
        new_names[name] = new_name
    return new_names


def _as_shown(values: pl.Series) -> pl.Series:
    type_ = values.dtype
    if type_.is_nested():
        return _texts(values, lambda v: json.dumps(_jsonable(v), ensure_ascii=False))
    if type_ == pl.Binary():
        return _texts(values, _hex)
    if type_ == pl.Boolean():
        return values.cast(pl.String)  # a box of null is seen as no box
    if type_ in (pl.Int64(), pl.UInt64(), pl.Int128(), pl.UInt128()) and _beyond_browser(values):
        return values.cast(pl.String)
    if type_.is_float() and not bool(values.is_finite().all()):
        return values.cast(pl.String)
    if type_ == pl.Float32():
        return values.cast(pl.String).cast(pl.Float64)  # the shortest of the numbers that are stored as this one
    if isinstance(type_, pl.Decimal) and _has_many_digits(values, type_.scale):
        return values.cast(pl.String)
    if isinstance(type_, pl.Datetime | pl.Time):
        return _times(values)
    if isinstance(type_, pl.Duration):
        return values.dt.to_string("polars")
    if type_ == pl.String():
        return _cut(values)
    return values


def _texts(values: pl.Series, text: Callable[[Any], str]) -> pl.Series:
    texts = [None if v is None else text(v) for v in values.to_list()]
    return _cut(pl.Series("values", texts, dtype=pl.String))


def _cut(values: pl.Series) -> pl.Series:
    longer = values.str.len_chars() > MOST_CHARACTERS
    if not longer.any():
        return values
    cut = pl.col("values").str.head(MOST_CHARACTERS) + pl.lit(ELLIPSIS)
    return values.to_frame().select(pl.when(longer).then(cut).otherwise("values").alias("values")).to_series()


def _hex(value: bytes) -> str:
    return value[:MOST_BYTES].hex() + (ELLIPSIS if len(value) > MOST_BYTES else "")


def _jsonable(value: object) -> object:
    match value:
        case dict():
            return {str(k): _jsonable(v) for k, v in value.items()}
        case list():
            return [_jsonable(v) for v in value]
        case bytes():
            return _hex(value)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else str(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _beyond_browser(values: pl.Series) -> bool:
    low, high = values.min(), values.max()
    return any(isinstance(v, int) and abs(v) > EXACT for v in (low, high))


def _has_many_digits(values: pl.Series, scale: int) -> bool:
    most = values.abs().max()
    return isinstance(most, Decimal) and most.scaleb(scale) >= 10**DIGITS


def _times(values: pl.Series) -> pl.Series:
    """Times of day, and timestamps in ISO order: with thousandths, millionths or billionths where some value has any.
    A browser's have thousandths at most."""
    units = values.to_physical()
    most = min(_MOST_SECONDS * _PER_SECOND[getattr(values.dtype, "time_unit", "ns")], 2**63 - 1)
    is_near = units.is_between(-most, most)
    near = values.to_frame().select(pl.when(is_near).then("values")).to_series()
    fractions = near.dt.nanosecond()
    digits = next((digits for digits in (0, 3, 6) if (fractions % 10 ** (9 - digits) == 0).all()), 9)
    day = "" if values.dtype == pl.Time() else "%Y-%m-%d "
    texts = near.dt.strftime(f"{day}%H:%M:%S" + (f"%.{digits}f" if digits else ""))
    return texts.zip_with(is_near, units.cast(pl.String))


def _column(cells: pl.Series, of: pl.DataType) -> object | None:
    """How a browser shows cells that it would show wrongly by itself; `of`: the type of the values. Long texts leave
    room for other columns."""
    type_ = cells.dtype
    if type_ == pl.String() and of.is_numeric():
        return st.column_config.TextColumn(alignment="right")
    if type_ == pl.String() and any(heading_width(text) > SENTENCE for text in longest(cells, None)):
        return st.column_config.TextColumn(width=SENTENCE)
    if type_ == pl.Date():
        return st.column_config.DateColumn(format="YYYY-MM-DD")
    if type_.is_integer():
        return st.column_config.NumberColumn(format="%d")
    if type_.is_float():
        return st.column_config.NumberColumn(format=ALL_DIGITS)
    if isinstance(type_, pl.Decimal):
        return st.column_config.NumberColumn(format=f"%.{type_.scale}f")
    return None
