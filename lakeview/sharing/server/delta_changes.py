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
from lakeview.delta.log.commits import Commit, only, parse_commit, vector_value
from lakeview.delta.log.file_lines import mentions
from lakeview.delta.log.history import History
from lakeview.delta.log.paths import canonical_paths, commit_name, decode_path
from lakeview.delta.log.replay import table_protocol
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.table import DeltaTable
from lakeview.model.schema import Schema
from lakeview.model.snapshot import TableProtocol
from lakeview.sharing.protocol.messages import ResponseFormat, encode_line
from lakeview.sharing.server.delta_lines import (
    feed,
    heads,
    known,
    needed_features,
    require_no_vector,
    vector_action,
    vector_path,
)
from lakeview.sharing.server.lines import Row, delta_row, parquet_row, rows_frame, servable
from lakeview.sharing.server.refusals import bad_parameter, not_recorded
from lakeview.sharing.server.source import ChangeBatch, ChangesWanted, CommitRow

_ROWS = 512
T = TypeVar("T")
_Action = AddFile | RemoveFile | AddCDCFile


def change_batches(table: DeltaTable, history: History, wanted: ChangesWanted) -> Iterator[ChangeBatch]:
    """The lines of a range, oldest first, made as they are asked for.

    Refused before the first batch: a range without a feed, and a reader version that rises. Refused with the batch that
    holds it: a corrupt or missing commit, a path outside the table, a deletion vector that the protocol denies.
    """
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
    """Whether what a range changed has a deletion vector. Commits that do not mention one are not decoded."""
    return any(
        not isinstance(action, AddCDCFile) and action.deletion_vector is not None
        for _, actions in _changes_of(table, range(start, end + 1), feed=feed, mentioning="deletionVector")
        for action in actions
    )


def _within(told: Mapping[int, T], start: int, end: int) -> dict[int, T]:
    return {v: value for v, value in told.items() if start < v <= end}


def _schema(table: DeltaTable, metadata: Metadata, protocol: TableProtocol) -> Schema:
    depth = table.storage.config.max_schema_depth
    return table_schema(metadata.schema_string, protocol, metadata.properties, max_depth=depth)


def _changes_of(
    table: DeltaTable, versions: range, *, feed: bool, mentioning: str | None = None
) -> Iterator[tuple[Commit, Sequence[_Action]]]:
    """Commits, large ones in pieces, and what of each piece is a change. `mentioning`: pieces without a key of this
    name are left out, undecoded."""
    log = table.log
    known: dict[int, bool | None] = {}
    for version, data in log.each_piece(versions):
        if mentioning is not None and not mentions(data, mentioning):
            continue
        with log.whole_lines():
            commit = parse_commit(data, version, commit_name(version))
        if not feed or not log.in_pieces(version):
            yield commit, _changed_files(commit, feed=feed)
            continue
        if version not in known:
            known = {version: _recorded(log, version)}
        match known[version]:
            case True:
                yield commit, list(cdc_actions(commit))
            case False:
                yield commit, ()
            case None:
                yield commit, _changed_files(commit, feed=False)


def _recorded(log: TableLog, version: int) -> bool | None:
    """Of a commit that comes in pieces: True if it has cdc actions, False if it is a MERGE that changed nothing, None
    for any other. Pieces that mention neither are not decoded."""
    nothing = False
    for _, data in log.each_piece([version]):
        if mentions(data, "cdc", "commitInfo"):
            commit = parse_commit(data, version, commit_name(version))
            if next(cdc_actions(commit), None) is not None:
                return True
            nothing = nothing or merged_nothing(commit)
    return False if nothing else None


def _changed_files(commit: Commit, *, feed: bool) -> Sequence[_Action]:
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
        self._known_values: dict[tuple[tuple[str, str | None], ...], dict[str, str | None]] = {}

    def batches(self) -> Iterator[ChangeBatch]:
        """Batches of a few hundred rows: what is decoded ahead of them is one piece of the log, about 4 MiB."""
        wanted = self._wanted
        skipped = wanted.begin.row
        rows: list[Row] = []
        between: list[tuple[int, bytes]] = []
        begins: list[tuple[int, CommitRow]] = []
        last, done = -1, 0
        for commit, actions in _changes_of(self._table, range(wanted.begin.version, wanted.end + 1), feed=wanted.feed):
            version = commit.version
            if version != last:
                last, done = version, 0
                if not skipped:
                    begins.append((len(rows), CommitRow(version, 0)))
                    between += [(len(rows), line) for line in self._heads(version)]
            dropped = min(skipped, len(actions))
            skipped -= dropped
            done += dropped
            for row in self._rows(version, actions[dropped:]):
                if not begins:  # the first row of a batch that goes on with a version
                    begins.append((0, CommitRow(version, done)))
                rows.append(row)
                done += 1
                if len(rows) >= _ROWS:
                    yield ChangeBatch(rows_frame(rows), tuple(between), tuple(begins))
                    rows, between, begins = [], [], []
            self._learn(commit)
        if rows or between:
            yield ChangeBatch(rows_frame(rows), tuple(between), tuple(begins))

    def _heads(self, version: int) -> Iterator[bytes]:
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

    def _rows(self, version: int, actions: Sequence[_Action]) -> Iterator[Row]:
        """The rows of a version's actions, each made when it is asked for."""
        beside: dict[str, Any] = {"version": version}
        if (time := self._times.get(version)) is not None:
            beside["timestamp"] = time
        paths = canonical_paths([decode_path(a.path) for a in actions], self._table.storage.root)
        for action, path in zip(actions, paths, strict=True):
            yield self._row(action, servable(path), beside)

    def _row(self, action: _Action, path: str, beside: Mapping[str, Any]) -> Row:
        wanted = self._wanted
        values = self._values(beside["version"], action, path)
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

    def _values(self, version: int, action: _Action, path: str) -> dict[str, str | None]:
        """Partition values; those of a remove that leaves them out are those of the add it undoes."""
        if action.partition_values is not None:
            return action.partition_values
        if self._partitions is None:
            adds = self._table.state(max(version - 1, 0)).adds(["partition_values"])
            self._partitions = {k: self._shared(v) for k, v in adds.select("key", "partition_values").iter_rows()}
        return self._partitions.get(path, {})

    def _learn(self, commit: Commit) -> None:
        """Remember the partition values of what a commit adds, once a remove has left out its own."""
        if self._partitions is not None:
            adds = [a for _, a in only("add", [commit])]
            paths = canonical_paths([decode_path(a.path) for a in adds], self._table.storage.root)
            self._partitions |= {p: self._shared(a.partition_values) for a, p in zip(adds, paths, strict=True)}

    def _shared(self, values: dict[str, str | None] | None) -> dict[str, str | None]:
        """One dict for all files of a partition: a table has fewer partitions than files."""
        found = values or {}
        return self._known_values.setdefault(tuple(found.items()), found)


_PARQUET_KINDS = {AddFile: "add", RemoveFile: "remove", AddCDCFile: "cdf"}
_DELTA_KINDS = {AddFile: "add", RemoveFile: "remove", AddCDCFile: "cdc"}


def _vector(descriptor: DeletionVectorDescriptor | None) -> Mapping[str, Any] | None:
    return vector_value(descriptor)


def _dict(body: object) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(body)
    return found
