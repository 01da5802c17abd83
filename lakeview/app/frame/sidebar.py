"""The pages to links in the sidebar, in their groups, each to what is selected now.

Streamlit's own navigation drops the query parameters: one step back would show a page with nothing, and the page itself
would have to write them again. These links carry them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import streamlit as st

from lakeview.app import selection, session, tables
from lakeview.app.pages import PAGES


class Sidebar:
    """A place for each page's link, laid out once a run; the links can be drawn there again with a newer selection:
    each then changes where it is, and nothing moves."""

    def __init__(self, pages: Mapping[str, st.Page]) -> None:
        self._pages = pages
        self._drawn: Mapping[str, str] | None = None
        self._places = {}
        with st.sidebar:
            for group, names in groupby(PAGES, key=lambda name: PAGES[name].group):
                with st.container(gap="xsmall", key=f"nav-{group.lower() or 'first'}"):
                    if group:
                        st.markdown(f":small[{group}]")
                    for name in names:
                        self._places[name] = st.empty()

    def draw(self) -> None:
        """Makes every link one to what is selected, or to what a page opens where nothing is."""
        parameters = selection.link() or _offered()
        if parameters == self._drawn:
            return
        for name, place in self._places.items():
            place.page_link(self._pages[name], query_params=parameters)
        self._drawn = parameters


def _offered() -> dict[str, str]:
    # the demo lake lies on this machine; other tables' logs are read when somebody opens them
    name = tables.default()
    return session.link_to(name) if name == tables.DEMO_TABLE else {}
