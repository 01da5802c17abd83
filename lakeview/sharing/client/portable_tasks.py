"""Tasks of a shared table that another process can read by itself: each carries the signed URL of its file.

Every holder of such a task can read the file until the URL expires: for the workers of one job, not for storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa
import pyroaring

from lakeview.model.clock import system_clock
from lakeview.model.config import Config, settings
from lakeview.model.errors import AccessDeniedError
from lakeview.rows.difference import Without
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask, RowPositions
from lakeview.sharing.client.file_lines import SignedUrl
from lakeview.sharing.client.http import Http
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.range_file import block_cache
from lakeview.sharing.client.signed_files import SignedFiles
from lakeview.storage import Storage


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
