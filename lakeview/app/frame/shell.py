"""The frame around every page: navigation, the header's pickers, and one place where errors become messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import groupby

import streamlit as st

from lakeview.app import downloads, errors, row_links, selection, session, tables, widget_state
from lakeview.app.components import dark, nothing, title
from lakeview.app.frame import header, palette, pickers
from lakeview.app.frame.logo import icon_svg, logo_svg
from lakeview.app.pages import PAGES
from lakeview.app.session import OpenTable
from lakeview.model.errors import LakeviewError

SIDEBAR_WIDTH = 212
_STYLE = "<style>@media (max-width: 1000px) {.stMainBlockContainer {padding-left: 20px; padding-right: 20px}}</style>"
"""What Streamlit has no option for: the page's sides are 70 pixels each, of 900 so many that tables lose columns."""


_FIRST: Mapping[str, Callable[[OpenTable], object]] = {
    **dict.fromkeys(("overview", "timeline", "health"), lambda now: now.look.readability()),
    **dict.fromkeys(("schema", "data"), lambda now: now.look.columns()),
    "pruning": lambda now: now.look.clustering(),
    "quality": lambda now: now.look.quality(),
}
"""What takes longest on a page and is read first, because other parts of the page then need no read of their own.
Statistics contain row counts, which the header needs: those of a million files are not read twice. To see which
versions are readable the folder is listed, and the log is read meanwhile."""

# Streamlit imports it for the first table that is drawn, and Altair looks into it as soon as it is there: while the one
# session still imports it, another one's chart would fail. Here the others wait.
import_module("pandas")


def run() -> None:
    """Draws the page that the URL names, with the table that the URL names."""
    st.set_page_config("lakeview", page_icon=icon_svg(), layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    st.html(_STYLE)
    is_dark = dark()
    st.logo(logo_svg(dark=is_dark), icon_image=icon_svg(dark=is_dark), size="medium")
    pages = {
        name: st.Page(entry.file, title=entry.title, icon=entry.icon, default=entry.default, url_path=name)
        for name, entry in PAGES.items()
    }
    page = st.navigation(list(pages.values()), position="hidden")
    row_links.follow()
    name = next(name for name, candidate in pages.items() if candidate.url_path == page.url_path)
    downloads.reset()
    widget_state.begin(name)
    errors.begin()
    with suppress(LakeviewError):  # where the page is drawn it is said
        selection.current()
    bar = Sidebar(pages)
    if PAGES[name].of_table:
        _table_page(name, page, bar)
        return
    if not PAGES[name].default:
        title(name)
    with errors.messages(here=name):
        page.run()


def _table_page(name: str, page: st.Page, bar: Sidebar) -> None:
    now: session.OpenTable | None = None
    failed: list[LakeviewError] = []
    slot = None
    with st.container(gap="xxsmall"):
        row = st.container(horizontal=True, vertical_alignment="center", gap="small")
        body = st.container(gap="small")
    with body:
        title(name)
        waiting = st.empty()
        with errors.messages(here=name, caught=failed):
            now = session.open_selected(lambda: waiting.skeleton(height=240))
            if now is not None and name in _FIRST and "tab" not in st.query_params:
                with suppress(LakeviewError):  # the page asks again, and says what is
                    _FIRST[name](now)
        waiting.empty()
    bar.draw()  # a version that was not named is known now
    with row:
        pickers.table_picker()
        if now is not None:
            pickers.version_pickers(now, name)
            header.facts(now)
            st.space("stretch")
            with st.container(horizontal=True, gap="small", width="content"):
                header.actions(now, name)
                slot = st.container(width="content")
    if now is None:
        if not failed:
            with body:
                nothing("No table is chosen.", "Choose one above, or open the demo lake.", "start", "Start")
        return
    header.notice(now)
    with body:
        # each in a place of its own: a line above that comes and goes would move every widget of the page, and the
        # browser forgets that a widget which moved writes the link
        with st.container():
            header.old_version(now)
        with st.container(gap="small"), errors.messages(here=name):
            page.run()
    if slot is not None:
        with slot:
            header.download(now)


class Sidebar:
    """The pages as links, in their groups, each to what is selected now: Streamlit's own navigation drops the query
    parameters, and one step back would show a page with nothing.

    They are drawn once a run, and can be drawn again with a newer selection: each then changes where it is, and nothing
    moves. Nothing empty is ever put where a link is: the sidebar would shrink for as long as a slow machine
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
    # the demo lake lies on this machine; other tables' logs are read when they are opened
    name = tables.default()
    return session.link_to(name) if name == tables.DEMO_TABLE else {}
