"""Tasks of a shared table that another process can read by itself: each carries the signed URL of its file. The
answer of a changes endpoint to a ChangeScan: files of changes as the Delta reader takes them.

Every holder of such a task can read the file until the URL expires: for the workers of one job, not for storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn

import pyarrow as pa
import pyroaring

from lakeview.delta.sharing import ChangeScan, change_scan, read_head
from lakeview.model.clock import system_clock
from lakeview.model.config import Config, settings
from lakeview.model.errors import AccessDeniedError, InvalidRequestError, VersionNotFoundError
from lakeview.model.range_read import RangeTasks
from lakeview.model.snapshot import milliseconds
from lakeview.rows.difference import Without
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask, RowPositions
from lakeview.sharing.client.answers import Answer, Kind
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.file_lines import SignedUrl, read_file_lines
from lakeview.sharing.client.http import Http
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.profile import TableName
from lakeview.sharing.client.range_file import Blocks, block_cache
from lakeview.sharing.client.refusals import broken_protocol
from lakeview.sharing.client.signed_files import SignedFiles
from lakeview.sharing.protocol.messages import FileLine, ResponseFormat
from lakeview.storage import Storage

_LATEST = 2**63 - 1
"""An end of a range that no version is after."""


def reach(config: Config) -> Limits:
    """The limits that a configuration asks for."""
    return Limits(plain_http=config.plain_http, private=config.private_networks)


def portable_task(task: FileTask, urls: Mapping[str, SignedUrl], server: str | None) -> FileTask:
    """A task that needs no store: its file, and those of its deletion vectors, are read where their URLs say.

    `urls`: where the files of the table are now, by path; `server`: the URL of the server that gave them.
    """
    return replace(
        task,
        deleted_rows=_sign(task.deleted_rows, task.root, urls, server),
        selected_rows=_sign(task.selected_rows, task.root, urls, server),
        constants={},
        fallbacks={},
        match="name",
        source=SignedRows(replace(task, deleted_rows=None, selected_rows=None), _only(urls, task.path), server),
    )


def _sign(
    positions: RowPositions | None, root: str, urls: Mapping[str, SignedUrl], server: str | None
) -> SignedPositions | None:
    if positions is None:
        return None
    vectors = (positions.positions, positions.other) if isinstance(positions, Without) else (positions,)
    paths = [getattr(vector, "path", None) for vector in vectors]  # an inline one has none
    return SignedPositions(positions, root, _only(urls, *filter(None, paths)), server)


def _only(urls: Mapping[str, SignedUrl], *paths: str) -> dict[str, SignedUrl]:
    return {path: urls[path] for path in paths if path in urls}


@dataclass(frozen=True, slots=True)
class SignedRows:
    """Reads the file of one task over its URL. Implements `lakeview.rows.tasks.RowSource`."""

    task: FileTask
    urls: Mapping[str, SignedUrl]
    server: str | None

    __hash__ = None  # type: ignore[assignment]  # URLs change: two of these are never the same work

    def batches(self, task: FileTask, storage: Storage, batch_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """All rows of the file in the schema of `task`."""
        yield from read_task(
            replace(self.task, schema=task.schema), _files(task.root, self.urls, self.server), batch_rows
        )


@dataclass(frozen=True, slots=True)
class SignedPositions:
    """The positions of deletion vectors, over their files' URLs. Implements `lakeview.rows.tasks.RowPositions`."""

    vector: RowPositions
    root: str
    urls: Mapping[str, SignedUrl]
    server: str | None

    __hash__ = None  # type: ignore[assignment]  # as above

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:  # noqa: ARG002 (it has a store of its own)
        """The positions, read when called."""
        return self.vector.bitmap(_files(self.root, self.urls, self.server))


def _files(root: str, urls: Mapping[str, SignedUrl], server: str | None) -> SignedFiles:
    def refuse_expired() -> NoReturn:
        raise AccessDeniedError(
            f"the signed URLs of {root} have expired",
            fix="start the job again, or ask the data provider for URLs that hold longer",
            place=root,
            kind="expired-urls",
        )

    config = settings()
    return SignedFiles(root, config, Http(reach(config), server), system_clock, block_cache(), urls, refuse_expired)


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
    is_delta = header.format is ResponseFormat.DELTA
    head = read_head(header.protocol, header.metadata, address, depth, of_log=is_delta)
    files = _within(answer.files, start, end)
    last = end if isinstance(end, int) else _LATEST
    schemas = [(version, metadata) for version, metadata in answer.schemas if version <= last]
    listing = read_file_lines(files, _until(answer))
    times = {file.version: file.timestamp for _, file in files if file.version is not None}
    scan = change_scan(head, schemas, listing.actions, times, depth)
    return SharedChanges(scan, SignedFiles(address, config, client.http, client.clock, blocks, listing.urls, again))


def _within(
    files: Sequence[tuple[Kind, FileLine]], start: int | datetime, end: int | datetime | None
) -> list[tuple[Kind, FileLine]]:
    """The files of a range. Those after its end are left out: to some servers it is a hint only. SharingError for a
    file without a version, and for one before the start."""
    first = start if isinstance(start, int) else 0
    last = end if isinstance(end, int) else _LATEST
    for _, file in files:
        if file.version is None:
            raise broken_protocol(f"the changed file {file.id} has no version")
        if file.version < first:
            raise broken_protocol(f"the changed file {file.id} is of version {file.version}, before the range")
    return [(kind, file) for kind, file in files if file.version is not None and file.version <= last]


def _until(answer: Answer) -> int | None:
    return None if answer.end is None else answer.end.min_url_expiration_timestamp
