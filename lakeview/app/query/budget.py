"""What reading rows may cost: the choice of a budget, the button with its price, and the wait that can be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import errors, selection
from lakeview.app.components import escape
from lakeview.app.query import runner
from lakeview.app.query.answers import Answer
from lakeview.app.query.request import MAX_RESULT_BYTES, Request
from lakeview.app.widget_state import choice
from lakeview.jobs import Request as SparkRequest
from lakeview.model.errors import LakeviewError

BUDGETS = {"256 MiB": 1 << 28, "1 GiB": 1 << 30, "4 GiB": 1 << 32}
SECONDS: dict[str, float] = {"10 s": 10, "30 s": 30, "2 min": 120, "10 min": 600}
_MOST_ANSWERS = 4
_QUERIES = "_queries"
CHEAP, CHEAP_FILES = 64 << 20, 500
"""Bytes and number of data files that are read without being asked: a second of one disk, some of a store, where each
file is a request or two."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request would read at most: files and bytes kept (None where unknown), and how many files there are."""

    files: int
    size: int | None
    all_files: int

    @property
    def text(self) -> str:
        """`3 files, 1.20 MiB`."""
        size = "of unknown size" if self.size is None else views.units.format_bytes(self.size)
        return f"{views.units.count_text(self.files, 'file')}, {size}"

    @property
    def is_cheap(self) -> bool:
        """True if so much is read without being asked."""
        return self.size is not None and self.size <= CHEAP and self.files <= CHEAP_FILES

    @classmethod
    def of_plan(cls, plan: pl.DataFrame) -> Cost:
        """What reading the rows of a CHANGES_PLAN costs at most."""
        return cls(plan.height, views.sums.total_of(plan["size"]), plan.height)


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes of data files that a query may be priced at, and seconds it may take."""

    size: int
    seconds: float


def controls(who: str = "A query") -> Budget:
    """The two choices under a gear, in the URL: they hold for everything read on this page. `who` is bounded, in
    words."""
    with st.popover("Budget", icon=":material/settings:", type="tertiary", key="budget-gear"):
        st.markdown(f":small[:gray[{who} may read at most]]", width="content")
        size = choice("Budget", list(BUDGETS), "budget", list(BUDGETS)[1], width=110)
        st.markdown(":small[:gray[and take]]", width="content")
        seconds = choice("Seconds", list(SECONDS), "seconds", list(SECONDS)[1], width=100)
    return Budget(BUDGETS[size], SECONDS[seconds])


def button(
    label: str,
    request: object,
    cost: Cost,
    budget: Budget,
    *,
    key: str,
    at_most: bool = True,
    cheaper: str = "a filter that skips files",
    on_arrival: bool = False,
    shortcut: str | None = None,
) -> bool:
    """The button with its price, disabled above the budget; True if this was asked for, now or earlier in this session.

    A price in bytes that is unknown is within every budget: the seconds bound it. `on_arrival`: what is cheap
    is asked for without a press, unless it was stopped or failed before. `request`: what tells one request from
    another; `cheaper`: what else would cost less; `shortcut`: keys that press it.
    """
    request, queries = (selection.remembered_selection().table, request), _queries()
    size = cost.size or 0
    fits = size <= budget.size
    ended_request, reason = queries.ended_requests.get(key, (None, ""))
    arrives = fits and on_arrival and cost.is_cheap and ended_request != request
    if arrives:
        queries.requests[key] = request
    bound = "reads at most" if at_most else "reads"
    is_pressed = st.button(
        f"{label}: {bound} {cost.text}",
        type="tertiary" if arrives else "primary",
        icon=":material/refresh:" if arrives else ":material/play_arrow:",
        key=key,
        disabled=not fits,
        shortcut=shortcut,
    )
    if not fits:
        _say_too_much(size, cheaper)
    queries.record_press(key, request, is_pressed=is_pressed)
    is_requested = fits and bool(queries.requests.get(key) == request)
    if is_requested:
        queries.current = key
    elif fits and ended_request == request:
        st.markdown(
            f":orange[:material/timer:] **Ended without an answer** :gray[{escape(reason)}; press to ask again]"
        )
    return is_requested


def _say_too_much(size: int, cheaper: str) -> None:
    larger = "the budget: choose a larger one, or" if size <= max(BUDGETS.values()) else "any budget: choose"
    st.markdown(f":gray[More than {larger} {cheaper}.]", width="content")


def forget(error: LakeviewError) -> None:
    """Ends the request of the last button, which failed: it is not begun again without a press."""
    queries = _queries()
    queries.end(queries.current, _reason(error))


def _reason(error: LakeviewError) -> str:
    """What went wrong and what to do, as it is said when the page is drawn again."""
    return errors.as_typed(error.message if error.fix is None else f"{error.message}; {error.fix}")


@dataclass(slots=True)
class _Queries:
    """The queries of one session. A plain object: a run of the page that Streamlit has ended may still write to it,
    while each look into the session's state would end that run once more.

    `requests`, `ended_requests`: those asked for, and given up with the reason, by the keys of their buttons;
    `current`: the key of the last button whose request was asked for; `is_again`: it was pressed for what was there
    already; `answers`: the last ones by request; `running`: requests of which a run of the page has not let go yet.
    """

    requests: dict[str, object] = field(default_factory=dict)
    ended_requests: dict[str, tuple[object, str]] = field(default_factory=dict)
    current: str | None = None
    is_again: bool = False
    answers: dict[Request | SparkRequest, _PastAnswer] = field(default_factory=dict)
    running: dict[Request | SparkRequest, threading.Event] = field(default_factory=dict)

    def record_press(self, key: str, request: object, *, is_pressed: bool) -> None:
        self.is_again = is_pressed and self.requests.get(key) == request
        if is_pressed:
            self.requests[key] = request

    def end(self, key: str | None, reason: str) -> None:
        """The request of this button is not begun again without a press."""
        if key is not None and (request := self.requests.pop(key, None)) is not None:
            self.ended_requests[key] = request, reason


@dataclass(frozen=True, slots=True)
class _PastAnswer:
    """The seconds that a request was given, and its answer."""

    seconds: float
    answer: Answer

    @property
    def is_part(self) -> bool:
        return bool(self.answer.counts.get("stopped"))


def _queries() -> _Queries:
    queries: _Queries = st.session_state.setdefault(_QUERIES, _Queries())
    return queries


def amount(answer: Answer, limit: int, unit: str = "") -> str:
    """How many rows of all an answer has: `a part, 12`, `the first 100` or `all 60`; with a unit `all 1 row`."""
    rows = answer.rows.height
    which = "a part," if answer.counts.get("stopped") else "the first" if rows == limit else "all"
    return f"{which} {views.units.count_text(rows, unit) if unit else f'{rows:,}'}"


def answer(request: Request | SparkRequest, budget: Budget) -> Answer:
    """What a request asks for: one of the last answers of this session, else asked now, with progress and cancel.

    A part is asked for again once there are more seconds for it. A job on Spark takes as long as it needs.
    """
    queries = _queries()
    key, is_again, queries.is_again = queries.current, queries.is_again, False
    # pressing Cancel starts the next run of the page while this one ends: that one waits for what is found until then
    while (run_before := queries.running.get(request)) is not None:
        run_before.wait()
    if key is not None and key not in queries.requests and not is_again:
        st.rerun()  # the run before gave it up without an answer
    answers = queries.answers
    past = answers.get(request)
    if is_again or past is None or (past.is_part and past.seconds < budget.seconds):
        past = _PastAnswer(budget.seconds, _run(request, budget, queries, key))
    answers.pop(request, None)  # the last one asked for goes last
    answers[request] = past
    while len(answers) > 1 and (
        len(answers) > _MOST_ANSWERS
        or sum(one.answer.rows.estimated_size() for one in answers.values()) > MAX_RESULT_BYTES
    ):
        del answers[next(iter(answers))]
    say_if_stopped(past.answer, past.seconds)
    return past.answer


def _run(request: Request | SparkRequest, budget: Budget, queries: _Queries, key: str | None) -> Answer:
    is_part_known = False

    def on_part(part: Answer) -> None:  # the answer of a cancelled request until it is asked for again
        nonlocal is_part_known
        queries.answers[request] = _PastAnswer(budget.seconds, part)
        is_part_known = True

    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, "Starting")
        # pressing it ends this run of the page, and with it the query: the next run shows the rows found so far
        st.button("Cancel", icon=":material/stop:", key="cancel")
    queries.running[request] = threading.Event()
    try:
        if isinstance(request, SparkRequest):
            return runner.run_on_spark(request, lambda job: bar.progress(job.share, job.text.capitalize()))
        return runner.run(
            request, seconds=budget.seconds, on_wait=_progress_line(bar.progress, request, budget), on_part=on_part
        )
    except BaseException as error:
        if not is_part_known:  # every later run would begin it again
            reason = "a job on Spark was stopped" if isinstance(request, SparkRequest) else request.stopped_early
            queries.end(key, _reason(error) if isinstance(error, LakeviewError) else reason)
        raise
    finally:
        queries.running.pop(request).set()
        place.empty()


def say_if_stopped(answer: Answer, seconds: float) -> None:
    """One line above rows that are a part of what was asked for: it was cancelled, or its seconds were over."""
    if answer.counts.get("stopped"):
        so_far = f"the {views.units.count_text(answer.rows.height, 'row')} found so far"
        if "nulls" in answer.rows.columns and "rows" in answer.counts:  # of a profile
            columns = views.units.count_text(answer.rows.height, "column")
            so_far = f"{answer.rows['nulls'].count():,} of {columns} read, not all with distributions"
        how, more = f"Stopped after {seconds:g} s", "allow it more seconds for all of them"
        if answer.counts.get("cancelled"):
            how, more = "Cancelled", "ask again for all of them"
        st.markdown(f":orange[:material/timer:] **{how}** :gray[these are {so_far}; {more}]")


def _progress_line(
    draw: Callable[[float, str], object], request: Request, budget: Budget
) -> Callable[[runner.Progress], object]:
    def on_wait(progress: runner.Progress) -> None:
        share = min(progress.seconds / budget.seconds, 1.0)
        if not progress.has_begun:
            draw(share, "Waiting for another query to end")
            return
        rows_text = f", {runner.rows_text(request, progress.rows)}" if progress.rows else ""
        draw(share, f"{progress.seconds:.0f} of {budget.seconds:g} s{rows_text}")

    return on_wait
