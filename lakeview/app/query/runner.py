"""A request to rows, in a process of its own: stopped by a budget of seconds, ended with the page that waits for it.

Streamlit ends a run of a page by an exception at its next call, whenever its reader presses a button, goes elsewhere or
closes the window. The wait here calls `on_wait` several times a second and ends the process on any exception, so that a
button drawn before it cancels. The rows found until then are given to `on_part`.

Rows that a page shows without a press, the first of a version or of what one commit changed, take the same way: a file
of a few bytes may decode to more than the memory of the server. What was read is cached, so that a second visit starts
no process.
"""

import atexit
import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from time import monotonic

import msgspec
import polars as pl
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lakeview import views
from lakeview.app.cache import cache_values
from lakeview.app.query.answers import Answer
from lakeview.app.query.idle import IDLE
from lakeview.app.query.process import QueryProcess
from lakeview.app.query.request import Request
from lakeview.discovery import readable_folders
from lakeview.jobs import Progress as JobProgress
from lakeview.jobs import Request as SparkRequest
from lakeview.jobs import SparkJobs
from lakeview.model import errors

MEMORY = 4 << 30
"""Bytes that one query may take, unless the operator gave the whole app less."""

AT_ONCE = 4
"""Queries that may run at the same time, of all who use this app."""

STEP = 0.2
START_SECONDS, GRACE = 60.0, 2.0
"""Seconds that a process may take to start, and that one has after its time to give the rows it has read."""
_PLACES = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a query is: seconds since it was asked, rows it has read, and whether it has begun."""

    seconds: float
    rows: int
    has_begun: bool


def run(
    request: Request,
    *,
    seconds: float,
    on_wait: Callable[[Progress], object],
    on_part: Callable[[Answer], object] | None = None,
) -> Answer:
    """The rows, and what was counted. Any LakeviewError of the table; InvalidRequestError of kind over-budget for what
    takes longer than `seconds` or more memory than there is for it.

    `on_wait` may raise, which ends the query; `on_part` is called before with the rows so far, if those are an answer.
    """
    began = monotonic()
    while not _PLACES.acquire(timeout=STEP):
        on_wait(Progress(monotonic() - began, 0, has_begun=False))
        if monotonic() - began > seconds:
            raise _over(f"{AT_ONCE} other queries were running for {seconds:g} seconds", "run it again")
    try:
        return _watch(request, seconds, on_wait, on_part)
    finally:
        _PLACES.release()


def start_ahead(address: str) -> None:
    """Starts the process of the next query over a table, where that is enabled: starting it takes a second."""
    IDLE.start(readable_folders(address))


def rows_text(request: Request, rows: int) -> str:
    """`7 rows found`: those that passed a filter, of which reading reports no others; `7 rows read` without one, and of
    SQL, of whose conditions some are tried on rows that were read."""
    verb = "read" if request.where is None else "found"
    return f"{views.units.count_text(rows, 'row') if rows else 'no row'} {verb}"


def _watch(
    request: Request,
    seconds: float,
    on_wait: Callable[[Progress], object],
    on_part: Callable[[Answer], object] | None,
) -> Answer:
    folders = readable_folders(request.address)
    process = IDLE.take(folders) or QueryProcess(folders)
    timed_request = msgspec.structs.replace(request, seconds=seconds)
    patience = seconds + (GRACE if timed_request.can_stop else 0.0)
    try:
        began = monotonic()
        process.send(msgspec.json.encode(timed_request))
        while not process.done.wait(STEP):
            # a process takes a second to start, longer on a busy machine: that is no time of the query
            running = 0.0 if process.ready is None else monotonic() - max(process.ready, began)
            try:
                on_wait(Progress(running, process.rows, has_begun=True))
            except BaseException:
                if on_part is not None and timed_request.can_stop and (part := _part(process, request)) is not None:
                    on_part(part)
                raise
            if process.ready is None and monotonic() - began > START_SECONDS:
                raise _over(f"the process of the query did not start in {START_SECONDS:g} seconds", "try again")
            if running > patience:
                raise _time_limit_error(request, seconds, process.rows)
        return _answer(process, request)
    finally:
        process.end()
        IDLE.start(folders)


def _part(process: QueryProcess, request: Request) -> Answer | None:
    """The rows of a cancelled request so far; None where they are not known, or no answer."""
    if process.cancel(GRACE) and process.output:
        return _answer(process, request)
    no_rows = request.where is not None and process.rows == 0 and not request.profile
    return Answer(pl.DataFrame(), {"stopped": 1, "cancelled": 1}) if no_rows else None


def _answer(process: QueryProcess, request: Request) -> Answer:
    code = process.exit_code()
    if process.error is not None:
        raise errors.error_of_record(process.error)
    if code != 0:
        raise _over(
            f"the query ended without an answer ({process.noise[:200] or f'exit code {code}'}): it needed more than the"
            f" {views.units.format_bytes(request.memory)} there are for one",
            "ask for fewer rows or columns, or filter first" if request.sql is not None else request.cheaper,
        )
    return Answer(pl.read_ipc_stream(BytesIO(process.output)), process.counts)


def _time_limit_error(request: Request, seconds: float, rows: int) -> errors.InvalidRequestError:
    what = "profile" if request.profile else "query" if request.base is None else "comparison"
    none = " and none found" if request.is_rowwise and rows else ""  # else there would be a part
    so_far = "before its first column was done" if request.profile else f"with {rows_text(request, rows)}{none}"
    return _over(
        f"the {what} was stopped after {seconds:g} seconds, {so_far}", f"allow it more seconds, or {request.cheaper}"
    )


def _over(message: str, fix: str) -> errors.InvalidRequestError:
    return errors.InvalidRequestError(message, fix=fix, kind="over-budget")


@st.cache_resource(show_spinner=False)
def spark_jobs() -> SparkJobs:
    """This server's jobs; they end with it."""
    jobs = SparkJobs()
    atexit.register(jobs.close)
    return jobs


def run_on_spark(request: SparkRequest, on_wait: Callable[[JobProgress], object]) -> Answer:
    """The rows of a job, and what was counted. Any LakeviewError; `on_wait` may raise, which cancels the job."""
    visit = get_script_run_ctx()
    return Answer(*spark_jobs().run(request, user="" if visit is None else visit.session_id, on_wait=on_wait))


class _PartError(Exception):
    """Carries an answer past the cache, which caches no errors: rows that are a part."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def first_rows(request: Request, seconds: float) -> Answer:
    """The rows of a request; raises as `run`."""
    try:
        return _first_rows(request.address, request, seconds)
    except _PartError as part:
        return part.answer


@cache_values(16)
def _first_rows(_address: str, request: Request, seconds: float) -> Answer:
    answer = run(request, seconds=seconds, on_wait=_end_with_the_page)
    if answer.counts.get("stopped"):
        raise _PartError(answer)
    return answer


def _end_with_the_page(_progress: Progress) -> None:
    _ = "waiting" in st.session_state  # where Streamlit ends the run of a page that was left
