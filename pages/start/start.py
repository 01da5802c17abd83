"""Start: what lakeview is, shown on one real table; the ways in; five questions to begin with."""

from __future__ import annotations

import streamlit as st

from lakeview import charts, views
from lakeview.ui import commits, errors, start, viewed
from lakeview.ui.components import card, dark, stack

st.markdown(f"## {start.SENTENCE}", anchors=False)
st.markdown(f":gray[{start.PROMISE}]")

shown = None
with errors.shown(here="start"):
    shown = start.demo_table()
    if shown is not None:
        line, ribbon = viewed.timeline(shown), viewed.ribbon(shown)
        with card("demo / flights", start.opening_note(line), key="opening"):
            panels = charts.timeline_charts(line, viewed.events(shown), ribbon, dark=dark(), measure=None, pick=False)
            commits.ribbon_key(views.readability_runs(ribbon))
            stack(panels, key="opening")

with errors.shown(here="start"):
    start.ways_in()

if shown is not None:
    st.markdown("**Five questions, five minutes** &ensp; :small[:gray[each opens the demo at the answer]]")
    with errors.shown(here="start"):
        start.questions(shown)

with errors.shown(here="start"):
    start.recent()
