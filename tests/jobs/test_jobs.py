"""Jobs of several users in one process: turns, progress, cancel, and a process that dies. Spark is not started."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

import msgspec
import polars as pl
import pytest

from lakeview.jobs import Job, JobCancelledError, Progress, Request, SparkJobs, State
from lakeview.jobs.messages import Cancel, Cancellation, Failure, Report, Run
from lakeview.jobs.queue import FairQueue
from lakeview.jobs.worker import UNFINISHED_JOBS, Worker
from lakeview.model.errors import InvalidRequestError, LakeviewError, NotATableError
from tests.jobs.small_worker import Engine

MODULE = "tests.jobs.small_worker"
WAIT, ROWS = Request("wait", "lake/a"), Request("rows", "lake/a")


class DeafEngine(Engine):
    """Runs jobs that go on, whether or not they are cancelled, until all may end."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self.begun, self.goes_on = threading.Semaphore(0), threading.Event()

    def run(self, run: Run, on_step: Callable[[str], None]) -> tuple[pl.DataFrame, dict[str, int]]:
        on_step("planning")
        self.begun.release()
        self.goes_on.wait()
        if run.id != "j0":
            on_step("facts")
        return pl.DataFrame(), {}


def drain(queue: FairQueue[str], running: dict[str, int]) -> list[str]:
    items = []
    while (item := queue.pop(running)) is not None:
        items.append(item)
    return items


def test_users_take_turns_and_their_own_jobs_keep_their_order() -> None:
    queue: FairQueue[str] = FairQueue()
    for user, item in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")]:
        queue.put(user, item)
    assert len(queue) == 6
    assert drain(queue, {}) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_user_without_a_running_job_comes_before_one_who_has_some() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "b1"):
        queue.put(item[0], item)
    assert drain(queue, {"a": 1}) == ["b1", "a1"]


def test_a_job_that_waits_can_be_removed() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.put("a", "a1")
    assert (queue.remove("a", "a1"), queue.remove("a", "a1"), queue.pop({})) == (True, False, None)


@pytest.fixture(scope="module")
def jobs() -> Iterator[SparkJobs]:
    with SparkJobs(module=MODULE, at_once=1) as shared:
        yield shared


def running(jobs: SparkJobs) -> Job:
    """A job that has begun to wait."""
    job = jobs.submit(WAIT, user="ann")
    while job.progress.step != "waiting":
        assert not job.wait(0.01)
    return job


def test_a_result_comes_as_rows_and_leaves_no_file(jobs: SparkJobs) -> None:
    answer = jobs.run(ROWS, user="ann")
    assert (answer.rows.rows(), answer.counts) == ([("ann", "lake/a", "")], {"rows": 1})
    assert jobs._process is not None
    assert list(Path(jobs._process._folder).iterdir()) == []


def test_storage_options_go_along_unseen(jobs: SparkJobs) -> None:
    request = Request("rows", "lake/a", storage_options={"key": "s3cr3t", "timeout": 3})
    assert jobs.run(request).rows["options"].to_list() == ["key s3cr3t, timeout 3"]
    assert "s3cr3t" not in repr(request)
    with pytest.raises(InvalidRequestError, match="the storage option session is object, which another process"):
        Request("rows", "lake/a", storage_options={"session": object()})


def test_errors_are_those_of_the_library(jobs: SparkJobs) -> None:
    with pytest.raises(NotATableError) as refused:
        jobs.run(Request("refuse", "lake/b"))
    assert (refused.value.message, refused.value.fix, refused.value.place) == (
        "lake/b is no table", "look elsewhere", "lake/b",
    )  # fmt: skip
    with pytest.raises(LakeviewError, match="the job ended without an answer"):
        jobs.run(Request("fail", "lake/b"))


def test_rows_that_cannot_be_written_fail_their_job_with_the_reason(tmp_path: Path) -> None:
    reports = BytesIO()
    Worker(Engine({}), reports, tmp_path / "gone").serve([msgspec.json.encode(Run("j", "ann", ROWS))])
    for thread in threading.enumerate():
        if thread.name == "lakeview-job-j":
            thread.join()
    failure = msgspec.json.decode(reports.getvalue().splitlines()[-1], type=Report)
    assert isinstance(failure, Failure)
    assert "cannot be written to" in str(failure.error["message"])


@pytest.mark.parametrize(
    ("user", "request_sent"),
    [
        ("ann", Request("rows", "lake/\udcff")),
        ("\udcff", ROWS),
        ("ann", Request("rows", Path("lake"))),  # type: ignore[arg-type]
        ("ann", Request("rows", "lake/a", version="3")),  # type: ignore[arg-type]
        ("ann", Request("rows", "lake/a", columns="id")),  # type: ignore[arg-type]
    ],
)
def test_a_job_that_cannot_be_sent_is_refused_and_takes_no_place(
    jobs: SparkJobs, user: str, request_sent: Request
) -> None:
    job = running(jobs)
    with pytest.raises(InvalidRequestError, match="cannot be given to its process"):
        jobs.submit(request_sent, user=user)
    assert not job.wait(0)
    job.cancel()
    assert jobs.run(ROWS).counts == {"rows": 1}


