"""Start: what lakeview is, demo on one real table; the ways in; five questions to begin with."""

import streamlit as st

from lakeview import charts, views
from lakeview.app import commits, errors
from lakeview.app.components import card, dark, stack
from lakeview.app.start import panels

st.markdown(f"## {panels.SENTENCE}", anchors=False)
st.markdown(f":gray[{panels.PROMISE}]")

demo = None
with errors.messages(here="start"):
    demo = panels.demo_table()
    if demo is not None:
        line, ribbon = demo.look.timeline(), demo.look.readability()
        with card("demo / flights", panels.opening_note(line), key="opening"):
            pictures = charts.timeline.timeline_charts(line, demo.look.events(), ribbon, dark=dark(), measure=None)
            commits.ribbon_key(views.timeline.readability.readability_runs(ribbon))
            stack(pictures, key="opening", on_pick=panels.open_commit)

with errors.messages(here="start"):
    panels.ways_in()

if demo is not None:
    st.markdown("**Five questions, five minutes** &ensp; :small[:gray[each opens the demo at the answer]]")
    with errors.messages(here="start"):
        panels.questions(demo)

with errors.messages(here="start"):
    panels.recent()
