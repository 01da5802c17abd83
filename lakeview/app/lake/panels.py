"""The lake page's parts: which root, a reading of its tables that goes on while one looks at it, and one table."""

from collections.abc import Callable, Mapping
from math import ceil
from time import perf_counter
from typing import Any, TypeVar

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lakeview import charts, views
from lakeview.app import cache, columns, downloads, selection, session, widths
from lakeview.app.components import (
    MAX_ROWS,
    NARROW,
    ROW_HEIGHT,
    dark,
    escape,
    first_line,
    frame,
    link,
    more_rows,
    nothing,
    stack,
)
from lakeview.app.lake.survey import Survey, column_survey, columns_of, table_survey, tables_of
from lakeview.app.null_shares import null_columns
from lakeview.app.pages import PAGES
from lakeview.app.row_links import follow, pick_link, row_link
from lakeview.app.table_cells import Column, cells_and_columns
from lakeview.app.tables import root_input
from lakeview.app.widget_state import link_widget

_Read = TypeVar("_Read")

TABLE = "lake-table"
TABS = ("Tables", "Columns")
_GOING = "_lake_going"
NOTE = "one log a table, and no data; each verdict is that of its overview, or says what it is made from"
BUDGETS = (50, 200, 1_000)
PATIENCE = 2.0
"""Seconds that the first picture waits for the reading, so that a small lake is shown at once."""
PAUSE = 4
"""How many times as long as a drawing took the next one waits: the reading needs the same cores."""
_STEP = 0.25
"""Seconds for which such a wait answers no click."""

_COLUMN_NOTE = "from statistics in the log alone; unknown where a table has too many of them, or none"


def chosen_root() -> str | None:
    """The root in the URL, typed or chosen; the first one offered if none is named. None if there is none at all."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        root = root_input("a folder, an address in a store, catalog://name/")
        st.selectbox("Tables read at most", BUDGETS, key=link_widget("read-at-most", BUDGETS[1], BUDGETS), width=150)
        if st.button("Read again", icon=":material/refresh:", key="read-again"):
            table_survey.clear()
            column_survey.clear()
            cache.found_tables.clear()
    return root


def chosen_columns(root: str, answer: DeltaGenerator) -> None:
    """The tab of all columns below a root; how many match goes to `answer`."""
    survey = column_survey(root, int(st.session_state["read-at-most"]))
    if not survey.entries:
        _no_tables()
        return
    progressive(survey, lambda so_far: _draw_columns(columns_of(so_far), answer))
    download({"columns": columns_of(survey)})


def chosen_tables(root: str, answer: DeltaGenerator) -> None:
    """The tab of all tables below a root; how many need attention goes to `answer`."""
    survey = table_survey(root, int(st.session_state["read-at-most"]))
    if not survey.entries:
        _no_tables()
        return
    progressive(survey, lambda so_far: _draw(tables_of(so_far), answer))
    download({"tables": tables_of(survey)})


def _no_tables() -> None:
    nothing("No table was found below this root.", "Look one folder up, or at another root.", "start", "Start")


def _wait_in_steps(survey: Survey[_Read], seconds: float) -> None:
    """Waits so long for the end of the reading, or until a click."""
    for step in range(ceil(seconds / _STEP)):
        if survey.done.wait(min(_STEP, seconds - step * _STEP)):
            return
        st.session_state.get(_GOING)  # Streamlit ends a run for a click where the run reads the state


def progressive(survey: Survey[_Read], draw: Callable[[Survey[_Read]], None]) -> None:
    """What is read so far, after a short wait, drawn again until all is: every second, or less often where a drawing
    takes longer than a fifth of one."""
    if not survey.done.wait(0):
        with st.spinner("Reading logs"):
            survey.done.wait(PATIENCE)
    drawing = 0.0

    @st.fragment(run_every=None if survey.pending == 0 else 1.0)
    def draw_progress() -> None:
        nonlocal drawing
        if survey.pending:
            _wait_in_steps(survey, PAUSE * drawing)
        begun = perf_counter()
        if survey.pending:
            st.progress(
                1 - survey.pending / survey.reads, f"{survey.reads - survey.pending:,} of {survey.reads:,} logs read"
            )
        draw(survey)
        drawing = perf_counter() - begun
        follow()  # a click in a fragment runs the fragment alone
        if survey.pending == 0 and st.session_state.pop(_GOING, False):
            st.rerun()  # the whole page: the clock stops, and the download has all of it
        st.session_state[_GOING] = survey.pending > 0

    draw_progress()


def _draw(entries: pl.DataFrame, answer: DeltaGenerator) -> None:
    with answer:
        first_line(views.lake.lake_sentence(entries))
    matches = _filter_entries(entries)
    if matches.is_empty():
        nothing("No table passes these filters.", "Choose another state, or less of a name.")
        return
    pictures = charts.lake.lake_bars(matches, dark=dark())
    _table(matches)
    if pictures:
        stack(pictures, key="lake-sizes", on_pick=_open_table)
    _one(matches)


_MOST_REMARKS = 10
"""That stand below the table whole."""

_MOMENT = r"( ago), \d{4}-\d\d-\d\d \d\d:\d\d UTC"
"""A finding's moment behind its age, with which a row would be longer than a table is wide."""