def test_progress_and_cancel(jobs: SparkJobs) -> None:
    job = running(jobs)
    assert job.progress == Progress(State.RUNNING, "waiting", 8, 3)
    following = jobs.submit(ROWS, user="bob")
    assert following.progress == Progress(State.WAITING)
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result()
    assert following.result().counts == {"rows": 1}, "its place is free again, in the same process"
    job.cancel()
    assert job.progress.state is State.CANCELLED


def test_a_cancelled_job_takes_no_place_while_its_thread_goes_on_unless_there_are_many(tmp_path: Path) -> None:
    engine, reports = DeafEngine({}), BytesIO()

    def lines() -> Iterator[bytes]:
        for number in range(UNFINISHED_JOBS + 1):
            yield msgspec.json.encode(Run(f"j{number}", "ann", WAIT))
            assert engine.begun.acquire(timeout=30)
            yield msgspec.json.encode(Cancel(f"j{number}"))

    def cancelled() -> list[str]:
        parsed = [msgspec.json.decode(line, type=Report) for line in reports.getvalue().splitlines()]
        return sorted(report.id for report in parsed if isinstance(report, Cancellation))

    names = [f"j{number}" for number in range(UNFINISHED_JOBS + 1)]
    worker = Worker(engine, reports, tmp_path)
    worker.serve(lines())
    assert cancelled() == names[:-1]
    engine.goes_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("lakeview-job-j"):
            thread.join()
    assert cancelled() == names
    assert not list(tmp_path.iterdir()), "rows of j0, which it came to after its cancel, are removed"


def test_what_the_wait_raises_cancels_the_job(jobs: SparkJobs) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.step == "waiting":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.run(WAIT, on_wait=interrupt)
    assert jobs.run(ROWS).counts == {"rows": 1}


def test_a_process_that_dies_fails_its_job_and_the_next_has_a_new_one(jobs: SparkJobs) -> None:
    job, before = running(jobs), jobs.pid
    following = jobs.submit(ROWS)
    assert before is not None
    os.kill(before, signal.SIGKILL)
    with pytest.raises(LakeviewError) as error:
        job.result()
    assert error.value.message == "the Spark process ended by the signal SIGKILL while the job ran"
    assert (error.value.kind, job.progress.state) == ("spark-process-ended", State.FAILED)
    assert following.result().counts == {"rows": 1}
    assert jobs.pid != before


def test_a_process_that_does_not_start_ends_when_no_job_waits_for_it_or_its_time_is_over() -> None:
    hanging = {"spark.hangs": "1"}
    with SparkJobs(module=MODULE, at_once=2, settings=hanging) as jobs:
        waiting = [jobs.submit(WAIT) for _ in range(3)]
        process = jobs._process
        assert process is not None
        for job in waiting[:2]:
            job.cancel()
        assert (jobs.pid, waiting[2].progress.state) == (process.pid, State.RUNNING), "a job waits for it"
        waiting[2].cancel()
        process._reader.join(30)
        assert (jobs.pid, process._process.returncode) == (None, -signal.SIGKILL)
    with SparkJobs(module=MODULE, start_seconds=0, settings=hanging) as jobs:
        job = jobs.submit(WAIT)
        with pytest.raises(LakeviewError, match="Spark did not start within 0 seconds of the first job"):
            job.result()
        assert (jobs.pid, job.progress.state) == (None, State.FAILED)


def test_a_jvm_that_does_not_read_its_input_ends_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.jobs.process._JVM_SECONDS", 0.0)
    with SparkJobs(module=MODULE, settings={"spark.deaf": "1"}) as jobs:
        job = running(jobs)
        process = jobs._process
        assert process is not None
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        (jvm,) = [os.pidfd_open(int(pid)) for task in tasks for pid in (task / "children").read_text().split()]
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(LakeviewError, match="SIGKILL"):
            job.result()
        process._reader.join(30)
        assert select.select([jvm], [], [], 30)[0]
        os.close(jvm)


def test_a_process_that_the_program_itself_has_waited_for_fails_its_job_too() -> None:
    with SparkJobs(module=MODULE) as jobs:
        job, process = running(jobs), jobs._process
        assert process is not None
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that end are collected by the system
        try:
            os.kill(process.pid, signal.SIGKILL)
            process._reader.join(30)
            assert job.wait(0)
        finally:
            signal.signal(signal.SIGCHLD, before)
        with pytest.raises(LakeviewError, match="the Spark process ended"):
            job.result()


def test_closing_cancels_all_and_leaves_nothing(jobs: SparkJobs) -> None:
    first, second = running(jobs), jobs.submit(ROWS)
    process = jobs._process
    assert process is not None
    jobs.close()
    assert {first.progress.state, second.progress.state} == {State.CANCELLED}
    assert process._process.returncode == 0, "it ended by itself when its input did, as when the program dies"
    assert not Path(process._folder).exists()
    with pytest.raises(InvalidRequestError, match="closed"):
        jobs.submit(ROWS)


def test_a_process_has_its_settings_and_ends_without_jobs() -> None:
    with SparkJobs(module=MODULE, idle_seconds=0, settings={"spark.cores.max": "3"}) as jobs:
        job = jobs.submit(ROWS)
        process = jobs._process
        assert process is not None
        assert job.result().counts == {"rows": 1, "spark.cores.max": 3}
        process._reader.join()
        assert (jobs.pid, process._process.returncode) == (None, 0)
