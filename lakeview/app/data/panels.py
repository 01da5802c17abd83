"""The data page's parts: what to read, its estimated cost, and the rows on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import cache, columns, display_rows, selection
from lakeview.app.components import escape, frame, link, nothing
from lakeview.app.memo import cached
from lakeview.app.pages import QUALITY_WHOLE_TABLE
from lakeview.app.query import budget, runner
from lakeview.app.query.budget import Cost
from lakeview.app.query.worker import Request as Query
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import linked
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import PrimitiveType, leaf_name
from lakeview.model.snapshot_sources import as_declared

NOTE = "read at once up to 64 MiB, larger ones by the button; the cost comes from the log"
LIMITS = (50, 100, 500, 1_000)
VERSION, MOMENT = "this version", "at a moment"
TABS = ("Rows", "SQL", "Changes")


@dataclass(frozen=True, slots=True)
class Request:
    """A version, a filter as SQL text, and how many rows."""

    version: int
    where: str | None
    limit: int


def warn_of_missing_files(now: OpenTable) -> None:
    """One line where not all files of the version shown are in the store: rows of the others may still be read."""
    if not now.look.is_small:  # whether a million files are there takes seconds
        return
    versions = now.look.frames.of_log("readable versions")
    for reason in versions.filter((pl.col("version") == now.version) & ~pl.col("readable"))["reason"]:
        shown = f"{views.units.format_version(now.version)} is not whole: {reason or 'the log does not record why'}"
        st.markdown(f":red[:material/error:] **{escape(shown)}** :gray[rows of other files are shown]")


def request(now: OpenTable) -> Request:
    """The widgets: timestamp, simple filter, SQL, row limit; what is typed is in the URL.

    Raises VersionNotFoundError for a moment before the table's first version.
    """
    with st.container(horizontal=True, gap="small"):
        when = st.segmented_control(
            "Rows of", (VERSION, MOMENT), required=True, key=linked("when", VERSION, (VERSION, MOMENT))
        )
        moment = _moment_input(now) if when == MOMENT else None
        limit = st.selectbox("Rows at most", LIMITS, key=linked("limit", LIMITS[1], LIMITS), width=110)
        simple = _simple_filter(now)
    version = now.version
    if moment is not None:
        version = cache.snapshot_at(now.address, moment).version
        latest, at = views.units.format_version(version), views.units.format_moment(moment)
        st.markdown(f":small[:gray[{latest} was the latest at {at} UTC]]")
    typed = st.text_input(
        "Where, in SQL",
        key=linked("where"),
        placeholder=_example(now),
        help="A condition on the columns. Partition values and statistics decide which files must be read.",
    )
    parts = [part for part in (typed, simple) if part]
    where = parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts)
    return Request(version, where or None, int(limit))


def _example(now: OpenTable) -> str:
    """A condition that this table understands."""
    names = [field.name for field in now.snapshot.schema.fields if field.name.isidentifier()]
    return f"{names[0]} IS NOT NULL" if names else "as after WHERE"


def _moment_input(now: OpenTable) -> datetime | None:
    committed = now.snapshot.timestamp
    moment: datetime | None = st.datetime_input(
        "Moment, UTC",
        key=linked("moment", committed and committed.replace(tzinfo=None), read=datetime.fromisoformat),
        format="YYYY-MM-DD",
        step=60,
        width=190,
        help="Shows the version that was the latest at this moment.",
    )
    return None if moment is None else moment.replace(tzinfo=UTC)


def _simple_filter(now: OpenTable) -> str | None:
    """One filter by choosing: a column, a comparison, a value."""
    kinds = {leaf_name(path): field.type for path, field in now.snapshot.schema.leaves()}
    column = st.selectbox(
        "Only where",
        list(kinds),
        index=None,
        key=linked("filter-column", None, kinds),
        placeholder="no filter",
        width=180,
    )
    if column is None:
        return None
    operator = st.selectbox(
        "Comparison",
        views.data.preview.OPERATORS,
        key=linked("filter-operator", views.data.preview.OPERATORS[0], views.data.preview.OPERATORS),
        label_visibility="hidden",
        width=130,
    )
    if operator in ("is null", "is not null"):
        return views.data.preview.where_text([views.data.preview.Condition(column, operator)])
    text = st.text_input("Value", key=linked("filter-value"), label_visibility="hidden", placeholder="value", width=180)
    if not text:
        return None
    kind = kinds[column]
    name = kind.name if isinstance(kind, PrimitiveType) else str(kind)
    value: object = text
    if operator == "in":
        value = [_value(part.strip(), name, column) for part in text.split(",")]
    elif operator not in ("contains", "starts with"):
        value = _value(text, name, column)
    return views.data.preview.where_text([views.data.preview.Condition(column, operator, value)])


def _value(text: str, kind: str, column: str) -> object:
    """A typed text as a value of the column's type."""
    convert = _CONVERTERS.get(kind, Decimal if kind.startswith("decimal") else str)
    try:
        return convert(text)
    except (ValueError, ArithmeticError) as error:
        raise InvalidRequestError(
            f"{text!r} is no {kind}", fix=f"type a value of {column}'s type", place=column
        ) from error


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


