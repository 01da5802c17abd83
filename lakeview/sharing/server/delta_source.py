"""A Delta table to what the server asks of one: the log's own actions, written as the protocol wants them; of a range
of commits change files where a commit recorded them, else adds and removes."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.sharing import (
    AddCDCFile,
    AddFile,
    ChangeLog,
    CommitChanges,
    DeltaTable,
    Metadata,
    RemoveFile,
    check_type_changes,
    file_features,
    vector_value,
)
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.sharing.protocol.messages import ResponseFormat, encode_line
from lakeview.sharing.server.delta_lines import action_row, add_row, heads, records_changes
from lakeview.sharing.server.lines import Row, rows_frame, stats_texts
from lakeview.sharing.server.refusals import bad_parameter, not_recorded, unsupported_form
from lakeview.sharing.server.shared_version import FileIndex, SharedVersion
from lakeview.sharing.server.source import ChangeBatch, ChangeRange, CommitRow, Source

_COLUMNS = [
    "size", "modified", "data_change", "partition_values", "stats", "tags", "base_row_id",
    "default_row_commit_version", "vector", "records",
]  # fmt: skip


class DeltaSource(Source):
    """A Delta table."""

    _table: DeltaTable

    def __init__(self, table: DeltaTable, *, tell_sizes: bool = False) -> None:
        self._table = table
        self._log = ChangeLog(table)
        self._tell_sizes = tell_sizes

    def times(self, first: int = 0) -> pl.DataFrame:
        """`version` and `timestamp` that time travel uses, oldest first, from a version on."""
        return self._log.times().filter(pl.col("version") >= first)

    def require_shared(self, version: int, first: int, latest: int) -> None:
        """Refusal outside of what is shared."""
        if version > latest:
            raise bad_parameter(f"version {version} is after the latest available version {latest}")
        if version < first:
            raise bad_parameter(f"You can only query table data since version {first}.")

    def require_files(self, version: int) -> None:
        """Refusal if data files of a past version are gone."""
        latest = self._table.latest_version
        if version == latest:
            return
        past = self._table.files(version, ["path"])["path"]
        now = self._table.files(latest, ["path"])["path"]
        doubtful = past.filter(~past.is_in(now.implode()))
        if doubtful.is_empty():
            return
        if doubtful.len() <= 16:
            are_missing = not all(self.storage.exists(path) for path in doubtful)
        else:
            are_missing = not doubtful.is_in(self.storage.names().implode()).all()
        if are_missing:
            raise bad_parameter(f"table files missing: files of version {version} were removed by a vacuum")

    # -- one version

    def at(self, version: int) -> SharedVersion:
        """One version."""
        state = self._table.state(version)
        snapshot = self._table.snapshot(version)
        check_type_changes(snapshot.schema)
        if snapshot.data_format.lower() != "parquet":
            raise unsupported_form(f"Unsupported Delta Table Properties: data files of format {snapshot.data_format}")
        features = state.protocol.reader_features or ()
        vectors = "deletionVectors" in features and state.adds([])["deletion_vector"].is_not_null().any()

        def statistics(columns: list[str] | None = None) -> pl.DataFrame:
            return self._table.statistics(version, columns).reverse()

        def render(response_format: ResponseFormat, scheme: str) -> Iterator[Row]:
            parts = state.newest_first(_COLUMNS)
            if state.from_checkpoint and not any(f.physical_name for f in snapshot.schema):
                parts = _with_texts(parts, statistics, snapshot.schema)
            for adds in parts:
                yield from (add_row(row, response_format, scheme) for row in adds.iter_rows(named=True))

        sizes = (snapshot.num_files, snapshot.size_bytes) if self._tell_sizes else None
        return SharedVersion(
            version,
            None if snapshot.timestamp is None else milliseconds(snapshot.timestamp),
            snapshot.schema,
            file_features(snapshot.protocol, snapshot.properties, snapshot.schema, vectors=bool(vectors)),
            heads(state.protocol, state.metadata, snapshot.schema, sizes),
            FileIndex(
                lambda: state.adds(["records"]).reverse().select("path", "records", "deleted_records"),
                lambda: self._partitions(version, snapshot.partition_columns),
                statistics,
            ),
            render,
        )

    def _partitions(self, version: int, columns: list[str]) -> dict[str, pl.Series]:
        if not columns:
            return {}
        values = self._table.files(version, ["partition"])["partition"].struct.unnest().reverse()
        return {name: values[name] for name in columns}

    # -- changes

    def features_between(self, start: int, end: int, *, feed: bool) -> frozenset[str]:
        """Reader features that the changes of a range need, in lower case: also those that neither end needs, such as a
        column mapping that was dropped again, or a deletion vector that a compaction removed."""
        features: frozenset[str] = frozenset()
        for protocol, metadata, schema in self._log.definitions(start, end):
            features |= file_features(protocol, metadata.properties, schema, vectors=False)
        return features | {"deletionvectors"} if self._log.has_vectors(start, end, feed=feed) else features

    def changes(self, change_range: ChangeRange) -> Iterator[ChangeBatch]:
        """The lines of a range of versions, oldest first."""
        return ChangeLines(self._log, change_range).batches()


def _with_texts(
    parts: Iterator[pl.DataFrame], statistics: Callable[[], pl.DataFrame], schema: Schema
) -> Iterator[pl.DataFrame]:
    """Live files, newest first, with statistics as text: written out where a checkpoint has only structs of them."""
    every = cache(statistics)
    at = 0
    for adds in parts:
        part = every().slice(at, adds.height) if adds["stats"].has_nulls() else None
        at += adds.height
        if part is None or not part["_path"].equals(adds["path"]):
            yield adds
            continue
        without = adds["stats"].is_null()
        texts = stats_texts(part.filter(without), schema, adds["records"].filter(without))
        stats = pl.Series("stats", texts, dtype=pl.String)
        yield adds.with_columns(adds["stats"].scatter(without.arg_true(), stats))


_ROWS = 512


class ChangeLines:
    """The lines of a range of changes, made as they are asked for.

    Refused when it is made: a range without a feed, and a reader version that rises. Refused with the batch that holds
    it: a corrupt or missing commit, a path outside the table, a deletion vector that the protocol denies.
    """

    def __init__(self, log: ChangeLog, change_range: ChangeRange) -> None:
        self._log = log
        self._range = change_range
        self._metadata = log.metadata(change_range.start, change_range.end)
        self._protocols = log.protocols(change_range.start, change_range.end)
        for version, document in sorted(self._metadata.items()):
            if change_range.feed and not records_changes(document):
                raise not_recorded(change_range.start, change_range.end, version)
        first = self._protocols[change_range.start].min_reader_version
        for version, protocol in sorted(self._protocols.items()):
            if protocol.min_reader_version > first and change_range.response_format is ResponseFormat.PARQUET:
                raise bad_parameter(
                    f"Delta protocol version ({protocol.min_reader_version}) of version {version} is too new for what "
                    f"was read so far ({first})"
                )
        self._times = dict(log.times().select("version", pl.col("timestamp").dt.epoch("ms")).iter_rows())

    def batches(self) -> Iterator[ChangeBatch]:
        """Batches of a few hundred rows: what is decoded ahead of them is one piece of the log, about 4 MiB."""
        begin, end, feed = self._range.begin, self._range.end, self._range.feed
        rows_to_skip = begin.row
        rows: list[Row] = []
        between: list[tuple[int, bytes]] = []
        begins: list[tuple[int, CommitRow]] = []
        last, done = -1, 0
        for commit in self._log.changes(range(begin.version, end + 1), feed=feed):
            version = commit.version
            if version != last:
                last, done = version, 0
                if not rows_to_skip:
                    begins.append((len(rows), CommitRow(version, 0)))
                    between += [(len(rows), line) for line in self._heads(version)]
            first_row = min(rows_to_skip, len(commit.actions))
            rows_to_skip -= first_row
            done += first_row
            for row in self._rows(commit, first_row):
                if not begins:  # the first row of a batch that goes on with a version
                    begins.append((0, CommitRow(version, done)))
                rows.append(row)
                done += 1
                if len(rows) >= _ROWS:
                    yield ChangeBatch(rows_frame(rows), tuple(between), tuple(begins))
                    rows, between, begins = [], [], []
        if rows or between:
            yield ChangeBatch(rows_frame(rows), tuple(between), tuple(begins))

    def _heads(self, version: int) -> Iterator[bytes]:
        """Protocol and metaData that hold from a version after the first on."""
        change_range = self._range
        if version == change_range.start:
            return
        delta = change_range.response_format is ResponseFormat.DELTA
        if change_range.protocol and delta and version in self._protocols:
            body, _ = heads(self._protocols[version], Metadata(), Schema(), None)[ResponseFormat.DELTA]
            yield encode_line("protocol", {**_dict(body), "version": version})
        if change_range.metadata and version in self._metadata:
            metadata = self._metadata[version]
            protocol = self._protocols[max(v for v in self._protocols if v <= version)]
            schema = self._log.schema(metadata, protocol)
            _, body = heads(protocol, metadata, schema, None)[change_range.response_format]
            yield encode_line("metaData", {**_dict(body), "version": version})

    def _rows(self, commit: CommitChanges, start: int) -> Iterator[Row]:
        """The rows of a commit's changes from a position on, each made when it is asked for."""
        common: dict[str, Any] = {"version": commit.version}
        if (time := self._times.get(commit.version)) is not None:
            common["timestamp"] = time
        response_format, scheme = self._range.response_format, self._range.scheme
        for file in commit.files(start):
            action, kinds = file.action, _KINDS[type(file.action)]
            vector = None if isinstance(action, AddCDCFile) else vector_value(action.deletion_vector)
            fields = {**msgspec.to_builtins(action), "size": file.size}
            yield action_row(*kinds, file.path, fields, file.partition_values, vector, response_format, scheme, common)


_KINDS = {AddFile: ("add", "add"), RemoveFile: ("remove", "remove"), AddCDCFile: ("cdf", "cdc")}
"""Kinds of lines in parquet format, and of actions of the log."""


def _dict(body: object) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(body)
    return fields
