"""All columns of the tables below a root: searched by name, type and null share; a row opens its table."""

from __future__ import annotations

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lakeview import views
from lakeview.app import columns, session
from lakeview.app.components import MAX_ROWS, first_line, frame, nothing
from lakeview.app.null_shares import null_columns
from lakeview.app.row_links import row_link
from lakeview.app.widget_state import linked

NOTE = "from statistics in the log alone; unknown where a table has too many of them, or none"


def draw(every: pl.DataFrame, answer: DeltaGenerator) -> None:
    """The search and the table, most nulls first; how many columns match goes to `answer`."""
    with st.container(horizontal=True, gap="small"):
        name = st.text_input("Column or type holds", key=linked("column-name"), width=220)
        nulls = st.number_input(
            "Nulls above, %", 0.0, 100.0, step=5.0, key=linked("nulls-above", 0.0, read=float), width=150
        )
    matches = views.lake.matching_columns(every, name or "", nulls / 100 if nulls else None)
    tables = views.units.count_text(matches["table"].n_unique(), "table")
    with answer:
        first_line(f"{views.units.count_text(matches.height, 'column')} of {tables}")
    st.markdown(f":small[:gray[{NOTE}; tick a row to open the table]]")
    if matches.is_empty():
        nothing("No column passes this search.", "Search for less of a name, or a smaller share of nulls.")
        return
    rows = matches.head(MAX_ROWS)
    frame(
        rows,
        {
            "column": columns.text("column"),
            "type": columns.text("type"),
            "mark": columns.bound(of="null_share_mark"),
            **null_columns(rows, 54),
            "table": columns.text("table"),
            "minimum": columns.text("min", of="min_text"),
            "maximum": columns.text("max", of="max_text"),
        },
        key="lake-columns",
        unknown="unknown",
        **row_link("lake-columns", rows, "schema", lambda row: session.link_to(row["address"])),
    )
    if matches.height > MAX_ROWS:
        st.markdown(f":small[:gray[the first {MAX_ROWS:,} of {matches.height:,}; the download has all]]")