def _open_table(key: str) -> None:
    pick_link(key, "overview", lambda mark: session.link_to(mark["address"]))


def _filter_entries(entries: pl.DataFrame) -> pl.DataFrame:
    with st.container(horizontal=True, gap="small"):
        states = [state.value for state in views.lake.LakeState if state.value in set(entries["state"])]
        choice = st.pills("State", states, selection_mode="multi", key=link_widget("state", [], states, many=True))
        part = st.text_input("Name contains", key=link_widget("name"), width=200)
    if choice:
        entries = entries.filter(pl.col("state").is_in(choice))
    return entries.filter(pl.col("name").str.contains(part, literal=True)) if part else entries


def _table(entries: pl.DataFrame) -> None:
    """What to look at, and under it how large each table is."""
    rows = entries.head(MAX_ROWS)
    is_partial = pl.col("judged") != views.lake.WHOLE
    made_of = pl.when(is_partial).then(pl.concat_str(pl.lit("; judged by "), "judged")).otherwise(pl.lit(""))
    cells = rows.with_columns(
        pl.col("format").str.to_titlecase(),
        # why a table cannot be read: what to do about it is beside it, where the table is chosen
        remark=pl.when(pl.col("state") == views.lake.LakeState.UNREADABLE.value)
        .then("verdict")
        .otherwise(pl.coalesce(pl.col("finding").str.replace(_MOMENT, "$1"), "verdict") + made_of),
        records=pl.Series([views.lake.rows_text(r) for r in rows.iter_rows(named=True)], dtype=pl.String),
        bytes=pl.Series([None if n is None else views.units.format_bytes(n) for n in rows["bytes"]], dtype=pl.String),
        retained=pl.Series([_retained_text(r) for r in rows.iter_rows(named=True)], dtype=pl.String),
        rhythm=pl.Series([_rhythm(r) for r in rows.iter_rows(named=True)], dtype=pl.String),
    )
    signs = {state.value: sign for state, sign in charts.lake.SIGNS.items()}
    worth = {
        "state": columns.mark(signs, label="state", help="✕ broken or unreadable, ▲ needs attention, ✓ fine"),
        "name": columns.text("table", least=widths.NAME),
        "remark": columns.text("what to look at"),
        "last": columns.text("last commit", of="rhythm", right=True),
    }
    sizes = {
        "name": columns.text("table", least=widths.NAME),
        "format": columns.text("format"),
        "records": columns.text("rows", right=True),
        "bytes": columns.text("bytes", right=True, help="of the live files"),
        "files": columns.number("files"),
        "small": columns.percent("small, %", of="small_share", decimals=0, help="files below 1 MiB, of all"),
        "versions": columns.number("readable", help="versions that can be read"),
        "retained": columns.text("old bytes", right=True, help="bytes of files that only old versions need"),
    }
    for name, of in (("format", "format"), ("small", "small_share")):
        if rows.height > 1 and rows[of].n_unique() == 1:  # there is no difference to see
            del sizes[name]
    links = row_link("lake", rows, "overview", lambda row: session.link_to(row["address"]))
    st.markdown(":small[:gray[tick a row to open the table]]")
    frame(cells, worth, key="lake", height=16 * ROW_HEIGHT, unknown="unknown", **links)
    _long_remarks(cells, worth)
    frame(cells, sizes, key="lake-figures", height=16 * ROW_HEIGHT, unknown="unknown")
    if notes := views.lake.gap_notes(rows):
        st.markdown(f":small[:gray[old bytes unknown &ensp; {escape('; '.join(notes))}]]")
    more_rows(entries.height)


