"""Checkpoints of a stream and commits of its sink to LINEAGE: which versions of which tables made which version; and to
whether its flows would go on where they ended."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.addresses import is_local, normalise
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.spark.pipelines.checks import check_columns
from lakeview.spark.pipelines.config import PipelineConfig
from lakeview.spark.pipelines.graph import FORMAT, Graph, Input, same_dataset
from lakeview.spark.pipelines.records import Records, Row
from lakeview.spark.pipelines.sources import Places, table_at
from lakeview.spark.row_stream import Offset
from lakeview.spark.stream_snapshots import SnapshotOffset
from lakeview.storage import open_storage


@dataclass(frozen=True)
class Span:
    """The versions of a table that a batch has read: what the commits `first` to `last` added, or with `first` None all
    rows that version `last` has; both None where they are not known by number, as the snapshots of an Iceberg table."""

    first: int | None
    last: int | None


def span(start: Offset | None, end: Offset, starting: int | None) -> Span | None:
    """What lies between two offsets; None for nothing. `starting`: the first commit of a stream without a start."""
    if start == end:
        return None
    if isinstance(start, SnapshotOffset) or isinstance(end, SnapshotOffset):
        return Span(None, None)
    last = end.version if end.index else end.version - 1
    if start is None:
        return Span(starting, last) if last >= (starting or 0) else None
    return Span(None if start.initial else start.version, last)


def offsets_in(text: str) -> list[dict[str, Any] | None]:
    """The offsets of the sources in one file of a checkpoint's `offsets`: version, metadata, then a line a source."""
    lines = text.splitlines()[2:]
    offsets = [None if line == "-" else msgspec.json.decode(line) for line in lines]
    return [offset if isinstance(offset, dict) else None for offset in offsets]


def table_offsets(text: str) -> dict[str, Offset]:
    """Id of a table -> its offset in one file of a checkpoint; sources of other formats are left out."""
    offsets: dict[str, Offset] = {}
    for each in offsets_in(text):
        for kind in (Offset, SnapshotOffset):
            if each is not None and each.keys() - {"first"} == {"table", kind.VERSION, "index", "initial"}:
                offset = kind.parse(each)
                offsets[offset.table] = offset
    return offsets


class Checkpoints:
    """The checkpoints in the storage of a pipeline: `_checkpoints/SINK/FLOW/NUMBER`, as Spark lays them out."""

    def __init__(self, pipeline_storage: str) -> None:
        self._storage = open_storage(f"{pipeline_storage.rstrip('/')}/_checkpoints")
        self._names = self._storage.walk()["name"].to_list()
        self._folders = dict(self._queries())

    def has_sink(self, name: str) -> bool:
        """True if a flow to this sink has a checkpoint."""
        return bool(self._of_sink(name))

    def may_have_written(self, name: str, sink: DeltaTable) -> bool:
        """False if no checkpoint here can be of a flow that wrote to the sink `name`: it is of none of the queries that
        the sink names. A flow that has ended no batch yet need not be among them: those of another pipeline may be."""
        queries = set(filter(_is_query, sink.snapshot().transactions["app_id"]))
        if not queries:
            return self.has_sink(name)
        if not self._folders.keys().isdisjoint(queries):
            return True
        return any(not any(n.startswith(f"{folder}/commits/") for n in self._names) for folder in self._of_sink(name))

    def is_of_other_flow(self, name: str, query: str) -> bool:
        """True if a query that wrote to the sink `name` is of another pipeline or stream: this sink has checkpoints
        here, and none is of it. An application that a sink names in place of its query is none of another's."""
        folders = self._of_sink(name)
        return bool(folders) and _is_query(query) and self._folders.get(query) not in folders

    def _of_sink(self, name: str) -> list[str]:
        return [folder for folder in self._folders.values() if same_dataset(folder.partition("/")[0], name)]

    def spans(self, query: str, batch: int, starting: Mapping[str, int]) -> dict[str, Span] | None:
        """Id of a table -> what a batch of a query has read of it; None where the checkpoint is not there (any more).

        `starting`: id of a table -> the first commit that the stream reads.
        """
        end = self._offsets(query, batch)
        if end is None:
            return None
        start = (self._offsets(query, batch - 1) or {}) if batch else {}
        spans = {table: span(start.get(table), offset, starting.get(table)) for table, offset in end.items()}
        return {table: each for table, each in spans.items() if each is not None}

    def _offsets(self, query: str, batch: int) -> dict[str, Offset] | None:
        if query not in self._folders:
            return None
        try:
            return table_offsets(self._storage.read(f"{self._folders[query]}/offsets/{batch}").decode())
        except FileNotFoundError:
            return None

    def _queries(self) -> Iterator[tuple[str, str]]:
        for path in self._names:
            folder, _, name = path.rpartition("/")
            # a flow with state has files of this name in deeper folders: NUMBER/state/0/_metadata
            if name == "metadata" and folder.rpartition("/")[2].isdigit():
                yield msgspec.json.decode(self._storage.read(path))["id"], folder


def _is_query(app_id: str) -> bool:
    """True for the id of a query; the option txnAppId of a sink names an application in its place."""
    try:
        return str(uuid.UUID(app_id)) == app_id
    except ValueError:
        return False


def flow_lineage(spans: Mapping[str, Span] | None, inputs: Sequence[Input], ids: Mapping[str, str]) -> list[Row]:
    """Input columns of LINEAGE for one batch of a flow. `ids`: address of a table -> its id. A table that the batch has
    read nothing of is left out; without spans, and for files, versions are null."""
    rows = []
    for source in inputs:
        table_span = None if spans is None else spans.get(ids.get(source.address, ""))
        if table_span is not None:
            rows.append(_row(source, table_span.first, table_span.last))
        elif not source.streams:
            rows.append(_row(source, None, source.version))
        elif spans is None or source.format != FORMAT:
            rows.append(_row(source, None, None))
    return rows


def table_ids(inputs: Sequence[Input], graph: Graph) -> dict[str, str]:
    """Address -> id, of the inputs that are lakeview tables; one that cannot be opened (any more) is left out."""
    ids = {}
    for source in inputs:
        if source.format == FORMAT:
            try:
                options = graph.access_to_input(source.address).options
                ids[source.address] = str(lv.open_table(source.address, storage_options=options).snapshot().id)
            except LakeviewError:
                continue
    return ids


def _row(source: Input, first: int | None, last: int | None) -> Row:
    return {"input": source.address, "input_from": first, "input_version": last}


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
        elif (last_version := records.last_recorded_version(flow_mark(sink))) > sink.latest_version:
            raise InvalidRequestError(
                f"the sink {name} at {address} ends at version {sink.latest_version}, and a flow has written its "
                f"version {last_version}: an older state of the sink was restored, and rows that were read since would "
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
        target, sink = table_at(places.address, config.access), None
        if dataset.sink is not None:
            places.check_sink(dataset, graph)
            if dataset.sink not in graph.evolving_sinks:
                sink = table_at(graph.sinks.get(dataset.sink, ""), graph.access_to(dataset.sink))
        snapshots = (None if table is None else table.snapshot() for table in (sink, target))
        check_columns(name, dataset, *snapshots)


def are_visible(storage: str, server: str) -> bool:
    """False if a pipeline's `storage` is a folder of another machine, that of the Spark server with this URL: none of
    its checkpoints would be seen here."""
    return not is_local(normalise(storage)) or urlsplit(server).hostname in (None, "localhost", "127.0.0.1", "::1")


def flow_mark(sink: DeltaTable) -> str:
    """What the records call the commits of flows to a sink."""
    return f"flow {sink.snapshot().id}"
