"""The process that has the Spark session: reads jobs from standard input, and reports on them on standard output.

It ends when its standard input ends, so with the program that started it at the latest, and its JVM with it. Each job
runs in a thread. Started by `lakeview.jobs.process`.
"""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec
import polars as pl

from lakeview.jobs.messages import (
    Cancellation,
    Failure,
    JobCancelledError,
    Progress,
    Ready,
    Report,
    Result,
    Run,
    ToWorker,
)
from lakeview.model.errors import LakeviewError, StoreUnavailableError, error_record

POLL_SECONDS = 0.2

UNFINISHED_JOBS = 4
"""Cancelled jobs whose threads may go on at the same time without a place: neither Spark's planning of a query nor the
listing of a log ends early. A further one keeps its place until its thread ends."""


class Engine(Protocol):
    """What runs jobs."""

    def start(self) -> None:
        """Returns when jobs can run; called by the thread of each job."""

    def run(self, run: Run, on_step: Callable[[str], None]) -> tuple[pl.DataFrame, dict[str, int]]:
        """Returns a job's rows and counts; `on_step` is called with what it does next, and ends a cancelled job by an
        exception. Called by a thread of the job's own, once `start` has returned."""

    def cancel(self, job_id: str) -> None:
        """Ends what runs for a job now. Called again until the job has ended."""

    def tasks(self, job_id: str) -> tuple[int, int]:
        """How many tasks a job has until now, and how many of them are complete."""

    def is_usable(self) -> bool:
        """False if no further job can run in this process."""

    def close(self) -> None:
        """Ends all that was started."""


class _Job:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.step = "starting"
        self.cancellation = threading.Event()
        self.has_ended = False
        self.last: Progress | None = None

    def on_step(self, step: str) -> None:
        if self.cancellation.is_set():
            raise JobCancelledError("the job was cancelled")
        self.step = step


class Worker:
    """The jobs of one process: reports go to `output`, results to files in `folder`."""

    def __init__(self, engine: Engine, output: BinaryIO, folder: Path) -> None:
        self._engine = engine
        self._output = output
        self._folder = folder
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()

    def serve(self, lines: Iterable[bytes]) -> None:
        """Does what the lines ask for until there are no more, or no job can run any more."""
        threading.Thread(target=self._watch, name="lakeview-progress", daemon=True).start()
        decoder = msgspec.json.Decoder(ToWorker)
        for line in lines:
            match decoder.decode(line):
                case Run() as run:
                    job = _Job(run)
                    self._jobs[run.id] = job
                    threading.Thread(target=self._run, args=(job,), name=f"lakeview-job-{run.id}", daemon=True).start()
                case cancel:
                    if (job_to_cancel := self._jobs.get(cancel.id)) is not None:
                        job_to_cancel.cancellation.set()
                        # not by the thread that asks for tasks: its calls to a busy JVM may take seconds
                        self._engine.cancel(cancel.id)
                        if sum(job.cancellation.is_set() for job in list(self._jobs.values())) <= UNFINISHED_JOBS:
                            self._end(job_to_cancel, Cancellation(cancel.id))
        self._ending.set()

    def _run(self, job: _Job) -> None:
        job_id = job.run.id
        # what the job ends with, unless it comes to something better: a thread that is brought down reports too
        failure = LakeviewError("the job ended without an answer", kind="spark-job")
        report: Report = Failure(job_id, error_record(failure))
        try:
            job.on_step("starting Spark")
            self._engine.start()
            self._send(Ready())
            rows, counts = self._engine.run(job.run, job.on_step)
            report = Result(job_id, _write(rows, self._folder / f"{job_id}.arrow"), counts)
        except JobCancelledError:
            report = Cancellation(job_id)
        except LakeviewError as error:
            report = Failure(job_id, error_record(error))
        finally:
            self._end(job, report)
            del self._jobs[job_id]
            if not self._engine.is_usable():
                os._exit(1)  # the next job gets a process that can run it

    def _watch(self) -> None:
        while not self._ending.wait(POLL_SECONDS):
            for job_id, job in list(self._jobs.items()):
                if job.cancellation.is_set():
                    self._engine.cancel(job_id)  # again and again: between two jobs of Spark there is nothing to cancel
                    continue
                progress = Progress(job_id, job.step, *self._engine.tasks(job_id))
                if progress != job.last:
                    job.last = progress
                    self._send(progress)

    def _end(self, job: _Job, report: Report) -> None:
        """Report the end of a job, once: its place is free then. A cancelled job ends as cancelled: Spark's own error
        says nothing else, and the program does not read its rows, which are removed."""
        with self._lock:
            ended_before, job.has_ended = job.has_ended, True
        if job.cancellation.is_set():
            if isinstance(report, Result):
                Path(report.path).unlink(missing_ok=True)
            report = Cancellation(job.run.id)
        if not ended_before:
            self._send(report)

    def _send(self, report: Report) -> None:
        with self._lock, suppress(BrokenPipeError):  # the program has ended, and this process will
            self._output.write(msgspec.json.encode(report) + b"\n")
            self._output.flush()


def _write(rows: pl.DataFrame, path: Path) -> str:
    """The path of a file that has the rows. StoreUnavailableError where it cannot be written."""
    try:
        rows.write_ipc(path)
    except OSError as error:
        raise StoreUnavailableError(
            f"the rows of the job cannot be written to {path}: {error}",
            fix="free space there, or name a folder that has some by TMPDIR",
            place=str(path),
        ) from error
    return str(path)


def main(make_engine: Callable[[Mapping[str, str]], Engine]) -> None:
    """Serves this process's standard input with an engine of these settings. Arguments: a folder for results, which is
    removed at the end, and the settings as JSON."""
    # the JVM and libraries write to descriptor 1: reports get one that no child inherits
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    folder = Path(sys.argv[1])
    engine = make_engine(msgspec.json.decode(sys.argv[2], type=dict[str, str]))
    try:
        Worker(engine, output, folder).serve(sys.stdin.buffer)
    finally:
        engine.close()
        shutil.rmtree(folder, ignore_errors=True)
