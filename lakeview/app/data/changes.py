"""The data page's changes: what commits did to rows, first from the log alone, then row by row at a price."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, cache, display_rows
from lakeview.app.components import frame
from lakeview.app.data.panels import LIMITS
from lakeview.app.memo import kept
from lakeview.app.query import budget, runner
from lakeview.app.query.worker import Request
from lakeview.app.session import Opened
from lakeview.app.widget_state import held

NOTE = "what commits inserted and deleted: files and rows from the log alone, the rows themselves on demand"
SPANS = {"this commit": 1, "last 5 commits": 5, "last 20 commits": 20, "last 100 commits": 100}
SINCE_BASE = "since the version compared with"
_SOURCES = {"feed": "the change feed", "derived": "files and deletion vectors"}


def request(now: Opened) -> Request | None:
    """Which commits, by the choice in the URL; None where no commit of the version's line is told."""
    spans = [*SPANS, SINCE_BASE] if now.base is not None else list(SPANS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        span = st.selectbox("Changes of", spans, key=held("commits", spans[0], spans), width=240)
        limit = st.selectbox("Rows at most", LIMITS, key=held("changes-limit", LIMITS[1], LIMITS), width=110)
    start = _start(now, span)
    if start is None:
        return None
    return Request(now.address, now.version, int(limit), runner.MEMORY, start=start)


def _start(now: Opened, span: str) -> int | None:
    line = answers.timeline(now).filter(pl.col("lane") != "aside")["version"]
    place = line.index_of(now.version)
    if place is None:
        return None
    if span != SINCE_BASE:
        return int(line[max(place + 1 - SPANS[span], 0)])
    before = None if now.base is None else line.index_of(now.base)
    return None if before is None or before >= place else int(line[before + 1])


def plan(now: Opened, wanted: Request) -> pl.DataFrame:
    """CHANGES_PLAN of the commits asked for."""
    return _plan(now.address, wanted.start or 0, wanted.version)


@kept(16)
def _plan(address: str, start: int, end: int) -> pl.DataFrame:
    return cache.table(address).changes_plan(start, end)


def cost(found: pl.DataFrame) -> budget.Cost:
    """What reading the rows of a CHANGES_PLAN costs at most."""
    return budget.Cost(found.height, views.sums.total_of(found["size"]), found.height)


def costs_table(costs: pl.DataFrame) -> None:
    """One row a commit and type of change, from the log alone."""
    column = st.column_config
    sources = ", ".join(_SOURCES.get(source, source) for source in costs["source"].unique().sort())
    st.markdown(f":small[:gray[told by {sources}; a file that was only rewritten is deleted and inserted]]")
    frame(
        costs.head(1_000).with_columns(
            views.units.version_label("version"), bytes=costs["bytes"].head(1_000) / (1 << 20)
        ),
        {
            "version": column.TextColumn("version", width=110),
            "change_type": column.TextColumn("change", width=110),
            "rows": column.NumberColumn("rows", format="localized", width=110),
            "files": column.NumberColumn("files", format="localized", width=90),
            "bytes": column.NumberColumn("to read, MiB", format="%.2f", width=110),
        },
        key="change-costs",
        height=8 * 28,
        unknown="unknown",
    )  # fmt: skip


def show(found: pl.DataFrame, wanted: Request) -> None:
    """The changed rows, versions as they are called everywhere."""
    more = "the first" if found.height == wanted.limit else "all"
    st.markdown(f"**Changed rows** &ensp; :small[:gray[{more} {found.height:,}]]")
    told = [
        found["_change_type"],
        found.select(views.units.version_label("_commit_version")).to_series(),
        found["_commit_timestamp"],
    ]
    own = [found[name] for name in found.columns if name not in {column.name for column in told}]
    display_rows.table(pl.DataFrame([*told, *own]), key="changed-rows")
