"""One run of Spark Declarative Pipelines, in a process of its own that is a client of a Spark Connect server.

    python -m lakeview.spark.pipelines.definitions SPEC ANSWER [--user NAME]

pyspark decides when it is imported whether a process talks to a server or owns a JVM, and lakeview's own owns one. The
server is named by SPARK_REMOTE. What the files define, and an error that ended the run, are written to ANSWER as JSON.
"""

import argparse
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, cast

import msgspec
from pyspark.errors import PySparkException
from pyspark.pipelines.add_pipeline_analysis_context import add_pipeline_analysis_context
from pyspark.pipelines.cli import PipelineSpec, load_pipeline_spec, register_definitions
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import Output, Sink, StreamingTable, Table, TemporaryView
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.model.clock import system_clock
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.spark.failures import lakeview_error
from lakeview.spark.option_values import STORAGE_PREFIX, as_spark_options, flag
from lakeview.spark.pipelines.checks import check_results
from lakeview.spark.pipelines.config import read_config
from lakeview.spark.pipelines.graph import FORMAT, Answer, FlowNode, Graph, absolute, inputs_in
from lakeview.spark.pipelines.lineage import Checkpoints, are_visible, check_publications, check_restart
from lakeview.spark.pipelines.records import Records
from lakeview.storage.access import StoreAccess

_FAILED_FLOW = re.compile(r"Flow '?`?([^' ]+?)`?'? has FAILED")


class Registry(SparkConnectGraphElementRegistry):
    """Registers what a pipeline's files define, as Spark's own does, and remembers it as a Graph.

    Refuses a table or materialized view of our format: Spark hands its Python writer no path (4.3), so that its rows
    would go nowhere.
    """

    def __init__(self, spark: SparkSession, graph_id: str, user: str | None = None) -> None:
        super().__init__(spark, graph_id)
        self._session, self._graph_id, self._user = spark, graph_id, user
        self.graph = Graph()
        """What has been registered."""

    def _add(self, field: str, item: object) -> None:
        self.graph = msgspec.structs.replace(self.graph, **{field: (*getattr(self.graph, field), item)})

    def register_output(self, output: Output) -> None:
        """Register a dataset or sink."""
        if isinstance(output, Table) and output.format == FORMAT:
            raise InvalidRequestError(
                f"{output.name} is a table or materialized view of format lakeview, which Spark 4.3 gives no path to "
                "write to",
                fix="leave the format out and let lakeview-pipeline.yml publish it (view: ..., publish: overwrite), or "
                'write to dp.create_sink(name, format="lakeview", options={"path": ...}) with an append flow',
                place=output.name,
                kind="view-without-path",
            )
        if isinstance(output, StreamingTable) and self._forgets_tables():
            # the next run would have its rows no more, and not read them again
            raise InvalidRequestError(
                f"{output.name} is a streaming table, and the catalog of this session forgets its tables when the run "
                "ends",
                fix='write to dp.create_sink(name, format="lakeview", options={"path": ...}), or give a catalog that '
                "lasts: --conf spark.sql.catalogImplementation=hive",
                place=output.name,
                kind="table-without-catalog",
            )
        if isinstance(output, Sink):
            output = self._absolute_sink(output)
        else:
            self._add("temporary_views" if isinstance(output, TemporaryView) else "datasets", output.name)
        super().register_output(output)

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        """Register what a SQL file defines, which the server alone reads."""
        self.graph = msgspec.structs.replace(self.graph, has_sql=True)
        super().register_sql(sql_text, file_path)

    def register_flow(self, flow: Flow) -> None:
        """Register a flow, its batch reads of lakeview tables pinned at their latest versions."""
        with add_pipeline_analysis_context(spark=self._session, dataflow_graph_id=self._graph_id, flow_name=flow.name):
            rows: Any = flow.func()
        relation = rows._plan.plan(cast(Any, self._session).client)

        def latest(address: str, access: StoreAccess) -> int:
            self.graph.input_options[address] = as_spark_options(access)
            return lv.open_table(address, storage_options=access.options).latest_version

        inputs, datasets = inputs_in(relation, latest)
        self._add("flows", FlowNode(flow.target, inputs, datasets, flow.name))
        frame = SimpleNamespace(_plan=SimpleNamespace(plan=lambda _: relation))
        super().register_flow(replace(flow, func=lambda: cast(Any, frame)))

    def _absolute_sink(self, sink: Sink) -> Sink:
        """A sink as it is registered: one of our format has an absolute path, and the user of the run."""
        if sink.format != FORMAT:
            return sink
        options = {k: absolute(v) if k.lower() == "path" else v for k, v in sink.options.items()}
        by_name = {k.lower(): v for k, v in options.items()}
        self.graph.sinks[sink.name] = by_name.get("path", "")
        storage_options = {name: value for name, value in by_name.items() if name.startswith(STORAGE_PREFIX)}
        if storage_options:
            self.graph.sink_options[sink.name] = storage_options
        if any(flag(by_name, name, default=False) for name in ("mergeschema", "overwriteschema")):
            self._add("evolving_sinks", sink.name)
        if self._user is not None and "username" not in by_name:
            options["userName"] = self._user
        return replace(sink, options=options)

    def _forgets_tables(self) -> bool:
        """True if the catalog of the session lives in memory: a table is gone after the run, its checkpoint is not."""
        catalog = self._session.conf.get("spark.sql.catalogImplementation", None)
        return catalog == "in-memory" and self._session.catalog.currentCatalog() == "spark_catalog"


