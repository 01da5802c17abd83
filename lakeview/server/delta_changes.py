"""A range of commits to the lines of what they changed: recorded change files if there are any, else adds and removes.

"Commits with cdc files give only those"; what only moved rows about (dataChange false) changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.data.change_plan import merged_nothing
from lakeview.delta.data.column_mapping import table_schema
from lakeview.delta.log.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, Metadata, Protocol, RemoveFile
from lakeview.delta.log.commits import Commit, only, vector_value
from lakeview.delta.log.history import History
from lakeview.delta.log.paths import canonical_paths, decode_path
from lakeview.delta.log.replay import table_protocol
from lakeview.delta.table import DeltaTable
from lakeview.schema import Schema
from lakeview.server.delta_lines import feed, heads, known, vector_action, vector_path
from lakeview.server.lines import Row, delta_row, parquet_row, rows_frame, servable
from lakeview.server.refusals import bad_parameter
from lakeview.server.source import ChangeBatch, ChangesWanted
from lakeview.sharing.protocol import ResponseFormat, encode_line

_CHUNK = 128
_Action = AddFile | RemoveFile | AddCDCFile


def change_batches(table: DeltaTable, history: History, wanted: ChangesWanted) -> Iterator[ChangeBatch]:
    """The lines of a range, oldest first. What can be refused is refused before the first batch is made."""
    metadata = {v: m for v, m in history.properties().items() if wanted.start < v <= wanted.end}
    protocols = {v: p for v, p in history.protocols().items() if wanted.start < v <= wanted.end}
    if wanted.feed:
        _require_feed(table, metadata, wanted)
    _require_reader(table, protocols, wanted)
    times = dict(history.times().select("version", pl.col("timestamp").dt.epoch("ms")).iter_rows())
    return _Walk(table, wanted, metadata, protocols, times).batches()


def _require_feed(table: DeltaTable, metadata: Mapping[int, Metadata], wanted: ChangesWanted) -> None:
    for version, found in ((wanted.start, table.state(wanted.start).metadata), *sorted(metadata.items())):
        if not feed(found):
            raise bad_parameter(
                f"Error getting change data for range [{wanted.start}, {wanted.end}] as change data was not recorded "
                f"for version [{version}]"
            )


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
        for chunk in range(wanted.start, wanted.end + 1, _CHUNK):
            rows: list[Row] = []
            between: list[tuple[int, bytes]] = []
            for commit in self._table.log.commits(range(chunk, min(chunk + _CHUNK, wanted.end + 1))):
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
            schema = table_schema(
                found.schema_string, table_protocol(state.protocol), found.properties,
                max_depth=self._table.storage.config.max_schema_depth,
            )  # fmt: skip
            _, body = heads(state.protocol, found, schema, None)[wanted.response_format]
            yield encode_line("metaData", {**_dict(body), "version": version})

    def _rows(self, commit: Commit) -> list[Row]:
        beside: dict[str, Any] = {"version": commit.version}
        if (time := self._times.get(commit.version)) is not None:
            beside["timestamp"] = time
        recorded = [msgspec.json.decode(a.cdc, type=AddCDCFile) for a in commit.actions if _given(a.cdc)]
        adds = [a for _, a in only("add", [commit])]
        removes = [a for _, a in only("remove", [commit])]
        actions: Sequence[_Action]
        if self._wanted.feed and recorded:
            actions = recorded
        elif self._wanted.feed and merged_nothing(commit):
            actions = ()
        else:
            actions = [a for a in (*adds, *removes) if a.data_change]
        root = self._table.storage.root
        paths = canonical_paths([decode_path(a.path) for a in actions], root)
        found = [self._row(a, servable(p), beside) for a, p in zip(actions, paths, strict=True)]
        if self._partitions is not None:
            self._learn(adds, root)
        return found

    def _row(self, action: _Action, path: str, beside: Mapping[str, Any]) -> Row:
        wanted = self._wanted
        values = self._values(action, path)
        if wanted.response_format is ResponseFormat.PARQUET:
            body = {"partitionValues": {k: v or "" for k, v in values.items()}, "size": action.size or 0, **beside}
            if isinstance(action, AddFile) and action.stats is not None:
                body["stats"] = action.stats
            return parquet_row(_PARQUET_KINDS[type(action)], path, body, wanted.scheme)
        vector = None if isinstance(action, AddCDCFile) else _vector(action.deletion_vector)
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


def _given(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _vector(descriptor: DeletionVectorDescriptor | None) -> Mapping[str, Any] | None:
    return vector_value(descriptor)


def _dict(body: object) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(body)
    return found
