"""Quality: is the data normal, and since when? Alerts first, then trends of every load, from statistics alone."""

from __future__ import annotations

import streamlit as st

from lakeview.ui import downloads, errors, kept_rules, opened, quality
from lakeview.ui.components import card, nothing
from lakeview.ui.held import held

now = opened.current()

with errors.shown(here="quality"):
    told = quality.told(now)
    if told.changes.is_empty():
        with card():
            nothing("No load tells about its columns.", "Nothing was loaded, or the log forgot what was.", "timeline")
    else:
        found = quality.findings(now, told)
        with card(key="alerts"):
            quality.alerts(found)
        downloads.offer("loads by column", told.changes)
        column = quality.picked_column(told, found, quality.TRENDS_NOTE)
        loads, table, partitions = st.tabs(
            quality.TABS, key=held("tab", quality.TABS[0], quality.TABS), on_change="rerun"
        )
        if loads.open:
            with loads:
                quality.load_trends(now, told, column)
                with card("Null share by column and load", quality.HEATMAP_NOTE):
                    quality.heatmap(told)
                with card(f"Loads of {column}", "newest first; the twin of the pictures"):
                    quality.load_table(told, column)
        if table.open:
            with table:
                states = quality.states(now)
                downloads.offer("every version by column", states)
                quality.state_panels(column, states)
                with card(f"{column} at every version", quality.STATES_NOTE):
                    quality.state_table(states, column)
        if partitions.open:
            with partitions, card(f"{column} by partition", quality.PARTITIONS_NOTE):
                parts = quality.by_partition(now, column)
                downloads.offer("partitions", parts)
                if parts.is_empty():
                    nothing("There is nothing to tell apart.", "This table has no partitions.", "files")
                else:
                    quality.partition_table(parts)

    rules = kept_rules.told(now)
    with card("The table's own rules", kept_rules.note(now, rules), key="rules"):
        if rules.rules.is_empty():
            nothing(
                "This table states no constraint.", "Writers may add CHECK constraints, which every write then keeps."
            )
        else:
            downloads.offer("constraints", rules.rules)
            kept_rules.table(rules.rules)
            kept_rules.find_links(rules.rules)
    if not rules.files.is_empty():
        with card("Files that break them", kept_rules.BROKEN_NOTE):
            broken = kept_rules.broken(now, rules)
            downloads.offer("files that break constraints", broken)
            kept_rules.broken_table(broken)
