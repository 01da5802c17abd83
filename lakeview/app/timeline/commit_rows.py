"""The rows that one commit added, or removed if it added none: read where that is cheap, and a link to all of them."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, cache, display_rows, errors
from lakeview.app.components import ROW_HEIGHT, fold, link, nothing
from lakeview.app.query import budget
from lakeview.app.query.answers import Answer
from lakeview.app.query.arrival import first_rows
from lakeview.app.selection import link as selected
from lakeview.app.session import OpenTable

_LIMIT, _SECONDS = 50, 30.0

_KINDS = {"added": ("insert", "update_postimage"), "removed": ("delete", "update_preimage")}


def preview(now: OpenTable, version: int) -> None:
    """A fold with the first rows that the commit added; nothing is read before it is unfolded."""
    with fold("Preview its rows", "preview", icon=":material/table_rows:") as rows:
        if rows.open:
            with errors.messages(here="timeline"):
                _preview(now, version)


def _preview(now: OpenTable, version: int) -> None:
    plan = cache.changes_plan(now.address, version, version)
    # a change data file says row by row what each is: its kind is null
    added = plan.filter(pl.col("change_type").is_null() | (pl.col("change_type") == "insert"))
    cost = budget.Cost.of_plan(plan if added.is_empty() else added)
    if cost.files == 0:
        nothing("No row changed.", "This commit added and removed none.")
        return
    if not cost.is_cheap:
        size = "of unknown size" if cost.size is None else views.units.format_bytes(cost.size)
        st.markdown(f":gray[Its rows are in {views.units.count_text(cost.files, 'file')}, {size}.]")
    else:
        with st.spinner("Reading rows", show_time=True):
            way, answer = "added", _first_rows(now, version, "added")
            if answer.rows.is_empty():
                way, answer = "removed", _first_rows(now, version, "removed")
        budget.say_if_stopped(answer, _SECONDS)
        rows = answer.rows.drop("_change_type", "_commit_version", "_commit_timestamp")
        rows = views.timeline.reasons.columns_first(rows, answers.reason_columns(now, version))
        st.markdown(f":small[:gray[{budget.amount(answer, _LIMIT, 'row')} that it {way}]]")
        display_rows.table(rows, key="commit-rows", height=8 * ROW_HEIGHT)
    link("data", "All its changes on the Data page", selected(version=version, base=None, tab="Changes"))


def _first_rows(now: OpenTable, version: int, way: str) -> Answer:
    return first_rows(now.address, version, _LIMIT, _SECONDS, _KINDS[way])
