"""Lines of an answer to what it says: its head, its files and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from lakeview.delta.sharing import Format, Metadata, Protocol
from lakeview.model.errors import SharingError, UnsupportedTableError
from lakeview.model.printable import printable
from lakeview.sharing.client.refusals import broken_protocol, server_text
from lakeview.sharing.protocol.messages import (
    READER_VERSION,
    URL_ACCESS,
    EndStreamAction,
    FileLine,
    Line,
    MetadataLine,
    ProtocolLine,
    ResponseFormat,
    parse_line,
)

Kind = Literal["file", "add", "remove", "cdf"]
_KINDS: tuple[Kind, ...] = ("file", "add", "remove", "cdf")


@dataclass(frozen=True, slots=True)
class Head:
    """What every answer about a table begins with. `version`: of its Delta-Table-Version header.

    In parquet format `protocol` is the sharing protocol's one version, and `metadata` what the answer says in the
    words of the Delta log; in delta format both are the log's own.
    """

    version: int
    format: ResponseFormat
    protocol: Protocol
    metadata: Metadata

    @property
    def definition(self) -> tuple[object, ...]:
        """What no page of an answer, and no other answer about the same version, may change."""
        metadata = self.metadata
        partitions = tuple(metadata.partition_columns or ())
        return (self.version, self.format, self.protocol, metadata.id, metadata.schema_string, partitions)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, all its pages together.

    `files`: each with its kind, in the order sent; `schemas`: metaData of later versions by version, where history was
    asked for; `end`: what the last line said, None where there is none.
    """

    head: Head
    files: Sequence[tuple[Kind, FileLine]] = ()
    schemas: Sequence[tuple[int, Metadata]] = ()
    end: EndStreamAction | None = None


@dataclass(slots=True)
class _Page:
    protocol: ProtocolLine | None = None
    metadata: MetadataLine | None = None
    files: list[tuple[Kind, FileLine]] = field(default_factory=list)
    schemas: list[tuple[int, Metadata]] = field(default_factory=list)
    end: EndStreamAction | None = None


def read_answer(
    lines: Iterable[bytes], version: int, *, must_end: bool = False, mask: Callable[[str], str] = str
) -> Answer:
    """The lines of one page. `must_end`: the server said that an endStreamAction comes last; `mask` hides secrets in
    what it says went wrong.

    SharingError for lines that break the protocol, a stream that stops before its end, and what the server says went
    wrong while it wrote; UnsupportedTableError for a protocol newer than ours.
    """
    page = _Page()
    for number, data in enumerate(lines, 1):
        if page.end is not None:
            raise broken_protocol(f"line {number} comes after the end of the stream")
        try:
            line = parse_line(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise broken_protocol(f"line {number} cannot be read: {error}") from error
        _take(page, line, number)
    if page.end is not None and page.end.error_message:
        raise SharingError(
            f"the server broke off: {server_text(mask(page.end.error_message))}",
            fix="try again; if it goes on, ask the operator of the server",
            kind="sharing-broke-off",
        )
    if must_end and page.end is None:
        raise broken_protocol("the answer stopped before its end", "incomplete-answer")
    if page.protocol is None or page.metadata is None:
        missing = "protocol" if page.protocol is None else "metaData"
        raise broken_protocol(f"the answer has no {missing} line", "incomplete-answer")
    return Answer(_head(page.protocol, page.metadata, version), page.files, page.schemas, page.end)


def _take(page: _Page, line: Line, number: int) -> None:
    if line.protocol is not None:
        page.protocol = page.protocol or line.protocol
        _check_version(line.protocol)
    elif line.meta_data is not None:
        require_url_access(line.meta_data.access_modes, "the table")
        if page.metadata is None:
            page.metadata = line.meta_data
        if line.meta_data.version is not None:
            page.schemas.append((line.meta_data.version, _metadata(line.meta_data)))
    elif line.end_stream_action is not None:
        page.end = line.end_stream_action
    else:
        for kind in _KINDS:
            file: FileLine | None = getattr(line, kind)
            if file is not None:
                if file.delta_single_action is None and (file.url is None or file.size is None):
                    raise broken_protocol(f"line {number} is a file without {'url' if file.url is None else 'size'}")
                page.files.append((kind, file))


def _check_version(line: ProtocolLine) -> None:
    """ "When a client is running an unsupported protocol version, it should show an error message instructing the user
    to upgrade to a newer version of their client"."""
    if line.min_reader_version is not None and line.min_reader_version > READER_VERSION:
        raise UnsupportedTableError(
            f"the server speaks version {line.min_reader_version} of the sharing protocol; this client knows version "
            f"{READER_VERSION}",
            fix="upgrade lakeview",
            place="protocol.minReaderVersion",
            kind="unsupported-reader-version",
        )


def require_url_access(modes: Sequence[str] | None, table: str) -> None:
    """UnsupportedTableError for a table whose files are given in another way than by URL. Without modes, or with an
    empty list of them, it is by URL."""
    if modes and URL_ACCESS not in modes:
        names = ", ".join(printable(mode)[:40] for mode in modes[:5])
        raise UnsupportedTableError(
            f"{table} is shared in access mode {names} only, and this client reads files by URL",
            fix="ask the data provider to allow access by URL, or open the table's own address with credentials for it",
            place="accessModes",
            kind="unsupported-access-mode",
        )


def _head(protocol: ProtocolLine, metadata: MetadataLine, version: int) -> Head:
    delta = protocol.delta_protocol is not None
    if delta != (metadata.delta_metadata is not None):
        raise broken_protocol("protocol and metaData are in different formats")
    if protocol.delta_protocol is not None:
        return Head(version, ResponseFormat.DELTA, protocol.delta_protocol, _metadata(metadata))
    return Head(version, ResponseFormat.PARQUET, Protocol(1, 0), _metadata(metadata))


def _metadata(line: MetadataLine) -> Metadata:
    if line.delta_metadata is not None:
        return line.delta_metadata
    return Metadata(
        line.id,
        line.name,
        line.description,
        Format() if line.format is None else Format(line.format.provider),
        line.schema_string,
        line.partition_columns,
        None,
        line.configuration,
    )
