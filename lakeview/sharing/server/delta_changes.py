"""The changes of a range of commits as protocol lines: change files where a commit recorded them, else adds and
removes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.sharing import (
    AddCDCFile,
    AddFile,
    ChangedFile,
    ChangeLog,
    CommitChanges,
    Metadata,
    RemoveFile,
    vector_value,
)
from lakeview.model.schema import Schema
from lakeview.sharing.protocol.messages import ResponseFormat, encode_line
from lakeview.sharing.server.delta_lines import action_row, heads, records_changes
from lakeview.sharing.server.lines import Row, rows_frame
from lakeview.sharing.server.refusals import bad_parameter, not_recorded
from lakeview.sharing.server.source import ChangeBatch, ChangeRange, CommitRow

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
        self._require_feed()
        self._require_reader()
        self._times = dict(log.times().select("version", pl.col("timestamp").dt.epoch("ms")).iter_rows())

    def _require_feed(self) -> None:
        for version, document in sorted(self._metadata.items()):
            if self._range.feed and not records_changes(document):
                raise not_recorded(self._range.start, self._range.end, version)

    def _require_reader(self) -> None:
        first = self._protocols[self._range.start].min_reader_version
        for version, protocol in sorted(self._protocols.items()):
            if protocol.min_reader_version > first and self._range.response_format is ResponseFormat.PARQUET:
                raise bad_parameter(
                    f"Delta protocol version ({protocol.min_reader_version}) of version {version} is too new for what "
                    f"was read so far ({first})"
                )

    def batches(self) -> Iterator[ChangeBatch]:
        """Batches of a few hundred rows: what is decoded ahead of them is one piece of the log, about 4 MiB."""
        begin, end, feed = self._range.begin, self._range.end, self._range.feed
        skipped = begin.row
        rows: list[Row] = []
        between: list[tuple[int, bytes]] = []
        begins: list[tuple[int, CommitRow]] = []
        last, done = -1, 0
        for commit in self._log.changes(range(begin.version, end + 1), feed=feed):
            version = commit.version
            if version != last:
                last, done = version, 0
                if not skipped:
                    begins.append((len(rows), CommitRow(version, 0)))
                    between += [(len(rows), line) for line in self._heads(version)]
            dropped = min(skipped, len(commit.actions))
            skipped -= dropped
            done += dropped
            for row in self._rows(commit, dropped):
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
        for file in commit.files(start):
            yield self._row(file, common)

    def _row(self, file: ChangedFile, common: Mapping[str, Any]) -> Row:
        action, response_format = file.action, self._range.response_format
        vector = None if isinstance(action, AddCDCFile) else vector_value(action.deletion_vector)
        kinds, values = _KINDS[type(action)], file.partition_values
        fields = {**msgspec.to_builtins(action), "size": file.size}
        return action_row(*kinds, file.path, fields, values, vector, response_format, self._range.scheme, common)


_KINDS = {AddFile: ("add", "add"), RemoveFile: ("remove", "remove"), AddCDCFile: ("cdf", "cdc")}
"""Kinds of lines in parquet format, and of actions of the log."""


def _dict(body: object) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(body)
    return fields
