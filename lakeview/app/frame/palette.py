"""The command palette: one key, and the name of a table, page, version or column to go to."""

from contextlib import suppress

import streamlit as st

from lakeview import views
from lakeview.app import row_links, selection, session, tables
from lakeview.app.frame import pickers
from lakeview.app.pages import PAGES
from lakeview.model.errors import LakeviewError

SHORTCUT = "Ctrl+K"
_TARGET = "palette-target"
_MOST_COLUMNS = 1_000

_LISTEN = """<script>
if (!window.paletteKeys) {
    const keys = window.paletteKeys = {typed: "", enter: false, until: 0};
    document.addEventListener("keydown", (event) => {
        const command = event.ctrlKey || event.metaKey || event.altKey;
        if (command && event.key.toLowerCase() === "k") {
            const isThere = document.querySelector("[role=dialog] .st-key-__TARGET__ input");
            if (isThere || Date.now() < keys.until) {
                event.preventDefault();
                event.stopImmediatePropagation();
            } else {
                Object.assign(keys, {typed: "", enter: false, until: Date.now() + 5000});
                document.activeElement?.blur();
            }
        } else if (Date.now() < keys.until && !command) {
            if (event.key === "Escape") keys.until = 0;
            else if (event.key === "Enter") keys.enter = true;
            else if (event.key === "Backspace") keys.typed = keys.typed.slice(0, -1);
            else if (event.key.length === 1) keys.typed += event.key;
            else return;
            event.preventDefault();
            event.stopImmediatePropagation();
        }
    }, true);
}
</script>""".replace("__TARGET__", _TARGET)
"""What is typed after the palette's key waits until the palette is there: some of it would be other keys' commands.
A field that is typed into gives its text away first: doing so later it would run the page again, which closes the
palette. The key is pressed once until the palette is there, and while it is."""

_FOCUS = f"""<script>{{
const keys = window.paletteKeys;
const focus = (tries) => {{
    const input = document.querySelector("[role=dialog] .st-key-{_TARGET} input");
    if (input) input.focus();
    if (document.activeElement === input) hand(input);
    else if (tries) setTimeout(focus, 50, tries - 1);
}};
const hand = (input) => {{
    keys.until = 0;
    if (!keys.typed) return;
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, keys.typed);
    input.dispatchEvent(new Event("input", {{bubbles: true}}));
    const enter = new KeyboardEvent("keydown", {{key: "Enter", keyCode: 13, bubbles: true}});
    if (keys.enter) setTimeout(() => input.dispatchEvent(enter), 100);
}};
setTimeout(focus, 50, 20);
}}</script>"""
"""Streamlit's dialog gives the focus to its closing button: the key and the name are typed in one go."""

_Target = tuple[str, dict[str, str]]
"""A page, and the query parameters of the link to it."""


@st.fragment
def button() -> None:
    """The palette's button, which its key presses from anywhere; the page itself is not drawn again for it."""
    is_pressed = st.button(
        "Go to",
        icon=":material/search:",
        type="tertiary",
        key="palette",
        shortcut=SHORTCUT,
        help="A table, page, version or column by its name",
    )
    st.html(_LISTEN, unsafe_allow_javascript=True)
    if is_pressed:
        st.session_state.pop(_TARGET, None)
        _palette()


@st.dialog("Go to", icon=":material/search:")
def _palette() -> None:
    targets = _targets()
    target = st.selectbox(
        "Table, page, version or column", list(targets), index=None, key=_TARGET, placeholder="type a part of its name"
    )
    st.html(_FOCUS, unsafe_allow_javascript=True)
    if target is not None:
        page, parameters = targets[target]
        row_links.go(page, parameters)


def _targets() -> dict[str, _Target]:
    targets: dict[str, _Target] = {f"{entry.title} · page": (name, selection.link()) for name, entry in PAGES.items()}
    for offer in tables.offers():
        targets[f"{offer.label} · table"] = "overview", selection.Selection(offer.name).parameters()
    choice = selection.remembered_selection()
    if choice.table is not None:
        with suppress(LakeviewError):  # of a table that cannot be opened there are no versions or columns to go to
            now = session.look_at(choice.table, choice.version, choice.base, choice.ref)
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
    partition_columns = set(now.snapshot.partition_columns)
    columns = {
        f"{name} · column": ("schema", selection.link())
        if name in partition_columns
        else ("quality", selection.link(column=name))
        for name in names
    }
    return versions | columns
