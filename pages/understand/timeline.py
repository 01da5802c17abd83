"""Timeline: what happened to the table, when and by whom, and which versions can still be read."""

import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, cache, commits, downloads, errors, metadata_panels, session, timeline_filters
from lakeview.app.components import card, dark, first_line, side_by_side, stack
from lakeview.app.timeline import audit, drawer, lifetimes
from lakeview.app.widget_state import link_widget

now = session.current()
now.look.list_ahead()
timeline = now.look.timeline()
first_line(views.first_lines.timeline_line(timeline, cache.now(), has_baseline=now.look.has_baseline()))
names = commits.tabs(now)
tabs = dict(zip(names, st.tabs(names, key=link_widget("tab", names[0], names), on_change="rerun"), strict=True))

if tabs["Commits"].open:
    with tabs["Commits"]:
        with errors.messages(here="timeline"):
            now.check_readable()
        if timeline.is_empty():
            with card():
                commits.no_commits(now, "overview")
        else:
            filters = timeline_filters.controls(timeline)
            downloads.offer("commits", filters.commits)
            commit = commits.open_commit(now, timeline, filters.commits)
            ribbon = now.look.readability()
            left, right = side_by_side(commits.TRACK)
            with left, card(key="timeline-card"):
                panels = charts.timeline.timeline_charts(
                    timeline,
                    now.look.events(),
                    ribbon,
                    dark=dark(),
                    measure=filters.measure,
                    version=commit,
                    brush=True,
                    checkpoints=answers.checkpoints(now),
                    matching=filters.commits["version"],
                    span=filters.span,
                )
                commits.ribbon_key(views.timeline.readability.readability_runs(ribbon))
                stack(panels, key=filters.chart_key, on_pick=commits.pick_from_chart)
            with right:
                with card("Commits", timeline_filters.commit_count_text(filters.commits, timeline), key="commits"):
                    commits.commit_table(filters.commits, commit)
                with card(key="drawer"):
                    drawer.drawer(now, timeline, commit)

if tabs["Writers"].open:
    with tabs["Writers"], errors.messages(here="timeline"):
        lifetimes.writers(now, timeline)

if tabs["File lifetimes"].open:
    with tabs["File lifetimes"], errors.messages(here="timeline"):
        lifetimes.file_lifetimes(now, timeline)

if tabs["Audit"].open:
    with tabs["Audit"], errors.messages(here="timeline"):
        audit.audit(now, timeline)

if commits.BRANCHES in tabs and tabs[commits.BRANCHES].open:
    with tabs[commits.BRANCHES], errors.messages(here="timeline"):
        metadata_panels.branches(now)
