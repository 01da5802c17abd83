"""The lake page's parts: which root, a reading of its tables that goes on while one looks at it, and one table."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl
import streamlit as st

import lakeview as lv
from lakeview import charts, views
from lakeview.app import cache, downloads, errors, selection, tables
from lakeview.app.components import BROKEN_LINES, MAX_ROWS, dark, escape, frame, link, nothing, stack
from lakeview.app.pages import PAGES
from lakeview.app.widget_state import linked
from lakeview.model import config
from lakeview.model.errors import LakeviewError

ROOT, TABLE = "root", "lake-table"
_GOING = "_lake_going"
NOTE = "one log a table, and no data; each verdict is that of its overview, or says what it is made from"
READ_AT_ONCE = 4
BUDGETS = (50, 200, 1_000)
PATIENCE = 2.0
"""Seconds that the first picture waits for the reading, so that a small lake is shown at once."""

STATES = {
    views.lake.LakeState.UNREADABLE: "\N{MULTIPLICATION X} unreadable",
    views.lake.LakeState.BROKEN: "\N{MULTIPLICATION X} broken",
    views.lake.LakeState.ATTENTION: "\N{BLACK UP-POINTING TRIANGLE} attention",
    views.lake.LakeState.FINE: "\N{CHECK MARK} fine",
    views.lake.LakeState.UNREAD: "\N{MIDDLE DOT} not read",
}


class Survey:
    """The tables below a root, read one after the other by a few threads; what is read can be looked at meanwhile."""

    def __init__(self, root: str, most: int) -> None:
        self.asked = cache.now()
        found = lv.find_tables(root)
        self._entries = [
            views.lake.LakeEntry(r["name"], r["address"], r["format"]) for r in found.iter_rows(named=True)
        ]
        self._left = min(len(self._entries), most)
        self.reads = self._left
        self._done = threading.Event()
        if not self._left:
            self._done.set()
        pool = ThreadPoolExecutor(READ_AT_ONCE, thread_name_prefix="lake")
        for position in range(self._left):
            pool.submit(self._read, position)
        pool.shutdown(wait=False)

    def wait(self, seconds: float) -> bool:
        """Waits for the end of the reading, at most so long; whether it has ended."""
        return self._done.wait(seconds)

    @property
    def left(self) -> int:
        """How many tables are still to be read."""
        return self._left

    def tables(self) -> pl.DataFrame:
        """LAKE as far as it is known."""
        return views.lake.lake(list(self._entries))

    def _read(self, position: int) -> None:
        entry = self._entries[position]
        try:
            self._entries[position] = read(entry, self.asked)
        finally:
            with _COUNTING:
                self._left -= 1
            if not self._left:
                self._done.set()


_COUNTING = threading.Lock()


def read(entry: views.lake.LakeEntry, now: datetime) -> views.lake.LakeEntry:
    """One table's log, and what it says; a table that cannot be read says why."""
    try:
        # a memory of its own: a lake holds more tables than the cache of the pages
        look = lv.inspect(lv.open_table(entry.address), clock=lambda: now)
        return views.lake.lake_entry(entry, look.lake_evidence(), now)
    except LakeviewError as error:
        failed = views.lake.lake_failure(entry, error)
        return replace(
            failed, verdict=errors.public_text(error.message), finding=error.fix and errors.public_text(error.fix)
        )


@st.cache_resource(ttl=300, max_entries=8, show_spinner=False)
def survey(root: str, most: int) -> Survey:
    """The reading of a root, begun at most every five minutes; errors of its listing are raised."""
    return Survey(root, most)


def chosen_root() -> str | None:
    """The root in the URL, typed or chosen; the first one offered if none is named. None if there is none at all."""
    offered = _offered()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        root = st.text_input(
            "Root",
            key=linked(ROOT, next(iter(offered), "")),
            placeholder="a folder, an address in a store, catalog://name/",
            width=420,
        )
        if len(offered) > 1:
            st.selectbox(
                "Offered roots",
                offered,
                index=None,
                key="offered-root",
                placeholder="choose one",
                on_change=_take_offered,
                width=260,
            )
        st.selectbox("Tables read at most", BUDGETS, key=linked("read-at-most", BUDGETS[1], BUDGETS), width=150)
        if st.button("Read again", icon=":material/refresh:", key="read-again"):
            survey.clear()
            cache.found_tables.clear()
    return root.strip() or None


def _take_offered() -> None:
    chosen = st.session_state["offered-root"]
    if chosen is not None:
        st.session_state[ROOT] = chosen


def _offered() -> list[str]:
    settings = config.settings()
    demo = [settings.demo] if tables.demo_tables() else []
    return list(dict.fromkeys([*settings.roots, *demo]))


def surveyed(root: str) -> Survey:
    """The reading of a root as it stands after a short wait."""
    found = survey(root, int(st.session_state["read-at-most"]))
    if not found.wait(0):
        with st.spinner("Reading logs"):
            found.wait(PATIENCE)
    return found


def progressive(survey: Survey) -> None:
    """The tables as far as they are read, drawn again every second until all are."""

    @st.fragment(run_every=None if survey.left == 0 else 1.0)
    def draw() -> None:
        if survey.left:
            st.progress(1 - survey.left / survey.reads, f"{survey.reads - survey.left:,} of {survey.reads:,} logs read")
        elif st.session_state.pop(_GOING, None):
            st.rerun()  # the whole page: the clock stops, and the download has all of it
        st.session_state[_GOING] = survey.left > 0
        _drawn(survey.tables())

    draw()


