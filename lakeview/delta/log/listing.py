"""The folder `_delta_log` to a listing that a refresh extends: commits, complete checkpoints, a version's files."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter

import polars as pl

from lakeview.delta.log.log_segment import (
    CheckpointFiles,
    LogSegment,
    build_segment,
    checkpoint_hint,
    checkpoints_of,
    first_missing,
    no_log,
)
from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, SIDECARS, LogFile, checksum_name, log_files, log_frame
from lakeview.delta.log.probing import probe_log
from lakeview.model.errors import AccessDeniedError, UnsupportedTableError
from lakeview.model.frames import LOG_FILES
from lakeview.storage import NO_LISTING, Storage

_TIPS = 8
_version = attrgetter("version")


@dataclass(frozen=True, slots=True)
class _Versions:
    """What one state of the listing says, in the order of versions. Never changed, so that it is read without a lock: a
    reader does not wait for a refresh in another thread."""

    files: list[LogFile]
    commits: list[LogFile]
    versions: list[int]
    checkpoints: list[CheckpointFiles]

    @staticmethod
    def of(files: Sequence[LogFile]) -> _Versions:
        """The state of a listing of these files, sorted."""
        commits = [f for f in files if f.kind == "commit"]
        checkpoints = checkpoints_of(f for f in files if f.kind != "commit")
        return _Versions(list(files), commits, [f.version for f in commits], checkpoints)

    def since(self, version: int) -> list[LogFile]:
        """The files of that version and later ones."""
        return self.files[bisect_left(self.files, version, key=_version) :]

    def followed_by(self, last: _Versions, version: int) -> _Versions:
        """With those of `last` in place of the files of `version` and later ones."""
        commits = bisect_left(self.versions, version)
        return _Versions(
            self.files[: bisect_left(self.files, version, key=_version)] + last.files,
            self.commits[:commits] + last.commits,
            self.versions[:commits] + last.versions,
            self.checkpoints[: bisect_left(self.checkpoints, version, key=_version)] + last.checkpoints,
        )

    @property
    def latest(self) -> int | None:
        """The newest version listed; None where there is neither commit nor complete checkpoint."""
        return max([*self.versions[-1:], *(c.version for c in self.checkpoints[-1:])], default=None)


class LogListing:
    """What the folder of one table's log holds.

    Opening costs the hint and one listing that starts at it; what lies before is listed once, when it is asked for: a
    local folder gives its names at once, but the size and time of each file cost a call (20,000 commits: 0.1 s).
    NotATableError if there is neither commit nor complete checkpoint. Safe to use from several threads.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._lock = threading.RLock()
        self.tips: tuple[int, ...] = ()
        """Versions that were the latest until a refresh found newer ones, the last few."""
        self.cleanups = 0
        """How often files were forgotten: what was to be read of them cannot be read any more."""
        self.is_outdated = False
        """Whether a commit that was listed turned out to be gone: the next refresh lists the whole log."""
        self.is_replaced = False
        """Whether a refresh found none of the latest version's files unchanged: the table was deleted and recreated, or
        its log restored from elsewhere. What was read before may be another table's."""
        self._versions, self._from = self._open()
        latest = self._versions.latest
        if latest is None:
            raise no_log(storage.root)
        self.latest = latest

    def _open(self) -> tuple[_Versions, int]:
        hint = checkpoint_hint(self._read_hint())
        if hint:
            versions = _Versions.of(self.list_files(hint))
            # "Last Checkpoint File": a hint; stale or broken, a listing from the start takes its place
            if any(c.version >= hint for c in versions.checkpoints):
                return versions, hint
        return _Versions.of(self.list_files(0)), 0

    def _read_hint(self) -> bytes | None:
        try:
            return self.storage.read(LAST_CHECKPOINT)
        except (FileNotFoundError, NotADirectoryError, AccessDeniedError, UnsupportedTableError):
            return None  # absent, or a link out of the table, or too large: it is a hint only

    def list_files(self, start: int) -> list[LogFile]:
        """The files of the log from a version on, as they are now."""
        files, gap = self._list_once(start), None
        # "If a file is removed from or added to the directory after the most recent call to opendir() [...], whether a
        # subsequent call to readdir() returns an entry for that file is unspecified" (POSIX): a listing during which
        # two commits are created may have the second alone. A gap that the next listing has too is one.
        while (missing := _first_gap(files, start)) not in (None, gap):
            files, gap = self._list_once(start), missing
        return files

    def _list_once(self, start: int) -> list[LogFile]:
        try:
            return log_files(self.storage.entries_from(LOG_FOLDER, f"{start:020d}" if start else ""))
        except UnsupportedTableError as error:
            if error.kind != NO_LISTING:
                raise
            return log_files(probe_log(self.storage, start))

    def refresh(self) -> bool:
        """Look for newer versions: one listing from the latest known version. True if there is one."""
        with self._lock:
            if self.is_outdated:
                self._list_again()
            newer, current = self.list_files(self.latest), self._versions.since(self.latest)
            there = {self._identity(f) for f in newer}
            if not any(self._identity(f) in there for f in current if f.version == self.latest):
                self.is_replaced = True
            if set(newer) - set(current):  # files that are gone stay listed until they are forgotten
                by_name = {f.name: f for f in current} | {f.name: f for f in newer}
                self._versions = self._versions.followed_by(_Versions.of(sorted(by_name.values())), self.latest)
            before, self.latest = self.latest, max(self.latest, self._versions.latest or 0)
            if self.latest > before:
                self.tips = (*self.tips[1 - _TIPS :], before)
            return self.latest > before

    def _list_again(self) -> None:
        """Leave out what others cleaned up; a log that was taken away or set back stays as it was listed."""
        versions = _Versions.of(self.list_files(0))
        if (versions.latest or 0) >= self.latest:
            self._versions, self._from = versions, 0
            self.cleanups += 1
        self.is_outdated = False

    def _identity(self, file: LogFile) -> LogFile:
        return file._replace(modified=None) if self.storage.may_put_twice else file

    def has_checksum(self, version: int) -> bool:
        """Whether the version checksum file of a version has been listed."""
        name = checksum_name(version)
        return any(file.name == name for file in self._versions.since(version))

    def forget(self, names: Collection[str]) -> None:
        """Leave out files that were deleted: a refresh only looks for new ones."""
        with self._lock:
            deletions = set(names)
            self._versions = _Versions.of([f for f in self._whole().files if f.name not in deletions])
            self.cleanups += 1

    def _whole(self) -> _Versions:
        with self._lock:
            if self._from > 0:
                self._versions, self._from = _Versions.of(self.list_files(0)), 0
            return self._versions

    @property
    def files(self) -> pl.DataFrame:
        """LOG_FILES from the first version on."""
        return log_frame(self._whole().files)

    def segment(self, version: int, unusable: Collection[CheckpointFiles] = ()) -> LogSegment:
        """What has to be read for a version, along none of these checkpoints; errors as `build_segment`."""
        with self._lock:
            checkpoints = self._versions.checkpoints
            reaches = not self._from or any(c.version <= version and c not in unusable for c in checkpoints)
            versions = self._versions if reaches else self._whole()
            usable = [c for c in versions.checkpoints if c not in unusable] if unusable else versions.checkpoints
            return build_segment(versions.versions, usable, version, self.storage.root)

    def commit_files(self) -> pl.DataFrame:
        """LOG_FILES of the commits, oldest first, gaps or not."""
        return log_frame(self._whole().commits)

    def commit_list(self) -> list[LogFile]:
        """The commits, oldest first, gaps or not. Not to be changed."""
        return self._whole().commits

    def versions(self) -> list[int]:
        """The versions that have a commit file, in ascending order. Not to be changed."""
        return self._whole().versions

    def listed_commits(self) -> list[LogFile]:
        """The commits in the last listing, oldest first: costs nothing, and may begin late."""
        return self._versions.commits

    @property
    def is_partial(self) -> bool:
        """Whether the last listing began at a checkpoint, so that `listed_commits` may begin late."""
        return self._from > 0

    def has_commits(self, first: int, last: int) -> bool:
        """Whether the last listing had every commit from one version to another."""
        versions = self._versions.versions
        return bisect_right(versions, last) - bisect_left(versions, first) == last - first + 1

    def checkpoints(self) -> list[CheckpointFiles]:
        """Every complete checkpoint, oldest first; at one version the one to prefer comes last."""
        return self._whole().checkpoints

    def size(self, version: int) -> int | None:
        """The bytes of a commit file by the last listing; None where it has none of that version."""
        state = self._versions
        at = bisect_left(state.versions, version)
        return state.commits[at].size if state.versions[at : at + 1] == [version] else None


def _first_gap(files: Sequence[LogFile], start: int) -> int | None:
    """The first commit that is not among the files from version `start` on although a later one is."""
    versions = [f.version for f in files if f.kind == "commit"]
    return first_missing(versions, start + 1 if start else versions[0], versions[-1]) if versions else None


_KINDS = {"commit": "commit", "checkpoint": "checkpoint", "part": "checkpoint", "v2": "checkpoint"}


def listed_log(log: LogListing, *, has_sidecars: bool) -> pl.DataFrame:
    """LOG_FILES, by name. One listing that the log has made already, and with `has_sidecars` one of the sidecars."""
    frame = log.files.with_columns(pl.col("kind").replace_strict(_KINDS, default="other")).select(LOG_FILES.names())
    if not has_sidecars:
        return frame.cast(LOG_FILES)
    sidecars = log.storage.list_from(SIDECARS).select(
        "name", pl.lit("checkpoint").alias("kind"), pl.lit(None, pl.Int64).alias("version"), "size", "modified"
    )
    return pl.concat([frame, sidecars]).cast(LOG_FILES)
