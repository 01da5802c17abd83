"""The answer of a changes endpoint to a ChangeScan: files of changes as the Delta reader takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lakeview.delta.data.change_plan import change_files
from lakeview.delta.data.change_schema import incompatibility
from lakeview.delta.data.changes import ChangeScan
from lakeview.delta.data.column_mapping import table_schema
from lakeview.delta.features import check_readable, column_mapping_mode
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.commits import file_actions
from lakeview.delta.log.replay import table_protocol
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError, SharingError, VersionNotFoundError
from lakeview.model.frames import moments
from lakeview.model.schema import Schema
from lakeview.model.snapshot import TableProtocol, milliseconds
from lakeview.rows.casts import Match
from lakeview.sharing.client.answers import Answer
from lakeview.sharing.client.blocks import Blocks
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.file_lines import SignedUrl, listed
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.signed_files import SignedFiles
from lakeview.sharing.protocol.messages import ResponseFormat


@dataclass(frozen=True, slots=True)
class SharedChanges:
    """The changes of a range, and the store of the files they lie in."""

    scan: ChangeScan
    files: SignedFiles


def check_range(start: int | datetime, end: int | datetime | None, latest: int, address: str) -> None:
    """InvalidRequestError for a naive moment and a range that ends before it starts, VersionNotFoundError for a version
    that the table has not."""
    for given in (start, end):
        if isinstance(given, datetime):
            milliseconds(given)
        elif given is not None and not 0 <= given <= latest:
            raise VersionNotFoundError(
                f"{address} has no version {given}: it is at {latest}", fix=f"ask for changes within 0 to {latest}"
            )
    moments_ = isinstance(start, datetime) and isinstance(end, datetime) and start > end
    numbers = isinstance(start, int) and isinstance(end, int) and start > end
    if moments_ or numbers:
        raise InvalidRequestError(
            f"changes from {start} to {end} end before they start", fix="give the earlier one first"
        )


def shared_changes(
    client: SharingClient,
    table: TableName,
    start: int | datetime,
    end: int | datetime | None,
    address: str,
    config: Config,
    blocks: Blocks,
) -> SharedChanges:
    """The changes of commits `start` to `end`, both included, as the server's feed has them; no data file is read.

    SharingError in the server's words where it shares none; InvalidRequestError (kind incompatible-schema-change) where
    rows of the range cannot be read with one schema.
    """

    def again() -> Mapping[str, SignedUrl]:
        answer = client.changes(table, start, end)
        return listed(answer.files, _until(answer)).urls

    answer = client.changes(table, start, end)
    head = answer.head
    properties = head.metadata.properties
    protocol = TableProtocol(min_reader_version=head.protocol.min_reader_version)
    if head.format is ResponseFormat.DELTA:
        protocol = table_protocol(head.protocol)
        check_readable(protocol, properties, address, by_number=True)
    schema = _schema(answer, protocol, config.max_schema_depth, address)
    if unversioned := next((file.id for _, file in answer.files if file.version is None), None):
        raise SharingError(
            f"the server's answer breaks the sharing protocol: the changed file {unversioned} has no version",
            fix="ask whoever runs the server",
            kind="bad-line",
        )
    found = listed(answer.files, _until(answer))
    commits = found.commits()
    times = pl.DataFrame(
        {"version": [f.version for _, f in answer.files], "timestamp": [f.timestamp for _, f in answer.files]},
        schema={"version": pl.Int64(), "timestamp": pl.Int64()},
    )
    files = (
        change_files(commits, file_actions(commits, address))
        .join(
            times.unique("version").with_columns(moments("timestamp")), on="version", how="left", maintain_order="left"
        )
        .with_columns(pl.lit(value=True).alias("feed"))
    )
    match: Match = "id" if column_mapping_mode(protocol, properties) == "id" else "name"
    store = SignedFiles(address, config, client.http, client.clock, blocks, found.urls, again)
    return SharedChanges(ChangeScan(files, schema, match, address), store)


def _until(answer: Answer) -> int | None:
    return None if answer.end is None else answer.end.min_url_expiration_timestamp


def _schema(answer: Answer, protocol: TableProtocol, depth: int, address: str) -> Schema:
    """The schema of the last version that the answer speaks of, which rows of all others must be readable as."""

    def parsed(metadata: Metadata) -> Schema:
        return table_schema(metadata.schema_string, protocol, metadata.properties, max_depth=depth)

    known = sorted(answer.schemas, key=lambda told: told[0]) or [(answer.head.version, answer.head.metadata)]
    last = parsed(known[-1][1])
    for version, metadata in known[:-1]:
        if (why := incompatibility(parsed(metadata), last)) is not None:
            raise InvalidRequestError(
                f"these changes of {address} cannot be read with one schema: after version {version} {why}",
                fix=f"ask for changes up to version {known[-1][0] - 1}, and then for the rest",
                place="metaData.schemaString",
                kind="incompatible-schema-change",
            )
    return last
