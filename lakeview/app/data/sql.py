"""The data page's SQL: one SELECT over the version shown, its estimated cost first, run in a process with a budget."""

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import columns, display_rows
from lakeview.app.components import escape, frame
from lakeview.app.data.filters import LIMITS
from lakeview.app.query import budget, runner
from lakeview.app.query.answers import Answer
from lakeview.app.query.budget import Budget, Cost
from lakeview.app.query.request import Request
from lakeview.app.row_links import row_pick
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import choice, link_widget
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.predicates.query import QUERY_TABLE, Query, first_query, is_nameable, query, with_column

NOTE = "one SELECT over the version shown, in polars' SQL; nothing else is read and nothing is written"
_RUN, _RUN_KEYS = "run", "Ctrl+Enter"
_EDITOR, _COLUMNS = "sql", "sql-columns"
_EDITOR_HEIGHT, _COLUMNS_WIDTH = 196, 300
_STYLE = f"""<style>
.st-key-{_EDITOR} textarea {{font-family: monospace; font-size: 12.5px; tab-size: 4}}
.st-key-{_RUN} kbd {{color: inherit; opacity: 1}}
</style>"""
"""What Streamlit has no option for: the editor's font, in the theme's `codeFontSize`, and the keys on a primary button,
which are too faint to be read by all."""


def names(now: OpenTable) -> tuple[str, ...]:
    """What the table is called in a query beside `t`: its own name, the last part of its address."""
    last = now.name.rstrip("/").replace("#", "/").replace("\\", "/").rsplit("/", 1)[-1]
    return tuple(dict.fromkeys(name for name in (now.snapshot.name, last) if name and name != QUERY_TABLE))


def request(now: OpenTable) -> tuple[Request, Budget] | None:
    """The editor, which begins with a query of the first rows, the columns beside it, and the button with its price.
    The query as it is run, and its budget; None unless it was asked for.

    InvalidRequestError for what is no SELECT over this table.
    """
    text = _editor(now)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sql-toolbar"):
        place = st.container(width="content")
        few = "{:,} rows at most".format
        limit = choice("Rows at most", LIMITS, "sql-limit", LIMITS[1], format_func=few, width=180)
        limits = budget.controls()
    with place:
        try:
            checked_query = query(text, names(now))
        except InvalidRequestError:
            # its keys run the query that is written next, in the run that checks it
            st.button("Run", type="primary", icon=":material/play_arrow:", key=_RUN, shortcut=_RUN_KEYS)
            raise
        sql_request = Request(
            now.address, now.version, int(limit), runner.MEMORY, sql=checked_query.text, names=names(now),
            is_rowwise=checked_query.is_rowwise,
        )  # fmt: skip
        price = cost(now, checked_query)
        is_asked = budget.button(
            "Run", sql_request, price, limits, key=_RUN, shortcut=_RUN_KEYS, cheaper="a WHERE that skips files"
        )
    return (sql_request, limits) if is_asked else None


def _editor(now: OpenTable) -> str:
    schema = now.snapshot.schema
    types = {field.name: str(field.type) for field in schema.fields if field.name not in schema.unreadable}
    table_names = " or ".join(f"**{escape(name)}**" for name in (QUERY_TABLE, *names(now)))
    st.html(_STYLE)
    with st.container(horizontal=True, gap="small", key="sql-editor"):
        text = st.text_area(
            "SQL", key=link_widget(_EDITOR, first_query(list(types))), height=_EDITOR_HEIGHT,
            help=f"The table is called {table_names}. Names with other signs stand in double quotes or back-quotes.",
        )  # fmt: skip
        _column_list(types)
    return text or ""


def _column_list(types: dict[str, str]) -> None:
    """Names and types of the columns; choosing one puts its name into the query."""
    with st.container(width=_COLUMNS_WIDTH):
        frame(
            display_rows.as_shown(pl.DataFrame({"column": list(types), "type": list(types.values())})),
            {
                "column": columns.text("column", help="a chosen column is added to the query"),
                "type": columns.text("type"),
            },
            key=_COLUMNS,
            height=_EDITOR_HEIGHT,
            **row_pick(_COLUMNS, list(types), _add_column),
        )


def _add_column(name: str) -> None:
    if is_nameable(name):
        st.session_state[_EDITOR] = with_column(st.session_state[_EDITOR], name)


def cost(now: OpenTable, query: Query) -> Cost:
    """The most that the query reads: the files left by data skipping, or all where its condition does not support
    it."""
    snapshot = now.snapshot
    everything = Cost(snapshot.num_files, snapshot.size_bytes, snapshot.num_files)
    if query.where is None:
        return everything
    try:
        plan_cost = views.pruning.plan.read_cost(now.frames.plan(query.where, now.version))
    except LakeviewError:  # a condition that only the query engine understands skips nothing
        return everything
    return Cost(plan_cost.files, plan_cost.bytes, snapshot.num_files)


def show(answer: Answer, request: Request) -> None:
    """The answer, and whether there may be more of it."""
    st.markdown(f"**Answer** &ensp; :small[:gray[{budget.amount(answer, request.limit, 'row')}]]")
    display_rows.table(answer.rows, key="sql-rows")
