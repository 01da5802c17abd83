"""Quality: is the data normal, and since when? Alerts first, then trends of every load, from statistics alone."""

from __future__ import annotations

import streamlit as st

from lakeview.ui import downloads, errors, opened, quality, schemas
from lakeview.ui.components import card, nothing

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
            ["Each load", "Whole table", "By partition"], key="tab", bind="query-params", on_change="rerun"
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

    constraints = schemas.constraints(now)
    with card("The table's own rules", quality.rules_note(constraints)):
        if constraints.is_empty():
            nothing(
                "This table states no constraint.", "Writers may add CHECK constraints, which every write then keeps."
            )
        else:
            schemas.constraints_table(constraints)
