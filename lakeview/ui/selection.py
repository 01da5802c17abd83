"""Query parameters to a Selection, and back: the URL says which table, version and base are looked at.

A sidebar link drops the query parameters, so the last selection is also kept in the session and written back; a link
that names a table always wins over the session.
"""

from __future__ import annotations

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
        for key, value in last.parameters().items():
            url[key] = value
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
    for key in (TABLE, VERSION, BASE, REF):
        if key in st.query_params and key not in selection.parameters():
            del st.query_params[key]
    for key, value in selection.parameters().items():
        st.query_params[key] = value


def select_text(
    table: str | None, *, version: str | int | None, base: str | int | None, ref: str | None = None
) -> None:
    """Makes what somebody typed the selection; `current()` of the next run says what is wrong with it, if anything."""
    st.session_state.pop(_REMEMBERED, None)
    for key, value in {TABLE: table, VERSION: version, BASE: base, REF: ref}.items():
        if value is not None:
            st.query_params[key] = str(value)
        elif key in st.query_params:
            del st.query_params[key]


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
