"""A Spark process without Spark: the same messages, and jobs that wait, fail or end it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping

import polars as pl

import lakeview as lv
from lakeview.jobs.messages import Run
from lakeview.jobs.worker import main
from lakeview.model.errors import NotATableError
from lakeview.views.data.profile import profile


class Engine:
    """Runs the kinds rows, profile (by polars), wait, refuse, fail and exit."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._cancelled: dict[str, threading.Event] = {}

    def start(self) -> None:
        if "spark.deaf" in self._settings:  # as a JVM that hangs: it has our standard error, and reads no input
            program = "import signal; signal.alarm(60); signal.pause()"
            subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        if "spark.hangs" in self._settings:
            threading.Event().wait()

    def run(self, run: Run, on_step: Callable[[str], None]) -> tuple[pl.DataFrame, dict[str, int]]:
        request = run.request
        match request.kind:
            case "wait":
                on_step("waiting")
                self._cancelled.setdefault(run.id, threading.Event()).wait()
                raise RuntimeError("Job 0 cancelled part of cancelled job group")
            case "refuse":
                raise NotATableError(f"{request.address} is no table", fix="look elsewhere", place=request.address)
            case "profile":
                rows, count = profile(lv.scan(request.address))
                return rows, {"rows": count}
            case "exit":
                os._exit(3)
            case "fail":
                raise RuntimeError("this is a bug")
        counts = {"rows": 1, **{name: int(value) for name, value in self._settings.items()}}
        options = ", ".join(f"{name} {value}" for name, value in request.storage_options.items())
        return pl.DataFrame({"user": [run.user], "address": [request.address], "options": [options]}), counts

    def cancel(self, job_id: str) -> None:
        self._cancelled.setdefault(job_id, threading.Event()).set()

    def tasks(self, job_id: str) -> tuple[int, int]:
        return 8, 3

    def is_usable(self) -> bool:
        return True

    def close(self) -> None:
        pass


if __name__ == "__main__":
    main(Engine)
