"""The process with the Spark session, as programs use it: one start for all that it has to show."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.jobs import JobCancelledError, Progress, Request, SparkJobs, State
from lakeview.model.errors import LakeviewError, NotATableError
from lakeview.views.data.profile import profile
from tests.quick_spark import quick_settings

pytestmark = pytest.mark.spark


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    pids: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended since it was listed
            pids += map(int, (thread / "children").read_text().split())
    return pids


def has_ended(descriptor: int, seconds: float) -> bool:
    """True if the process that a descriptor of it names ends within so many seconds."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def test_a_profile_with_progress_a_cancel_and_a_kill(tmp_path: Path) -> None:
    address = str(tmp_path / "table")
    rows = pa.table({"id": range(1000), "text": [f"v{i % 7}" for i in range(1000)]})
    lv.create_table(address, rows.schema).append(rows)
    request = Request("profile", address)
    progress_calls: list[Progress] = []

    with SparkJobs(at_once=1, settings=quick_settings()) as jobs:
        answer = jobs.run(request, on_wait=progress_calls.append)
        assert answer.rows.to_dicts() == profile(lv.scan(address))[0].to_dicts()
        assert answer.counts == {"rows": 1000}
        steps = list(dict.fromkeys(progress.step for progress in progress_calls))
        assert steps[0] == "starting"
        assert {"starting Spark", "values of all columns"} <= set(steps)
        assert (
            max(progress.tasks for progress in progress_calls)
            >= max(progress.completed_tasks for progress in progress_calls)
            > 0
        )

        with pytest.raises(NotATableError):
            jobs.run(Request("profile", str(tmp_path / "nowhere")))

        pid = jobs.pid
        cancelled, following = jobs.submit(request), jobs.submit(request)
        while "columns" not in cancelled.progress.step:
            assert not cancelled.wait(0.01)
        cancelled.cancel()
        with pytest.raises(JobCancelledError):
            cancelled.result()
        while following.progress.state is State.WAITING:
            assert not following.wait(0.01)
        assert jobs.pid == pid, "the worker let go of the job by itself"

        assert pid is not None
        (jvm,) = [os.pidfd_open(child) for child in children(pid)]
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(LakeviewError, match="the Spark process ended by the signal SIGKILL"):
            following.result()
        assert has_ended(jvm, 30), "its JVM ends with it"
        os.close(jvm)
