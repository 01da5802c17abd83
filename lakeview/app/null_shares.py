"""The null shares of columns in a table on a page: percent, bars, and the part from before a column existed."""

import polars as pl
import streamlit as st

from lakeview.app import widths
from lakeview.app.columns import percent
from lakeview.app.table_cells import Column
from lakeview.charts.palette import palette

PALE_HELP = "pale, absent: rows of files that were written before the column existed; all of them are null there"
_CELL_PADDING = 16


def null_columns(rows: pl.DataFrame, bar: int) -> dict[str, Column]:
    """The null shares of columns, `null_share`, in percent and as bars of so many pixels.

    Pale is the part of files that were written before the column existed, `absent_share`; `absent_text` names it. No
    bars for 0 pixels.
    """
    if rows["absent_share"].null_count() == rows.height:
        return {"null": percent("null, %", of="null_share", bar=bar > 0)}
    width = bar - _CELL_PADDING
    pale = Column(
        st.column_config.ImageColumn,
        "share",
        {"help": PALE_HELP, "alignment": "left"},
        ("null_share", "absent_share"),
        lambda shares: pl.Series([_null_bar(width, **share) for share in shares], dtype=pl.String),
        pixels=bar,
    )
    columns = {"null": percent("null, %", of="null_share")} | ({"bar": pale} if bar > 0 else {})
    if "absent_text" in rows.columns:
        columns["absent"] = absent_column()
    return columns


def absent_column() -> Column:
    """The share of the rows from before a column existed, and when that was: `40.8 before v9`."""

    def cells(texts: pl.Series) -> pl.Series:
        return texts.str.replace(" %", "", literal=True).fill_null("")

    options = {"help": PALE_HELP}
    return Column(
        st.column_config.TextColumn, "absent, %", options, "absent_text", cells, may_be_cut=True, least=widths.NAME
    )


def pale_key(rows: pl.DataFrame) -> None:
    """A line below a table with `null_columns` that says what is pale in its bars, where any is."""
    if rows["absent_share"].null_count() < rows.height:
        st.markdown(f":small[:gray[{PALE_HELP}]]")


def _null_bar(width: int, null_share: float | None, absent_share: float | None) -> str | None:
    """A bar as the address of a picture, of the height of a cell."""
    if null_share is None:
        return None
    p = palette(st.context.theme.type == "dark")
    whole = round(width * null_share, 1)
    pale = min(round(width * (absent_share or 0.0), 1), whole)
    bars = (
        f"<rect y='8' height='6' rx='2' width='{length}' fill='{colour}'/>"
        for length, colour in ((width, p.zero), (whole, p.blue), (pale, p.quiet))
    )
    picture = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='22'>{''.join(bars)}</svg>"
    return f"data:image/svg+xml;utf8,{picture.replace('#', '%23')}"
