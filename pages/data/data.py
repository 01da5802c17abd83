"""Data: the rows at a version or timestamp, their profile, SQL over them, and what commits changed; the cost first."""

import streamlit as st

from lakeview import views
from lakeview.app import downloads, errors, session
from lakeview.app.components import card, nothing
from lakeview.app.data import changes, filters, panels, profile, sql
from lakeview.app.query import budget, runner
from lakeview.app.query.budget import Cost
from lakeview.app.widget_state import link_widget
from lakeview.model.errors import LakeviewError

now = session.current()
runner.start_ahead(now.address)
answer_place = st.empty()
failures: list[LakeviewError] = []
preview_tab, profile_tab, query_tab, changes_tab = st.tabs(
    panels.TABS, key=link_widget("tab", panels.TABS[0], panels.TABS), on_change="rerun"
)

if preview_tab.open:
    with preview_tab, errors.messages(here="data", failures=failures), card("Rows", panels.NOTE, key="preview"):
        request, limits = filters.toolbar(now)
        is_whole = panels.gap(now, request.version) is None
        reading = (
            panels.reading(now, request, budget.CHEAP, limits.size)
            if request.is_sample
            else panels.first_reading(now, request, is_whole=is_whole)
        )
        with answer_place:
            panels.draw_first_line(now, request, reading)
        if panels.read_button(request, reading, limits):
            first = panels.read_rows(now, request, reading, limits, is_whole=is_whole)
            downloads.offer("rows", first.rows)
            panels.show_rows(now, first, request, reading, is_whole=is_whole)

if profile_tab.open:
    with (
        profile_tab,
        errors.messages(here="data", failures=failures),
        card("Profile", profile.NOTE, key="profile-card"),
    ):
        request, limits = filters.toolbar(now, of_rows=False)
        with answer_place:
            panels.draw_first_line(now, request)
        reading = profile.choose_engine(panels.reading(now, request, limits.size))
        profile_answer = profile.read(now, request, reading, limits)
        if profile_answer is not None:
            spread = views.data.profile.distribution(profile_answer.rows)
            downloads.offer("profile", profile_answer.rows.drop("distribution"))
            downloads.offer("distributions", spread)
            profile.sentence(now, request, reading, profile_answer.counts["rows"])
            columns = profile.with_schema(profile_answer.rows.drop("distribution"), request, reading, now)
            profile.table(columns)
            profile.distributions(spread, columns, request)

    with profile_tab, errors.messages(here="data"), card("Null share by column", panels.nulls_note(now), key="nulls"):
        shares = now.look.columns().shares
        downloads.offer("null shares", shares)
        if shares["null_share"].is_null().all():
            nothing("No null share is known.", "There are no files, or their writer left statistics out.", "files")
        else:
            panels.null_table(shares, now.look.columns().tree)

if query_tab.open or changes_tab.open or failures:
    with answer_place:
        panels.draw_first_line(now)

if query_tab.open:
    with query_tab, errors.messages(here="data"), card("SQL", sql.NOTE, key="sql-card"):
        priced_query = sql.request(now)
        if priced_query is not None:
            answer = budget.answer(*priced_query)
            downloads.offer("answer", answer.rows)
            sql.show(answer, priced_query[0])

if changes_tab.open:
    with changes_tab, errors.messages(here="data"), card("Changes", changes.NOTE, key="changes"):
        span = changes.request(now)
        if span is None:
            nothing("No commit leads to this version.", "Choose another version or another base above.", "timeline")
        else:
            plan = now.frames.changes_plan(span.start or 0, span.version)
            costs = views.data.changes.change_costs(plan)
            downloads.offer("changes by commit", costs)
            if costs.is_empty():
                nothing("No row changed.", "These commits wrote and removed none.", "timeline")
            else:
                changes.costs_table(costs)
                limits = budget.controls()
                price, cheaper = Cost.of_plan(plan), "fewer commits"
                if budget.button(
                    "Read changed rows", span, price, limits, key="read-changes", cheaper=cheaper, on_arrival=True
                ):
                    changed_rows = budget.answer(span, limits)
                    downloads.offer("changed rows", changed_rows.rows)
                    changes.show(now, changed_rows, span)
