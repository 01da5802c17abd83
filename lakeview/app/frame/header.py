"""The row on top of every page beside the pickers: format and freshness; refresh, link, code and download; and what is
said of newer versions."""

from contextlib import suppress

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, cache, code_samples, downloads, errors, selection, uploads
from lakeview.app.components import escape
from lakeview.app.frame import pickers
from lakeview.app.session import OpenTable
from lakeview.model.errors import LakeviewError

_NOTICED = "_noticed"
PINNED, FOLLOWS = "this version", "the latest version"


def facts(now: OpenTable) -> None:
    """The format with its protocol, and how old this reading of the log is."""
    label = now.table.format.capitalize()
    try:
        label = f"{label} · {now.snapshot.protocol.label}"
    except LakeviewError:  # the page itself says why; the format is known all the same
        label = f"{label} · cannot be read"
    st.badge(label, color="gray")
    st.markdown(
        f":small[:gray[read {views.units.format_age(cache.now() - now.checked_at)} ago]]",
        help="When the store was last asked for new commits. It is asked again after 30 s, or by the refresh button.",
        width="content",
    )


def actions(now: OpenTable, page: str) -> None:
    """Refresh, link and code; the download belongs to the page and comes after it."""
    st.button(
        "",
        icon=":material/refresh:",
        type="tertiary",
        key="refresh",
        help="Refresh: look for new commits",
        on_click=lambda: refresh(now),
    )
    if st.button("", icon=":material/link:", type="tertiary", key="share", help="Copy a link to this view"):
        _share()
    if st.button("", icon=":material/code:", type="tertiary", key="code", help="Code that shows the same"):
        _show_code(_view(now, page), code_samples.metadata_file(now.table))


def download(now: OpenTable) -> None:
    """Downloads what the page offered; disabled where it offered nothing."""
    frames = downloads.offered_frames()
    is_pressed = st.button(
        "",
        icon=":material/download:",
        type="tertiary",
        key="download",
        help="Download what this page shows" if frames else "Nothing to download on this page",
        disabled=not frames,
    )
    if is_pressed:
        downloads.dialog(f"{now.name.rstrip('/').rpartition('/')[2]}-v{now.version}", frames)


def refresh(now: OpenTable) -> None:
    """Asks the store for new commits. Who looked at the latest version moves on; who looked at an older one stays."""
    cache.latest.clear(now.address, now.ref)
    try:
        latest = cache.latest(now.address, now.ref)
        newest = latest.version
        is_recreated = (
            latest.replacements != now.replacements or cache.is_recreated(now.address) or not _knows(now, now.latest)
        )
    except LakeviewError as error:  # the page reads all of it again, and says what it needs of it
        cache.forget(now.address)
        where = f" {escape(errors.public_text(error.place))}" if error.place else ""
        st.toast(f"**{escape(errors.public_text(error.message))}**{where}", icon=":material/error:")
        return
    if is_recreated:
        cache.forget(now.address)
        _last_shown().pop((now.address, now.ref), None)
        selection.select_version(None)
        _say_recreated()
    elif newest == now.latest:
        st.toast(f"**{views.units.format_version(newest)} is still the latest.**", icon=":material/check:")
    else:
        _last_shown()[now.address, now.ref] = newest, latest.replacements
        if now.version == now.latest:
            selection.select_version(newest)
            st.toast(f"**{views.units.format_version(newest)} is here.** {_who(now)}", icon=":material/fiber_new:")
        else:
            _announce(now, newest)


def notice(now: OpenTable) -> None:
    """A toast, once, when a newer version has appeared, or another table in its place."""
    last_shown, line, state = _last_shown(), (now.address, now.ref), (now.latest, now.replacements)
    latest, replacements = last_shown.setdefault(line, state)
    last_shown[line] = state
    if replacements != now.replacements or not (latest == now.latest or _knows(now, latest)):
        _say_recreated()
    elif latest != now.latest:
        _announce(now, now.latest)


