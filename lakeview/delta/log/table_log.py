"""The `_delta_log` folder: one listing kept up to date, and each commit read once while it is needed."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter

import polars as pl

from lakeview.delta.log.actions import CommitInfo
from lakeview.delta.log.checkpoints import SIDECARS, Checkpoint, LastListing
from lakeview.delta.log.commit_pieces import blocks, cut
from lakeview.delta.log.commits import Commit, parse_commit
from lakeview.delta.log.file_lines import info_of, log_lines, mentions
from lakeview.delta.log.log_segment import (
    CheckpointFiles,
    LogSegment,
    build_segment,
    checkpoint_hint,
    checkpoints_of,
    no_log,
)
from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, LogFile, commit_name, log_files, log_frame
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CorruptTableError, VersionNotFoundError
from lakeview.storage import Storage
from lakeview.storage.interface import refuse_oversized

_CACHE_BYTES = 64 << 20
_THREADS = 8
_TIPS = 8
_FIRST_BATCH, _BATCH = 8, 256
_READ_BYTES, _PIECE_BYTES = 4 << 20, 512 << 10


class _Listed:
    """What one state of the listing says, put in order once. Immutable."""

    def __init__(self, files: Sequence[LogFile]) -> None:
        self.files = files
        self.commits = [f for f in files if f.kind == "commit"]
        self.versions = [f.version for f in self.commits]
        self.checkpoints = checkpoints_of(f for f in files if f.kind != "commit")

    @property
    def latest(self) -> int | None:
        """The newest version told about; None where there is neither commit nor complete checkpoint."""
        return max([*self.versions[-1:], *(c.version for c in self.checkpoints[-1:])], default=None)


class TableLog:
    """The files of one table's log.

    Opening costs the hint and one listing that starts at it (a local folder is listed whole: its names come at once
    anyway); what lies before is listed once, when it is asked for. Commits are immutable: their bytes are cached, the
    newest 64 MiB of them. NotATableError if there is neither commit nor complete checkpoint.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._lock = threading.RLock()
        self._bytes: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._checkpoints: dict[tuple[str, ...], Checkpoint] = {}
        self._last_listing = LastListing()
        self.tips: tuple[int, ...] = ()
        """Versions that were the latest until a refresh found newer ones, the last few."""
        self.replaced = False
        """Whether a refresh met none of the files that told of the latest version as they were: the table was deleted
        and made anew, or its log put back from elsewhere. What was read before may be another table's."""
        self._listed, self._from = self._open()
        latest = self._listed.latest
        if latest is None:
            raise no_log(storage.root)
        self.latest = latest

    def _open(self) -> tuple[_Listed, int]:
        hint = checkpoint_hint(self._read_hint()) if self.storage.remote else None
        if hint:
            listed = _Listed(self._list(hint))
            # "Last Checkpoint File": a hint; stale or broken, a listing from the start takes its place
            if any(c.version >= hint for c in listed.checkpoints):
                return listed, hint
        return _Listed(self._list(0)), 0

    def _read_hint(self) -> bytes | None:
        try:
            return self.storage.read(LAST_CHECKPOINT)
        except FileNotFoundError:
            return None

    def _list(self, start: int) -> list[LogFile]:
        return log_files(self.storage.entries_from(LOG_FOLDER, f"{start:020d}" if start else ""))

    def refresh(self) -> bool:
        """Look for newer versions: one listing from the latest known version. True if there is one."""
        with self._lock:
            newer = self._list(self.latest)
            if not any(f in newer for f in self._listed.files if f.version == self.latest):
                self.replaced = True
            known = {f.name: f for f in self._listed.files}
            if any(known.get(f.name) != f for f in newer):
                self._listed = _Listed(sorted((known | {f.name: f for f in newer}).values()))
            before, self.latest = self.latest, max(self.latest, self._listed.latest or 0)
            if self.latest > before:
                self.tips = (*self.tips[1 - _TIPS :], before)
            return self.latest > before

    def _whole(self) -> _Listed:
        with self._lock:
            if self._from > 0:
                self._listed, self._from = _Listed(self._list(0)), 0
            return self._listed

    @property
    def files(self) -> pl.DataFrame:
        """LOG_FILES from the first version on."""
        return log_frame(self._whole().files)

    def segment(self, version: int) -> LogSegment:
        """What has to be read for a version; errors as `build_segment`."""
        with self._lock:
            reaches = not self._from or any(c.version <= version for c in self._listed.checkpoints)
            listed = self._listed if reaches else self._whole()
            return build_segment(listed.versions, listed.checkpoints, version, self.storage.root)

    def commit_files(self) -> pl.DataFrame:
        """LOG_FILES of the commits, oldest first, whatever lies between them."""
        return log_frame(self._whole().commits)

    def commit_list(self) -> list[LogFile]:
        """The commits, oldest first, whatever lies between them. Not to be changed."""
        return self._whole().commits

    def versions(self) -> list[int]:
        """The versions that have a commit file, in ascending order. Not to be changed."""
        return self._whole().versions

    def listed_commits(self) -> list[LogFile]:
        """The commits that the last listing told of, oldest first: costs nothing, and may begin late."""
        with self._lock:
            return self._listed.commits

    def has_commits(self, first: int, last: int) -> bool:
        """Whether the last listing told of every commit from one version to another."""
        with self._lock:
            versions = self._listed.versions
            return bisect_right(versions, last) - bisect_left(versions, first) == last - first + 1

    def checkpoints(self) -> list[CheckpointFiles]:
        """Every complete checkpoint, oldest first; at one version the one to prefer comes last."""
        return self._whole().checkpoints

    def checkpoint(self, files: CheckpointFiles) -> Checkpoint:
        """The reader of one checkpoint."""
        with self._lock:
            return self._checkpoints.setdefault(files.names, Checkpoint(self.storage, files, self._last_listing))

    def broken_checkpoints(self) -> dict[int, str]:
        """Versions whose checkpoint cannot be a base, and why, as far as footers and one listing of the sidecars tell.

        A footer is read of each; from a remote store several at once.
        """
        checkpoints = list({c.version: self.checkpoint(c) for c in self.checkpoints()}.values())  # the one preferred
        if self.storage.remote and len(checkpoints) > 1:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="lakeview-log") as pool:
                troubles = list(pool.map(Checkpoint.trouble, checkpoints))
        else:
            troubles = [checkpoint.trouble() for checkpoint in checkpoints]
        found = {c.version: trouble for c, trouble in zip(checkpoints, troubles, strict=True) if trouble is not None}
        named = {c.version: c.sidecars for c in checkpoints if c.version not in found and c.sidecars}
        if named:
            there = {name for name, _, _ in self.storage.entries_from(SIDECARS)}
            for version, sidecars in named.items():
                if missing := [s for s in sidecars if not is_absolute(s) and s not in there]:
                    found[version] = f"sidecar {missing[0]} of checkpoint {version} is missing"
        return found

    def commit(self, version: int) -> Commit:
        """One commit. VersionNotFoundError if its file is not there, CorruptTableError if it cannot be read."""
        return parse_commit(self.commit_bytes(version), version, commit_name(version))

    def commit_bytes(self, version: int) -> bytes:
        """The bytes of one commit file; errors as `commit`."""
        with self._lock:
            if version in self._bytes:
                self._bytes.move_to_end(version)
                return self._bytes[version]
        name = commit_name(version) if version >= 0 else str(version)
        try:
            data = self.storage.read(f"{LOG_FOLDER}/{name}")
        except FileNotFoundError as error:
            if self._is_listed(version):
                raise CorruptTableError(
                    f"commit {name} was listed and is gone", fix="refresh: a clean-up may be running", place=name,
                    kind="versions-not-contiguous",
                ) from error  # fmt: skip
            raise VersionNotFoundError(
                f"the log of {self.storage.root} has no commit file for version {version}",
                fix="its file was cleaned up or never written: the table's versions tell what is there",
                place=name,
            ) from error
        self._keep(version, data)
        return data

    def _is_listed(self, version: int) -> bool:
        with self._lock:
            versions = self._listed.versions
            at = bisect_left(versions, version)
            return at < len(versions) and versions[at] == version

    def _keep(self, version: int, data: bytes) -> None:
        with self._lock:
            if version not in self._bytes and len(data) <= _CACHE_BYTES:
                self._bytes[version] = data
                self._cached_bytes += len(data)
            while self._cached_bytes > _CACHE_BYTES:
                self._cached_bytes -= len(self._bytes.popitem(last=False)[1])

    def each_bytes(self, versions: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """(version, bytes) of several commits in the order asked for, a batch in memory at a time; errors as `commit`.

        Batches grow, so that who stops early has read little. From a remote store several are read at once.
        """
        at, size = 0, _FIRST_BATCH
        while at < len(versions):
            batch = versions[at : at + size]
            with self._lock:
                known = {v: self._bytes[v] for v in batch if v in self._bytes}
            known |= self._read_all([v for v in batch if v not in known])
            yield from ((v, known[v]) for v in batch)
            at, size = at + size, min(2 * size, _BATCH)

    def in_pieces(self, version: int) -> bool:
        """Whether `each_piece` gives a commit in several pieces, by the size that the listing reported."""
        return self._size(version) > _PIECE_BYTES

    def each_piece(self, versions: Sequence[int], *, newest_first: bool = False) -> Iterator[tuple[int, bytes]]:
        """(version, bytes) of several commits in the order asked for, about 4 MiB in memory at a time.

        A commit of more than 512 KiB comes in pieces of whole lines, since decoded actions take seven times the bytes:
        its first piece first, or its last one with `newest_first`. Small commits are read several at once; of one that
        is larger than 4 MiB ranges are read, and its bytes are not cached. Errors as `commit`.
        """
        for version, data in self._each_block(versions, newest_first):
            pieces = cut(data, _PIECE_BYTES, newest_first=newest_first) if self.in_pieces(version) else (data,)
            yield from ((version, piece) for piece in pieces)

    @contextmanager
    def whole_lines(self) -> Iterator[None]:
        """Around what decodes `each_piece`: an error that counts the lines of a piece becomes that of its commit."""
        try:
            yield
        except CorruptTableError as error:
            version = (error.place or "").partition(".")[0]
            if error.kind == "corrupt-commit" and version.isdecimal():
                self.commit(int(version))  # raises the error with the line of the whole file
            raise

    def _each_block(self, versions: Sequence[int], newest_first: bool) -> Iterator[tuple[int, bytes]]:
        batch: list[int] = []
        size, most = 0, _FIRST_BATCH
        for version in versions:
            more = self._size(version)
            if batch and (size + more > _READ_BYTES or len(batch) >= most):
                yield from self.each_bytes(batch)
                batch, size, most = [], 0, min(2 * most, _BATCH)
            if more > _READ_BYTES:
                refuse_oversized(commit_name(version), more, self.storage.config)
                found = blocks(partial(self._range, version), more, _READ_BYTES, newest_first=newest_first)
                yield from ((version, block) for block in found)
            else:
                batch.append(version)
                size += more
        yield from self.each_bytes(batch)

    def _size(self, version: int) -> int:
        with self._lock:
            commits = self._listed.commits
            at = bisect_left(self._listed.versions, version)
            return commits[at].size if at < len(commits) and commits[at].version == version else 0

    def _range(self, version: int, start: int, length: int) -> bytes:
        try:
            return self.storage.read_range(f"{LOG_FOLDER}/{commit_name(version)}", start, length)
        except FileNotFoundError:
            return self.commit_bytes(version)[start : start + length]  # raises the error that says what is gone

    def _read_all(self, versions: Sequence[int]) -> dict[int, bytes]:
        if len(versions) < 2:
            return {v: self.commit_bytes(v) for v in versions}
        if self.storage.remote:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="lakeview-log") as pool:
                return dict(zip(versions, pool.map(self.commit_bytes, versions), strict=True))
        try:
            found = self.storage.read_all(LOG_FOLDER, [commit_name(v) for v in versions])
        except FileNotFoundError:  # one of them is gone: the way that says which
            return {v: self.commit_bytes(v) for v in versions}
        for version, data in zip(versions, found, strict=True):
            self._keep(version, data)
        return dict(zip(versions, found, strict=True))

    def infos(self, versions: Sequence[int]) -> Iterator[tuple[int, CommitInfo]]:
        """What each of these commits says about itself; nothing for one that is corrupt. Other errors as `commit`."""
        for version, pieces in groupby(self.each_piece(versions), key=itemgetter(0)):
            yield version, _first_info(pieces)

    def commits(self, versions: Iterable[int]) -> list[Commit]:
        """Several commits in the order asked for; errors as `commit`."""
        return [parse_commit(data, v, commit_name(v)) for v, data in self.each_bytes(list(versions))]


def _first_info(pieces: Iterable[tuple[int, bytes]]) -> CommitInfo:
    """What the first commitInfo among the pieces of a commit contains; empty without one, or before a corrupt line."""
    try:
        for version, data in pieces:
            if mentions(data, "commitInfo") and (info := info_of(log_lines(data, version))) != CommitInfo():
                return info
    except CorruptTableError:
        return CommitInfo()
    return CommitInfo()
