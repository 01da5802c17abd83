"""The pages to links in the sidebar, in their groups, each to what is selected now.

Streamlit's own navigation drops the query parameters: one step back would show a page with nothing, and the page itself
would have to write them again. These links carry them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import streamlit as st

from lakeview.app import selection, session, tables
from lakeview.app.frame import palette
from lakeview.app.pages import PAGES


class Sidebar:
    """The links, drawn once a run; they can be drawn again with a newer selection: each then changes where it is, and
    nothing moves. Nothing empty is ever put where a link is: the sidebar would shrink for as long as a slow machine
    takes to draw the links, and the browser would forget how far it was scrolled."""

    def __init__(self, pages: Mapping[str, st.Page]) -> None:
        self._pages = pages
        self._parameters = selection.link() or _offered()
        self._links = {}
        with st.sidebar:
            for group, names in groupby(PAGES, key=lambda name: PAGES[name].group):
                with st.container(gap="xsmall", key=f"nav-{group.lower() or 'first'}"):
                    if group:
                        st.markdown(f":small[{group}]")
                    for name in names:
                        self._links[name] = st.page_link(pages[name], query_params=self._parameters)
            palette.button()

    def draw(self) -> None:
        """Makes every link one to what is selected now, or to what a page opens where nothing is."""
        parameters = selection.link() or _offered()
        if parameters == self._parameters:
            return
        for name, link in self._links.items():
            link.page_link(self._pages[name], query_params=parameters)
        self._parameters = parameters


def _offered() -> dict[str, str]:
    # the demo lake lies on this machine; other tables' logs are read when somebody opens them
    name = tables.default()
    return session.link_to(name) if name == tables.DEMO_TABLE else {}
