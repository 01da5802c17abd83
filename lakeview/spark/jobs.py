"""Jobs on a Spark session: one job group each, started when the first job comes. The Spark process runs this module."""

import threading
from collections.abc import Callable, Mapping

import polars as pl
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it says nothing of its types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeview.jobs.messages import Request, Run
from lakeview.jobs.worker import main
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.spark.failures import lakeview_error
from lakeview.spark.profile import profile
from lakeview.spark.replay import roll_up
from lakeview.spark.sessions import jvm_has_ended, session

OnStep = Callable[[str], None]
Rows = tuple[pl.DataFrame, dict[str, int]]


def _profile(spark: SparkSession, request: Request, on_step: OnStep) -> Rows:
    rows, count = profile(
        spark,
        request.address,
        version=request.version,
        where=request.where,
        columns=request.columns,
        storage_options=request.storage_options,
        on_step=on_step,
    )
    return rows, {"rows": count}


def _roll_up(spark: SparkSession, request: Request, on_step: OnStep) -> Rows:
    on_step("files by partition and size")
    files = roll_up(spark, request.address, request.version, storage_options=request.storage_options)
    rows = pl.from_arrow(files.toArrow())
    assert isinstance(rows, pl.DataFrame)
    return rows, {}


KINDS: Mapping[str, Callable[[SparkSession, Request, OnStep], Rows]] = {"profile": _profile, "roll_up": _roll_up}
"""Kinds of jobs."""


KILL_TIMEOUT = "spark.python.task.killTimeout"
"""Spark's setting: how long the Python worker of a task that was cancelled goes on after Spark, every two seconds, has
looked for such tasks (two seconds more by default)."""


class SparkEngine:
    """The session of this process, on all cores unless the settings name another master. Jobs of one user share a pool,
    and pools share the cores (Spark's FAIR mode)."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = {"spark.scheduler.mode": "FAIR", KILL_TIMEOUT: "100ms", **settings}
        self._master = self._settings.pop("spark.master", "local[*]")
        self._memory = self._settings.pop("spark.driver.memory", "2g")
        self._starting = threading.Lock()
        self._spark: SparkSession | None = None

    def start(self) -> None:
        """As `Engine.start`."""
        with self._starting:
            if self._spark is None:
                self._spark = session(
                    "lakeview jobs", master=self._master, memory=self._memory, extra=self._settings, own_group=False
                )

    def run(self, run: Run, on_step: OnStep) -> Rows:
        """As `Engine.run`. InvalidRequestError for a kind that there is not, LakeviewError for what Spark refuses."""
        assert self._spark is not None
        kind = KINDS.get(run.request.kind)
        if kind is None:
            raise InvalidRequestError(f"there is no job {run.request.kind}", fix=f"choose from {', '.join(KINDS)}")
        context = self._spark.sparkContext
        context.setJobGroup(run.id, f"{run.request.kind} of {run.request.address}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", run.user or "default")
        try:
            return kind(self._spark, run.request, on_step)
        except (PySparkException, Py4JError) as error:
            first = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
            raise lakeview_error(str(error)) or LakeviewError(
                f"Spark could not run the job: {first}", kind="spark-job"
            ) from error

    def cancel(self, job_id: str) -> None:
        """As `Engine.cancel`."""
        if self._spark is not None and self.is_usable():
            self._spark.sparkContext.cancelJobGroup(job_id)

    def tasks(self, job_id: str) -> tuple[int, int]:
        """As `Engine.tasks`."""
        if self._spark is None or not self.is_usable():
            return 0, 0
        tracker = self._spark.sparkContext.statusTracker()
        tasks = complete = 0
        for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(job_id)):
            for stage in map(tracker.getStageInfo, () if job is None else job.stageIds):
                if job is not None and stage is not None:
                    complete += stage.numCompletedTasks
                    # a job that has ended leaves stages out whose results were there already
                    tasks += stage.numCompletedTasks if job.status == "SUCCEEDED" else stage.numTasks
        return tasks, complete

    def is_usable(self) -> bool:
        """As `Engine.is_usable`: a Python can start only one JVM."""
        return not jvm_has_ended()

    def close(self) -> None:
        """As `Engine.close`: the session and its JVM end with the interpreter."""


if __name__ == "__main__":
    main(SparkEngine)