_CONVERTERS: Mapping[str, Callable[[str], object]] = {
    "long": int,
    "integer": int,
    "short": int,
    "byte": int,
    "double": float,
    "float": float,
    "boolean": _boolean,
    "date": lambda text: datetime.fromisoformat(text).date(),
    "timestamp": _moment,
    "timestamp_ntz": datetime.fromisoformat,
}


def cost(now: OpenTable, request: Request) -> Cost:
    """The most that the request reads, from the log: no data is read."""
    if request.where is None:
        snapshot = cache.snapshot(now.address, request.version)
        return Cost(snapshot.num_files, snapshot.size_bytes, snapshot.num_files)
    plan = cache.plan(now.address, request.version, request.where)
    st.markdown(f":small[:gray[{views.data.preview.plan_text(plan)}]]")
    read = views.pruning.plan.read_cost(plan)
    return Cost(read.files, read.bytes, read.all_files)


def read_button(request: Request, estimate: Cost, allowed: budget.Budget) -> bool:
    """The button with the estimated cost; True if these rows were requested, now or earlier in this session."""
    if estimate.all_files == 0:
        nothing(
            f"{views.units.format_version(request.version)} holds no rows.",
            "Nothing was written yet, or everything was removed.",
            "timeline",
        )
        return False
    if estimate.files == 0:
        nothing("No file can hold such rows.", "Data skipping leaves no file to read.")
        return False
    if request.where is None and estimate.size is not None:  # the first files hold rows enough
        allowed = replace(allowed, size=estimate.size)
    return budget.button(
        "Read rows", request, estimate, allowed, key="read", at_most=request.where is None, on_arrival=True
    )


def read_rows(now: OpenTable, request: Request, allowed: budget.Budget) -> pl.DataFrame:
    """The first rows of the request: those of the first files, or those that match a filter, which may read all
    files."""
    if request.where is None:
        with st.spinner("Reading rows", show_time=True):
            return _first_rows(now.address, request.version, request.limit)
    return budget.rows(Query(now.address, request.version, request.limit, runner.MEMORY, where=request.where), allowed)


@cached(8)
def _first_rows(address: str, version: int, limit: int) -> pl.DataFrame:
    table = cache.table(address)
    scan = table.scan(as_declared(table, version))
    if unreadable := cache.snapshot(address, version).schema.unreadable:
        scan = scan.drop(unreadable)
    return scan.head(limit).collect()


def show_rows(now: OpenTable, rows: pl.DataFrame, request: Request) -> None:
    """The rows, and which they are."""
    if rows.is_empty():
        st.markdown(":gray[:material/do_not_disturb_on:] **No row matches this filter.**")
        return
    left_out = cache.snapshot(now.address, request.version).schema.unreadable
    more = f"the first {rows.height:,}" if rows.height == request.limit else f"all {rows.height:,}"
    where = f" where {escape(request.where)}" if request.where else ""
    without = f", without {escape(', '.join(left_out))}, of a type that cannot be read" if left_out else ""
    st.markdown(
        f"**Rows of {views.units.format_version(request.version)}** &ensp; :small[:gray[{more}{where}{without}]]"
    )
    display_rows.table(rows, key="rows")


def nulls_note(now: OpenTable) -> str:
    """Where the shares come from."""
    files = views.units.counted(now.snapshot.num_files, "file")
    return f"{views.units.format_version(now.version)}, from the statistics of its {files}; no data is read"


def null_table(shares: pl.DataFrame) -> None:
    """One row a column: nulls, rows counted, share, and whether it is exact."""
    frame(
        views.schema.tree.most_nulls_first(shares),
        {
            "column": columns.text("column", 220),
            "mark": columns.mark(help=columns.BOUND_HELP),
            "null": columns.percent("null, %", 200, of="null_share", bar=True),
            "null_count": columns.number("nulls", 100),
            "records": columns.number("rows counted", 110),
            "counted": columns.text("files with null counts", 140, of="files_text"),
        },
        key="nulls",
    )
    link("quality", "History by version", selection.link(tab=QUALITY_WHOLE_TABLE))