def old_version(now: OpenTable) -> None:
    """Says that this is not the latest version, with the way back."""
    if now.version == now.latest:
        return
    behind = _behind(now)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = views.units.format_version(now.version)
        text = f"**You are looking at {label}**, {behind}." if behind else f"**{label} is no version of this table.**"
        st.markdown(f":orange[:material/history:] &ensp; {text}", width="content")
        st.button(
            f"Go to {views.units.format_version(now.latest)}",
            icon=":material/last_page:",
            type="tertiary",
            key="go-latest",
            on_click=lambda: selection.select_version(None),
        )


def _behind(now: OpenTable) -> str | None:
    """How far the version shown is from the latest; None where the table has no such version."""
    place = answers.place_off_the_line(now)
    if place is not None:
        return escape(place)
    off_branch = {str(version) for version in now.look.off_branch_commits()["version"]}
    newest_first = [version for version in pickers.commit_dates(now) if version not in off_branch]
    number = newest_first.index(str(now.version)) if str(now.version) in newest_first else None
    if number is not None:
        return f"{views.units.count_text(number, 'version')} behind the latest"
    with suppress(LakeviewError):  # a log that cannot be listed: the page says why
        if now.version not in now.frames.of_log("versions")["version"]:
            return None
    return "not the latest"


def _knows(now: OpenTable, version: int) -> bool:
    try:  # one that was never written to is at a version that it does not list
        return version == now.table.latest_version or version in now.frames.of_log("versions")["version"]
    except LakeviewError:  # a log that cannot be listed tells of none; the page says why
        return True


def _say_recreated() -> None:
    st.toast("**This table was recreated.** It is read again.", icon=":material/restart_alt:")


def _announce(now: OpenTable, newest: int) -> None:
    who = _who(now)
    st.toast(
        f"**{views.units.format_version(newest)} is here.** {who}"
        f"The page stays on {views.units.format_version(now.version)} until you move.",
        icon=":material/fiber_new:",
    )


def _who(now: OpenTable) -> str:
    try:
        row = now.table.history(1).row(0, named=True)
    except (LakeviewError, pl.exceptions.OutOfBoundsError):
        return ""
    writer = row["user"] or row["engine"]
    return f"{escape(row['operation'] or 'A commit')}{f' by {escape(writer)}' if writer else ''}. "


def _last_shown() -> dict[tuple[str, str | None], tuple[int, int]]:
    """Version and number of tables last shown, by address and ref."""
    last_shown: dict[tuple[str, str | None], tuple[int, int]] = st.session_state.setdefault(_NOTICED, {})
    return last_shown


def _view(now: OpenTable, page: str) -> code_samples.View:
    state = st.session_state
    base = now.base
    if page == "compare":
        with suppress(LakeviewError):  # the page says why
            base = now.compared_version
    return code_samples.View(
        page=page,
        table_format=now.table.format,
        address=uploads.own_address(now.address),
        version=now.version,
        base=base,
        where=state.get("where") or None,
        limit=int(state.get("limit") or code_samples.ROWS),
    )


@st.dialog("Link to this view", icon=":material/link:")
def _share() -> None:
    st.markdown(":gray[Table, version, comparison and what is chosen on the page; the button at its end copies it.]")
    follows = st.segmented_control(
        "It opens",
        (PINNED, FOLLOWS),
        default=PINNED,
        required=True,
        key="link-follows",
        help="Pinned: the version shown now. Otherwise the version that is the latest when the link is opened.",
    )
    st.code(selection.permalink(is_pinned=follows != FOLLOWS), language=None, wrap_lines=True)


@st.dialog("The same, in code", width="large", icon=":material/code:")
def _show_code(view: code_samples.View, metadata: str | None) -> None:
    snippets = code_samples.snippets(view, metadata)
    for tab, text in zip(st.tabs(list(snippets)), snippets.values(), strict=True):
        tab.code(text, language=None)
