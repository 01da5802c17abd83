"""Errors to messages: what was found, where, and what to do. The one place where a LakeviewError meets a page."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import cache, columns, selection, tables, uploads
from lakeview.app.components import escape, frame, link
from lakeview.app.pages import PAGES
from lakeview.app.row_links import row_link
from lakeview.discovery.opening import PROFILE
from lakeview.model import errors
from lakeview.model.addresses import normalise
from lakeview.predicates.condition import null_comparison_hint
from lakeview.storage import open_storage


@dataclass(frozen=True, slots=True)
class _WayOut:
    """How one class of errors looks, the one place to go from there, and whether trying `again` may help."""

    icon: str
    page: str
    label: str
    changes: Mapping[str, None] = field(default_factory=dict)
    again: bool = False


_MESSAGES = "_errors_shown"
_OTHER_TABLE = {"table": None, "version": None, "base": None, "ref": None}
_LATEST = {"version": None, "base": None, "ref": None}

_WAYS_OUT: Mapping[type[errors.LakeviewError], _WayOut] = {
    errors.NotATableError: _WayOut("search_off", "start", "Choose another table", _OTHER_TABLE, again=True),
    errors.AccessDeniedError: _WayOut("lock", "start", "Choose another table", _OTHER_TABLE, again=True),
    errors.StoreUnavailableError: _WayOut("cloud_off", "start", "Choose another table", _OTHER_TABLE, again=True),
    errors.VersionNotFoundError: _WayOut("history_toggle_off", "timeline", "See which versions there are", _LATEST),
    errors.InvalidRequestError: _WayOut("rule", "overview", "Open the latest version", _LATEST),
    errors.DataFileMissingError: _WayOut("file_copy_off", "timeline", "See which commits touched it", again=True),
    errors.UnsupportedTableError: _WayOut("extension_off", "timeline", "Look at its log"),
    errors.CorruptTableError: _WayOut("broken_image", "timeline", "Look at its log", again=True),
    errors.SharingError: _WayOut("cloud_off", "start", "Choose another table", _OTHER_TABLE, again=True),
    errors.LakeviewError: _WayOut("error", "start", "Start"),
}
_PLACES = {"where": "the filter", selection.BASE: "the version compared with"}
"""What a page calls a parameter that its name does not tell."""

_SHARING = _WayOut("badge", "sharing", "Open the Sharing page", _OTHER_TABLE)


def begin() -> None:
    """To be called once a run: its errors are counted from one again."""
    st.session_state[_MESSAGES] = 0


@contextmanager
def messages(*, here: str | None = None, failures: list[errors.LakeviewError] | None = None) -> Iterator[None]:
    """Runs a part of a page: a LakeviewError becomes a message, and what stands after goes on.

    `here`: the page it is shown on, which needs no link to itself. `failures` receives the error.
    """
    try:
        yield
    except errors.LakeviewError as error:
        show(error, here=here)
        if failures is not None:
            failures.append(error)


def show(error: errors.LakeviewError, *, here: str | None = None) -> None:
    """Draws one error: what was found, where, what to do, and one way out."""
    way_out = next(_WAYS_OUT[kind] for kind in type(error).__mro__ if kind in _WAYS_OUT)
    fix = error.fix
    if (on_sharing := uploads.fix(error.kind, error.place)) is not None:
        way_out, fix = _SHARING, on_sharing
    is_folder = isinstance(error, errors.NotATableError) and way_out is not _SHARING
    folder = selection.remembered_selection().table if is_folder and here != "lake" else None
    if folder is not None and not (matches := _tables_below(folder)).is_empty():
        _draw_tables(folder, matches, is_profile=error.kind == PROFILE)
    else:
        _draw_error(error, fix, way_out, folder, here)


def warn_null_comparison(where: str) -> None:
    """Says what to write in place of a comparison with NULL, which is no error, in a filter that can be read."""
    hint = null_comparison_hint(where)
    if hint is not None:
        st.markdown(f":orange[:material/warning:] **{escape(hint)}**")


def _draw_error(
    error: errors.LakeviewError, fix: str | None, way_out: _WayOut, folder: str | None, here: str | None
) -> None:
    with st.container(border=True, gap="small"):
        st.markdown(f":red[:material/{way_out.icon}:] &ensp; **{escape(as_typed(_sentence(error.message)))}**")
        if error.place:
            place = _PLACES.get(error.place, error.place)
            st.markdown(f":gray[Where] &ensp; {escape(as_typed(place))}")
        if fix:
            st.markdown(f":gray[Do] &ensp; {escape(as_typed(_sentence(fix)))}")
        with st.container(horizontal=True, vertical_alignment="center"):
            _draw_way_out(way_out, error.place, here)
            is_first = st.session_state.get(_MESSAGES) == 1  # each of several on a page would have the same button
            if isinstance(error, errors.CorruptTableError) and is_first and here is not None and PAGES[here].of_table:
                _draw_readable_version()
            if folder is not None and _holds_files(folder):
                link("lake", "List all tables below it", {"root": folder})
            st.markdown(f":small[:gray[{escape(error.kind)}]]")


def _draw_way_out(way_out: _WayOut, place: str | None, here: str | None) -> None:
    if way_out.again:
        _try_again()
    # a link to the latest version helps with a version in the link that is none, not with a filter
    leads_on = way_out.page != "overview" or place in (selection.VERSION, selection.BASE)
    if leads_on and way_out.page != here and not _is_of_other_table(way_out.page, here):
        link(way_out.page, way_out.label, selection.link(**way_out.changes))


def _draw_readable_version() -> None:
    """To the newest version that can be read, where another is shown: a button, for a link to the page one is on
    would not come into the address bar."""
    choice = selection.remembered_selection()
    with suppress(errors.LakeviewError):  # of a table whose log cannot be listed no version is known
        address = tables.address(choice.table or "")
        latest = cache.latest(address, choice.ref).version
        versions = cache.frames(address, latest, choice.ref).of_log("readable versions").filter("readable")["version"]
        if versions.len() and versions[0] != (latest if choice.version is None else choice.version):
            st.button(
                f":blue[Open {views.units.format_version(versions[0])}, the newest that can be read "
                ":material/chevron_right:]",
                key="open-readable",
                type="tertiary",
                on_click=selection.select,
                args=(choice.table, versions[0], None, choice.ref),
            )


def _is_of_other_table(page: str, here: str | None) -> bool:
    """True for a page about the chosen table where the page `here` is not, nor is an error on it."""
    return here is not None and PAGES[page].of_table and not PAGES[here].of_table


def _tables_below(folder: str) -> pl.DataFrame:
    """The tables in the first folders below one that is none itself; none where its name is no address."""
    try:
        return cache.near_tables(tables.address(folder))
    except errors.LakeviewError:
        return pl.DataFrame()


def _holds_files(folder: str) -> bool:
    """Whether there may be tables below a folder: not below one that is empty or not there."""
    try:
        return open_storage(tables.address(folder), decode=True).holds_files()
    except errors.LakeviewError:
        return False


def _draw_tables(folder: str, matches: pl.DataFrame, *, is_profile: bool) -> None:
    """A card with the tables of a profile or in a folder's folders, from which one is chosen."""
    number, note = views.units.count_text(matches.height, "table"), "tick a row to open the table"
    if is_profile:
        claim = f"{folder} is a profile with {number}"
    else:
        claim, note = f"{folder} is no table, but has {number} in its folders", f"two levels deep; {note}"
    with st.container(border=True, gap="small"):
        st.markdown(f":gray[:material/folder_open:] &ensp; **{escape(claim)}** &ensp; :small[:gray[{note}]]")
        table_columns = {"name": columns.text("table"), "format": columns.text("format")}
        links = row_link("near-tables", matches, "overview", lambda row: {"table": row["address"]})
        frame(matches.with_columns(pl.col("format").str.to_titlecase()), table_columns, key="near-tables", **links)
        with st.container(horizontal=True, vertical_alignment="center"):
            link("lake", "List all tables below it", {"root": folder})
            link("start", "Choose another table")


