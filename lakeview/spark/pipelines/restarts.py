"""Sinks and checkpoints of a pipeline to whether its flows would go on where they ended."""

from __future__ import annotations

from urllib.parse import urlsplit

from lakeview.delta.table import DeltaTable
from lakeview.model.addresses import is_local, normalise
from lakeview.model.errors import InvalidRequestError
from lakeview.spark.pipelines.checks import check_columns
from lakeview.spark.pipelines.config import PipelineConfig
from lakeview.spark.pipelines.graph import Graph
from lakeview.spark.pipelines.lineage import Checkpoints
from lakeview.spark.pipelines.records import Records
from lakeview.spark.pipelines.sources import Places, table_at


def check_restart(graph: Graph, checkpoints: Checkpoints, records: Records, storage: str) -> None:
    """InvalidRequestError where a sink has rows of this pipeline and `storage` no checkpoint of them, so that its flows
    would read all input again, and where a sink with a checkpoint was deleted, or an older state of it restored, so
    that they would not."""
    for name, address in graph.sinks.items():
        if not address:
            raise InvalidRequestError(
                f"the sink {name} has no path", fix='give one: options={"path": ...} of dp.create_sink', place=name
            )
        sink = table_at(address, graph.access_to(name))
        if sink is None:
            if checkpoints.has_sink(name) and records.has_flow_to(name, address):
                raise InvalidRequestError(
                    f"the sink {name} at {address} was deleted, and its checkpoint in {storage} was not: rows "
                    "that were read before would not be read again",
                    fix=f"restore the sink, or delete _checkpoints/{name} in the storage as well",
                    place=name,
                    kind="sink-without-rows",
                )
        elif records.last_recorded_version(flow_mark(sink)) >= 0 and not checkpoints.may_have_written(name, sink):
            raise InvalidRequestError(
                f"the sink {name} at {address} has rows of this pipeline, and {storage} no checkpoint of the flow "
                "that wrote them: it would read all input again",
                fix="correct `storage` if the project was moved or copied; to read all input again, delete the sink",
                place=name,
                kind="sink-without-checkpoint",
            )
        elif (recorded := records.last_recorded_version(flow_mark(sink))) > sink.latest_version:
            raise InvalidRequestError(
                f"the sink {name} at {address} ends at version {sink.latest_version}, and a flow has written its "
                f"version {recorded}: an older state of the sink was restored, and rows that were read since would "
                "not be read again",
                fix="restore the newer state of the sink; or delete the sink, and _checkpoints/"
                f"{name} in {storage}, to read all input again",
                place=name,
                kind="older-sink",
            )


def check_publications(graph: Graph, config: PipelineConfig, pipeline: str) -> None:
    """InvalidRequestError where a sink ends before a version of it that was published, by whichever writer: what flows
    write under that number would not be published. And for columns that the configuration names, and that tables which
    are there do not have."""
    for name, dataset in config.tables.items():
        places = Places(pipeline, config.output, name, config.access)
        published, sink = table_at(places.address, config.access), None
        if dataset.sink is not None:
            places.check_sink(dataset, graph)
            if dataset.sink not in graph.evolving_sinks:
                sink = table_at(graph.sinks.get(dataset.sink, ""), graph.access_to(dataset.sink))
        snapshots = (None if table is None else table.snapshot() for table in (sink, published))
        check_columns(name, dataset, *snapshots)


def are_visible(storage: str, server: str) -> bool:
    """False if a pipeline's `storage` is a folder of another machine, that of the Spark server with this URL: none of
    its checkpoints would be seen here."""
    return not is_local(normalise(storage)) or urlsplit(server).hostname in (None, "localhost", "127.0.0.1", "::1")


def flow_mark(sink: DeltaTable) -> str:
    """What the records call the commits of flows to a sink."""
    return f"flow {sink.snapshot().id}"
