"""The messages of the sharing protocol: lines, bodies and headers to values, and back. One truth for both ends.

Names are the protocol's (delta-io/delta-sharing, PROTOCOL.md). Unknown fields are skipped: "clients can assume that any
unrecognized fields in a response that supports their reader version are never required".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from lakeview.delta.sharing import AddCDCFile, AddFile, Long, Metadata, Protocol, RemoveFile

T = TypeVar("T")

READER_VERSION = 1
"""The newest minReaderVersion of the sharing protocol itself that both ends implement."""

URL_ACCESS = "url"
"""The access mode in which a server signs a URL for each file."""

JSON = "application/json; charset=utf-8"
LINES = "application/x-ndjson; charset=utf-8"
"""Content types of bodies and of answers that are one action a line."""

VERSION_HEADER = "Delta-Table-Version"
CAPABILITIES_HEADER = "delta-sharing-capabilities"
FILE_ID_HASH_HEADER = "fileidhash"
CHANGE_FEED = "enableChangeDataFeed"
"""The key of a shared table's configuration that says whether its changes may be asked for."""


class ResponseFormat(StrEnum):
    """How actions are written: the protocol's own words, or those of the Delta log."""

    PARQUET = "parquet"
    DELTA = "delta"


class ErrorCode(StrEnum):
    """What `errorCode` of an error body may be; a client knows others as text."""

    MALFORMED_REQUEST = "MALFORMED_REQUEST"
    INVALID_PARAMETER_VALUE = "INVALID_PARAMETER_VALUE"
    UNSUPPORTED_OPERATION = "UNSUPPORTED_OPERATION"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_DOES_NOT_EXIST = "RESOURCE_DOES_NOT_EXIST"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class Message(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What every message has in common: camelCase names, and what is not said is left out."""


# -- bodies


class ErrorBody(Message, frozen=True, rename="camel", omit_defaults=True):
    """Why a request failed. `message` is text for people, never HTML."""

    error_code: str = ""
    message: str = ""


class Share(Message, frozen=True, rename="camel", omit_defaults=True):
    """A share; `id`, where there is one, never changes. `display_name`: what people are to read in place of `name`."""

    name: str
    id: str | None = None
    display_name: str | None = None
    comment: str | None = None


class ShareBody(Message, frozen=True, rename="camel", omit_defaults=True):
    """The answer to a question about one share."""

    share: Share


class SharedSchema(Message, frozen=True, rename="camel", omit_defaults=True):
    """A schema: a group of tables in a share."""

    name: str
    share: str


class SharedTable(Message, frozen=True, rename="camel", omit_defaults=True):
    """A table in a schema of a share. Ids, where there are any, never change.

    `access_modes`: url, dir or both; "if this field is not present, the client will assume that the server only
    supports url based access".
    """

    name: str
    schema: str
    share: str
    share_id: str | None = None
    id: str | None = None
    access_modes: list[str] | None = None


class Page(Message, Generic[T], frozen=True, rename="camel", omit_defaults=True):
    """A page of a list; no token, or an empty one, ends it."""

    items: list[T] | None = None
    next_page_token: str | None = None


SharePage = Page[Share]
SchemaPage = Page[SharedSchema]
TablePage = Page[SharedTable]


class QueryRequest(Message, frozen=True, rename="camel", omit_defaults=True):
    """The body of a query. At most one of `version`, `timestamp` and `starting_version`.

    `predicate_hints`: SQL texts that all hold; `json_predicate_hints`: one tree as JSON text; `timestamp`: ISO 8601.
    `include_historical_metadata`, `include_historical_protocol`: with `starting_version`, whether actions of later
    versions are wanted.
    """

    predicate_hints: list[str] | None = None
    json_predicate_hints: str | None = None
    limit_hint: Long | None = None
    version: Long | None = None
    timestamp: str | None = None
    starting_version: Long | None = None
    ending_version: Long | None = None
    max_files: Long | None = None
    page_token: str | None = None
    include_refresh_token: bool = False
    refresh_token: str | None = None
    include_historical_metadata: bool | None = None
    include_historical_protocol: bool | None = None


# -- lines


class ProtocolLine(Message, frozen=True, rename="camel", omit_defaults=True):
    """What a client must implement; in delta format the log's own protocol action."""

    min_reader_version: int | None = None
    delta_protocol: Protocol | None = None
    version: Long | None = None


class FileFormat(msgspec.Struct, frozen=True):
    """The encoding of data files."""

    provider: str = "parquet"


class MetadataLine(Message, frozen=True, rename="camel", omit_defaults=True):
    """The table's identity, schema and partitioning; in delta format the log's own metaData action.

    `version`: the one it belongs to; `size` in bytes; `access_modes`: as in SharedTable.
    """

    id: str | None = None
    name: str | None = None
    description: str | None = None
    format: FileFormat | None = None
    schema_string: str | None = None
    partition_columns: list[str] | None = None
    configuration: dict[str, str | None] | None = None
    delta_metadata: Metadata | None = None
    version: Long | None = None
    size: Long | None = None
    num_files: Long | None = None
    access_modes: list[str] | None = None


class DeltaSingleAction(Message, frozen=True, rename="camel", omit_defaults=True):
    """One action of the Delta log, whose path is a URL."""

    add: AddFile | None = None
    remove: RemoveFile | None = None
    cdc: AddCDCFile | None = None


class FileLine(Message, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A file of the table, or of its changes: `url`, `partition_values`, `size` and `stats`, or in delta format an
    action of the log.

    `id` is the same in every answer, `url` is not. Times in milliseconds since 1970, `size` in bytes.
    """

    id: str
    url: str | None = None
    partition_values: dict[str, str | None] | None = None
    size: Long | None = None
    stats: str | None = None
    version: Long | None = None
    timestamp: Long | None = None
    expiration_timestamp: Long | None = None
    deletion_vector_file_id: str | None = None
    delta_single_action: DeltaSingleAction | None = None


class EndStreamAction(Message, frozen=True, rename="camel", omit_defaults=True):
    """The last line, where it was agreed on: "When errorMessage is set, the client must fail the query"."""

    refresh_token: str | None = None
    next_page_token: str | None = None
    min_url_expiration_timestamp: Long | None = None
    error_message: str | None = None
    http_status_error_code: int | None = None


class Line(Message, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One line of an answer: exactly one of these is there; a line of another kind is skipped."""

    protocol: ProtocolLine | None = None
    meta_data: MetadataLine | None = None
    file: FileLine | None = None
    add: FileLine | None = None
    remove: FileLine | None = None
    cdf: FileLine | None = None
    end_stream_action: EndStreamAction | None = None


parse_line = msgspec.json.Decoder(Line).decode
"""One line. msgspec.DecodeError (or UnicodeDecodeError, RecursionError) for what is none."""


def encode_line(kind: str, body: object) -> bytes:
    """One line, its end included. `kind` is the protocol's word: protocol, metaData, file, add, remove, cdf,
    endStreamAction; `body` a message of this module or anything msgspec encodes."""
    return msgspec.json.encode({kind: body}) + b"\n"


# -- places and moments


def path_of(parts: Iterable[str]) -> str:
    """Names to a path below the endpoint, each quoted as one segment: `shares/a%20b/schemas`."""
    return "/".join(quote(part, safe="") for part in parts)


def table_path(share: str, schema: str, table: str, tail: str = "") -> str:
    """The path of a table's endpoint below the server's: `shares/s/schemas/d/tables/t/query`."""
    return path_of(("shares", share, "schemas", schema, "tables", table, *([tail] if tail else [])))


def moment_text(moment: datetime) -> str:
    """An aware moment as requests carry it: "in the ISO8601 format, in the UTC timezone", to the microsecond."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one end says of itself in the capabilities header, in lower case.

    `formats`: those a client takes, or the one a server chose; empty where nothing is said, which means parquet.
    `reader_features`: those a client has. `end_stream`: whether an endStreamAction is asked for, or will come.
    """

    formats: tuple[str, ...] = ()
    reader_features: frozenset[str] = frozenset()
    end_stream: bool | None = None

    @property
    def header(self) -> str:
        """The header's value."""
        parts = []
        if self.formats:
            parts.append(f"responseformat={','.join(self.formats)}")
        if self.reader_features:
            parts.append(f"readerfeatures={','.join(sorted(self.reader_features))}")
        if self.end_stream is not None:
            parts.append(f"includeendstreamaction={str(self.end_stream).lower()}")
        return ";".join(parts)


def parse_capabilities(text: str | None) -> Capabilities:
    """A header's value, or that there is none: "semicolon separated capabilities", keys and values of any case.

    Unknown keys are skipped; a key given twice counts by its last values.
    """
    by_key: dict[str, tuple[str, ...]] = {}
    for part in (text or "").split(";"):
        key, equals, values = part.partition("=")
        if equals:
            by_key[key.strip().lower()] = tuple(v for value in values.split(",") if (v := value.strip().lower()))
    ends = by_key.get("includeendstreamaction")
    return Capabilities(
        by_key.get("responseformat", ()),
        frozenset(by_key.get("readerfeatures", ())),
        None if ends is None else ends == ("true",),
    )
