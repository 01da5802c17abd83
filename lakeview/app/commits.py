"""The choice of one commit, the table of commits, and the key of the readability ribbon."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import columns, selection, timeline_filters
from lakeview.app.components import ROW_HEIGHT, frame, nothing
from lakeview.app.row_links import pick_link, picked_marks, row_pick
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import page_number, picker, write_parameters

COMMIT, PAGE, _PICKS = "commit", "commits-page", "_commit_picks"
BRANCHES = "Branches and tags"
_PAGE = 200
_CHOICES = 400
_SHORT_NAME = 5
"""Letters of a version that its narrow column shows: `v1234`, `s14`."""
TRACK = 456
"""Pixels that the chart and the table have at least where they stand side by side, which a page of 1280 pixels has."""
_PLACE = TRACK - 28
_OPERATION = 90
"""Pixels of an operation beside the chart, `■ VACUUM START` at 1440 pixels: columns grow alike."""
_STATE_WORDS = {
    "gone": ("\N{LOWER ONE QUARTER BLOCK}", "gray"),
    "at risk": ("\N{LOWER FIVE EIGHTHS BLOCK}", "orange"),
    "kept": ("\N{FULL BLOCK}", "blue"),
    "broken": ("\N{MULTIPLICATION X}", "red"),
}


def tabs(now: OpenTable) -> list[str]:
    """The page's tabs; branches only where the table has any."""
    names = ["Commits", "Writers", "File lifetimes", "Audit"]
    return names if now.frames.refs.is_empty() else [*names, BRANCHES]


def no_commits(now: OpenTable, page: str | None = None) -> None:
    """The empty state of a table without commits: nothing was ever written to it, or they are not there any more."""
    if now.version < 0:
        nothing("No commits yet.", "The table was created, and nothing was written to it.", page)
    else:
        nothing("No commits.", "Their log files were removed by cleanup, or are not shared.", page)


def ribbon_key(runs: pl.DataFrame) -> None:
    """One line of text: what the ribbon's heights mean, and the versions of each state."""
    parts = []
    for state, (glyph, colour) in _STATE_WORDS.items():
        text = views.timeline.readability.runs_text(runs, state)
        if text is not None:
            parts.append(f":{colour}[{glyph}&nbsp;{state}&nbsp;{text}]")  # no line ends between them
    st.markdown(f":small[**Can it still be read?** &ensp; {' &ensp; '.join(parts)}]")


def pick_from_chart(key: str) -> None:
    """A click on a mark of the chart chooses its version, a drag its span of time."""
    if timeline_filters.take_span(st.session_state[key].get("selection", {})):
        return
    if versions := [mark["version"] for mark in picked_marks(key) if "version" in mark]:
        _choose(versions[-1])
        st.session_state[_PICKS] = st.session_state.get(_PICKS, 0) + 1


def open_commit(now: OpenTable, timeline: pl.DataFrame, matching: pl.DataFrame) -> int:
    """The commit whose drawer is open: the one the URL names, which the filters may leave out; else that of the version
    shown or the newest, of those that match the filters if any does.

    The URL keeps it as `commit`: written here and not bound to a widget, which would write its label.
    """
    every = [int(version) for version in timeline["version"]]
    by_text = {views.units.format_version(version): version for version in every}
    by_text |= {str(version): version for version in every}
    commit = st.query_params.get(COMMIT, "")
    if commit in by_text:
        return by_text[commit]
    versions = (timeline if matching.is_empty() else matching)["version"]
    default = now.version if now.version in versions else int(versions[-1])
    if commit:
        nothing(f"The log has no commit {commit[:40]}.", f"{views.units.format_version(default)} is shown.")
    return default


