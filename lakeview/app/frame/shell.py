"""The frame around every page: navigation, the header's pickers, and one place where errors become messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import groupby

import streamlit as st

from lakeview.app import downloads, errors, row_links, selection, session, tables, widget_state, widths
from lakeview.app.components import NARROW, dark, nothing, title
from lakeview.app.frame import header, palette, pickers
from lakeview.app.pages import PAGES
from lakeview.app.session import OpenTable
from lakeview.charts import theme
from lakeview.model.errors import LakeviewError

SIDEBAR_WIDTH = 212
_STYLE = f"""<style>
@media (max-width: 1000px) {{.stMainBlockContainer {{padding-left: 20px; padding-right: 20px}}}}
@media (min-width: {widths.NARROW_PAGE + 1}px) {{[class*="st-key-{NARROW}"] {{display: none}}}}
[data-testid="stTable"] [data-testid="stMarkdownContainer"] p {{overflow-wrap: anywhere}}
</style>"""
"""What Streamlit has no option for: the page's sides are 70 pixels each, of 900 so many that tables lose columns; and
what a narrow page cuts is written out there alone; and a long word of a property, such as a location, is broken, which
is cut otherwise, without a sign."""


_FIRST: Mapping[str, Callable[[OpenTable], object]] = {
    **dict.fromkeys(("overview", "timeline", "health"), lambda now: (now.look.quality(), now.look.readability())),
    **dict.fromkeys(("compare", "files", "partitions", "quality"), lambda now: now.look.quality()),
    **dict.fromkeys(("schema", "data"), lambda now: now.look.columns()),
    "pruning": lambda now: now.look.clustering(),
}
"""What takes longest on a page and is read first, because other parts of the page then need no read of their own.
Statistics contain row counts, which the header needs, and manifests have them beside the names of files: those of a
million files are not read twice."""

# Streamlit imports it for the first table that is drawn, and Altair looks into it as soon as it is there: while the one
# session still imports it, another one's chart would fail. Here the others wait.
import_module("pandas")

theme.make_unchecked()  # pages send their specifications unchecked too (`components.stack`)


def run() -> None:
    """Draws the page that the URL names, with the table that the URL names."""
    st.set_page_config("lakeview", page_icon=_picture("icon"), layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    st.html(_STYLE)
    is_dark = dark()
    st.logo(_picture("logo", dark=is_dark), icon_image=_picture("icon", dark=is_dark), size="medium")
    pages = {
        name: st.Page(entry.file, title=entry.title, icon=entry.icon, default=entry.default, url_path=name)
        for name, entry in PAGES.items()
    }
    page = st.navigation(list(pages.values()), position="hidden")
    name = next(name for name, candidate in pages.items() if candidate.url_path == page.url_path)
    row_links.begin(name)
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
    bar.name_latest()


def _table_page(name: str, page: st.Page, bar: Sidebar) -> None:
    now: session.OpenTable | None = None
    failures: list[LakeviewError] = []
    slot = None
    with st.container(gap="xxsmall"):
        row = st.container(horizontal=True, vertical_alignment="center", gap="small")
        body = st.container(gap="small")
    with body:
        title(name)
        waiting = st.empty()
        with errors.messages(here=name, failures=failures):
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
        if not failures:
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
        self._parameters = selection.link() or _offered_pages()
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
        self._draw(selection.link() or _offered_pages())

    def name_latest(self) -> None:
        """Makes every link one to the latest version of a table that a link to this page named without one: a page that
        adds it to the URL would leave a step of this page's history behind it."""
        now = selection.remembered_selection()
        if now.table is not None and now.version is None:
            with suppress(LakeviewError):  # the page that is opened says what is wrong
                self._draw(selection.link(version=session.look_at(now.table, None, None, now.ref).version))

    def _draw(self, parameters: dict[str, str]) -> None:
        if parameters == self._parameters:
            return
        for name, link in self._links.items():
            link.page_link(self._pages[name], query_params=parameters)
        self._parameters = parameters


def _offered_pages() -> dict[str, str]:
    # the demo lake lies on this machine; other tables' logs are read when they are opened
    name = tables.default()
    return session.link_to(name) if name == tables.DEMO_TABLE else {}


_DARK_COLOURS = {"#1D66B8": "#5CA8F5", "#8FB6E0": "#3F82C2", "#1B232C": "#E3E8ED"}
"""Colours of the pictures, as they are on a light ground and on a dark one."""


@cache
def _picture(name: str, *, dark: bool = False) -> str:
    """The SVG of the mark alone, `icon`, or of mark and name, `logo`."""
    svg = files("lakeview.app.frame").joinpath(f"{name}.svg").read_text(encoding="utf-8")
    for colour, on_dark in _DARK_COLOURS.items() if dark else ():
        svg = svg.replace(colour, on_dark)
    return svg
