"""Rows of any table to what a browser shows rightly: long numbers, nested values and bytes as text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import polars as pl
import streamlit as st

from lakeview.app.components import frame
from lakeview.model.printable import ELLIPSIS

OWN_COLUMNS = "own-columns-"
"""What the keys of tables with the columns of the user's table begin with: they may be of any width."""
MOST_CHARACTERS = 10_000
MOST_BYTES = 1_000
EXACT = 2**53
"""A browser's numbers are exact up to here."""


def table(rows: pl.DataFrame, *, key: str, height: int = 420) -> None:
    """The rows as a table."""
    shown = as_shown(rows)
    with st.container(key=f"{OWN_COLUMNS}{key}"):
        frame(shown, {name: _column(type_) for name, type_ in shown.schema.items()}, key=key, height=height)


def as_shown(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what a browser would show wrongly as text: whole numbers beyond 2**53, floats that are no numbers,
    nested values (as JSON), bytes (in hex); texts of more than 10,000 characters are cut."""
    rows = rows.rename(printable_names(rows.columns))
    # a series' methods take a name like ^x$ for a pattern: columns are looked at under a name of ours
    return pl.DataFrame({name: _as_shown(rows[name].alias("values")) for name in rows.columns})


def printable_names(names: list[str]) -> dict[str, str]:
    """New names for columns whose names hold the character 0: with it no frame is handed to a browser."""
    renamed: dict[str, str] = {}
    for name in names:
        shown = name.replace("\0", "\N{SYMBOL FOR NULL}")
        while shown != name and (shown in names or shown in renamed.values()):
            shown += "_"
        renamed[name] = shown
    return renamed


def _as_shown(values: pl.Series) -> pl.Series:
    type_ = values.dtype
    if type_.is_nested():
        return _texts(values, lambda v: json.dumps(_jsonable(v), ensure_ascii=False))
    if type_ == pl.Binary():
        return _texts(values, _hex)
    if type_ in (pl.Int64(), pl.UInt64(), pl.Int128(), pl.UInt128()) and _beyond_browser(values):
        return values.cast(pl.String)
    if type_.is_float() and not bool(values.is_finite().all()):
        return _texts(values, repr)
    if type_ == pl.String():
        return _cut(values)
    return values


def _texts(values: pl.Series, text: Callable[[Any], str]) -> pl.Series:
    told = [None if v is None else text(v) for v in values.to_list()]
    return _cut(pl.Series("values", told, dtype=pl.String))


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
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _beyond_browser(values: pl.Series) -> bool:
    low, high = values.min(), values.max()
    return any(isinstance(v, int) and abs(v) > EXACT for v in (low, high))


def _column(type_: pl.DataType) -> object | None:
    """How a browser shows a type that it would show wrongly by itself."""
    if type_ == pl.Date():
        return st.column_config.DateColumn(format="YYYY-MM-DD")
    if isinstance(type_, pl.Datetime):
        return st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss.SSS", timezone=type_.time_zone)
    if type_.is_integer():
        return st.column_config.NumberColumn(format="%d")
    return None
