"""Lake: all tables under a root, those that need attention first, and all their columns."""

import streamlit as st

from lakeview.app import errors
from lakeview.app.components import card, nothing
from lakeview.app.lake import panels
from lakeview.app.widget_state import link_widget

answer = st.empty()  # the answer stands above the controls of what it is about
with errors.messages(here="lake"), card("Tables under a root", panels.NOTE, key="lake-card"):
    root = panels.chosen_root()
    if root is None:
        nothing("No root is named.", "Type a folder or an address above, or build the demo lake.", "start", "Start")
    else:
        tables, columns = st.tabs(panels.TABS, key=link_widget("tab", panels.TABS[0], panels.TABS), on_change="rerun")
        if tables.open:
            with tables:
                panels.chosen_tables(root, answer)
        if columns.open:
            with columns:
                panels.chosen_columns(root, answer)
