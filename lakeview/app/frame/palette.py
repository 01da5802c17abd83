"""The command palette: one key, and the name of a table, page, version or column to go to."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from lakeview import views
from lakeview.app import selection, session, tables
from lakeview.app.frame import pickers
from lakeview.app.pages import PAGES
from lakeview.model.errors import LakeviewError

SHORTCUT = "Ctrl+K"
_TARGET = "palette-target"
_MOST_COLUMNS = 1_000

_FOCUS = f"""<script>{{
const focus = (tries) => {{
    const input = document.querySelector("[role=dialog] .st-key-{_TARGET} input");
    if (input) input.focus();
    if (document.activeElement !== input && tries) setTimeout(focus, 50, tries - 1);
}};
setTimeout(focus, 50, 20);
}}</script>"""
"""Streamlit's dialog gives the focus to its closing button: the key and the name are typed in one go."""

_Target = tuple[str, dict[str, str]]
"""A page, and the query parameters of the link to it."""


@st.fragment
def button() -> None:
    """The palette's button, which its key presses from anywhere; the page itself is not drawn again for it."""
    pressed = st.button(
        "Go to",
        icon=":material/search:",
        type="tertiary",
        key="palette",
        shortcut=SHORTCUT,
        help="A table, page, version or column by its name",
    )
    if pressed:
        st.session_state.pop(_TARGET, None)
        _palette()


@st.dialog("Go to", icon=":material/search:")
def _palette() -> None:
    targets = _targets()
    chosen = st.selectbox(
        "Table, page, version or column", list(targets), index=None, key=_TARGET, placeholder="type a part of its name"
    )
    st.html(_FOCUS, unsafe_allow_javascript=True)
    if chosen is not None:
        page, parameters = targets[chosen]
        st.switch_page(PAGES[page].file, query_params=parameters)


def _targets() -> dict[str, _Target]:
    targets: dict[str, _Target] = {f"{entry.title} · page": (name, selection.link()) for name, entry in PAGES.items()}
    for offer in tables.offers():
        targets[f"{offer.label} · table"] = "overview", selection.Selection(offer.name).parameters()
    chosen = selection.remembered()
    if chosen.table is not None:
        with suppress(LakeviewError):  # of a table that cannot be opened there are no versions or columns to go to
            now = session.look_at(chosen.table, chosen.version, chosen.base, chosen.ref)
            targets |= _of_table(now)
    return targets


def _of_table(now: session.OpenTable) -> dict[str, _Target]:
    versions = {
        f"{views.units.format_version(int(version))} · version{f', {day}' if day else ''}": (
            "timeline",
            selection.link(version=int(version), commit=version),
        )
        for version, day in pickers.commit_dates(now).items()
    }
    names = [f.name for f in now.snapshot.schema.fields[:_MOST_COLUMNS]]
    partitioned = set(now.snapshot.partition_columns)
    columns = {
        f"{name} · column": ("schema", selection.link())
        if name in partitioned
        else ("quality", selection.link(column=name))
        for name in names
    }
    return versions | columns
