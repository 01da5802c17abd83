"""The answer of a changes endpoint to a ChangeScan: files of changes as the Delta reader takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakeview.delta.sharing import ChangeScan, change_scan, read_head
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError, VersionNotFoundError
from lakeview.model.snapshot import milliseconds
from lakeview.model.table import RangeTasks
from lakeview.sharing.client.answers import Answer
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.file_lines import SignedUrl, read_file_lines
from lakeview.sharing.client.portable_tasks import portable_task
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.range_file import Blocks
from lakeview.sharing.client.refusals import broken_protocol
from lakeview.sharing.client.signed_files import SignedFiles
from lakeview.sharing.protocol.messages import ResponseFormat


@dataclass(frozen=True, slots=True)
class SharedChanges:
    """The changes of a range, and the store of the files they lie in."""

    scan: ChangeScan
    files: SignedFiles

    def tasks(self) -> RangeTasks:
        """The schema of changes, and every file as a task that another process reads until its URL expires."""
        schema, tasks = self.scan.all_tasks()
        urls = self.files.urls()
        return schema, [(portable_task(task, urls, self.files.server), kind) for task, kind in tasks]


def check_range(start: int | datetime, end: int | datetime | None, latest: int, address: str) -> None:
    """InvalidRequestError for a naive moment and a range that ends before it starts, VersionNotFoundError for a version
    that the table has not."""
    for bound in (start, end):
        if isinstance(bound, datetime):
            milliseconds(bound)
        elif bound is not None and not 0 <= bound <= latest:
            raise VersionNotFoundError(
                f"{address} has no version {bound}: it is at {latest}", fix=f"ask for changes within 0 to {latest}"
            )
    if type(start) is type(end) and start > end:  # type: ignore[operator]  # of one type, which has an order
        raise InvalidRequestError(
            f"changes from {start} to {end} end before they start", fix="give the earlier one first"
        )


def range_after(base: int, last: int) -> tuple[int, int]:
    """The commits after a version up to another. InvalidRequestError unless `base` comes first."""
    if base >= last:
        raise InvalidRequestError(
            f"a shared table is compared forwards only, and version {base} does not come before {last}",
            fix="give the earlier version as the base",
            kind="bad-range",
        )
    return base + 1, last


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
        return read_file_lines(answer.files, _until(answer)).urls

    answer = client.changes(table, start, end)
    depth, header = config.max_schema_depth, answer.head
    recorded = header.format is ResponseFormat.DELTA
    head = read_head(header.protocol, header.metadata, address, depth, recorded=recorded)
    if unversioned := next((file.id for _, file in answer.files if file.version is None), None):
        raise broken_protocol(f"the changed file {unversioned} has no version")
    listing = read_file_lines(answer.files, _until(answer))
    times = {file.version: file.timestamp for _, file in answer.files if file.version is not None}
    scan = change_scan(head, answer.schemas, listing.actions, times, depth)
    return SharedChanges(scan, SignedFiles(address, config, client.http, client.clock, blocks, listing.urls, again))


def _until(answer: Answer) -> int | None:
    return None if answer.end is None else answer.end.min_url_expiration_timestamp