def run(spec_path: Path, answer: Answer, user: str | None) -> None:
    """Check the pipeline by a dry run, and run it; `user`: of the commits to sinks that name none. Raises
    PySparkException and LakeviewError."""
    spec = load_pipeline_spec(spec_path)
    builder = SparkSession.builder.config("spark.sql.connect.serverStacktrace.enabled", "false")
    for name, value in spec.configuration.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        _start(spark, spec_path, spec, answer, user, dry=True)
        config = read_config(spec_path.parent)
        check_results(config, answer.graph)
        if are_visible(spec.storage, os.environ.get("SPARK_REMOTE", "")):
            records = Records(config.output, spec.name, system_clock, access=config.access)
            check_restart(answer.graph, Checkpoints(spec.storage), records, spec.storage)
        check_publications(answer.graph, config, spec.name)
        answer.step = "flows"
        _start(spark, spec_path, spec, answer, user, dry=False)
    finally:
        spark.stop()


def _start(spark: SparkSession, path: Path, spec: PipelineSpec, answer: Answer, user: str | None, *, dry: bool) -> None:
    graph_id = create_dataflow_graph(spark, spec.catalog, spec.database, spec.configuration)
    registry = Registry(spark, graph_id, user)
    register_definitions(path, registry, spec, spark, graph_id)
    answer.graph = registry.graph
    events = start_run(
        spark, graph_id, full_refresh=None, full_refresh_all=False, refresh=None, dry=dry, storage=spec.storage
    )
    handle_pipeline_events(with_failed_flow(events, answer))


def with_failed_flow(events: Iterable[dict[str, Any]], answer: Answer) -> Iterator[dict[str, Any]]:
    """The events of a run, which Spark prints; the answer has the flow that failed last, with what it writes to: the
    error that ends the run does not name it."""
    for event in events:
        message = event["pipeline_event_result"].event.message if "pipeline_event_result" in event else ""
        if match := _FAILED_FLOW.search(message):
            name = match[1].rpartition(".")[2]
            targets = {flow.name: flow.target for flow in answer.graph.flows}
            answer.flow = f"flow {name}" + (f" to {targets[name]}" if targets.get(name, name) != name else "")
        yield event


def main() -> int:
    """Exit code 0, or 1 with the error in the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("spec", type=Path)
    parser.add_argument("answer", type=Path)
    parser.add_argument("--user")
    options = parser.parse_args()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.excepthook = partial(_answer_with, options.answer, options.spec.parent)
    answer = Answer()
    try:
        run(options.spec, answer, options.user)
    except (LakeviewError, PySparkException) as error:
        take_error(answer, error)
    options.answer.write_bytes(msgspec.json.encode(answer))
    return 0 if answer.error is None else 1


def take_error(answer: Answer, error: LakeviewError | PySparkException) -> None:
    """Put an error that ended the run into the answer, in lakeview's words if it has any, with the flow that failed."""
    ours = error if isinstance(error, LakeviewError) else lakeview_error(str(error))
    answer.error = str(error) if ours is None else ours.message
    if ours is not None:
        answer.fix, answer.kind = ours.fix, ours.kind
    if answer.flow is not None:
        answer.error = f"{answer.flow}: {answer.error}"


def _answer_with(
    path: Path, folder: Path, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an error that a file of the project raised, and answer with it."""
    sys.__excepthook__(kind, error, trace)
    answer = Answer(error=error_of_file(error, folder), fix="correct the file; its stack is in the output")
    path.write_bytes(msgspec.json.encode(answer))


def error_of_file(error: BaseException, folder: Path) -> str:
    """An error of Python with the last line of a file below `folder` that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames if Path(frame.filename).is_relative_to(folder)]
    if isinstance(error, SyntaxError) and error.filename is not None:
        places.append((error.filename, error.lineno))
    where = f"{places[-1][0]}, line {places[-1][1]}: " if places else ""
    return where + "".join(traceback.format_exception_only(error)[-1:]).strip()


def _end_with_parent() -> None:
    """Ends this process when its standard input closes, as it does with the process that started it: a client whose
    server is gone otherwise tries again for minutes, and holds the project's lock."""
    while os.read(0, 1024):  # not by sys.stdin, whose lock would abort Python when it ends before the parent
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
