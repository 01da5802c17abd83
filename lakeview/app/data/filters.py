"""The data page's toolbar: a condition typed or chosen, which rows, of which moment, the budget; all in the link."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import streamlit as st

from lakeview import views
from lakeview.app.query import budget
from lakeview.app.query.budget import Budget
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import link_widget
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import visible
from lakeview.model.schema import leaf_name

LIMITS = (50, 100, 500, 1_000)
FIRST, SAMPLE = "first", "sample"
VERSION, MOMENT = "this version", "at a moment"
_DRAWS = {FIRST: "the first", SAMPLE: "a sample"}


@dataclass(frozen=True, slots=True)
class Request:
    """A version, a filter as SQL text, and how many rows: the first ones, or drawn at random from all."""

    version: int
    where: str | None
    limit: int
    is_sample: bool = False


def toolbar(now: OpenTable, *, of_rows: bool = True) -> tuple[Request, Budget]:
    """One line of widgets; those for how many rows and which only `of_rows`.

    Raises VersionNotFoundError for a moment before the table's first version, InvalidRequestError for a value that is
    none of its column's type.
    """
    limit, draw = LIMITS[1], FIRST
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="data-toolbar"):
        text = st.text_input(
            "Where, in SQL",
            key=link_widget("where"),
            placeholder=_example(now),
            help="A condition on the columns. Partition values and statistics decide which files must be read.",
        )
        with st.popover("Condition", icon=":material/filter_alt:", key="condition"):
            condition = _chosen_condition(now)
        if of_rows:
            draw = st.selectbox(
                "Rows", _DRAWS, format_func=_DRAWS.__getitem__, key=link_widget("draw", FIRST, _DRAWS), width=110
            )
            limit = st.selectbox("At most", LIMITS, key=link_widget("limit", LIMITS[1], LIMITS), width=90)
        with st.popover("Moment", icon=":material/schedule:", key="moment-choice"):
            when = st.segmented_control(
                "Rows of", (VERSION, MOMENT), required=True, key=link_widget("when", VERSION, (VERSION, MOMENT))
            )
            moment = _moment_input(now) if when == MOMENT else None
        limits = budget.controls()
    version = now.version
    if moment is not None:
        version = now.frames.snapshot_at(moment).version
        latest, at = views.units.format_version(version), views.units.format_moment(moment)
        st.markdown(f":small[:gray[{latest} was the latest at {at} UTC]]")
    parts = [part for part in (text, condition) if part]
    where = parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts)
    return Request(version, where or None, int(limit), is_sample=draw == SAMPLE), limits


def narrow(condition: str) -> None:
    """Adds a condition to the one typed; for callbacks."""
    before = st.session_state.get("where")
    st.session_state["where"] = f"({before}) AND {condition}" if before else condition


def _example(now: OpenTable) -> str:
    """A condition that this table understands."""
    names = [field.name for field in now.snapshot.schema.fields if field.name.isidentifier()]
    return f"{names[0]} IS NOT NULL" if names else "as after WHERE"


def _moment_input(now: OpenTable) -> datetime | None:
    commit_time = now.snapshot.timestamp
    moment: datetime | None = st.datetime_input(
        "Moment, UTC",
        key=link_widget("moment", commit_time and commit_time.replace(tzinfo=None), read=datetime.fromisoformat),
        format="YYYY-MM-DD",
        step=60,
        help="Shows the version that was the latest at this moment.",
    )
    return None if moment is None else moment.replace(tzinfo=UTC)


def _chosen_condition(now: OpenTable) -> str | None:
    """One filter by choosing: a column, a comparison, a value."""
    kinds = {leaf_name(path): field.type for path, field in now.snapshot.schema.leaves()}
    column = st.selectbox(
        "Only where",
        list(kinds),
        index=None,
        format_func=visible,
        key=link_widget("filter-column", None, kinds),
        placeholder="no filter",
    )
    if column is None:
        return None
    operator = st.selectbox(
        "Comparison",
        views.data.preview.OPERATORS,
        key=link_widget("filter-operator", views.data.preview.OPERATORS[0], views.data.preview.OPERATORS),
    )
    if operator in ("is null", "is not null"):
        return views.data.preview.where_text([views.data.preview.Condition(column, operator)])
    text = st.text_input("Value", key=link_widget("filter-value"), placeholder="value")
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
    **dict.fromkeys(("long", "integer", "short", "byte"), int),
    **dict.fromkeys(("double", "float"), float),
    "boolean": _boolean,
    "date": lambda text: datetime.fromisoformat(text).date(),
    "timestamp": _moment,
    "timestamp_ntz": datetime.fromisoformat,
}
