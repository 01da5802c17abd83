"""The timeline's filters, all recorded in the URL: operations, writer, a span before the last commit, any time range.

Lanes, writer and range are written to the URL here and not bound to their widgets, which would write labels there; so
back, forward and a pasted link move the widgets, and a drag over the chart moves the slider.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers
from lakeview.app.components import unknown_name
from lakeview.app.widget_state import link_widget, picker, write_parameter, write_parameters

MEASURES = ("rows", "bytes", "files")
ALL_WRITERS = "all writers"
BAD_LOAD = "bad load"
LANES, WRITER, FROM, TO = "lanes", "writer", "from", "to"
_MOST_WRITERS = 400
_SLIDER_LIMITS = (datetime(1700, 1, 1, tzinfo=UTC), datetime(2250, 1, 1, tzinfo=UTC))
"""What streamlit's slider can hold. A clock may be set to any other year: other filters find such commits."""

_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Filters:
    """What is shown: the measure, the commits that pass the filters, and the range of time, None without one."""

    measure: str
    commits: pl.DataFrame
    span: tuple[datetime, datetime] | None

    @property
    def chart_key(self) -> str:
        """The key of the chart, another for each range: under the same key a browser draws its brush again."""
        return "timeline" if self.span is None else f"timeline-{self.span[0]:%Y%m%d%H%M}-{self.span[1]:%Y%m%d%H%M}"


def commit_count_text(commits: pl.DataFrame, timeline: pl.DataFrame) -> str:
    """How many commits are listed, and of how many if filters leave some out."""
    every = views.timeline.commits.commit_count_text(timeline)
    return f"{every if commits.height == timeline.height else f'{commits.height:,} of {every}'} · newest first"


def controls(timeline: pl.DataFrame) -> Filters:
    """The widgets of measure, operations, writer and time, and what they ask for."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        measure = st.segmented_control(
            "Measure",
            MEASURES,
            required=True,
            format_func=str.capitalize,
            key=link_widget("measure", "rows", MEASURES),
            label_visibility="collapsed",
        )
        lanes = _lanes(timeline)
        st.space("stretch")
        writers = _writers(timeline)
        writer = _writer(writers)
        before, span = _time(timeline)
    unknown_name(WRITER, writers, "writer of these commits", "those of all writers are shown")
    commits = answers.narrow_timeline(timeline, lanes, writer, before)
    if span is not None:
        commits = commits.filter(pl.col("timestamp").is_between(span[0], span[1] + _MINUTE, closed="left"))
    return Filters(measure or "rows", commits, span)


def take_span(selection: Mapping[str, object]) -> bool:
    """Takes over a span of time dragged over the chart, in milliseconds; False where nothing was."""
    for interval in selection.values():
        ends = interval.get("timestamp") if isinstance(interval, Mapping) else None
        if isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends):
            first, last = (datetime.fromtimestamp(end / 1000, UTC) for end in sorted(ends))
            _keep_range(first, last)
            return True
    return False


def _lanes(timeline: pl.DataFrame) -> list[str]:
    counts = dict(timeline["lane"].value_counts(sort=True).iter_rows())
    bad = int(timeline["suspicious"].sum())
    if bad:
        counts[BAD_LOAD] = bad
    lanes = st.query_params.get(LANES, "").split(",")
    st.session_state[LANES] = [lane for lane in counts if lane in lanes]
    choice = st.pills(
        "Operations",
        list(counts),
        selection_mode="multi",
        format_func=lambda lane: f"{lane} {counts.get(lane, 0):,}",
        key=LANES,
        on_change=lambda: write_parameter(LANES, ",".join(st.session_state[LANES])),
        label_visibility="collapsed",
    )
    return list(choice or [])


def _writers(timeline: pl.DataFrame) -> list[str]:
    """The writers to choose from: those of most commits, and that of the link."""
    every = timeline["writer"].drop_nulls().value_counts(sort=True)["writer"].to_list()
    return every[:_MOST_WRITERS] + [name for name in every[_MOST_WRITERS:] if name == st.query_params.get(WRITER)]


def _writer(writers: list[str]) -> str | None:
    writer = st.query_params.get(WRITER)
    name = writer if writer in writers else None

    def choose(choice: str) -> None:
        write_parameter(WRITER, "" if choice == ALL_WRITERS else choice)

    picker("Writer", [ALL_WRITERS, *writers], WRITER, name or ALL_WRITERS, choose, width=150)
    return name


def _time(timeline: pl.DataFrame) -> tuple[str, tuple[datetime, datetime] | None]:
    """The span before the last commit, and the range of time, None without one: the twin of a drag over the chart."""
    times = timeline["timestamp"].filter(timeline["timestamp"].is_between(*_SLIDER_LIMITS))
    earliest, latest = times.min(), times.max()
    if not isinstance(earliest, datetime) or not isinstance(latest, datetime) or latest - earliest < 2 * _MINUTE:
        return "all", None
    step = _HOUR if latest - earliest > timedelta(days=2) else _MINUTE
    limits = _whole(earliest, step), _whole(latest, step) + step
    interval = _range_of_link(*limits)
    dates = f"{views.units.format_date(interval[0])} to {views.units.format_date(interval[1])}" if interval else ""
    span = st.query_params.get("span", "all")
    with st.popover(
        dates or (span if span in answers.SPANS and span != "all" else "all time"),
        icon=":material/date_range:",
        help="or drag over the first chart",
    ):
        before = st.segmented_control(
            "Before the last commit", list(answers.SPANS), required=True, key=link_widget("span", "all", answers.SPANS)
        )
        _slider(limits, interval or limits, step)
        st.button("Any time", key="any-time", on_click=_forget_range, disabled=interval is None)
    return before or "all", interval


def _range_of_link(earliest: datetime, latest: datetime) -> tuple[datetime, datetime] | None:
    """The range of time that the URL names, within these limits; None where it names none."""
    first, last = _minute_of_link(FROM), _minute_of_link(TO)
    if first is None or last is None or first > last:
        return None
    begin = min(max(first, earliest), latest)
    return begin, max(min(last, latest), begin)


def _slider(limits: tuple[datetime, datetime], span: tuple[datetime, datetime], step: timedelta) -> None:
    earliest, latest = (time.replace(tzinfo=None) for time in limits)
    st.session_state["range"] = tuple(time.replace(tzinfo=None) for time in span)
    st.slider(
        "Commits from and to, UTC",
        earliest,
        latest,
        key="range",
        step=step,
        format="YYYY-MM-DD HH:mm",
        on_change=lambda: _keep_range(*(time.replace(tzinfo=UTC) for time in st.session_state["range"])),
    )


def _whole(time: datetime, step: timedelta) -> datetime:
    minute = time.astimezone(UTC).replace(second=0, microsecond=0)
    return minute.replace(minute=0) if step == _HOUR else minute


def _minute_of_link(name: str) -> datetime | None:
    """A minute of the URL, in UTC; None without a valid one."""
    try:
        return datetime.fromisoformat(st.query_params.get(name, "")).replace(tzinfo=UTC)
    except ValueError:
        return None


def _keep_range(first: datetime, last: datetime) -> None:
    # both at once: one step back in the browser takes both away
    st.query_params.update({FROM: f"{first:%Y-%m-%dT%H:%M}", TO: f"{last:%Y-%m-%dT%H:%M}"})


def _forget_range() -> None:
    write_parameters({}, without=(FROM, TO))
