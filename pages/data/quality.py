"""Quality: is the data normal, and since when? Alerts first, then trends of every load, from statistics alone."""

from __future__ import annotations

import streamlit as st

from lakeview.app import downloads, errors, session
from lakeview.app.components import card, nothing
from lakeview.app.quality import constraints, panels
from lakeview.app.widget_state import held

now = session.current()

with errors.shown(here="quality"):
    told = panels.told(now)
    if told.changes.is_empty():
        with card():
            nothing("No load tells about its columns.", "Nothing was loaded, or the log forgot what was.", "timeline")
    else:
        found = panels.findings(now, told)
        with card(key="alerts"):
            panels.alerts(found)
        downloads.offer("loads by column", told.changes)
        column = panels.picked_column(told, found, panels.TRENDS_NOTE)
        loads, table, partitions = st.tabs(panels.TABS, key=held("tab", panels.TABS[0], panels.TABS), on_change="rerun")
        if loads.open:
            with loads:
                panels.load_trends(now, told, column)
                with card("Null share by column and load", panels.HEATMAP_NOTE):
                    panels.heatmap(told)
                with card(f"Loads of {column}", "newest first; the twin of the pictures"):
                    panels.load_table(told, column)
        if table.open:
            with table:
                states = panels.states(now)
                downloads.offer("every version by column", states)
                panels.state_panels(column, states)
                with card(f"{column} at every version", panels.STATES_NOTE):
                    panels.state_table(states, column)
        if partitions.open:
            with partitions, card(f"{column} by partition", panels.PARTITIONS_NOTE):
                parts = panels.by_partition(now, column)
                downloads.offer("partitions", parts)
                if parts.is_empty():
                    nothing("There is nothing to tell apart.", "This table has no partitions.", "files")
                else:
                    panels.partition_table(parts)

    rules = constraints.told(now)
    with card("The table's own rules", constraints.note(now, rules), key="rules"):
        if rules.rules.is_empty():
            nothing(
                "This table states no constraint.", "Writers may add CHECK constraints, which every write then keeps."
            )
        else:
            downloads.offer("constraints", rules.rules)
            constraints.table(rules.rules)
            constraints.find_links(rules.rules)
    if not rules.files.is_empty():
        with card("Files that break them", constraints.BROKEN_NOTE):
            broken = constraints.broken(now, rules)
            downloads.offer("files that break constraints", broken)
            constraints.broken_table(broken)
