"""A range of commits to the lines of what they changed: recorded change files if there are any, else adds and removes.

"Commits with cdc files give only those"; what only moved rows about (dataChange false) changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import polars as pl

from lakeview.delta.data.change_plan import cdc_actions, merged_nothing
from lakeview.delta.data.column_mapping import table_schema
from lakeview.delta.log.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, Metadata, Protocol, RemoveFile
from lakeview.delta.log.commits import Commit, only, vector_value
from lakeview.delta.log.history import History
from lakeview.delta.log.paths import canonical_paths, decode_path
from lakeview.delta.log.replay import table_protocol
from lakeview.delta.table import DeltaTable
from lakeview.schema import Schema
from lakeview.server.delta_lines import (
    feed,
    heads,
    known,
    needed_features,
    require_no_vector,
    vector_action,
    vector_path,
)
from lakeview.server.lines import Row, delta_row, parquet_row, rows_frame, servable
from lakeview.server.refusals import bad_parameter, not_recorded
from lakeview.server.source import ChangeBatch, ChangesWanted
from lakeview.sharing.protocol import ResponseFormat, encode_line
from lakeview.snapshot import TableProtocol

_CHUNK = 128
T = TypeVar("T")
_Action = AddFile | RemoveFile | AddCDCFile


def change_batches(table: DeltaTable, history: History, wanted: ChangesWanted) -> Iterator[ChangeBatch]:
    """The lines of a range, oldest first. What can be refused is refused before the first batch is made."""
    metadata = _within(history.properties(), wanted.start, wanted.end)
    protocols = _within(history.protocols(), wanted.start, wanted.end)
    if wanted.feed:
        _require_feed(table, metadata, wanted)
    _require_reader(table, protocols, wanted)
    times = dict(history.times().select("version", pl.col("timestamp").dt.epoch("ms")).iter_rows())
    return _Walk(table, wanted, metadata, protocols, times).batches()


def needed_between(table: DeltaTable, history: History, start: int, end: int, *, feed: bool) -> frozenset[str]:
    """Reader features that the changes of a range need, in lower case. Both ends may do without what lives only inside:
    a column mapping that was dropped again, or a deletion vector that a compaction did away with."""
    first = table.state(start)
    protocols = {start: first.protocol, **_within(history.protocols(), start, end)}
    documents = {start: first.metadata, **_within(history.properties(), start, end)}
    found: frozenset[str] = frozenset()
    for version in sorted({*protocols, *documents}):
        protocol = table_protocol(protocols[max(v for v in protocols if v <= version)])
        metadata = documents[max(v for v in documents if v <= version)]
        schema = _schema(table, metadata, protocol)
        found |= needed_features(protocol, metadata.properties, schema, vectors=False)
    if any("deletionVectors" in (p.reader_features or ()) for p in protocols.values()) and _has_vectors(
        table, start, end, feed=feed
    ):
        found |= {"deletionvectors"}
    return found


def _has_vectors(table: DeltaTable, start: int, end: int, *, feed: bool) -> bool:
    return any(
        not isinstance(action, AddCDCFile) and action.deletion_vector is not None
        for chunk in _chunks(start, end)
        for commit in table.log.commits(chunk)
        for action in _told_actions(commit, feed=feed)
    )


def _within(told: Mapping[int, T], start: int, end: int) -> dict[int, T]:
    return {v: value for v, value in told.items() if start < v <= end}


def _schema(table: DeltaTable, metadata: Metadata, protocol: TableProtocol) -> Schema:
    depth = table.storage.config.max_schema_depth
    return table_schema(metadata.schema_string, protocol, metadata.properties, max_depth=depth)


def _chunks(start: int, end: int) -> Iterator[range]:
    for chunk in range(start, end + 1, _CHUNK):
        yield range(chunk, min(chunk + _CHUNK, end + 1))


def _told_actions(commit: Commit, *, feed: bool) -> Sequence[_Action]:
    """What a commit changed: "commits with cdc files give only those" to who asked for the feed."""
    if feed and (recorded := list(cdc_actions(commit))):
        return recorded
    if feed and merged_nothing(commit):
        return ()
    files = [file for a in commit.actions for file in (a.add, a.remove) if file is not None]
    return [file for file in files if file.data_change]


def _require_feed(table: DeltaTable, metadata: Mapping[int, Metadata], wanted: ChangesWanted) -> None:
    for version, found in ((wanted.start, table.state(wanted.start).metadata), *sorted(metadata.items())):
        if not feed(found):
            raise not_recorded(wanted.start, wanted.end, version)


def _require_reader(table: DeltaTable, protocols: Mapping[int, Protocol], wanted: ChangesWanted) -> None:
    if wanted.response_format is ResponseFormat.DELTA:
        return
    first = table.state(wanted.start).protocol.min_reader_version
    for version, protocol in sorted(protocols.items()):
        if protocol.min_reader_version > first:
            raise bad_parameter(
                f"Delta protocol version ({protocol.min_reader_version}) of version {version} is too new for what was "
                f"read so far ({first})"
            )


class _Walk:
    def __init__(
        self,
        table: DeltaTable,
        wanted: ChangesWanted,
        metadata: Mapping[int, Metadata],
        protocols: Mapping[int, Protocol],
        times: Mapping[int, int],
    ) -> None:
        self._table = table
        self._wanted = wanted
        self._metadata = metadata
        self._protocols = protocols
        self._times = times
        self._partitions: dict[str, dict[str, str | None]] | None = None

    def batches(self) -> Iterator[ChangeBatch]:
        wanted = self._wanted
        for chunk in _chunks(wanted.start, wanted.end):
            rows: list[Row] = []
            between: list[tuple[int, bytes]] = []
            for commit in self._table.log.commits(chunk):
                between += [(len(rows), line) for line in self._told(commit.version)]
                rows += self._rows(commit)
            yield ChangeBatch(rows_frame(rows), tuple(between))

    def _told(self, version: int) -> Iterator[bytes]:
        """Protocol and metaData that hold from a version on."""
        wanted = self._wanted
        delta = wanted.response_format is ResponseFormat.DELTA
        if wanted.protocol and delta and version in self._protocols:
            body, _ = heads(self._protocols[version], Metadata(), Schema(), None)[ResponseFormat.DELTA]
            yield encode_line("protocol", {**_dict(body), "version": version})
        if wanted.metadata and version in self._metadata:
            state = self._table.state(version)
            found = self._metadata[version]
            schema = _schema(self._table, found, table_protocol(state.protocol))
            _, body = heads(state.protocol, found, schema, None)[wanted.response_format]
            yield encode_line("metaData", {**_dict(body), "version": version})

    def _rows(self, commit: Commit) -> list[Row]:
        beside: dict[str, Any] = {"version": commit.version}
        if (time := self._times.get(commit.version)) is not None:
            beside["timestamp"] = time
        actions = _told_actions(commit, feed=self._wanted.feed)
        root = self._table.storage.root
        paths = canonical_paths([decode_path(a.path) for a in actions], root)
        found = [self._row(a, servable(p), beside) for a, p in zip(actions, paths, strict=True)]
        if self._partitions is not None:
            self._learn([a for _, a in only("add", [commit])], root)
        return found

    def _row(self, action: _Action, path: str, beside: Mapping[str, Any]) -> Row:
        wanted = self._wanted
        values = self._values(action, path)
        vector = None if isinstance(action, AddCDCFile) else _vector(action.deletion_vector)
        if wanted.response_format is ResponseFormat.PARQUET:
            require_no_vector(vector)
            body = {"partitionValues": {k: v or "" for k, v in values.items()}, "size": action.size or 0, **beside}
            if isinstance(action, AddFile) and action.stats is not None:
                body["stats"] = action.stats
            return parquet_row(_PARQUET_KINDS[type(action)], path, body, wanted.scheme)
        fields = {k: v for k, v in msgspec.to_builtins(action).items() if v is not None}
        fields |= {"partitionValues": values, "deletionVector": vector_action(vector)}
        return delta_row(_DELTA_KINDS[type(action)], path, known(fields), vector_path(vector), beside, wanted.scheme)

    def _values(self, action: _Action, path: str) -> dict[str, str | None]:
        """Partition values; those of a remove that leaves them out are those of the add it undoes."""
        if action.partition_values is not None:
            return action.partition_values
        if self._partitions is None:
            before = max(self._wanted.start - 1, 0)
            adds = self._table.state(before).adds(["partition_values"])
            self._partitions = {k: v or {} for k, v in adds.select("key", "partition_values").iter_rows()}
        return self._partitions.get(path, {})

    def _learn(self, adds: Sequence[AddFile], root: str) -> None:
        assert self._partitions is not None
        for add, path in zip(adds, canonical_paths([decode_path(a.path) for a in adds], root), strict=True):
            self._partitions[path] = add.partition_values or {}


_PARQUET_KINDS = {AddFile: "add", RemoveFile: "remove", AddCDCFile: "cdf"}
_DELTA_KINDS = {AddFile: "add", RemoveFile: "remove", AddCDCFile: "cdc"}


def _vector(descriptor: DeletionVectorDescriptor | None) -> Mapping[str, Any] | None:
    return vector_value(descriptor)


def _dict(body: object) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(body)
    return found
