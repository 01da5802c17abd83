"""The data page's SQL: one SELECT over the version shown, its estimated cost first, run in a process with a budget."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import cache, display_rows
from lakeview.app.components import escape, nothing
from lakeview.app.data.filters import LIMITS
from lakeview.app.query import budget, runner
from lakeview.app.query.worker import Request
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import linked
from lakeview.model.errors import LakeviewError
from lakeview.predicates.query import QUERY_TABLE, query

NOTE = "one SELECT over the version shown, in polars' SQL; nothing else is read and nothing is written"
EXAMPLE = "SELECT *\nFROM t\nLIMIT 100"


def names(now: OpenTable) -> tuple[str, ...]:
    """What the table is called in a query beside `t`: its own name, the last part of its address."""
    last = now.name.rstrip("/").replace("#", "/").replace("\\", "/").rsplit("/", 1)[-1]
    return tuple(dict.fromkeys(name for name in (now.snapshot.name, last) if name and name != QUERY_TABLE))


def request(now: OpenTable) -> Request | None:
    """The query typed, as it would be run; None before there is one.

    InvalidRequestError for what is no SELECT over this table.
    """
    called = " or ".join(f"**{escape(name)}**" for name in (QUERY_TABLE, *names(now)))
    typed = st.text_area(
        "SQL", key=linked("sql"), height=150, placeholder=EXAMPLE,
        help=f"The table is called {called}. Names with other signs stand in double quotes or back-quotes.",
    )  # fmt: skip
    limit = st.selectbox("Rows at most", LIMITS, key=linked("sql-limit", LIMITS[1], LIMITS), width=110)
    if not typed or not typed.strip():
        nothing("No query is written.", f"Write one above, for example {' '.join(EXAMPLE.split())}.")
        return None
    found = query(typed, names(now))
    return Request(now.address, now.version, int(limit), runner.MEMORY, sql=found.text, names=names(now))


def cost(now: OpenTable, request: Request) -> budget.Cost:
    """The most that the query reads: the files left by data skipping, or all where its condition does not support
    it."""
    snapshot = now.snapshot
    everything = budget.Cost(snapshot.num_files, snapshot.size_bytes, snapshot.num_files)
    where = query(request.sql or "", request.names).where
    if where is None:
        return everything
    try:
        read = views.pruning.plan.read_cost(cache.plan(now.address, now.version, where))
    except LakeviewError:  # a condition that only the query engine understands skips nothing
        return everything
    return budget.Cost(read.files, read.bytes, snapshot.num_files)


def show(rows: pl.DataFrame, request: Request) -> None:
    """The answer, and whether there may be more of it."""
    more = "the first" if rows.height == request.limit else "all"
    st.markdown(f"**Answer** &ensp; :small[:gray[{more} {views.units.counted(rows.height, 'row')}]]")
    display_rows.table(rows, key="sql-rows")
