"""The rows that were read, column by column: a profile, charts of the distributions, and facets that filter."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from lakeview import charts
from lakeview.app import columns
from lakeview.app.components import MAX_ROWS, dark, fold, frame, grid, stack
from lakeview.app.widget_state import linked

MOST_PICTURES = 24


def note(rows: pl.DataFrame, limit: int, where: str | None) -> str:
    """What the figures of these rows stand for."""
    if rows.height < limit:
        return "of all rows that pass the filter" if where else "of all rows"
    return f"of the {rows.height:,} rows above, which are no random sample of the table"


def profile_table(profile: pl.DataFrame, note: str) -> None:
    """PROFILE of the rows read: a profile of these rows only."""
    st.markdown(f"**These rows, column by column** &ensp; :small[:gray[{note}]]")
    frame(
        profile,
        {
            "column": columns.text("column", 180),
            "type": columns.text("type", 160),
            "null": columns.percent("null, %", 120, of="null_share", bar=True),
            "distinct": columns.number("distinct", 80),
            "min_text": columns.text("min", 170),
            "max_text": columns.text("max", 170),
        },
        key="profile",
    )


def distributions(spread: pl.DataFrame) -> None:
    """A small picture a column, of those chosen in the URL; their twin is a table whose rows filter by a click."""
    names = spread["column"].unique(maintain_order=True).to_list()
    chosen = st.multiselect(
        "Columns",
        names,
        key=linked("columns", [], names, many=True),
        placeholder=f"the first {MOST_PICTURES:,}" if len(names) > MOST_PICTURES else "all columns",
    )
    parts = [
        part
        for part in spread.partition_by("column", maintain_order=True)
        if part["column"][0] in (chosen or names)[:MOST_PICTURES]
    ]
    with grid(230):
        for position, part in enumerate(parts):
            with st.container():
                stack([charts.distributions.distribution_bars(part, dark=dark())], key=f"distribution-{position}")
    with fold("As a table: a click on a row filters by it", "values-table"):
        facets = pl.concat(parts).head(MAX_ROWS) if parts else spread
        frame(
            facets,
            {
                "column": columns.text("column", 160),
                "label": columns.text("value, or from", 240),
                "count": columns.number("rows", 90),
                "share": columns.percent("of these, %", 140, bar=True),
                "kind": columns.text("kind", 70),
            },
            key="facets",
            selection_mode="single-row",
            on_select=lambda: _narrow(facets["condition"].to_list()),
        )


def _narrow(conditions: Sequence[str | None]) -> None:
    picked = st.session_state["facets"]["selection"]["rows"]
    narrow(conditions[picked[0]] if picked else None)


def narrow(condition: str | None) -> None:
    """Adds a condition to the filter in SQL; None, of rows that no condition can name, changes nothing."""
    if condition is not None:
        before = st.session_state.get("where")
        st.session_state["where"] = f"({before}) AND {condition}" if before else condition
