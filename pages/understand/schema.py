"""Schema: the columns at every level, what changed between two versions, and since when each column is what it is."""

import streamlit as st

from lakeview import views
from lakeview.app import downloads, errors, metadata_panels, session
from lakeview.app.components import card, first_line, nothing
from lakeview.app.schema import panels
from lakeview.app.widget_state import link_widget

TABS = ["Columns", "What changed", "Since when"]

now = session.current()
first_line(panels.answer(now))
columns, difference, history = st.tabs(TABS, key=link_widget("tab", TABS[0], TABS), on_change="rerun")

if columns.open:
    with columns, errors.messages(here="schema"):
        tree = panels.tree(now)
        downloads.offer("columns", tree)
        with card("Columns", panels.tree_note(now, tree)):
            if tree.is_empty():
                nothing(
                    "This table has no columns.", "Its schema was never set, or every column was dropped.", "timeline"
                )
            else:
                panels.tree_table(tree)
        constraints = views.schema.columns.constraints(now.snapshot.rules)
        if not constraints.is_empty():
            with card("Constraints", panels.constraints_note(constraints)):
                panels.constraints_table(constraints)
        metadata_panels.sort_orders(now)

if difference.open:
    with difference, errors.messages(here="schema"):
        before, after = panels.compared_versions(now)
        changes = views.schema.breaking.breaking(views.schema.diff.diff_schemas(before.schema, after.schema))
        downloads.offer("changes", changes)
        with card(panels.diff_title(before, after), panels.diff_note(changes)):
            if changes.is_empty():
                nothing("The schema is the same in both versions.", "Compare with another version above.", "timeline")
            else:
                panels.diff_table(changes, before.version, after.version)
                panels.diff_rules(changes)

if history.open:
    with history, errors.messages(here="schema"):
        schemas = now.look.schema_versions()
        timeline = now.look.timeline()
        by_column = views.schema.column_history.blame(views.schema.column_history.column_history(schemas), timeline)
        changes = views.schema.column_history.newest_first(by_column)
        lifetimes = views.schema.column_history.column_lives(schemas)
        downloads.offer("column history", changes)
        with card("Since when", "● added, ◆ type, ▲ renamed, ■ other, ✚ dropped", key="column-lanes-card"):
            panels.lanes(now, lifetimes, by_column)
            panels.lifetimes_table(lifetimes)
        with card("Every change of a column", "newest first, with the commit and its writer"):
            panels.blame(changes, timeline)
            panels.history_table(changes)
