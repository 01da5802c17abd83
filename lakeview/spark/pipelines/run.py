"""A run of a pipeline: check, flows, publication, records. After a crash the next run goes on from there."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it says nothing of its types
from pyspark.errors import PySparkException

from lakeview.delta.table import DeltaTable
from lakeview.model.addresses import is_local, normalise
from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError, LakeviewError, StoreUnavailableError
from lakeview.spark.addresses import find_delta_table
from lakeview.spark.failures import lakeview_errors
from lakeview.spark.pipelines.config import PipelineConfig, read_config
from lakeview.spark.pipelines.graph import Graph
from lakeview.spark.pipelines.lineage import Checkpoints, flow_lineage, flow_mark, table_ids
from lakeview.spark.pipelines.project import find_spec, read_text, read_yaml
from lakeview.spark.pipelines.publish import Publisher, Step
from lakeview.spark.pipelines.records import Records, Row, commits_after
from lakeview.spark.pipelines.server import ATTEMPTS, LATE_WORKER, Server, local_server, remote_server
from lakeview.spark.pipelines.sources import Places

LOCK = ".lakeview-pipeline.lock"

Say = Callable[[str], None]
T = TypeVar("T")

_FAILURES = {"publish": "not published", "maintain": "not optimized or vacuumed"}


@dataclass(frozen=True)
class Where:
    """Where a pipeline runs: `remote`, the address of a Spark Connect server, or a session of ours on `master`."""

    master: str = "local[2]"
    remote: str | None = None
    memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """What a run needs of the specification of a Spark pipeline."""

    path: Path
    name: str
    storage: str
    namespace: str = ""
    """Catalog and database of its views, where it names them."""

    @staticmethod
    def read(folder: Path) -> Spec:
        """The specification in a folder. InvalidRequestError where it is missing, or names neither itself nor a
        storage; everything else is Spark's to check."""
        path = find_spec(folder)
        document = read_yaml(read_text(path), str(path))
        name, storage = (document.get(key) if isinstance(document, dict) else None for key in ("name", "storage"))
        if not isinstance(name, str) or not isinstance(storage, str) or not name or not storage:
            raise InvalidRequestError(
                f"{path} has no name or no storage", fix="give both, as text", place=str(path), kind="bad-pipeline"
            )
        namespace = [document.get("catalog"), document.get("database", document.get("schema"))]
        return Spec(path, name, storage, ".".join(str(part) for part in namespace if part))


def run_pipeline(
    folder: Path,
    where: Where | Server,
    *,
    clock: Clock,
    say: Say,
    user: str | None = None,
    step: Step = lambda _: None,
) -> str:
    """Run the pipeline of a project's folder; returns the id of the run.

    What an earlier run left undone is recorded and finished first. LakeviewError where the flows failed (nothing is
    published) or a dataset could not be published (the others are). `where` may be a Server that is there, for several
    runs in one JVM. `clock` dates the run, its records and the commits of what it publishes; `user` is their user name.
    `say` gets a line for each step; `step` the names of points at which a test may end the process.
    """
    folder = folder.resolve()
    spec, config = Spec.read(folder), read_config(folder)
    with lock_project(folder) as lock:
        return _Run(folder, spec, config, clock, say, user, step).run(where, lock)


