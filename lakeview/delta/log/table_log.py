"""The `_delta_log` folder: one listing kept up to date, and each commit read once while it is needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.commits import Commit, parse_commit
from lakeview.delta.log.log_segment import (
    CheckpointFiles,
    LogSegment,
    build_segment,
    checkpoint_hint,
    complete_checkpoints,
    latest_version,
)
from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, classify, commit_name
from lakeview.errors import CorruptTableError, VersionNotFoundError
from lakeview.storage import Storage

_CACHE_BYTES = 64 << 20
_THREADS = 8


class TableLog:
    """The files of one table's log.

    Opening costs the hint and one listing that starts at it; what lies before is listed once, when it is asked for.
    Commits are immutable: their bytes are cached, the newest 64 MiB of them.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._lock = threading.RLock()
        self._bytes: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._checkpoints: dict[tuple[str, ...], Checkpoint] = {}
        self._files, self._from = self._open()
        self.latest = latest_version(self._files, storage.root)

    def _open(self) -> tuple[pl.DataFrame, int]:
        hint = checkpoint_hint(self._read_hint()) if self.storage.remote else None
        if hint:
            files = self._list(hint)
            # "Last Checkpoint File": a hint; stale or broken, a listing from the start takes its place
            if any(c.version >= hint for c in complete_checkpoints(files)):
                return files, hint
        return self._list(0), 0

    def _read_hint(self) -> bytes | None:
        try:
            return self.storage.read(LAST_CHECKPOINT)
        except FileNotFoundError:
            return None

    def _list(self, start: int) -> pl.DataFrame:
        return classify(self.storage.list_from(LOG_FOLDER, f"{start:020d}" if start else ""))

    def refresh(self) -> bool:
        """Look for newer versions: one listing from the latest known version. True if there is one."""
        with self._lock:
            newer = self._list(self.latest)
            self._files = (
                pl.concat([self._files, newer]).unique("name", keep="last", maintain_order=True).sort("version", "name")
            )
            known, self.latest = (
                self.latest,
                max(self.latest, latest_version(newer, self.storage.root) if newer.height else 0),
            )
            return self.latest > known

    @property
    def files(self) -> pl.DataFrame:
        """LOG_FILES from the first version on."""
        with self._lock:
            if self._from > 0:
                self._files, self._from = self._list(0), 0
            return self._files

    def segment(self, version: int) -> LogSegment:
        """What has to be read for a version; errors as `build_segment`."""
        with self._lock:
            checkpoints = complete_checkpoints(self._files) if self._from else []
            reaches = not self._from or any(c.version <= version for c in checkpoints)
            return build_segment(self._files if reaches else self.files, version, self.storage.root)

    def commit_files(self) -> pl.DataFrame:
        """LOG_FILES of the commits, oldest first, whatever lies between them."""
        return self.files.filter(pl.col("kind") == "commit")

    def listed_commits(self) -> pl.DataFrame:
        """LOG_FILES of the commits that the last listing told of: costs nothing, and may begin late."""
        with self._lock:
            return self._files.filter(pl.col("kind") == "commit")

    def checkpoint(self, files: CheckpointFiles) -> Checkpoint:
        """The reader of one checkpoint."""
        with self._lock:
            return self._checkpoints.setdefault(files.names, Checkpoint(self.storage, files))

    def commit(self, version: int) -> Commit:
        """One commit. VersionNotFoundError if its file is not there, CorruptTableError if it cannot be read."""
        return parse_commit(self.commit_bytes(version), version, commit_name(version))

    def commit_bytes(self, version: int) -> bytes:
        """The bytes of one commit file."""
        with self._lock:
            if version in self._bytes:
                self._bytes.move_to_end(version)
                return self._bytes[version]
        name = commit_name(version) if version >= 0 else str(version)
        try:
            data = self.storage.read(f"{LOG_FOLDER}/{name}")
        except FileNotFoundError as error:
            if version in self.listed_commits()["version"]:
                raise CorruptTableError(
                    f"commit {name} was listed and is gone", fix="refresh: a clean-up may be running", place=name,
                    kind="versions-not-contiguous",
                ) from error  # fmt: skip
            raise VersionNotFoundError(
                f"the log of {self.storage.root} has no commit file for version {version}",
                fix="its file was cleaned up or never written; table.versions() lists what is there",
                place=name,
            ) from error
        with self._lock:
            if version not in self._bytes and len(data) <= _CACHE_BYTES:
                self._bytes[version] = data
                self._cached_bytes += len(data)
            while self._cached_bytes > _CACHE_BYTES:
                self._cached_bytes -= len(self._bytes.popitem(last=False)[1])
        return data

    def commits(self, versions: Iterable[int]) -> list[Commit]:
        """Several commits in the order asked for; from a remote store several at a time."""
        wanted = list(versions)
        if not self.storage.remote or len(wanted) < 2:
            return [self.commit(v) for v in wanted]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="lakeview-log") as pool:
            return list(pool.map(self.commit, wanted))