def commit_picker(commits: pl.DataFrame, version: int) -> None:
    """Chooses a commit: the twin widget of a click in the chart."""
    newest_first = commits.reverse()
    around = max(0, (newest_first["version"].index_of(version) or 0) - _CHOICES // 2)
    near = newest_first.slice(around, _CHOICES)  # of a long history the neighbours; the table has them all
    options = [str(version) for version in near["version"]]
    moments = dict(zip(options, near["timestamp"], strict=True))

    def label(text: str) -> str:
        return f"{views.units.format_version(int(text))} · {views.units.format_moment(moments.get(text))}"

    picker("Commit", options, "pick_commit", str(version), _choose, width=210, format_func=label)


def open_picked(key: str) -> None:
    """A click on a mark of a chart on another page opens its commit on Timeline."""
    pick_link(key, "timeline", _commit_link)


def _commit_link(mark: Mapping[str, Any]) -> dict[str, str] | None:
    version = mark.get("commit") or mark.get("version")
    return None if version is None else selection.link(commit=version)


def _choose(version: int | str) -> None:
    write_parameters({COMMIT: str(version)}, without=(PAGE,))  # the table turns to the commit's page


_VISIBLE_ROWS = 8
"""Of the table of commits, its heading counted."""


def commit_table(commits: pl.DataFrame, version: int) -> None:
    """The commits, newest first, by page, with the chosen one in sight; choosing a row opens its drawer."""
    if commits.is_empty():
        nothing("No commit matches these filters.", "Choose more operations, another writer or more time.")
        return
    newest_first = commits.reverse()
    position = newest_first["version"].index_of(version)
    page = page_number(newest_first.height, _PAGE, PAGE, (position or 0) // _PAGE + 1)
    rows = newest_first.slice((page - 1) * _PAGE, _PAGE)
    inside = -1 if position is None else position - (page - 1) * _PAGE
    key = f"commits-{version}-{page}-{inside}-{rows.height}"  # with other rows the browser marks none
    names = rows.select(views.units.version_label("version")).to_series()
    long = bool((names.str.len_chars() > _SHORT_NAME).any())  # of random numbers without a name
    mark = pl.col("mark").replace_strict(_GLYPHS, default="", return_dtype=pl.String)
    with st.container(gap=None):
        frame(
            views.timeline.commits.commit_rows(rows).with_columns(
                mark=mark, operation=pl.concat_str(mark, pl.col("operation").fill_null(""), separator=" ")
            ),
            {
                "version": columns.version(),
                "committed": columns.timestamp(),
                # beside the chart there is no room for both it and long ids
                **(
                    {"mark": columns.mark(help=_MARK)}
                    if long
                    else {"operation": columns.text("operation", help=_MARK, least=_OPERATION)}
                ),
                "writer": columns.text("writer"),
                "change": columns.number("net rows", of="records_change", help="rows added less rows removed"),
            },
            key=key,
            height=_VISIBLE_ROWS * ROW_HEIGHT,
            unknown="unknown",
            place=_PLACE,
            selection_default={"selection": {"rows": [inside]}} if 0 <= inside < rows.height else None,
            **row_pick(key, rows["version"].to_list(), _choose),
        )
        if inside >= _VISIBLE_ROWS - 1:  # below its heading
            _scroll_to_row(key, inside)
        if picks := st.session_state.get(_PICKS):
            _hide_tooltip(picks)


_MARK = "the mark is of the kind of commit, as in the chart above; ✚: an anomalous load"

_GLYPHS = {
    "anomaly": "\N{HEAVY GREEK CROSS}",
    "off-branch": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "append": "\N{BLACK CIRCLE}",
    "change": "\N{BLACK DIAMOND}",
    "schema": "\N{BLACK UP-POINTING TRIANGLE}",
    "maintenance": "\N{BLACK SQUARE}",
    "other": "\N{WHITE CIRCLE}",
}


def _scroll_to_row(key: str, row: int) -> None:
    """Move the table of this key so that a row is seen, once it is drawn: Streamlit draws its first rows."""
    top = max(0, row - 2) * ROW_HEIGHT
    st.html(
        f"""<script>{{
const scroll = (tries) => {{
    const box = document.querySelector(".st-key-{key} .dvn-scroller");
    if (box && box.scrollHeight > box.clientHeight) box.scrollTop = {top};
    else if (tries) setTimeout(scroll, 50, tries - 1);
}};
scroll(100);
}}</script>""",
        unsafe_allow_javascript=True,
    )


def _hide_tooltip(picks: int) -> None:
    """Hides what the chart says of the mark of the latest of so many clicks: it lies over the commit beside the chart
    until the pointer moves."""
    st.html(
        f"""<script>/* {picks} */
for (const tooltip of document.querySelectorAll(".vg-tooltip")) tooltip.classList.remove("visible");
</script>""",
        unsafe_allow_javascript=True,
    )
