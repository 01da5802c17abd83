"""What the rows that were read say of each column: a profile, pictures of how values lie, and facets that filter."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from lakeview import charts
from lakeview.app.components import MAX_ROWS, dark, fold, frame, grid, stack
from lakeview.app.widget_state import held

MOST_PICTURES = 24


def note(found: pl.DataFrame, limit: int, where: str | None) -> str:
    """What the figures of these rows stand for."""
    if found.height < limit:
        return "of all rows that pass the filter" if where else "of all rows"
    return f"of the {found.height:,} rows above, which are no random sample of the table"


def profile_table(profile: pl.DataFrame, told: str) -> None:
    """What can be said of each column in the rows read, and only of those."""
    column = st.column_config
    st.markdown(f"**These rows, column by column** &ensp; :small[:gray[{told}]]")
    frame(
        profile.with_columns(null=pl.col("null_share") * 100),
        {
            "column": column.TextColumn("column", width=180),
            "type": column.TextColumn("type", width=160),
            "null": column.ProgressColumn("null, %", format="%.1f", min_value=0, max_value=100, width=120),
            "distinct": column.NumberColumn("distinct", format="localized", width=80),
            "min_text": column.TextColumn("min", width=170),
            "max_text": column.TextColumn("max", width=170),
        },
        key="profile",
    )


def distributions(spread: pl.DataFrame) -> None:
    """A small picture a column, of those chosen in the URL; their twin is a table whose rows filter by a click."""
    names = spread["column"].unique(maintain_order=True).to_list()
    chosen = st.multiselect(
        "Columns",
        names,
        key=held("columns", [], names, many=True),
        placeholder=f"the first {MOST_PICTURES:,}" if len(names) > MOST_PICTURES else "all columns",
    )
    shown = spread.filter(pl.col("column").is_in((chosen or names)[:MOST_PICTURES]))
    with grid(230):
        for position, part in enumerate(shown.partition_by("column", maintain_order=True)):
            with st.container():
                stack([charts.distributions.distribution_bars(part, dark=dark())], key=f"distribution-{position}")
    with fold("The same as a table: a click on a row filters by it", "values-table"):
        facets = shown.head(MAX_ROWS)
        column = st.column_config
        frame(
            facets.with_columns(share=pl.col("share") * 100),
            {
                "column": column.TextColumn("column", width=160),
                "label": column.TextColumn("value, or from", width=240),
                "count": column.NumberColumn("rows", format="localized", width=90),
                "share": column.ProgressColumn("of these, %", format="%.1f", min_value=0, max_value=100, width=140),
                "kind": column.TextColumn("kind", width=70),
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
