"""Query parameters to a Selection, and back: the URL says which table, version and base are looked at.

A sidebar link drops the query parameters, so the last selection is also kept in the session and written back; a link
that names a table always wins over the session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

import streamlit as st

from lakeview.errors import InvalidRequestError

TABLE, VERSION, BASE, REF = "table", "version", "base", "ref"
_REMEMBERED = "_selection"


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at. `table` as the URL names it (an address, or `demo/<name>`); `version` None for the latest;
    `base` the version compared with, None for no comparison; `ref` the branch or tag whose line of versions is told,
    None for the table's default branch."""

    table: str | None = None
    version: int | None = None
    base: int | None = None
    ref: str | None = None

    def parameters(self) -> dict[str, str]:
        """Query parameters of a link to this selection; ids are text."""
        given = {TABLE: self.table, VERSION: self.version, BASE: self.base, REF: self.ref}
        return {key: str(value) for key, value in given.items() if value is not None}


def current() -> Selection:
    """The selection of the URL, else the session's last one, which is then written back to the URL.

    Raises InvalidRequestError for a version in the URL that is no number; the table stays selected.
    """
    url = st.query_params
    if TABLE not in url:
        last = remembered()
        _write(last.parameters())
        return last
    selection = Selection(url[TABLE])
    st.session_state[_REMEMBERED] = selection
    selection = Selection(url[TABLE], _version(url.get(VERSION)), _version(url.get(BASE)), url.get(REF) or None)
    st.session_state[_REMEMBERED] = selection
    return selection


def remembered() -> Selection:
    """The selection of this run, as `current()` found it."""
    selection: Selection = st.session_state.get(_REMEMBERED, Selection())
    return selection


def select(
    table: str | None = None, version: int | None = None, base: int | None = None, ref: str | None = None
) -> None:
    """Makes this the selection, in the URL and in the session."""
    selection = Selection(table, version, base, ref)
    st.session_state[_REMEMBERED] = selection
    _write(selection.parameters())


def select_text(
    table: str | None, *, version: str | int | None, base: str | int | None, ref: str | None = None
) -> None:
    """Makes what somebody typed the selection; `current()` of the next run says what is wrong with it, if anything."""
    st.session_state.pop(_REMEMBERED, None)
    given = {TABLE: table, VERSION: version, BASE: base, REF: ref}
    _write({key: str(value) for key, value in given.items() if value is not None})


def select_version(version: int | None) -> None:
    """Moves to another version of the same table; None for the latest."""
    now = remembered()
    select(now.table, version, now.base, now.ref)


def select_base(base: int | None) -> None:
    """Compares with another version; None for no comparison."""
    now = remembered()
    select(now.table, now.version, base, now.ref)


def select_ref(ref: str | None) -> None:
    """Moves to the newest version of a branch or tag; None for the default branch."""
    now = remembered()
    select(now.table, None, now.base, ref)


def link(**changes: object) -> dict[str, str]:
    """Query parameters of a link to the current selection with `version`, `base`, `ref` or `table` changed; further
    parameters (`commit=35`) are added as text."""
    own = {key: value for key, value in changes.items() if key in (TABLE, VERSION, BASE, REF)}
    further = {key: str(value) for key, value in changes.items() if key not in own and value is not None}
    return replace(remembered(), **own).parameters() | further  # type: ignore[arg-type]  # keys are Selection's own


def permalink() -> str:
    """The address of exactly this view: page, selection and whatever else the page keeps in the URL."""
    return f"{st.context.url or ''}?{urlencode(st.query_params.to_dict(), quote_via=quote, safe='/:')}"


def hold(key: str, default: str | Sequence[str], options: Collection[str] | None = None) -> Callable[[], None]:
    """Keeps a widget's state in the link under its key, for widgets whose labels are not their values: `bind` writes
    the labels. Called before the widget is drawn, which gets the key, no default, and what is returned as `on_change`.

    What the link says is taken where it is one of the options; the default is not written.
    """
    st.session_state[key] = _held(key, default, options)

    def write() -> None:
        chosen = st.session_state[key]
        state = chosen if isinstance(chosen, str) else list(chosen or ())
        if state and state != (default if isinstance(default, str) else list(default)):
            st.query_params[key] = state
        elif key in st.query_params:
            del st.query_params[key]

    return write


def _held(key: str, default: str | Sequence[str], options: Collection[str] | None) -> str | list[str]:
    known = [said for said in st.query_params.get_all(key) if options is None or said in options]
    if isinstance(default, str):
        return known[-1] if known else default
    return known or list(default)


def _write(parameters: Mapping[str, str]) -> None:
    """Makes these the URL's table, version, base and ref, all at once: each message to the browser is a step that its
    back button would have to go, and one that says nothing new could undo what a widget has just written."""
    url = st.query_params
    if {key: url[key] for key in (TABLE, VERSION, BASE, REF) if key in url} == parameters:
        return
    for key in (TABLE, VERSION, BASE, REF):
        if key in url and key not in parameters:
            del url[key]
    if parameters:
        url.update(parameters)


def _version(text: str | None) -> int | None:
    if text is None or text in ("", "latest"):
        return None
    digits = text.removeprefix("v")
    if not digits.removeprefix("-").isdecimal():
        raise InvalidRequestError(
            f"the link asks for version {text!r}, which is no number",
            fix="choose a version above, or open the latest",
            place="version",
        )
    return int(digits)