def _drawn(entries: pl.DataFrame) -> None:
    st.markdown(f"**{views.lake.lake_sentence(entries)}**")
    shown = _filtered(entries)
    if shown.is_empty():
        nothing("No table passes these filters.", "Choose another state, or less of a name.")
        return
    pictures = charts.lake.lake_bars(shown, dark=dark())
    _table(shown)
    if pictures:
        stack(pictures, key="lake-sizes")
    _one(shown)


def _filtered(entries: pl.DataFrame) -> pl.DataFrame:
    with st.container(horizontal=True, gap="small"):
        states = [state.value for state in views.lake.LakeState if state.value in set(entries["state"])]
        kept = st.pills("State", states, selection_mode="multi", key=linked("state", [], states, many=True))
        part = st.text_input("Name holds", key=linked("name"), width=200)
    if kept:
        entries = entries.filter(pl.col("state").is_in(kept))
    return entries.filter(pl.col("name").str.contains(part, literal=True)) if part else entries


def _table(entries: pl.DataFrame) -> None:
    column = st.column_config
    rows = entries.head(MAX_ROWS)
    frame(
        rows.with_columns(
            pl.col("state").replace_strict({state.value: text for state, text in STATES.items()}),
            pl.col("format").str.to_titlecase(),
            views.units.version_label("version"),
            said=pl.coalesce("finding", "verdict"),
            records=pl.Series([_rows(r) for r in rows.iter_rows(named=True)], dtype=pl.String),
            bytes=pl.Series(
                [None if n is None else views.units.format_bytes(n) for n in rows["bytes"]], dtype=pl.String
            ),
            small=pl.col("small_share") * 100,
            retained=pl.Series([_retained(r) for r in rows.iter_rows(named=True)], dtype=pl.String),
            last=pl.Series([_rhythm(r) for r in rows.iter_rows(named=True)], dtype=pl.String),
        ),
        {
            "state": column.TextColumn("state", width=86),
            "name": column.TextColumn("table", width=104),
            "format": column.TextColumn("format", width=58),
            "said": column.TextColumn("what to look at", width=226),
            "last": column.TextColumn("last commit", width=82),
            "records": column.TextColumn("rows", width=74, alignment="right"),
            "bytes": column.TextColumn("live bytes", width=70, alignment="right"),
            "files": column.NumberColumn("files", format="localized", width=46),
            "small": column.NumberColumn("small, %", format="%.0f", width=60, help="files below 1 MiB, of all"),
            "versions": column.NumberColumn("readable", format="localized", width=66, help="versions that can be read"),
            "retained": column.TextColumn(
                "for old ones", width=78, alignment="right", help="bytes of files that only old versions need"
            ),
            "judged": column.TextColumn("judged by", width=66),
        },
        key="lake",
        row_height=BROKEN_LINES,
        height=10 * BROKEN_LINES,
        unknown="unknown",
        selection_mode="single-row",
        on_select=lambda: _pick(rows["name"].to_list()),
    )
    if entries.height > MAX_ROWS:
        st.markdown(f":small[:gray[the first {MAX_ROWS:,} of {entries.height:,}; the download has all]]")


def _rhythm(row: Mapping[str, Any]) -> str | None:
    """`3 days ago`, and where that is late `late: 3 days ago, expected every 1 day`."""
    if row["age"] is None:
        return None
    ago = f"{views.units.format_age(row['age'])} ago"
    return f"late: {ago}, expected every {views.units.format_age(row['usual'])}" if row["late"] else ago


def _rows(row: Mapping[str, Any]) -> str | None:
    """`≥ 308,641` where it is a bound."""
    if row["records"] is None:
        return None
    return f"{'≥ ' if row['records_bound'] else ''}{row['records']:,}"


def _retained(row: Mapping[str, Any]) -> str | None:
    """`≥ 3 GiB` where it is a bound."""
    if row["retained"] is None:
        return None
    return f"{'≥ ' if row['retained_bound'] else ''}{views.units.format_bytes(row['retained'])}"


def _pick(names: list[str]) -> None:
    picked = st.session_state["lake"]["selection"]["rows"]
    if picked:
        st.session_state[TABLE] = names[picked[0]]


def _one(entries: pl.DataFrame) -> None:
    """One table, chosen above or here: what is said of it, and a link into each page."""
    names = entries["name"].head(MAX_ROWS).to_list()
    name = st.selectbox("Table", names, index=None, key=linked(TABLE, None, names), placeholder="choose one to open")
    if name is None:
        return
    row = entries.row(names.index(name), named=True)
    for text in (row["verdict"], row["finding"]):
        if text:
            st.markdown(escape(text))
    address = row["address"]
    with st.container(horizontal=True, gap="small"):
        for page, entry in PAGES.items():
            if entry.of_table:
                link(page, None, selection.Selection(address).parameters())


def download(entries: pl.DataFrame) -> None:
    """Offers the list as files."""
    if st.button("Download", icon=":material/download:", key="download"):
        downloads.dialog("lake", {"tables": entries})