@contextmanager
def lock_project(folder: Path) -> Iterator[int]:
    """A lock of the project, which the system drops with the last process that holds it: the file descriptor.

    InvalidRequestError while another run has it. It excludes runs on this machine."""
    try:
        descriptor = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise InvalidRequestError(
            f"{folder / LOCK} cannot be written: {error.strerror}", fix="run as a user who may write to the project",
            place=str(folder),
        ) from error  # fmt: skip
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InvalidRequestError(
            f"the pipeline in {folder} is running", fix="wait for that run to end", place=str(folder), kind="running"
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Run:
    def __init__(
        self, folder: Path, spec: Spec, config: PipelineConfig, clock: Clock, say: Say, user: str | None, step: Step
    ) -> None:
        self._folder, self._spec, self._config = folder, spec, config
        self._clock, self._say, self._user, self._step = clock, say, user, step
        self._start = clock()
        self._id = f"{self._start:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        self._records = Records(config.output, spec.name, clock, user, config.access)
        self._interrupted_runs: list[tuple[str, datetime]] = []
        self._fixes: list[str] = []

    def run(self, where: Where | Server, lock: int) -> str:
        self._note_interruptions()
        self._record("run", "started", ended=None)
        try:
            problems = self._steps(where, lock)
        except (PySparkException, Py4JJavaError) as error:
            raise self._failure(first_lines(str(error))) from error
        except LakeviewError as error:
            raise self._failure(error.message, error.fix) from error
        if problems:
            raise self._failure("; ".join(problems), "; ".join(self._fixes) or None)
        self._record("run", "succeeded")
        self._records.pack()
        return self._id

    def _steps(self, where: Where | Server, lock: int) -> list[str]:
        warehouse = f"{self._spec.storage.rstrip('/')}/_warehouse/{self._id}"
        if isinstance(where, Server):
            server = where
        elif where.remote is not None:
            server = remote_server(where.remote)
        else:
            server = local_server(
                "lakeview pipeline", warehouse, where.conf, master=where.master, memory=where.memory, short_job=True
            )
        try:
            graph = self._flows(server, lock)
            self._step("flows ran")
            self._record_flows(graph)
            self._step("flows recorded")
            return self._publish(server, graph)
        finally:
            if is_local(normalise(warehouse)):
                shutil.rmtree(normalise(warehouse), ignore_errors=True)

    def _flows(self, server: Server, lock: int) -> Graph:
        self._say(f"{self._spec.name}: check and run by Spark Declarative Pipelines")
        start = self._clock()
        answer = server.run_flows(self._spec.path, lock, self._user)
        if answer.error is None:
            self._record("flows", "succeeded", start)
            return answer.graph
        error = first_lines(answer.error)
        self._record(answer.step, "failed", start, error=error)
        raise LakeviewError(error, fix=answer.fix, place=str(self._spec.path), kind=f"pipeline-{answer.step}")

    def _record_flows(self, graph: Graph) -> None:
        """Rows and lineage of the commits that flows made since they were last recorded."""
        checkpoints = Checkpoints(self._spec.storage)
        for name, address in graph.sinks.items():
            sink = find_delta_table(address, "recorded", "write the sink as Delta", graph.access_to(name))
            if sink is not None:  # a flow has written a row
                self._record_commits(name, sink, graph, checkpoints)

    def _record_commits(self, name: str, sink: DeltaTable, graph: Graph, checkpoints: Checkpoints) -> None:
        mark = flow_mark(sink)
        inputs = graph.inputs_of(name)
        ids = table_ids(inputs, graph)
        starting = {ids[i.address]: i.starting for i in inputs if i.starting is not None and i.address in ids}
        for commit in commits_after(sink, self._records.last_recorded_version(mark)):
            query = commit.parameters.get("queryId")
            if query is None or checkpoints.is_of_other_flow(name, query):
                continue  # of another writer, or pipeline
            spans = checkpoints.spans(query, int(commit.parameters["epochId"]), starting)
            is_earlier = self._interrupted_runs and commit.timestamp < self._start
            run_id = self._interrupted_runs[-1][0] if is_earlier else self._id
            record = {"run_id": run_id, "dataset": name, "step": "flow"}
            output = {"output": sink.address, "output_version": commit.version, "timestamp": commit.timestamp}
            lineage = [record | row | output for row in flow_lineage(spans, inputs, ids)]
            run = record | {"status": "succeeded", "started": commit.timestamp, "ended": commit.timestamp}
            run |= {"rows_out": commit.rows, "output": sink.address, "version": commit.version}
            self._records.add({"lineage": lineage, "runs": [run]}, mark, commit.version)

    def _publish(self, server: Server, graph: Graph) -> list[str]:
        problems: list[str] = []
        for name, dataset in self._config.tables.items():
            places = Places(self._spec.name, self._config.output, name, self._config.access)
            publisher = Publisher(
                server.spark, self._id, places, dataset, graph, self._records, self._clock, self._step,
                self._spec.namespace, self._user, self._say,
            )  # fmt: skip
            outcome = self._try_step(name, "publish", publisher.publish, problems)
            if outcome is not None:
                self._say(f"{name}: {outcome}")
                self._try_step(name, "maintain", partial(publisher.maintain, outcome), problems)
        return problems

    def _try_step(self, name: str, step: str, do: Callable[[], T], problems: list[str]) -> T | None:
        """What a step of a dataset returns; None where it failed, which is recorded and added to the problems."""
        start = self._clock()
        try:
            return _with_late_workers(do)
        except (LakeviewError, PySparkException, Py4JJavaError) as error:
            message = first_lines(error.message if isinstance(error, LakeviewError) else str(error))
            self._record(step, "failed", start, dataset=name, error=message)
            problems.append(f"{name}: {message}")
            self._say(f"{name}: {_FAILURES[step]}: {message}")
            if isinstance(error, LakeviewError) and error.fix:
                self._fixes.append(f"{name}: {error.fix}")
                self._say(f"{name}: fix: {error.fix}")
            return None

    # -- records of the run

    def _note_interruptions(self) -> None:
        self._interrupted_runs = self._records.unfinished_runs()
        for run_id, start in self._interrupted_runs:
            self._record("run", "interrupted", start, run_id=run_id, error="the process ended before the run did")

    def _failure(self, message: str, fix: str | None = None) -> LakeviewError:
        self._record("run", "failed", error=message)
        return LakeviewError(message, fix=fix, place=self._id, kind="pipeline-failed")

    def _record(self, step: str, status: str, start: datetime | None = None, **more: object) -> None:
        row: Row = {"run_id": self._id, "step": step, "status": status}
        row |= {"started": start or self._start, "ended": self._clock()}
        self._records.add({"runs": [row | more]})


def _with_late_workers(do: Callable[[], T]) -> T:
    """What a step returns, tried again where a Python worker began too late: nothing is published twice."""
    for _ in range(ATTEMPTS - 1):
        try:
            with lakeview_errors():
                return do()
        except StoreUnavailableError as error:
            if error.kind != LATE_WORKER:
                raise
    with lakeview_errors():
        return do()


def first_lines(text: str) -> str:
    """An error of Spark's without its stack and query plan; of one of Python's, raised in a task, the last line too."""
    lines = [line for line in text.splitlines() if line.strip()]
    stop = next((i for i, line in enumerate(lines) if line.startswith(_STACK)), len(lines))
    start = next((i for i, line in enumerate(lines) if _TRACEBACK in line), None)
    if start is None or start > stop:
        return "\n".join(lines[: min(max(stop, 1), _ERROR_LINES)])
    cause = next((line for line in lines[start + 1 :] if not line.startswith(" ")), "")
    return "\n".join([*lines[:start], f"{lines[start].partition(_TRACEBACK)[0]}{cause}"][-_ERROR_LINES:])


_ERROR_LINES = 12
_TRACEBACK = "Traceback (most recent call last):"
_STACK = ("JVM stacktrace", "\tat ", "=== Streaming Query")
