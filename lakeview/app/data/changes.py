"""The data page's changes: rows that commits inserted and deleted, counted from the log, then read on demand."""

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, columns, display_rows, selection
from lakeview.app.components import frame
from lakeview.app.data.filters import LIMITS
from lakeview.app.query import budget, runner
from lakeview.app.query.answers import Answer
from lakeview.app.query.request import Request
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import link_widget

NOTE = "what commits inserted and deleted: files and rows from the log alone, the rows themselves on demand"
SPANS = {"this commit": 1, "last 5 commits": 5, "last 20 commits": 20, "last 100 commits": 100}
SINCE_BASE = "since the version compared with"
_SOURCES = {"feed": "the change feed", "derived": "files and deletion vectors"}


def request(now: OpenTable) -> Request | None:
    """Which commits, by the choice in the URL; None where the version has no known commit."""
    spans = [*SPANS, SINCE_BASE] if now.base is not None else list(SPANS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        span = st.selectbox("Changes of", spans, key=link_widget("commits", spans[0], spans), width=240)
        limit = st.selectbox("Rows at most", LIMITS, key=link_widget("changes-limit", LIMITS[1], LIMITS), width=110)
    start = _start(now, span)
    if start is None:
        return None
    return Request(now.address, now.version, int(limit), runner.MEMORY, start=start)


def _start(now: OpenTable, span: str) -> int | None:
    timeline = now.look.timeline()
    if span == SINCE_BASE:
        return None if now.base is None else views.data.changes.first_after(timeline, now.base, now.version)
    return views.data.changes.first_of_last(timeline, now.version, SPANS[span])


def costs_table(costs: pl.DataFrame) -> None:
    """One row a commit and type of change, from the log alone."""
    sources = ", ".join(_SOURCES.get(source, source) for source in costs["source"].unique().sort())
    st.markdown(f":small[:gray[from {sources}; rows of a rewritten file are deleted and inserted]]")
    frame(
        costs,
        {
            "version": columns.version(),
            "change_type": columns.text("change"),
            "rows": columns.number("rows"),
            "files": columns.number("files"),
            "bytes": columns.size("to read"),
        },
        key="change-costs",
        **row_link("change-costs", costs, "timeline", lambda row: selection.link(commit=row["version"])),
        height=8 * 28,
        unknown="unknown",
    )


def show(now: OpenTable, answer: Answer, request: Request) -> None:
    """The changed rows: their change, version and timestamp first, then the columns for which loads among them are
    bad."""
    st.markdown(f"**Changed rows** &ensp; :small[:gray[{budget.amount(answer, request.limit)}]]")
    reasons = answers.reason_columns(now, request.version, request.start)
    rows = views.timeline.events.columns_first(views.data.changes.for_display(answer.rows), reasons, after=3)
    display_rows.table(rows, key="changed-rows")
