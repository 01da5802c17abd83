"""The frame around every page: navigation, the header's pickers, and one place where errors become messages."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module

import streamlit as st

from lakeview.errors import LakeviewError
from lakeview.ui import downloads, errors, header, opened, selection
from lakeview.ui.components import dark, nothing, title
from lakeview.ui.logo import icon_svg, logo_svg
from lakeview.ui.pages import PAGES

SIDEBAR_WIDTH = 212

# Streamlit imports it for the first table that is drawn, and Altair looks into it as soon as it is there: while the one
# session still imports it, another one's chart would fail. Here the others wait.
import_module("pandas")


def run() -> None:
    """Draws the page that the URL names, with the table that the URL names."""
    st.set_page_config("lakeview", page_icon=icon_svg(), layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    is_dark = dark()
    st.logo(logo_svg(dark=is_dark), icon_image=icon_svg(dark=is_dark), size="medium")
    groups: dict[str, list[st.Page]] = defaultdict(list)
    names = {}
    for name, entry in PAGES.items():
        page = st.Page(entry.file, title=entry.title, icon=entry.icon, default=entry.default, url_path=name)
        groups[entry.group].append(page)
        names[page.url_path] = name
    page = st.navigation(dict(groups))
    name = names[page.url_path]
    downloads.reset()
    if not PAGES[name].of_table:
        if not PAGES[name].default:
            title(name)
        with errors.shown(here=name):
            selection.current()
            page.run()
        return
    _table_page(name, page)


def _table_page(name: str, page: st.Page) -> None:
    found: opened.Opened | None = None
    failed: list[LakeviewError] = []
    slot = None
    with st.container(gap="xxsmall"):
        row = st.container(horizontal=True, vertical_alignment="center", gap="small")
        body = st.container(gap="small")
    with body:
        title(name)
        waiting = st.empty()
        with errors.shown(here=name, caught=failed):
            found = opened.open_selected(lambda: waiting.skeleton(height=240))
        waiting.empty()
    with row:
        header.table_picker()
        if found is not None:
            header.version_pickers(found)
            header.facts(found)
            st.space("stretch")
            with st.container(horizontal=True, gap="small", width="content"):
                header.actions(found, name)
                slot = st.container(width="content")
    if found is None:
        if not failed:
            with body:
                nothing("No table is chosen.", "Choose one above, or open the demo lake.", "start", "Start")
        return
    header.notice(found)
    with body:
        # each in a place of its own: a line above that comes and goes would move every widget of the page, and the
        # browser forgets that a widget which moved writes the link
        with st.container():
            header.old_version(found)
        with st.container(gap="small"), errors.shown(here=name):
            page.run()
    if slot is not None:
        with slot:
            header.download(found)
