"""The frame around every page: navigation, the header's pickers, and one place where errors become messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
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
    st.set_page_config("lakeview", page_icon=icon_svg(), layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    st.html(_STYLE)
    is_dark = dark()
    st.logo(logo_svg(dark=is_dark), icon_image=icon_svg(dark=is_dark), size="medium")
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


_MARK = (
    '<path d="M4 6.5H20" stroke="{pale}" stroke-width="1.8"/>'
    '<circle cx="4" cy="6.5" r="2" fill="{pale}"/><circle cx="12" cy="6.5" r="3.2" fill="{blue}"/>'
    '<circle cx="20" cy="6.5" r="2" fill="{pale}"/>'
    '<path d="M1.5 14.2c2.6-2 4.4-2 7 0s4.4 2 7 0 4.4-2 7 0" stroke="{blue}" stroke-width="2.1" fill="none"'
    ' stroke-linecap="round"/>'
    '<path d="M1.5 19.6c2.6-2 4.4-2 7 0s4.4 2 7 0 4.4-2 7 0" stroke="{pale}" stroke-width="2.1" fill="none"'
    ' stroke-linecap="round"/>'
)

_NAME = (
    "M33.6 18.8Q32.8 18.8 32.3 18.5Q31.8 18.1 31.5 17.5Q31.3 16.8 31.3 16V5.2H33.8V16.1Q33.8 16.5 33.9 16.7Q34.1 "
    "16.8 34.3 16.8Q34.3 16.8 34.4 16.8Q34.5 16.8 34.6 16.8L34.9 18.6Q34.7 18.7 34.4 18.7Q34 18.8 33.6 18.8Z M38.9 "
    "18.8Q38.1 18.8 37.4 18.5Q36.8 18.1 36.5 17.5Q36.1 16.9 36.1 16Q36.1 14.5 37.4 13.7Q38.7 12.9 41.5 12.6Q41.5 "
    "12.1 41.4 11.8Q41.2 11.4 40.8 11.2Q40.5 11 39.9 11Q39.3 11 38.6 11.2Q38 11.4 37.3 11.8L36.5 10.2Q37 9.9 37.6 "
    "9.6Q38.3 9.3 39 9.2Q39.6 9 40.4 9Q41.6 9 42.4 9.5Q43.1 9.9 43.6 10.9Q44 11.8 44 13.1V18.6H42L41.8 "
    "17.6H41.7Q41.1 18.1 40.4 18.5Q39.7 18.8 38.9 18.8Z M39.7 16.9Q40.2 16.9 40.6 16.7Q41.1 16.4 41.5 16V14.2Q40.4 "
    "14.3 39.7 14.6Q39 14.8 38.7 15.1Q38.5 15.4 38.5 15.9Q38.5 16.4 38.8 16.6Q39.1 16.9 39.7 16.9Z M46.5 "
    "18.6V5.2H48.9V13.3H48.9L52.2 9.2H54.8L51.6 13.1L55.1 18.6H52.5L50.2 14.7L48.9 16.2V18.6Z M60.7 18.8Q59.3 18.8 "
    "58.3 18.2Q57.2 17.7 56.6 16.6Q56 15.5 56 13.9Q56 12.4 56.6 11.3Q57.2 10.2 58.2 9.6Q59.2 9 60.4 9Q61.7 9 62.5 "
    "9.6Q63.4 10.2 63.8 11.2Q64.3 12.2 64.3 13.5Q64.3 13.8 64.2 14.1Q64.2 14.4 64.1 14.7H57.8L57.8 12.9H62.1Q62.1 "
    "12 61.7 11.4Q61.3 10.9 60.4 10.9Q59.9 10.9 59.4 11.2Q58.9 11.4 58.6 12.1Q58.3 12.7 58.3 13.9Q58.3 15 58.7 "
    "15.7Q59.1 16.3 59.7 16.6Q60.3 16.9 61 16.9Q61.6 16.9 62.1 16.8Q62.6 16.6 63.1 16.3L63.9 17.8Q63.3 18.3 62.4 "
    "18.6Q61.5 18.8 60.7 18.8Z M68.4 18.6 65.2 9.2H67.6L69 13.9Q69.2 14.6 69.4 15.3Q69.6 16 69.8 16.8H69.9Q70.1 16 "
    "70.2 15.3Q70.4 14.6 70.6 13.9L72 9.2H74.3L71.2 18.6Z M75.9 18.6V9.2H78.3V18.6Z M77.1 7.7Q76.5 7.7 76.1 "
    "7.3Q75.7 7 75.7 6.4Q75.7 5.8 76.1 5.4Q76.5 5 77.1 5Q77.7 5 78.1 5.4Q78.5 5.8 78.5 6.4Q78.5 7 78.1 7.3Q77.7 7.7"
    " 77.1 7.7Z M85.1 18.8Q83.8 18.8 82.7 18.2Q81.6 17.7 81 16.6Q80.4 15.5 80.4 13.9Q80.4 12.4 81 11.3Q81.7 10.2 "
    "82.7 9.6Q83.7 9 84.8 9Q86.1 9 86.9 9.6Q87.8 10.2 88.2 11.2Q88.7 12.2 88.7 13.5Q88.7 13.8 88.6 14.1Q88.6 14.4 "
    "88.6 14.7H82.2L82.2 12.9H86.6Q86.6 12 86.1 11.4Q85.7 10.9 84.8 10.9Q84.3 10.9 83.8 11.2Q83.4 11.4 83.1 "
    "12.1Q82.7 12.7 82.7 13.9Q82.8 15 83.1 15.7Q83.5 16.3 84.1 16.6Q84.7 16.9 85.4 16.9Q86 16.9 86.5 16.8Q87 16.6 "
    "87.5 16.3L88.3 17.8Q87.7 18.3 86.8 18.6Q86 18.8 85.1 18.8Z M92.3 18.6 89.8 9.2H92.3L93.3 13.9Q93.5 14.5 93.6 "
    "15.2Q93.7 15.9 93.8 16.7H93.8Q94 15.9 94.1 15.2Q94.2 14.5 94.4 13.9L95.4 9.2H97.8L98.9 13.9Q99.1 14.5 99.2 "
    "15.2Q99.4 15.9 99.5 16.7H99.6Q99.7 15.9 99.8 15.2Q99.9 14.5 100 13.9L101 9.2H103.3L101 18.6H98L97.1 14.5Q97 "
    "13.9 96.9 13.2Q96.7 12.6 96.6 11.7H96.5Q96.4 12.6 96.3 13.2Q96.2 13.9 96.1 14.5L95.2 18.6Z "
)


def logo_svg(*, dark: bool) -> str:
    """Mark and name, for a light or a dark sidebar."""
    ink = "#E3E8ED" if dark else "#1B232C"
    return _svg(104, f'{_mark(dark)}<path d="{_NAME}" fill="{ink}"/>')


def icon_svg(*, dark: bool = False) -> str:
    """The mark alone."""
    return _svg(24, _mark(dark))


def _mark(dark: bool) -> str:
    return _MARK.format(blue="#5CA8F5" if dark else "#1D66B8", pale="#3F82C2" if dark else "#8FB6E0")


def _svg(width: int, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 24" width="{width}" height="24">{content}</svg>'
    )
