"""Errors to messages: what was found, where, and what to do. The one place where a LakeviewError meets a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import streamlit as st

from lakeview import errors
from lakeview.ui import selection
from lakeview.ui.components import escape, link


@dataclass(frozen=True, slots=True)
class _WayOut:
    """How one class of errors looks, and the one place to go from there."""

    icon: str
    page: str
    label: str
    changes: Mapping[str, None] = field(default_factory=dict)


_OTHER_TABLE = {"table": None, "version": None, "base": None, "ref": None}
_LATEST = {"version": None, "base": None, "ref": None}

_WAYS_OUT: Mapping[type[errors.LakeviewError], _WayOut] = {
    errors.NotATableError: _WayOut("search_off", "start", "Choose another table", _OTHER_TABLE),
    errors.AccessDeniedError: _WayOut("lock", "start", "Choose another table", _OTHER_TABLE),
    errors.StoreUnavailableError: _WayOut("cloud_off", "start", "Choose another table", _OTHER_TABLE),
    errors.VersionNotFoundError: _WayOut("history_toggle_off", "timeline", "See which versions there are", _LATEST),
    errors.InvalidRequestError: _WayOut("rule", "overview", "Open the latest version", _LATEST),
    errors.DataFileMissingError: _WayOut("file_copy_off", "timeline", "See which commits touched it"),
    errors.UnsupportedTableError: _WayOut("extension_off", "timeline", "Look at its log"),
    errors.CorruptTableError: _WayOut("broken_image", "timeline", "Look at its log"),
    errors.LakeviewError: _WayOut("error", "start", "Start"),
}


@contextmanager
def shown(*, here: str | None = None, caught: list[errors.LakeviewError] | None = None) -> Iterator[None]:
    """Runs a part of a page: a LakeviewError becomes a message, and what stands after goes on.

    `here`: the page it is shown on, which needs no link to itself. `caught` receives the error.
    """
    try:
        yield
    except errors.LakeviewError as error:
        show(error, here=here)
        if caught is not None:
            caught.append(error)


def show(error: errors.LakeviewError, *, here: str | None = None) -> None:
    """Draws one error: what was found, where, what to do, and one way out."""
    way_out = next(_WAYS_OUT[kind] for kind in type(error).__mro__ if kind in _WAYS_OUT)
    with st.container(border=True, gap="small"):
        st.markdown(f":red[:material/{way_out.icon}:] &ensp; **{escape(_sentence(error.message))}**")
        if error.place:
            st.markdown(f":gray[Where] &ensp; {escape(error.place)}")
        if error.fix:
            st.markdown(f":gray[Do] &ensp; {escape(_sentence(error.fix))}")
        with st.container(horizontal=True, vertical_alignment="center"):
            if isinstance(error, errors.StoreUnavailableError):
                st.button("Try again", icon=":material/refresh:", type="primary", key="try-again")
            # a link to the latest version helps with a version in the link that is none, not with a filter
            if way_out.page != here and (way_out.page != "overview" or error.place == selection.VERSION):
                link(way_out.page, way_out.label, selection.link(**way_out.changes))
            st.markdown(f":small[:gray[{escape(error.kind)}]]")


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "?", "!")) else f"{text}."
