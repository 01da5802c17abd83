"""The data page's profile: every column of all rows that pass the filter, or of a sample, and a value to go on with."""

from dataclasses import replace
from functools import partial

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, selection, widths
from lakeview.app.components import MAX_ROWS, dark, escape, fold, frame, grid, link, stack
from lakeview.app.data import filters
from lakeview.app.data.filters import Request
from lakeview.app.data.panels import Reading, any_file, unreadable_text
from lakeview.app.null_shares import null_columns, pale_key
from lakeview.app.query import budget, runner
from lakeview.app.query.answers import Answer
from lakeview.app.query.request import Request as Query
from lakeview.app.row_links import picked_marks, row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import link_widget
from lakeview.inspection.inspection import Inspection
from lakeview.jobs import Request as SparkRequest
from lakeview.jobs import is_installed
from lakeview.model.printable import visible

NOTE = "all rows where the budget allows, else those of files drawn by a seed"
MOST_PICTURES = 24
ENGINES = ("a sample", "all rows, on Spark")
VALUE = "value"
"""The parameter of the link that holds the condition of the value that was clicked."""


def choose_engine(reading: Reading) -> Reading:
    """What to read: where a sample would be, and Spark is installed, its reader may choose all rows on Spark."""
    if reading.whole is None or not is_installed():
        return reading
    engine = st.segmented_control("Of", ENGINES, required=True, key=link_widget("engine", ENGINES[0], ENGINES))
    return Reading(reading.whole, on_spark=True) if engine == ENGINES[1] else reading


def read(now: OpenTable, request: Request, reading: Reading, limits: budget.Budget) -> Answer | None:
    """PROFILE of the rows, read at once where that is cheap, else by the button with its price; None before."""
    if not any_file(request, reading.cost):
        return None
    if reading.on_spark:
        job = SparkRequest("profile", now.address, request.version, request.where)
        limits = replace(limits, size=reading.cost.size or 0)
        if not budget.button("Profile on Spark", job, reading.cost, limits, key="profile-on-spark", at_most=False):
            return None
        return budget.answer(job, limits)
    query = Query(
        now.address, request.version, 0, runner.MEMORY, where=request.where, paths=reading.paths, profile=True
    )
    label = "Profile" if reading.paths is None else "Profile a sample"
    if not budget.button(label, query, reading.cost, limits, key="read-profile", at_most=False, on_arrival=True):
        return None
    return budget.answer(query, limits)


def sentence(now: OpenTable, request: Request, reading: Reading, rows: int) -> None:
    """Which rows and columns the figures are of."""
    without = escape(unreadable_text(now, request).removeprefix(", "))
    st.markdown(f"**{escape(_sentence(request, reading, rows))}** &ensp; :small[:gray[{without}]]")


def _sentence(request: Request, reading: Reading, rows: int) -> str:
    version = views.units.format_version(request.version)
    where = f" where {request.where}" if request.where else ""
    if reading.paths is None:
        files = views.units.count_text(reading.cost.files, "file")
        return f"{'The' if rows == 1 else 'All'} {views.units.count_text(rows, 'row')} of {version}{where}, in {files}"
    return f"A sample of {version}{where}: the {views.units.count_text(rows, 'row')} of {reading.files_text}"


def with_schema(profile: pl.DataFrame, request: Request, reading: Reading, now: OpenTable) -> pl.DataFrame:
    """PROFILE with the types of the table's schema, `absent_share` and `absent_text` of SCHEMA_TREE: the nulls of files
    that were written before a column existed, null where not all rows were read."""
    look = Inspection(now.look.frames, request.version)
    is_whole = request.where is None and reading.paths is None and look.is_small
    tree = look.columns().tree if is_whole else views.schema.columns.schema_tree(look.snapshot.schema)
    types = {field.name: str(field.type) for field in now.frames.snapshot(request.version).schema.fields}
    profile = profile.with_columns(type=pl.col("column").replace_strict(types, default=pl.col("type")))
    return views.schema.tree.with_absent_shares(profile, tree)


