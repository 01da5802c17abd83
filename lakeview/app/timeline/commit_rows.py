"""The rows that one commit inserted and deleted, read where that is cheap, and the link to all of them."""

from __future__ import annotations

import streamlit as st

from lakeview import views
from lakeview.app import display_rows, errors
from lakeview.app.components import ROW_HEIGHT, fold, link, nothing
from lakeview.app.data import changes
from lakeview.app.query import budget, runner
from lakeview.app.query.worker import Request
from lakeview.app.selection import link as selected
from lakeview.app.session import OpenTable

_LIMIT = 50
_AT_ONCE = budget.Budget(64 << 20, 30)
"""So many bytes of data files are read without another click."""


def preview(now: OpenTable, version: int) -> None:
    """A fold with the first rows that the commit inserted and deleted; nothing is read before it is unfolded."""
    with fold("Preview its rows", "preview", icon=":material/table_rows:") as rows:
        if rows.open:
            with errors.messages(here="timeline"):
                _rows(now, version)


def _rows(now: OpenTable, version: int) -> None:
    request = Request(now.address, version, _LIMIT, runner.MEMORY, start=version)
    cost = changes.cost(changes.plan(now, request))
    if cost.files == 0:
        nothing("No row changed.", "This commit inserted and deleted none.")
        return
    if cost.size is None or cost.size > _AT_ONCE.size:
        size = "of unknown size" if cost.size is None else views.units.format_bytes(cost.size)
        st.markdown(f":gray[Its rows lie in {views.units.counted(cost.files, 'file')}, {size}.]")
    else:
        changed = budget.rows(request, _AT_ONCE)
        more = "the first" if changed.height == _LIMIT else "all"
        st.markdown(f":small[:gray[{more} {views.units.counted(changed.height, 'row')} that it inserted or deleted]]")
        shown = views.data.changes.for_display(changed).drop("_commit_version", "_commit_timestamp")
        display_rows.table(shown, key="commit-rows", height=8 * ROW_HEIGHT)
    link("data", "Its rows on the Data page", selected(version=version, base=None, tab="Changes"))
