"""A job: where it is, how far, and what it gave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import polars as pl

from lakeview.jobs.messages import Request
from lakeview.model.errors import LakeviewError


class State(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: its state, what it does now, its tasks until now and those of them that are complete."""

    state: State
    step: str = ""
    tasks: int = 0
    completed_tasks: int = 0

    @property
    def share(self) -> float:
        """The share of its tasks that are complete, 0 to 1; there may be more tasks later."""
        return min(self.completed_tasks / self.tasks, 1.0) if self.tasks else 0.0

    @property
    def text(self) -> str:
        """One line, such as `values of all columns: 12 of 40 tasks`."""
        if self.state is State.WAITING:
            return "waiting for other jobs to end"
        return f"{self.step}: {self.completed_tasks:,} of {self.tasks:,} tasks" if self.tasks else self.step


class Answer(NamedTuple):
    """The rows of a job, and what was counted with them."""

    rows: pl.DataFrame
    counts: dict[str, int]


class Job:
    """A job that was submitted. `progress` is always current."""

    def __init__(self, job_id: str, user: str, request: Request, cancel: Callable[[Job], None]) -> None:
        self.id, self.user, self.request = job_id, user, request
        self.progress = Progress(State.WAITING)
        self._cancel = cancel
        self._end_event = threading.Event()
        self._answer: Answer | None = None
        self._error: LakeviewError | None = None

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it has ended; False if it has not within so many seconds."""
        return self._end_event.wait(seconds)

    def cancel(self) -> None:
        """Cancels it; one that has ended stays as it is."""
        self._cancel(self)

    def result(self) -> Answer:
        """The rows and counts, waited for. Raises the error of the job, JobCancelledError if it was cancelled."""
        self._end_event.wait()
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def end(self, state: State, answer: Answer | None = None, error: LakeviewError | None = None) -> None:
        """Sets its end, for the client that runs it: it is final, a later one changes nothing."""
        if self._end_event.is_set():
            return
        self.progress = Progress(state)
        self._answer, self._error = answer, error
        self._end_event.set()
