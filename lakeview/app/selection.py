"""Query parameters to a Selection, and back: the URL says which table, version and base are looked at.

What is chosen is written once, by `settle`, when it is known what it opens: each message to the browser is a step that
its back button would have to go. Pages that show no table leave the URL alone; the session remembers the selection for
them and for their links.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

import streamlit as st

from lakeview.app import cache, tables
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import shorten
from lakeview.model.version_names import name_of

TABLE, VERSION, BASE, REF = "table", "version", "base", "ref"
OWN = (TABLE, VERSION, BASE, REF)
_REMEMBERED, _SELECTION = "_selection", "_chosen_selection"
_MOST_SHOWN = 40
_TAB = "tab"
_DIGITS = 24
_NAME = re.compile(r"s\d{1,18}")


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at. `table` as the URL names it (an address, or `demo/<name>`); `version` None for the latest;
    `base` the version compared with, None for no comparison; `ref` the branch or tag whose line of versions is shown,
    None for the table's default branch."""

    table: str | None = None
    version: int | None = None
    base: int | None = None
    ref: str | None = None

    def parameters(self) -> dict[str, str]:
        """Query parameters of a link to this selection; ids are text."""
        parts = {TABLE: self.table, VERSION: self.version, BASE: self.base, REF: self.ref}
        return {key: str(value) for key, value in parts.items() if value is not None}


def current() -> Selection:
    """What was just chosen, else the selection of the URL, else the session's last one.

    Raises InvalidRequestError for a version that is no number; the table stays selected.
    """
    parameters = _parameters()
    if TABLE not in parameters:
        return remembered_selection()
    st.session_state[_REMEMBERED] = Selection(parameters[TABLE])
    version, base = (
        _version(_number(parameters.get(key), parameters[TABLE]), asks, key)
        for key, asks in ((VERSION, "asks for"), (BASE, "compares with"))
    )
    choice = Selection(parameters[TABLE], version, base, parameters.get(REF))
    st.session_state[_REMEMBERED] = choice
    return choice


def remembered_selection() -> Selection:
    """The selection of this run, as `current()` found it."""
    selection: Selection = st.session_state.get(_REMEMBERED, Selection())
    return selection


def select(
    table: str | None = None, version: int | None = None, base: int | None = None, ref: str | None = None
) -> None:
    """Chooses this for the run that follows, which opens and settles it."""
    selection = Selection(table, version, base, ref)
    st.session_state[_REMEMBERED] = selection
    _choose(selection.parameters())


def select_part(key: str, text: str | None) -> None:
    """Chooses another version or base, as it was typed, and leaves the rest as it is shown, or as another picker has
    just chosen it; None for none. `current()` of the next run says what is wrong with it, if anything."""
    parts = {**(_parameters() or remembered_selection().parameters()), key: text}
    _choose({name: value for name, value in parts.items() if value is not None})


def settle(selection: Selection | None = None) -> None:
    """Makes this the selection of the URL and of the session; without one, what was asked for as it was asked."""
    if selection is not None:
        st.session_state[_REMEMBERED] = selection
    _write((_parameters() or remembered_selection().parameters()) if selection is None else selection.parameters())
    st.session_state.pop(_SELECTION, None)


def select_version(version: int | None) -> None:
    """Moves to another version of the same table; None for the latest."""
    now = remembered_selection()
    select(now.table, version, now.base, now.ref)


def select_base(base: int | None) -> None:
    """Compares with another version; None for no comparison."""
    now = remembered_selection()
    select(now.table, now.version, base, now.ref)


def select_ref(ref: str | None) -> None:
    """Moves to the newest version of a branch or tag; None for the default branch."""
    now = remembered_selection()
    select(now.table, None, now.base, ref)


def link(**changes: object) -> dict[str, str]:
    """Query parameters of a link to the current selection with `version`, `base`, `ref` or `table` changed; further
    parameters (`commit=35`) are added as text."""
    own = {key: value for key, value in changes.items() if key in OWN}
    further = {key: str(value) for key, value in changes.items() if key not in own and value is not None}
    return replace(remembered_selection(), **own).parameters() | further  # type: ignore[arg-type]  # keys are Selection's own


def permalink(*, is_pinned: bool = True) -> str:
    """The address of exactly this view: page, selection and what else the page keeps in the URL; if not
    `is_pinned`, of the version that is the latest when it is opened."""
    parameters = {key: value for key, value in st.query_params.to_dict().items() if value or key not in OWN}
    if not is_pinned:
        parameters.pop(VERSION, None)
    return f"{st.context.url or ''}?{urlencode(parameters, quote_via=quote, safe='/:')}"


def _choose(parameters: Mapping[str, str]) -> None:
    st.session_state[_SELECTION] = (_of_url(), dict(parameters))


def _parameters() -> Mapping[str, str]:
    """What was chosen since the URL was written, unless the browser has gone elsewhere; else what the URL says."""
    parameters = _of_url()
    latest: tuple[Mapping[str, str], Mapping[str, str]] = st.session_state.get(_SELECTION, (parameters, parameters))
    origin, choice = latest
    if origin == parameters:
        return choice
    del st.session_state[_SELECTION]
    return parameters


def _of_url() -> dict[str, str]:
    url = st.query_params
    return {key: url[key] for key in OWN if url.get(key)}


def _write(parameters: Mapping[str, str]) -> None:
    """Makes these the URL's table, version, base and ref by one message, one step for the back button; none where they
    are that already: it could undo what a widget has just written.

    Of another table nothing but the tab stays: its commits, files, filters and columns are not those of this one."""
    texts = _of_url()
    if texts == parameters:
        return
    url = st.query_params
    is_other = TABLE in texts and texts[TABLE] != parameters.get(TABLE)
    others = {key: url.get_all(key) for key in url if key not in OWN and (key == _TAB or not is_other)}
    url.from_dict({**parameters, **others})


def _number(text: str | None, table: str) -> str | None:
    """The id of the snapshot that a link calls by its name, as pages do: `s14`; other texts as they are."""
    if text is None or not _NAME.fullmatch(text):
        return text
    address = tables.address(table)
    versions = cache.frames(address, cache.latest(address).version).history["version"]
    return next((str(version) for version in versions if name_of(version) == text), text)


def _version(text: str | None, asks: str, place: str) -> int | None:
    """The number in a version of a link, which `asks` for it by the parameter `place`; InvalidRequestError."""
    if text is None or text in ("", "latest"):
        return None
    digits = text.removeprefix("v")
    wrong = None
    if _NAME.fullmatch(text):
        wrong = "which the table does not have"
    elif not digits.removeprefix("-").isdecimal():
        wrong = "which is no number"
    elif len(digits) > _DIGITS or not -(1 << 63) <= int(digits) < 1 << 63:
        wrong = "a number that no version has"
    if wrong is not None:
        excerpt = shorten(text, _MOST_SHOWN)
        fix = "open the latest version, or correct the link"
        raise InvalidRequestError(f"the link {asks} version {excerpt!r}, {wrong}", fix=fix, place=place)
    return int(digits)
