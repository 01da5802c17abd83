"""What reading rows may cost: the choice of a budget, the button with its price, and the wait that can be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import selection
from lakeview.app.query import runner, spark
from lakeview.app.query.answers import Answer
from lakeview.app.query.worker import MAX_RESULT_BYTES, Request
from lakeview.app.widget_state import linked
from lakeview.jobs import Progress
from lakeview.jobs import Request as SparkRequest

BUDGETS = {"256 MiB": 1 << 28, "1 GiB": 1 << 30, "4 GiB": 1 << 32}
SECONDS: dict[str, float] = {"10 s": 10, "30 s": 30, "2 min": 120, "10 min": 600}
_ASKED, _ENDED, _CURRENT, _AGAIN, _ANSWERS = "_asked", "_ended", "_asked_by", "_asked_again", "_answers"
"""Of this session: requests by the keys of their buttons, those asked for and those that were ended; the key of the
button whose request runs; whether it was pressed once more; the last answers by request."""
_MOST_ANSWERS = 4
CHEAP = 64 << 20
"""Bytes of data files that are read without being asked: a second of one disk, some of a store."""


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
        return f"{views.units.counted(self.files, 'file')}, {size}"

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
        size = st.selectbox(
            "Budget",
            list(BUDGETS),
            key=linked("budget", list(BUDGETS)[1], BUDGETS),
            label_visibility="collapsed",
            width=110,
        )
        st.markdown(":small[:gray[and take]]", width="content")
        seconds = st.selectbox(
            "Seconds", list(SECONDS), key=linked("seconds", list(SECONDS)[1], SECONDS), label_visibility="collapsed",
            width=100,
        )  # fmt: skip
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

    A price in bytes that is unknown is within every budget: the seconds bound it. `on_arrival`: what costs at most
    CHEAP bytes is asked for without a press, unless it was stopped or failed before.
    `request`: what tells one request from another; `cheaper`: what else would cost less; `shortcut`: keys that
    press it.
    """
    request = (selection.remembered().table, request)
    requests, endings = _requests(_ASKED), _requests(_ENDED)
    fits = cost.size is None or cost.size <= budget.size
    arrives = on_arrival and cost.size is not None and cost.size <= CHEAP and endings.get(key) != request
    if fits and arrives:
        requests[key] = request
    bound = "reads at most" if at_most else "reads"
    pressed = st.button(
        f"{label}: {bound} {cost.text}",
        type="tertiary" if fits and arrives else "primary",
        icon=":material/refresh:" if fits and arrives else ":material/play_arrow:",
        key=key,
        disabled=not fits,
        shortcut=shortcut,
        help=None if fits else f"More than the budget: choose a larger one, or {cheaper}.",
    )
    st.session_state[_AGAIN] = pressed and requests.get(key) == request
    if pressed:
        requests[key] = request
    is_requested = fits and bool(requests.get(key) == request)
    if is_requested:
        st.session_state[_CURRENT] = key
    return is_requested


def forget() -> None:
    """Ends the request of the last button: it is not begun again without a press."""
    key = st.session_state.pop(_CURRENT, None)
    if key is not None and (request := _requests(_ASKED).pop(key, None)) is not None:
        _requests(_ENDED)[key] = request


def is_again() -> bool:
    """True once if the button was pressed for what was there already."""
    return bool(st.session_state.pop(_AGAIN, False))


def _requests(name: str) -> dict[str, object]:
    requests: dict[str, object] = st.session_state.setdefault(name, {})
    return requests


def amount(answer: Answer, limit: int, unit: str = "") -> str:
    """How many rows of all an answer has: `a part, 12`, `the first 100` or `all 60`; with a unit `all 1 row`."""
    rows = answer.rows.height
    which = "a part," if answer.counts.get("stopped") else "the first" if rows == limit else "all"
    return f"{which} {views.units.counted(rows, unit) if unit else f'{rows:,}'}"


def answer(request: Request | SparkRequest, budget: Budget) -> Answer:
    """What a request asks for: one of the last answers of this session, else asked now, with progress and cancel.

    A part is asked for again once there are more seconds for it. A job on Spark takes as long as it needs.
    """
    answers: dict[Request | SparkRequest, _PastAnswer] = st.session_state.setdefault(_ANSWERS, {})
    past = answers.pop(request, None)
    if is_again() or past is None or (past.is_part and past.seconds < budget.seconds):
        keep = partial(_keep, answers, request, budget.seconds)
        past = _PastAnswer(budget.seconds, _run(request, budget, keep))
    answers[request] = past
    while len(answers) > 1 and (
        len(answers) > _MOST_ANSWERS
        or sum(one.answer.rows.estimated_size() for one in answers.values()) > MAX_RESULT_BYTES
    ):
        del answers[next(iter(answers))]
    say_if_stopped(past.answer, past.seconds)
    return past.answer


@dataclass(frozen=True, slots=True)
class _PastAnswer:
    """The seconds that a request was given, and its answer."""

    seconds: float
    answer: Answer

    @property
    def is_part(self) -> bool:
        return bool(self.answer.counts.get("stopped"))


def _keep(
    answers: dict[Request | SparkRequest, _PastAnswer], request: Request | SparkRequest, seconds: float, part: Answer
) -> None:
    """What a cancelled request found is its answer until it is asked again."""
    answers[request] = _PastAnswer(seconds, part)


def _run(request: Request | SparkRequest, budget: Budget, keep: Callable[[Answer], object]) -> Answer:
    is_kept = False

    def on_part(part: Answer) -> None:
        nonlocal is_kept
        keep(part)
        is_kept = True

    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, "Starting")
        # pressing it ends this run of the page, and with it the query: the next run shows the rows found so far
        st.button("Cancel", icon=":material/stop:", key="cancel")
    try:
        if isinstance(request, SparkRequest):
            return spark.run(request, _job_line(bar.progress))
        return runner.run(
            request, seconds=budget.seconds, on_wait=_progress_line(bar.progress, request, budget), on_part=on_part
        )
    except BaseException:
        if not is_kept:
            forget()  # else every later run would begin it again
        raise
    finally:
        place.empty()


def say_if_stopped(answer: Answer, seconds: float) -> None:
    """One line above rows that are a part of what was asked for: it was cancelled, or its seconds were over."""
    if answer.counts.get("stopped"):
        so_far = f"the {views.units.counted(answer.rows.height, 'row')} found so far"
        if "nulls" in answer.rows.columns and "rows" in answer.counts:  # of a profile
            read = answer.rows["nulls"].count()
            so_far = f"{read:,} of {views.units.counted(answer.rows.height, 'column')} read, not all with distributions"
        how, more = f"Stopped after {seconds:g} s", "allow it more seconds for all of them"
        if answer.counts.get("cancelled"):
            how, more = "Cancelled", "ask again for all of them"
        st.markdown(f":orange[:material/timer:] **{how}** :gray[these are {so_far}; {more}]")


def _job_line(draw: Callable[[float, str], object]) -> Callable[[Progress], object]:
    return lambda progress: draw(progress.share, progress.text.capitalize())


def _progress_line(
    draw: Callable[[float, str], object], request: Request, budget: Budget
) -> Callable[[runner.Progress], object]:
    def on_wait(progress: runner.Progress) -> None:
        share = min(progress.seconds / budget.seconds, 1.0)
        if not progress.begun:
            draw(share, "Waiting for another query to end")
            return
        read = f", {runner.rows_text(request, progress.rows)}" if progress.rows else ""
        draw(share, f"{progress.seconds:.0f} of {budget.seconds:g} s{read}")

    return on_wait
