"""A shared table at one version: its head at once, its files when they are first needed, as the Delta reader takes
them; and the first version that its server lets be read, found by asking."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import polars as pl
from msgspec.structs import replace

from lakeview.delta.sharing import check_type_changes, listed_files, read_head
from lakeview.model.config import Config
from lakeview.model.errors import NotATableError, SharingError, UnsupportedTableError, VersionNotFoundError
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import VERSIONS
from lakeview.model.table_metadata import TableMetadata
from lakeview.predicates.expressions import parse
from lakeview.predicates.hints import json_hint, sql_hints
from lakeview.rows.tasks import FileTask
from lakeview.sharing.client.answers import Answer, Head
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.file_lines import FileListing, SignedUrl, read_version_files
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.range_file import Blocks
from lakeview.sharing.client.signed_files import SignedFiles
from lakeview.sharing.protocol.messages import QueryRequest, ResponseFormat

_MOVED_ON = "version-moved-on"


class SharedState:
    """A shared table at one version, as its server describes it. `listed`: its files, requested when first needed.

    `pinned`: requests name the version; without it the server's latest version is meant, and must still be this one
    when files are requested. Safe to use from several threads.
    """

    def __init__(
        self, client: SharingClient, table: TableName, head: Head, *, is_pinned: bool, address: str, config: Config,
        blocks: Blocks,
    ) -> None:  # fmt: skip
        self.head = head
        self.version = head.version
        self.is_pinned = is_pinned
        self._client = client
        self._table = table
        self._address = address
        self._lock = threading.RLock()
        self._frame: pl.DataFrame | None = None
        self._refresh_token: str | None = None
        is_delta = head.format is ResponseFormat.DELTA
        self._head = read_head(head.protocol, head.metadata, address, config.max_schema_depth, of_log=is_delta)
        self.schema = self._head.schema
        self.listed_files = listed_files(self._head, self._listing)
        self.files = SignedFiles(address, config, client.http, client.clock, blocks, {}, self._urls_again)

    def describe(self) -> TableMetadata:
        """The identity and definition of the table. When the version was committed is not shared: null."""
        metadata = self.head.metadata
        return TableMetadata(
            address=self._address,
            format="sharing",
            version=self.version,
            timestamp=None,
            schema=self.schema,
            partition_columns=tuple(metadata.partition_columns or ()),
            properties=metadata.properties,
            protocol=self._head.protocol,
            id=metadata.id,
            name=metadata.name or self._table.name,
            description=metadata.description,
            created=None,
            data_format=metadata.format.provider,
        )

    # -- scans

    def require_rows(self) -> None:
        """UnsupportedTableError for data files, or a change of a type, that this reader does not read."""
        provider = self.head.metadata.format.provider
        if provider.lower() != "parquet":
            raise UnsupportedTableError(
                f"{self._address} keeps its rows in {provider} files, which this reader does not read",
                fix="read the rows with the engine that wrote them",
                place="metaData.format.provider",
                kind="unsupported-data-format",
            )
        check_type_changes(self.schema)

    def tasks(self, where: pl.Expr | None) -> Sequence[FileTask]:
        """The files a filter needs. Before all files are known, only those are asked for that the server keeps.

        What the server keeps is pruned here once more: hints are "BEST EFFORT".
        """
        if where is None or self._frame is not None:
            return self.listed_files.scan().tasks(where)
        node = parse(where)
        hints = sql_hints(node, self.schema)
        if not hints:
            return self.listed_files.scan().tasks(where)
        return self._some(QueryRequest(predicate_hints=hints, json_predicate_hints=json_hint(node, self.schema)), where)

    def enough(self, rows: int) -> Sequence[FileTask]:
        """Files that hold so many rows: a preview does not wait for the list of a million files.

        Only without a filter: "the server should apply predicateHints first then limitHint", and of the files it then
        keeps no row may pass the filter.
        """
        if self._frame is not None or rows > 2**31 - 1:
            return self.listed_files.scan().tasks(None)
        return self._some(QueryRequest(limit_hint=rows), None)

    def _some(self, request: QueryRequest, where: pl.Expr | None) -> Sequence[FileTask]:
        listing = self._query(request)
        self.files.add(listing.urls)
        frame = listing.frame(self._address)
        return listed_files(self._head, lambda: frame).scan().tasks(where)

    # -- requests

    def _listing(self) -> pl.DataFrame:
        with self._lock:
            if self._frame is None:
                listing = self._query(QueryRequest(include_refresh_token=self._may_refresh()))
                self.files.add(listing.urls)
                self._frame = listing.frame(self._address)
            return self._frame

    def _may_refresh(self) -> bool:
        # a server that ends its streams knows refresh tokens; older ones may refuse what they do not know
        return not self.is_pinned and self._client.ends_streams

    def _query(self, request: QueryRequest) -> FileListing:
        """The files of this version; where the table has moved on, and its history is shared, by its number."""
        try:
            return self._send_query(request)
        except VersionNotFoundError as not_found:
            if self.is_pinned or not_found.kind != _MOVED_ON:
                raise
            try:
                listing = self._send_query(replace(request, version=self.version, include_refresh_token=False))
            except SharingError as error:
                raise not_found from error
            self.is_pinned = True
            return listing

    def _send_query(self, request: QueryRequest) -> FileListing:
        if self.is_pinned and request.refresh_token is None:
            request = replace(request, version=self.version)
        answer = self._client.query(self._table, request)
        self._check(answer)
        until = None if answer.end is None else answer.end.min_url_expiration_timestamp
        if answer.end is not None and answer.end.refresh_token:
            self._refresh_token = answer.end.refresh_token
        return read_version_files([(kind, file) for kind, file in answer.files if kind == "file"], until)

    def _check(self, answer: Answer) -> None:
        if answer.head.version != self.version:
            raise VersionNotFoundError(
                f"{self._address} is at version {answer.head.version} by now, and version {self.version} is not given",
                fix="refresh to see new versions, then read again",
                kind=_MOVED_ON,
            )
        if answer.head.definition != self.head.definition:
            raise SharingError(
                f"the server gives two definitions for version {self.version} of {self._address}",
                fix="open the table again, which may have been replaced by another, or ask the operator of the server",
                kind="different-pages",
            )

    def _urls_again(self) -> Mapping[str, SignedUrl]:
        """URLs for the same files: by the refresh token if there is one, else by asking for the version again."""
        token = self._refresh_token
        if token is not None:
            try:
                return self._send_query(QueryRequest(refresh_token=token, include_refresh_token=True)).urls
            except (SharingError, VersionNotFoundError):  # tokens hold for an hour
                self._refresh_token = None
        return self._query(QueryRequest()).urls


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
            fix="read the latest version, or ask the data provider to share its history",
            kind="version-not-shared",
        ) from error
    if version is not None and head.version != version:
        raise VersionNotFoundError(
            f"the server was asked for version {version} of {table} and answers with version {head.version}",
            fix="read the latest version: this server knows no earlier ones",
            kind="version-not-shared",
        )
    return head


_MAX_VERSIONS = 1_000
"""Versions that are listed at most: a server tells nothing about each of them."""


def shared_versions(client: SharingClient, table: TableName, latest: int, *, look: bool) -> pl.DataFrame:
    """VERSIONS, newest first, at most a thousand; their commit times are not shared. With `look=False` nothing is
    requested, and `readable` is null."""
    numbers = range(latest, max(-1, latest - _MAX_VERSIONS), -1)
    if not look:
        return pl.DataFrame([(v, None, None, None) for v in numbers], schema=VERSIONS, orient="row")
    oldest, reason = first_version(client, table, latest)
    first = latest if oldest is None else oldest
    rows = [(v, None, v >= first, None if v >= first else reason) for v in numbers]
    return pl.DataFrame(rows, schema=VERSIONS, orient="row")


def history_findings(client: SharingClient, table: TableName, latest: int) -> list[Finding]:
    """What of the past is not shared, in the server's words."""
    first, reason = first_version(client, table, latest)
    if reason is None:
        return []
    return [
        Finding(
            "history-partly-shared",
            Severity.NOTE,
            "Its history is not shared" if first is None else "Only a part of its history is shared",
            reason,
            remedy="ask the data provider, if earlier versions are needed",
            page="timeline",
        )
    ]


def first_version(client: SharingClient, table: TableName, latest: int) -> tuple[int | None, str | None]:
    """The first version that the server gives, None if it gives none by its number; and why not those before.

    Found by halving: about ten requests, one where no history is shared. Nothing is cached: grants change.
    """
    reason = _refusal(client, table, latest)
    if reason is not None:
        return None, reason
    low, high = max(0, latest - _MAX_VERSIONS + 1), latest
    reason = _refusal(client, table, low) if low < high else None
    if reason is None:
        return low, None
    while high - low > 1:
        middle = (low + high) // 2
        refusal = _refusal(client, table, middle)
        if refusal is None:
            high = middle
        else:
            low, reason = middle, refusal
    return high, reason


def _refusal(client: SharingClient, table: TableName, version: int) -> str | None:
    """Why the server gives no such version, None if it does."""
    try:
        head_of(client, table, version)
    except VersionNotFoundError as error:
        cause = error.__cause__
        return cause.message if isinstance(cause, SharingError) else error.message
    return None
