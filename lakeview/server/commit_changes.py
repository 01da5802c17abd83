"""A range of commits to the file actions that changed a table, in bounded memory: a few commits at a time, or a piece.

"Commits with cdc files give only those"; what only moved rows about (dataChange false) changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from lakeview.delta.data.change_plan import cdc_actions, merged_nothing
from lakeview.delta.log.actions import AddCDCFile, AddFile, RemoveFile
from lakeview.delta.log.commits import Commit, parse_commit
from lakeview.delta.log.file_lines import mentions
from lakeview.delta.log.paths import LOG_FOLDER, commit_name
from lakeview.delta.log.table_log import TableLog
from lakeview.errors import CorruptTableError

FileAction = AddFile | RemoveFile | AddCDCFile

PIECE_BYTES = 4 << 20
"""So many bytes of commits are decoded at a time: ten times as many as objects, which is what an answer holds."""

_MOST_COMMITS = 128
_SLICE = 500


def changed_files(log: TableLog, start: int, end: int, *, feed: bool) -> Iterator[tuple[int, Sequence[FileAction]]]:
    """(version, actions) in the order of the log, at most 500 actions at a time; each version comes at least once.

    `feed`: recorded change data files take the place of a commit's adds and removes. VersionNotFoundError for a commit
    that is gone, CorruptTableError for one that cannot be read, when its turn comes.
    """
    for version, data in _bytes(log, start, end):
        found = False
        for actions in _sliced(_changes(_Pieces(log, version, data), feed=feed)):
            found = True
            yield version, actions
        if not found:
            yield version, ()


def has_vectors(log: TableLog, start: int, end: int, *, feed: bool) -> bool:
    """Whether one of these actions has a deletion vector. Bytes are searched; only commits that may have one are
    decoded."""
    commits = (_Pieces(log, version, data) for version, data in _bytes(log, start, end))
    return any(
        not isinstance(action, AddCDCFile) and action.deletion_vector is not None
        for commit in commits
        if commit.mention("deletionVector")
        for action in _changes(commit, feed=feed)
    )


def _changes(commit: _Pieces, *, feed: bool) -> Iterator[FileAction]:
    if feed:
        recorded = (action for piece in commit.parsed("cdc") for action in cdc_actions(piece))
        if (first := next(recorded, None)) is not None:
            yield from chain([first], recorded)
            return
        if any(merged_nothing(piece) for piece in commit.parsed("commitInfo")):
            return
    for piece in commit.parsed("add", "remove"):
        for action in piece.actions:
            for file in (action.add, action.remove):
                if file is not None and file.data_change:
                    yield file


def _sliced(actions: Iterator[FileAction]) -> Iterator[list[FileAction]]:
    while found := list(islice(actions, _SLICE)):
        yield found


# -- reading


def _bytes(log: TableLog, start: int, end: int) -> Iterator[tuple[int, bytes | None]]:
    """(version, bytes) of each commit; None for one that is larger than a piece, which is not read yet."""
    sizes = {file.version: file.size for file in log.commit_list() if start <= file.version <= end}
    group: list[int] = []
    size = 0
    for version in range(start, end + 1):
        own = sizes.get(version, 0)
        if group and (size + own > PIECE_BYTES or len(group) == _MOST_COMMITS):
            yield from log.each_bytes(group)
            group, size = [], 0
        if own > PIECE_BYTES:
            yield version, None
        else:
            group.append(version)
            size += own
    yield from log.each_bytes(group)


class _Pieces:
    """One commit, whole where its bytes are at hand, else in pieces that are read each time anew."""

    def __init__(self, log: TableLog, version: int, data: bytes | None) -> None:
        self._log = log
        self._version = version
        self._data = data
        self._whole: Commit | None = None

    def mention(self, kind: str) -> bool:
        """Whether the commit may hold such an action, or field of one."""
        return any(mentions(piece, kind) for piece in self._bytes())

    def parsed(self, *kinds: str) -> Iterator[Commit]:
        """The pieces that may hold an action of one of these kinds; CorruptTableError for one that cannot be read."""
        if self._data is not None:
            self._whole = self._whole or self._parse(self._data)
            yield self._whole
            return
        for number, piece in enumerate(self._bytes()):
            if not mentions(piece, *kinds):
                continue
            try:
                yield self._parse(piece)
            except CorruptTableError:
                if number:
                    raise
                yield self._log.commit(self._version)  # pretty-printed, perhaps; or the error names the line
                return

    def _bytes(self) -> Iterator[bytes]:
        return _read_pieces(self._log, self._version) if self._data is None else iter((self._data,))

    def _parse(self, data: bytes) -> Commit:
        return parse_commit(data, self._version, commit_name(self._version))


def _read_pieces(log: TableLog, version: int) -> Iterator[bytes]:
    """The lines of a commit file, some at a time."""
    path = f"{LOG_FOLDER}/{commit_name(version)}"
    at, rest = 0, b""
    while part := log.storage.read_range(path, at, PIECE_BYTES):
        at += len(part)
        lines, newline, last = part.rpartition(b"\n")
        if newline:
            yield rest + lines + newline
            rest = last
        else:
            rest += part
    if rest:
        yield rest
