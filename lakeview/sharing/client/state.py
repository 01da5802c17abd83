"""A shared table at one version: its head at once, its files when they are first needed, as the Delta reader takes
them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import polars as pl
from msgspec.structs import replace

from lakeview.delta.data.column_mapping import table_schema
from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.scan import Scan
from lakeview.delta.features import check_readable
from lakeview.delta.log.commits import FILE_ACTIONS
from lakeview.delta.log.replay import table_protocol
from lakeview.delta.log.statistics_reader import StatisticsReader
from lakeview.model.config import Config
from lakeview.model.errors import NotATableError, SharingError, VersionNotFoundError
from lakeview.model.frames import DOMAIN_METADATA, TRANSACTIONS
from lakeview.model.schema import Field, Schema
from lakeview.model.snapshot import TableProtocol
from lakeview.predicates.expressions import parse
from lakeview.rows.tasks import FileTask
from lakeview.sharing.client.answers import Answer, Head
from lakeview.sharing.client.blocks import Blocks
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.file_lines import Listed, SignedUrl, listed
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.signed_files import SignedFiles
from lakeview.sharing.protocol.hints import json_hint, sql_hints
from lakeview.sharing.protocol.messages import QueryRequest, ResponseFormat

_MOVED_ON = "version-moved-on"
_LISTING = pl.Schema({**FILE_ACTIONS, "records": pl.Int64()})


class SharedState:
    """The state of a table as its server tells it. Implements `lakeview.delta.log.state.TableState`.

    `pinned`: whether the version was asked for, so that every request says it; without it the server's newest is
    meant, and must still be this one when files are asked for. Safe to use from several threads.
    """

    def __init__(
        self, client: SharingClient, table: TableName, head: Head, *, pinned: bool, address: str, config: Config,
        blocks: Blocks,
    ) -> None:  # fmt: skip
        self.head = head
        self.version = head.version
        self.pinned = pinned
        self._client = client
        self._table = table
        self._address = address
        self._lock = threading.RLock()
        self._frame: pl.DataFrame | None = None
        self._refresh_token: str | None = None
        self.properties: Mapping[str, str] = head.metadata.properties
        self.table_protocol = _protocol(head)
        if head.format is ResponseFormat.DELTA:
            check_readable(self.table_protocol, self.properties, address, by_number=True)
        self.schema: Schema = table_schema(
            head.metadata.schema_string, self.table_protocol, self.properties, max_depth=config.max_schema_depth
        )
        self.partitions: list[Field] = partition_fields(self.schema, head.metadata.partition_columns or [])
        self.files = SignedFiles(address, config, client.http, client.clock, blocks, {}, self._urls_again)

    # -- what the Delta reader asks for

    def adds(self, columns: Sequence[str], statistics: StatisticsReader | None = None) -> pl.DataFrame:
        """As `TableState.adds`; the first call asks the server for all files."""
        return _with(self._listing(), columns, statistics)

    def removes(self) -> pl.DataFrame:
        """None: a share has no tombstones."""
        return pl.DataFrame(schema=FILE_ACTIONS)

    def transactions(self) -> pl.DataFrame:
        """None: they are not shared."""
        return pl.DataFrame(schema=TRANSACTIONS)

    def domain_metadata(self) -> pl.DataFrame:
        """None: it is not shared."""
        return pl.DataFrame(schema=DOMAIN_METADATA)

    # -- scans

    def scan(self) -> Scan:
        """The files of this version, ready to be pruned."""
        return Scan(self, self.schema, self.partitions, self._address)

    def tasks(self, where: pl.Expr | None) -> Sequence[FileTask]:
        """The files a filter needs. Before all files are known, only those are asked for that the server keeps.

        What the server keeps is pruned here once more: hints are "BEST EFFORT".
        """
        if where is None or self._frame is not None:
            return self.scan().tasks(where)
        node = parse(where)
        hints = sql_hints(node, self.schema)
        if not hints:
            return self.scan().tasks(where)
        return self._some(QueryRequest(predicate_hints=hints, json_predicate_hints=json_hint(node, self.schema)), where)

    def enough(self, rows: int) -> Sequence[FileTask]:
        """Files that hold so many rows: a preview does not wait for the list of a million files.

        Only without a filter: "the server should apply predicateHints first then limitHint", and of the files it then
        keeps no row may pass the filter.
        """
        if self._frame is not None or rows > 2**31 - 1:
            return self.scan().tasks(None)
        return self._some(QueryRequest(limit_hint=rows), None)

    def _some(self, request: QueryRequest, where: pl.Expr | None) -> Sequence[FileTask]:
        found = self._query(request)
        self.files.add(found.urls)
        part = _Part(self, found.frame(self._address))
        return Scan(part, self.schema, self.partitions, self._address).tasks(where)

    # -- requests

    def _listing(self) -> pl.DataFrame:
        with self._lock:
            if self._frame is None:
                found = self._query(QueryRequest(include_refresh_token=self._may_refresh()))
                self.files.add(found.urls)
                self._frame = found.frame(self._address)
            return self._frame

    def _may_refresh(self) -> bool:
        # a server that ends its streams knows refresh tokens; older ones may refuse what they do not know
        return not self.pinned and self._client.ends_streams

    def _query(self, request: QueryRequest) -> Listed:
        """The files of this version; where the table has moved on, and its history is shared, by its number."""
        try:
            return self._asked(request)
        except VersionNotFoundError as moved:
            if self.pinned or moved.kind != _MOVED_ON:
                raise
            try:
                found = self._asked(replace(request, version=self.version, include_refresh_token=False))
            except SharingError as error:
                raise moved from error
            self.pinned = True
            return found

    def _asked(self, request: QueryRequest) -> Listed:
        if self.pinned and request.refresh_token is None:
            request = replace(request, version=self.version)
        answer = self._client.query(self._table, request)
        self._check(answer)
        until = None if answer.end is None else answer.end.min_url_expiration_timestamp
        if answer.end is not None and answer.end.refresh_token:
            self._refresh_token = answer.end.refresh_token
        return listed([(kind, file) for kind, file in answer.files if kind == "file"], until)

    def _check(self, answer: Answer) -> None:
        if answer.head.version != self.version:
            raise VersionNotFoundError(
                f"{self._address} is at version {answer.head.version} by now, and version {self.version} is not given",
                fix="refresh to see new versions, then read again",
                kind=_MOVED_ON,
            )
        if answer.head.metadata.schema_string != self.head.metadata.schema_string:
            raise SharingError(
                f"the server tells two schemas for version {self.version} of {self._address}",
                fix="ask whoever runs the server",
                kind="different-pages",
            )

    def _urls_again(self) -> Mapping[str, SignedUrl]:
        """URLs for the same files: by the refresh token if there is one, else by asking for the version again."""
        token = self._refresh_token
        if token is not None:
            try:
                return self._asked(QueryRequest(refresh_token=token, include_refresh_token=True)).urls
            except (SharingError, VersionNotFoundError):  # tokens hold for an hour
                self._refresh_token = None
        return self._query(QueryRequest()).urls


class _Part:
    """Some files of a state, listed for one filter. Implements TableState."""

    def __init__(self, state: SharedState, frame: pl.DataFrame) -> None:
        self._state = state
        self._frame = frame
        self.properties = state.properties
        self.table_protocol = state.table_protocol
        self.removes: Callable[[], pl.DataFrame] = state.removes
        self.transactions: Callable[[], pl.DataFrame] = state.transactions
        self.domain_metadata: Callable[[], pl.DataFrame] = state.domain_metadata

    def adds(self, columns: Sequence[str], statistics: StatisticsReader | None = None) -> pl.DataFrame:
        """As `TableState.adds`, of these files."""
        return _with(self._frame, columns, statistics)


def _with(frame: pl.DataFrame, columns: Sequence[str], statistics: StatisticsReader | None) -> pl.DataFrame:
    wanted = list(dict.fromkeys(["key", "path", "deletion_vector", "deleted_records", *columns]))
    found = frame.select([c for c in wanted if c in _LISTING])
    return found if statistics is None else found.with_columns(statistics.read(frame["stats"], None, frame.height))


def _protocol(head: Head) -> TableProtocol:
    """In delta format the log's own; in parquet format only the sharing protocol's version is known."""
    if head.format is ResponseFormat.DELTA:
        return table_protocol(head.protocol)
    return TableProtocol(min_reader_version=head.protocol.min_reader_version)


def head_of(client: SharingClient, table: TableName, version: int | None = None, at: datetime | None = None) -> Head:
    """The head at a version or a moment, or the newest.

    VersionNotFoundError with the server's words where it grants none, UnsupportedTableError for a table that is shared
    in another access mode than by URL. A server may have no answer about such a table: then its list is asked.
    """
    try:
        head = client.metadata(table, version=version, at=at).head
    except (SharingError, NotATableError) as error:
        if version is None and at is None and error.kind in ("sharing-refused", "not-shared"):
            with suppress(NotATableError, SharingError):  # what was refused first says more
                client.require_url_access(table)
        if error.kind != "sharing-refused" or (version is None and at is None):
            raise
        if at is not None and "is after the latest available version" in error.message:
            return client.metadata(table).head
        raise VersionNotFoundError(
            f"{table} is not given as it was at {f'version {version}' if at is None else f'{at:%Y-%m-%d %H:%M:%S}'}: "
            f"{error.message}",
            fix="read the latest version, or ask whoever shares the table to share its history",
            kind="version-not-shared",
        ) from error
    if version is not None and head.version != version:
        raise VersionNotFoundError(
            f"the server was asked for version {version} of {table} and answers with version {head.version}",
            fix="read the latest version: this server knows no earlier ones",
            kind="version-not-shared",
        )
    return head
