"""Schema: the columns at every level, what changed between two versions, and since when each column is what it is."""

from __future__ import annotations

import streamlit as st

from lakeview import views
from lakeview.ui import beside, downloads, errors, opened, schemas, viewed
from lakeview.ui.components import card, nothing
from lakeview.ui.held import held

TABS = ["Columns", "What changed", "Since when"]

now = opened.current()
columns, difference, history = st.tabs(TABS, key=held("tab", TABS[0], TABS), on_change="rerun")

if columns.open:
    with columns, errors.shown(here="schema"):
        tree = schemas.tree(now)
        downloads.offer("columns", tree)
        with card("Columns", schemas.tree_note(now, tree)):
            if tree.is_empty():
                nothing(
                    "This table has no columns.", "Its schema was never set, or every column was dropped.", "timeline"
                )
            else:
                schemas.tree_table(tree)
        constraints = schemas.constraints(now)
        if not constraints.is_empty():
            with card("Constraints", schemas.constraints_note(constraints)):
                schemas.constraints_table(constraints)
        beside.sort_orders(now)

if difference.open:
    with difference, errors.shown(here="schema"):
        before, after = schemas.compared(now)
        changes = views.breaking(views.diff_schemas(before.schema, after.schema))
        downloads.offer("changes", changes)
        with card(schemas.diff_title(before, after), schemas.diff_note(changes)):
            if changes.is_empty():
                nothing("The schema is the same in both versions.", "Compare with another version above.", "timeline")
            else:
                schemas.diff_table(changes, before.version, after.version)
                schemas.diff_rules(changes)

if history.open:
    with history, errors.shown(here="schema"):
        known = viewed.schema_versions(now)
        line = viewed.timeline(now)
        past = views.blamed(views.column_history(known), line)
        told = views.column_lives(known)
        downloads.offer("column history", past)
        with card("Since when", "● added, ◆ type, ▲ renamed, ■ other, ✚ dropped", key="column-lanes-card"):
            schemas.lanes(now, told, past)
            schemas.lives_table(told)
        with card("Every change", "newest first, with the commit and writer it came from"):
            schemas.blame(past, line)
            schemas.history_table(past)
