"""Jobs on Spark from a notebook, the command line or the app: waited for, followed and cancelled.

    from lakeview.jobs import Request, SparkJobs

    with SparkJobs() as jobs:
        rows, counts = jobs.run(Request("profile", "lake/flights"))

One process has the Spark session. It is started by the first job, ended when there was none for a while, and started
again by the next one, also where it died.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from io import BytesIO
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from lakeview.jobs import messages
from lakeview.jobs.job import Answer, Job, Progress, State
from lakeview.jobs.messages import JobCancelledError, Report, Request
from lakeview.jobs.process import WORKER, SparkProcess
from lakeview.jobs.queue import FairQueue
from lakeview.model.errors import InvalidRequestError, LakeviewError, MissingExtraError, error_of_record

STEP_SECONDS = 0.2
IDLE_SECONDS = 300.0
START_SECONDS = 180.0
AT_ONCE = 2
"""Jobs that run at the same time; they share Spark's cores."""

CANCEL_SECONDS = 30.0
"""After which a process is killed in which jobs that were cancelled have all places."""


class SparkJobs:
    """A queue of jobs, and the process that runs them. Safe to use from several threads; `close` ends it all.

    `at_once`: jobs that run at the same time; `idle_seconds` without a job after which the process ends;
    `start_seconds` within which Spark has to start; `settings` of Spark, such as `spark.master` or
    `spark.driver.memory`; `module`: what the process runs. MissingExtraError without the extra `spark`.
    """

    def __init__(
        self,
        *,
        at_once: int = AT_ONCE,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
        settings: Mapping[str, str] | None = None,
        module: str = WORKER,
    ) -> None:
        if module == WORKER and not is_installed():
            raise MissingExtraError("jobs on Spark need pyspark, which is missing", fix="pip install 'lakeview[spark]'")
        self._at_once, self._idle_seconds, self._module = at_once, idle_seconds, module
        self._start_seconds = start_seconds
        self._settings = dict(settings or {})
        self._ids = count(1)
        self._lock = threading.RLock()
        self._queue: FairQueue[Job] = FairQueue()
        self._running: dict[str, Job] = {}
        self._process: SparkProcess | None = None
        self._idle: threading.Timer | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        process = self._process
        return None if process is None else process.pid

    def submit(self, request: Request, *, user: str = "") -> Job:
        """Puts a job into the queue, and starts it as soon as its turn comes. InvalidRequestError for one that its
        process could not be told."""
        messages.require_sendable(messages.Run("", user, request))
        with self._lock:
            if self._is_closed:
                raise InvalidRequestError("the jobs were closed", fix="make new ones: SparkJobs()")
            job = Job(f"lakeview-{next(self._ids)}", user, request, self._cancel)
            self._queue.put(user, job)
            self._start_jobs()
        return job

    def run(
        self, request: Request, *, user: str = "", on_wait: Callable[[Progress], object] = lambda _: None
    ) -> Answer:
        """A job's rows and counts. `on_wait` is called several times a second; what it raises cancels the job, as
        KeyboardInterrupt does."""
        job = self.submit(request, user=user)
        try:
            while not job.wait(STEP_SECONDS):
                on_wait(job.progress)
            return job.result()
        finally:
            job.cancel()

    def close(self) -> None:
        """Cancels all jobs and ends the process; returns when nothing is left of it. Idempotent."""
        with self._lock:
            self._is_closed = True
            while (job := self._queue.pop({})) is not None:
                job.end(State.CANCELLED, error=_cancellation())
            for job in self._running.values():
                job.end(State.CANCELLED, error=_cancellation())
            process = self._detach()
        if process is not None:
            process.end()

    def _detach(self) -> SparkProcess | None:
        """The process, which gets no further job."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process, self._running = self._process, None, {}
        return process

    def _start_jobs(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        while len(self._running) < self._at_once:
            job = self._queue.pop(Counter(running.user for running in self._running.values()))
            if job is None:
                break
            if self._process is None:
                self._process = SparkProcess(self._module, self._settings, self._take_report, self._take_end)
                _timer(self._start_seconds, self._end_unready, self._process)
            self._running[job.id] = job
            job.progress = Progress(State.RUNNING, "starting")
            self._process.send(messages.Run(job.id, job.user, job.request))
        if self._running or self._process is None:
            return
        if self._process.is_ready:
            self._idle = _timer(self._idle_seconds, self._end_idle, self._process)
        else:  # every job that waited for Spark is cancelled: it may hang
            self._process.kill()
            self._detach()

    def _end_unready(self, process: SparkProcess) -> None:
        """End a process whose Spark has not started in time, with the jobs that wait for it."""
        with self._lock:
            if self._process is not process or process.is_ready:
                return
            running = list(self._running.values())
            self._detach()
            process.kill()
            for job in running:
                job.end(State.FAILED, error=_not_started(self._start_seconds))
            self._start_jobs()

    def _end_idle(self, process: SparkProcess) -> None:
        with self._lock:
            if self._running or self._process is not process:
                return
            self._detach()
        process.end()

    def _cancel(self, job: Job) -> None:
        with self._lock:
            if self._queue.remove(job.user, job):
                job.end(State.CANCELLED, error=_cancellation())
            elif job.id in self._running and self._process is not None and not job.wait(0):
                job.end(State.CANCELLED, error=_cancellation())
                self._process.send(messages.Cancel(job.id))
                if self._process.is_ready:  # its place is free when the process says so
                    _timer(CANCEL_SECONDS, self._kill_hanging, self._process, job)
                else:
                    del self._running[job.id]
                    self._start_jobs()

    def _kill_hanging(self, process: SparkProcess, job: Job) -> None:
        with self._lock:
            hangs = self._process is process and job.id in self._running
            if hangs and all(running.progress.state is State.CANCELLED for running in self._running.values()):
                process.kill()

    def _take_report(self, process: SparkProcess, report: Report) -> None:
        with self._lock:
            if isinstance(report, messages.Ready):
                process.is_ready = True
                return
            job = self._running.get(report.id) if self._process is process else None
            if job is None:
                return
            match report:
                case messages.Progress(step=step, tasks=tasks, completed_tasks=complete):
                    if job.progress.state is State.RUNNING:
                        job.progress = Progress(State.RUNNING, step, tasks, complete)
                    return
                case messages.Result(path=path, counts=counts):
                    job.end(State.DONE, Answer(_rows(path), counts))
                case messages.Failure(error=error):
                    job.end(State.FAILED, error=error_of_record(error))
                case messages.Cancellation():
                    job.end(State.CANCELLED, error=_cancellation())
            del self._running[report.id]
            self._start_jobs()

    def _take_end(self, process: SparkProcess, how: str) -> None:
        with self._lock:
            if self._process is not process:  # it was ended by us
                return
            running = list(self._running.values())
            self._detach()
            for job in running:
                job.end(State.FAILED, error=_process_ended(how))
            if not self._is_closed:
                self._start_jobs()


def is_installed() -> bool:
    """True if the extra `spark` is installed."""
    return find_spec("pyspark") is not None


def _rows(path: str) -> pl.DataFrame:
    rows = pl.read_ipc(BytesIO(Path(path).read_bytes()))  # not mapped: the file is removed
    Path(path).unlink()
    return rows


def _timer(seconds: float, call: Callable[..., None], *arguments: object) -> threading.Timer:
    timer = threading.Timer(seconds, call, arguments)
    timer.daemon = True
    timer.start()
    return timer


def _cancellation() -> JobCancelledError:
    return JobCancelledError("the job was cancelled", fix="run it again")


def _not_started(seconds: float) -> LakeviewError:
    return LakeviewError(
        # also the error of a job that came last, and waited for less
        f"Spark did not start within {seconds:g} seconds of the first job that waited for it",
        fix="run it again when the machine is less busy, or give it more time: SparkJobs(start_seconds=...); with "
        "spark.master of a cluster, look whether it answers",
        kind="spark-not-started",
    )


def _process_ended(how: str) -> LakeviewError:
    return LakeviewError(
        f"the Spark process ended {how} while the job ran",
        fix="run it again: the next job starts a new process; if it ends again, raise spark.driver.memory",
        kind="spark-process-ended",
    )
