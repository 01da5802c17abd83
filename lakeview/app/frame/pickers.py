"""The pickers on top of every page: table, branch or tag, version, and the version it is compared with."""

import streamlit as st

from lakeview import views
from lakeview.app import selection, tables
from lakeview.app.session import OpenTable
from lakeview.model.errors import LakeviewError
from lakeview.model.printable import visible

NO_COMPARISON = "none"
_NO_BASE, _PREVIOUS_BASE = "no comparison", "vs previous"
_AGAINST, _NOTE = "vs ", " · "
_MAX_CHOICES = 300


def table_picker() -> None:
    """Chooses another table: one that is offered, or an address typed in."""
    labels = {offer.name: offer.label for offer in tables.offers()}
    table = selection.remembered_selection().table
    if table is not None:
        labels.setdefault(table, tables.label(table))
    st.session_state["pick_table"] = table
    st.selectbox(
        "Table",
        list(labels),
        format_func=lambda name: visible(str(labels.get(name, name))),
        key="pick_table",
        placeholder="choose a table",
        label_visibility="collapsed",
        accept_new_options=True,
        on_change=_pick_table,
        width=190,
    )


def _pick_table() -> None:
    choice = st.session_state["pick_table"]
    is_offer = choice is None or any(offer.name == choice for offer in tables.offers())
    selection.select(choice if is_offer else tables.picker_name(choice))


def version_pickers(now: OpenTable, page: str) -> None:
    """Chooses the version shown and the one it is compared with, of the branch shown; what is not listed can be typed.
    Where the table has more than its default branch, the branch or tag before them. Compare without a choice takes the
    version before."""
    _ref_picker(now)
    dates = commit_dates(now)
    versions = _on_branch(now, dates)
    st.session_state["pick_version"] = str(now.version)
    st.selectbox(
        "Version",
        _choices(versions, now.version),
        format_func=lambda text: _version_label(text, now.latest, dates),
        key="pick_version",
        label_visibility="collapsed",
        accept_new_options=True,
        on_change=lambda: _pick(selection.VERSION, st.session_state["pick_version"]),
        width=166,
    )
    unchosen = _PREVIOUS_BASE if page == "compare" else _NO_BASE
    st.session_state["pick_base"] = NO_COMPARISON if now.base is None else str(now.base)
    st.selectbox(
        "Compare with",
        [NO_COMPARISON, *_choices(versions, now.base)],
        format_func=lambda text: unchosen if text == NO_COMPARISON else f"{_AGAINST}{_label(text)}",
        key="pick_base",
        label_visibility="collapsed",
        accept_new_options=True,
        on_change=lambda: _pick(selection.BASE, st.session_state["pick_base"]),
        width=146,
    )


def _ref_picker(now: OpenTable) -> None:
    refs = now.frames.refs
    if refs.height < 2:  # the default branch alone is no choice
        return
    kinds = dict(refs.select("name", "kind").iter_rows())
    default = refs["name"][0]
    st.session_state["pick_ref"] = now.ref or default
    st.selectbox(
        "Branch or tag",
        list(kinds),
        format_func=lambda name: f"{kinds.get(name, 'ref')} {visible(name)}",
        key="pick_ref",
        label_visibility="collapsed",
        help="The branch or tag whose history, newest version and file lifetimes are shown.",
        on_change=lambda: _pick_ref(st.session_state["pick_ref"], default),
        width=150,
    )


def _pick_ref(name: str, default: str) -> None:
    ref = None if name == default else name
    if ref != selection.remembered_selection().ref:  # else a label that the browser sent to another run
        selection.select_ref(ref)


def _pick(parameter: str, text: str) -> None:
    text = version_text(text)
    selection.select_part(parameter, None if text == NO_COMPARISON else text)


def version_text(text: str) -> str:
    """A version as it was typed, or that of a label: where back and forward follow each other, the browser sends a
    label of one run to another, whose labels differ, as a text that was typed."""
    if text in (_NO_BASE, _PREVIOUS_BASE):
        return NO_COMPARISON
    return text.removeprefix(_AGAINST).partition(_NOTE)[0]


def commit_dates(now: OpenTable) -> dict[str, str]:
    """The newest versions, as text, and the day of each one's commit, "" where it is unknown; newest first."""
    try:
        frame = now.frames.of_log("versions").head(_MAX_CHOICES)
    except LakeviewError:  # a log that cannot be listed has no choices; the page says why
        return {}
    return {
        str(version): "" if moment is None else f"{moment:%Y-%m-%d}"
        for version, moment in zip(frame["version"], frame["timestamp"], strict=True)
    }


def _on_branch(now: OpenTable, dates: dict[str, str]) -> list[str]:
    """Those of the versions that are on the line which ends at the latest one."""
    if now.frames.refs.is_empty():  # one line alone: its commits need not be read
        return list(dates)
    off_branch = {str(version) for version in now.look.off_branch_commits()["version"]}
    return [version for version in dates if version not in off_branch]


def _choices(versions: list[str], current: int | None) -> list[str]:
    missing = [str(current)] if current is not None and str(current) not in versions else []
    return missing + versions


def _version_label(text: str, latest: int, dates: dict[str, str]) -> str:
    number = text.removeprefix("v")
    note = "latest" if number == str(latest) else dates.get(number, "")
    return f"{_label(text)}{_NOTE}{note}" if note else _label(text)


def _label(text: str) -> str:
    """A version as it is chosen or typed, for people."""
    number = text.removeprefix("v")
    return views.units.format_version(int(number)) if number.removeprefix("-").isdecimal() else text