def table(profile: pl.DataFrame) -> None:
    """One row a column of a PROFILE that `with_schema` returned."""
    table_columns = {
        "column": columns.text("column", least=widths.NAME),
        "type": columns.text("type"),
        **null_columns(profile, 44),
        "distinct": columns.number("distinct"),
        "min_text": columns.bound_text("min", of="min_text", least=widths.MINUTE),
        "max_text": columns.bound_text("max", of="max_text", least=widths.MINUTE),
    }
    table_columns.pop("absent", None)  # pale in the bars, and named below the pictures: the page has no room for it
    frame(
        profile,
        table_columns,
        key="profile",
        **row_link("profile", profile, "quality", lambda row: selection.link(column=row["column"])),
    )
    pale_key(profile)


def distributions(spread: pl.DataFrame, profile: pl.DataFrame, request: Request) -> None:
    """A small picture a column, of those chosen in the URL; a click on a bar, or on a row of the table that is their
    twin, picks a value. The rows from before a column existed are named below its name, from `profile`."""
    absent = dict(profile.select("column", "absent_text").iter_rows())
    names = spread["column"].unique(maintain_order=True).to_list()
    choice = st.multiselect(
        "Columns",
        names,
        format_func=visible,
        key=link_widget("columns", [], names, many=True),
        placeholder=f"the first {MOST_PICTURES:,}" if len(names) > MOST_PICTURES else "all columns",
    )
    parts = [
        part
        for part in spread.partition_by("column", maintain_order=True)
        if part["column"][0] in (choice or names)[:MOST_PICTURES]
    ]
    _picked_value(spread, request)
    with grid(230):
        for part in parts:
            name = part["column"][0]
            position = names.index(name)  # a column's own, whichever are chosen
            with st.container():
                pictures = [charts.distributions.distribution_bars(part, absent=absent.get(name), dark=dark())]
                stack(pictures, key=f"distribution-{position}", on_pick=partial(_pick_bar, part["condition"].to_list()))
    with fold("As a table: a tick picks the value of its row", "values-table"):
        facets = pl.concat(parts).head(MAX_ROWS) if parts else spread
        frame(
            facets,
            {
                "column": columns.text("column"),
                "label": columns.text("value, or from"),
                "count": columns.number("rows"),
                "share": columns.percent("of these, %", bar=True),
                "kind": columns.text("kind"),
            },
            key="facets",
            selection_mode="single-row",
            on_select=partial(_pick_row, facets["condition"].to_list()),
        )


def _picked_value(spread: pl.DataFrame, request: Request) -> None:
    """The value that was clicked: how many rows have it, and where to go on."""
    conditions = spread.filter(pl.col("condition") == st.query_params.get(VALUE, ""))
    if conditions.is_empty():
        st.markdown(":small[:gray[click a bar for its rows]]")
        return
    value = conditions.row(0, named=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="picked-value"):
        share = views.units.format_percent(value["share"])
        text = (
            f"**{escape(value['condition'])}** &ensp; {views.units.count_text(value['count'], 'row')}, {share} of these"
        )
        st.markdown(text, width="content")
        where = f"({request.where}) AND {value['condition']}" if request.where else value["condition"]
        link("data", "Its rows", selection.link(version=request.version, where=where))
        st.button(
            "Profile these rows alone", type="tertiary", icon=":material/filter_alt:", key="narrow",
            on_click=partial(filters.narrow, value["condition"]),
        )  # fmt: skip


def _pick_bar(conditions: list[str | None], chart: str) -> None:
    _pick(conditions, [mark["position"] for mark in picked_marks(chart) if "position" in mark])


def _pick_row(conditions: list[str | None]) -> None:
    _pick(conditions, st.session_state["facets"]["selection"]["rows"])


def _pick(conditions: list[str | None], positions: list[int]) -> None:
    condition = conditions[positions[0]] if positions else None
    if condition is not None:  # null, of rows that no condition can name
        st.query_params[VALUE] = condition
    else:
        st.query_params.pop(VALUE, None)
