"""The input of a root folder: typed, in the link, or one of those that are configured."""

from __future__ import annotations

import streamlit as st

from lakeview.app import tables
from lakeview.app.widget_state import linked
from lakeview.model import config

ROOT = "root"
"""The key of the input, and its parameter of the link."""


def root_input(placeholder: str) -> str | None:
    """Draws the input and the choice of configured roots; returns the root, None if it is empty.

    The first configured root, or the demo lake, is the default.
    """
    offered = _offered_roots()
    root: str = st.text_input("Root", key=linked(ROOT, next(iter(offered), "")), placeholder=placeholder, width=420)
    if len(offered) > 1:
        st.selectbox(
            "Offered roots",
            offered,
            index=None,
            key="offered-root",
            placeholder="choose one",
            on_change=_take_offered,
            width=260,
        )
    return root.strip() or None


def _take_offered() -> None:
    root = st.session_state["offered-root"]
    if root is not None:
        st.session_state[ROOT] = root


def _offered_roots() -> list[str]:
    settings = config.settings()
    demo = [settings.demo] if tables.demo_tables() else []
    return list(dict.fromkeys([*settings.roots, *demo]))
