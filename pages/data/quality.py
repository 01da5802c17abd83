"""Quality: is the data normal, and since when? Alerts first, then trends of every load, from statistics alone."""

import streamlit as st

from lakeview import views
from lakeview.app import downloads, errors, session
from lakeview.app.components import card, first_line, nothing
from lakeview.app.quality import constraints, panels
from lakeview.app.widget_state import link_widget

now = session.current()

with errors.messages(here="quality"):
    loads = now.look.quality()
    if loads.is_empty():
        with card():
            nothing(
                "No statistics of any load.", "Nothing was loaded, or its log files are gone or not shared.", "timeline"
            )
    else:
        findings = now.look.quality_findings()
        history = views.timeline.commits.up_to(now.look.timeline(), now.version)
        first_line(views.first_lines.quality_line(findings, history))
        if findings:
            with card(key="alerts"):
                panels.alerts(findings)
        downloads.offer("loads by column", loads)
        column = panels.picked_column(now, loads, findings, panels.TRENDS_NOTE)
        each, table, partitions = st.tabs(
            panels.TABS, key=link_widget("tab", panels.TABS[0], panels.TABS), on_change="rerun"
        )
        if each.open:
            with each:
                panels.load_trends(now, loads, column)
                with card("Null share by column and load", panels.HEATMAP_NOTE):
                    panels.heatmap(now, loads, column)
                with card(f"Loads of {panels.heading_name(column)}", "newest first; the same data as a table"):
                    panels.load_table(loads, column)
        if table.open:
            with table:
                states = now.look.column_states()
                downloads.offer("every version by column", states)
                panels.state_panels(column, states)
                with card(f"{panels.heading_name(column)} at every version", panels.STATES_NOTE):
                    panels.state_table(states, column)
        if partitions.open:
            with partitions, card(f"{panels.heading_name(column)} by partition", panels.PARTITIONS_NOTE):
                parts = panels.by_partition(now, column)
                downloads.offer("partitions", parts)
                if parts.is_empty():
                    nothing("Nothing to compare.", "This table has no partitions.", "files")
                else:
                    panels.partition_table(now, parts)

    rules = now.look.constraints()
    with card("Constraints", constraints.note(now, rules), key="rules"):
        if rules.rules.is_empty():
            nothing("This table has no constraints.", "CHECK constraints, which every write must satisfy, appear here.")
        else:
            downloads.offer("constraints", rules.rules)
            constraints.table(rules.rules)
            constraints.find_links(rules.rules)
    if not rules.files.is_empty():
        with card("Files that violate them", constraints.BROKEN_NOTE):
            violations = constraints.violations(now, rules)
            downloads.offer("files that violate constraints", violations)
            constraints.violations_table(now, violations)
