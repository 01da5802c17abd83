"""Data: the rows at a version or a moment, SQL over them, and what commits changed; the price of reading first."""

from __future__ import annotations

import streamlit as st

from lakeview import views
from lakeview.ui import budget, changes, data, downloads, errors, opened, sampled, sql, viewed
from lakeview.ui.components import card, nothing
from lakeview.ui.held import held

now = opened.current()
preview, query, changed = st.tabs(data.TABS, key=held("tab", data.TABS[0], data.TABS), on_change="rerun")

if preview.open:
    with preview, errors.shown(here="data"), card("Rows", data.NOTE, key="preview"):
        request = data.request(now)
        allowed = budget.controls()
        if data.read_button(request, data.cost(now, request), allowed):
            rows = data.found_rows(now, request, allowed)
            downloads.offer("rows", rows)
            data.show_rows(now, rows, request)
            with errors.shown(here="data"):
                spread = views.distributions(rows)
                downloads.offer("distributions", spread)
                sampled.profile_table(views.profile(rows), sampled.note(rows, request.limit, request.where))
                sampled.distributions(spread)

    with preview, errors.shown(here="data"), card("Null share by column", data.nulls_note(now), key="nulls"):
        shares = viewed.null_shares(now)
        downloads.offer("null shares", shares)
        if data.tells_nothing(shares):
            nothing("No null share is known.", "There are no files, or their writer left statistics out.", "files")
        else:
            data.null_table(shares)

if query.open:
    with query, errors.shown(here="data"), card("SQL", sql.NOTE, key="sql-card"):
        asked = sql.request(now)
        if asked is not None:
            allowed = budget.controls()
            if budget.button("Run", asked, sql.cost(now, asked), allowed, key="run"):
                answer = budget.rows(asked, allowed)
                downloads.offer("answer", answer)
                sql.show(answer, asked)

if changed.open:
    with changed, errors.shown(here="data"), card("Changes", changes.NOTE, key="changes"):
        span = changes.request(now)
        if span is None:
            nothing("No commit leads to this version.", "Choose another version or another base above.", "timeline")
        else:
            plan = changes.plan(now, span)
            costs = views.change_costs(plan)
            downloads.offer("changes by commit", costs)
            if costs.is_empty():
                nothing("No row changed.", "These commits wrote and removed none.", "timeline")
            else:
                changes.costs_table(costs)
                allowed = budget.controls()
                if budget.button("Read changed rows", span, changes.cost(plan), allowed, key="read-changes"):
                    found = budget.rows(span, allowed)
                    downloads.offer("changed rows", found)
                    changes.show(found, span)