def public_text(text: str, typed_text: str = "") -> str:
    """A text of an error without the folders that lead to where the server runs and to its user's home: a page shows
    what lies below them as one would type it there. What the user has typed is left as it is; a profile that was
    uploaded bears the name that it had."""
    text = uploads.public_text(text)
    for folder, messages in ((os.getcwd(), "."), (os.path.expanduser("~"), "~")):
        if len(folder) > 1 and folder not in typed_text:
            above = "" if messages == "." else f"{messages}{os.sep}"
            text = re.sub(rf"(?<![\w.-]){re.escape(folder + os.sep)}", above, text)
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w-]|\.\w)", messages, text)
    return text


def as_typed(text: str) -> str:
    """A text of an error with the chosen table called as the link calls it."""
    name = selection.remembered_selection().table or ""
    with suppress(errors.LakeviewError):  # a name that is none has no address
        typed_name = name.partition("#")[0]
        address = normalise(tables.address(typed_name), decode=True)
        if len(address) > 1 and not name.startswith(address):
            text = re.sub(rf"{re.escape(address)}(?![\w-]|\.\w)", lambda _: typed_name.strip(), text)
    return public_text(text, name)


def _try_again() -> None:
    """The button; a page may show several errors, each with its own."""
    number = st.session_state[_MESSAGES] = st.session_state.get(_MESSAGES, 0) + 1
    st.button(
        "Try again",
        icon=":material/refresh:",
        type="primary" if number == 1 else "secondary",
        key="try-again" if number == 1 else f"try-again-{number}",
        on_click=_look_again,
    )


def _look_again() -> None:
    """Errors are not kept, so the run that follows reads again; what the store was asked before is asked again too."""
    choice = selection.remembered_selection()
    if choice.table is not None:
        with suppress(errors.LakeviewError):  # a name that is none: the run that follows says so
            cache.latest.clear(tables.address(choice.table), choice.ref)


_FIRST_WORDS = ("the ", "a ", "an ", "no ", "there ", "this ", "version ", "data file ")
"""Words that begin a sentence; any other first word may be a name, whose case is its own."""


def _sentence(text: str) -> str:
    text = text.strip()
    if text.startswith(_FIRST_WORDS):
        text = text[0].upper() + text[1:]
    return text if not text or text.endswith((".", "?", "!")) else f"{text}."