def _long_remarks(cells: pl.DataFrame, table_columns: Mapping[str, Column]) -> None:
    """A line for each of the first remarks that a narrow page cuts; a page wide enough for all of them has none."""
    _, configuration = cells_and_columns(cells, table_columns, place=widths.PLACE - widths.TICK_BOXES, unknown="")
    room = configuration["remark"]["width"]
    needs = cells.select("name", "remark", pixels=cells["remark"].map_elements(widths.heading_width, pl.Int64))
    long = needs.filter(pl.col("pixels") > room)
    if long.is_empty():
        return
    is_narrow = long.filter(pl.col("pixels") > room + widths.WIDER).is_empty()
    with st.container(key=f"{NARROW if is_narrow else ''}lake-remarks", gap=None):
        for name, remark in long.head(_MOST_REMARKS).select("name", "remark").iter_rows():
            st.markdown(f":small[{escape(name)} &ensp; :gray[{escape(remark)}]]")


def _rhythm(row: Mapping[str, Any]) -> str | None:
    """`3 days ago`, and where that is late `late: 3 days ago, expected every 1 day`."""
    if row["age"] is None:
        return None
    ago = f"{views.units.format_age(row['age'])} ago"
    return f"late: {ago}, expected every {views.units.format_age(row['usual'])}" if row["late"] else ago


def _retained_text(row: Mapping[str, Any]) -> str | None:
    """`≥ 3 GiB` where it is a bound."""
    size = row["retained"]
    return None if size is None else views.units.format_bytes(None if row["retained_bound"] else size, least=size)


def _one(entries: pl.DataFrame) -> None:
    """One table, chosen above or here: its verdict, and a link into each page."""
    names = entries["name"].head(MAX_ROWS).to_list()
    name = st.selectbox(
        "Table", names, index=None, key=link_widget(TABLE, None, names), placeholder="choose one to open"
    )
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


def download(lists: Mapping[str, pl.DataFrame]) -> None:
    """Offers lists as files."""
    if st.button("Download", icon=":material/download:", key="download"):
        downloads.dialog("lake", dict(lists))


def _draw_columns(every: pl.DataFrame, answer: DeltaGenerator) -> None:
    """The search and the table, most nulls first; how many columns match goes to `answer`."""
    with st.container(horizontal=True, gap="small"):
        name = st.text_input("Column or type contains", key=link_widget("column-name"), width=220)
        nulls = st.number_input(
            "Nulls above, %", 0.0, 100.0, step=5.0, key=link_widget("nulls-above", 0.0, read=float), width=150
        )
    above = nulls / 100 if nulls else None
    matches = views.lake.matching_columns(every, name or "", above)
    with answer:
        first_line(views.lake.columns_line(matches, above))
    st.markdown(f":small[:gray[{_COLUMN_NOTE}; tick a row to open the table]]")
    if matches.is_empty():
        nothing("No column passes this search.", "Search for less of a name, or a smaller share of nulls.")
        return
    rows = views.lake.with_one_decimal(matches.head(MAX_ROWS))
    frame(
        rows,
        {
            "column": columns.text("column"),
            "type": columns.text("type"),
            "mark": columns.bound(of="null_share_mark"),
            **null_columns(rows, 54),
            "table": columns.text("table"),
            "minimum": columns.text("min", of="min_text"),
            "maximum": columns.text("max", of="max_text"),
        },
        key="lake-columns",
        unknown="unknown",
        **row_link("lake-columns", rows, "schema", lambda row: session.link_to(row["address"])),
    )
    more_rows(matches.height)
