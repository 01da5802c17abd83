"""The protocol and metaData actions of a log: of its commits, and of the checkpoints that bridge what is gone
(its bases)."""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from lakeview.delta.log.actions import Metadata, Protocol, table_protocol
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.commits import mentions, parse_commit
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import asks_for_in_commit_times, in_commit_start
from lakeview.model.errors import CorruptTableError

Definition = tuple[Protocol | None, Metadata | None]
"""The last protocol and the last metaData action of a commit, or those of a checkpoint."""

_Action = TypeVar("_Action", Protocol, Metadata)
_PROTOCOL: Callable[[Definition], Protocol | None] = itemgetter(0)
_METADATA: Callable[[Definition], Metadata | None] = itemgetter(1)

_T = TypeVar("_T")


class Definitions:
    """What defines a table, version by version. Each commit is read once; safe to use from several threads."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._of_commit: dict[int, Definition | None] = {}

    def add(self, definitions: Mapping[int, Definition | None]) -> None:
        """Take the actions of commits that were read for something else; None for a commit that is corrupt."""
        with self._lock:
            self._of_commit.update(definitions)

    def protocols(self) -> dict[int, Protocol]:
        """Every protocol action of the commits, by version."""
        return {v: d[0] for v, d in self._commits().items() if d is not None and d[0] is not None}

    def metadata(self) -> dict[int, Metadata]:
        """Every metaData action of the commits, by version."""
        return {v: d[1] for v, d in self._commits().items() if d is not None and d[1] is not None}

    def in_force(self) -> tuple[dict[int, Protocol], dict[int, Metadata], dict[int, str]]:
        """The protocols and the metadata by the version from which each is in force, those of bases included, and why
        a base cannot be read, by its version. In ascending order."""
        commits = self._commits()
        corrupt = {v for v, d in commits.items() if d is None}
        bases, problems = read_bases(self._log, corrupt, Checkpoint.protocol_and_metadata)
        start = -1 if begins_at_zero(self._log, corrupt) else min(bases, default=-1)
        definitions = {v: d for v, d in commits.items() if d is not None and v > start}
        for version, base in bases.items():
            own = definitions.get(version, (None, None))
            definitions[version] = (base[0] or own[0], base[1] or own[1])
        in_order = sorted(definitions.items())
        protocols = {v: d[0] for v, d in in_order if d[0] is not None}
        return protocols, {v: d[1] for v, d in in_order if d[1] is not None}, problems

    def schema_texts(self) -> list[tuple[int, str]]:
        """(version, schemaString) of each version that changed the schema, oldest first."""
        texts: list[tuple[int, str]] = []
        for version, metadata in self.in_force()[1].items():
            text = metadata.schema_string
            if text is not None and (not texts or texts[-1][1] != text):
                texts.append((version, text))
        return texts

    def changes(self, first: int, last: int) -> list[int]:
        """The versions after the first, up to the last, whose commits have a protocol or metaData action."""
        with self._lock:
            versions = [v for v in self._log.versions() if first < v <= last]
            return [v for v, d in zip(versions, self._read(versions), strict=True) if any(d)]

    def schema_before(self, version: int) -> str | None:
        """The schemaString in force before a commit; None where the log no longer records one."""
        with self._lock:
            newest = self._newest(_METADATA, version)
            return next((m.schema_string for m in newest if m.schema_string is not None), None)

    def in_commit_start(self) -> int | None:
        """The version from which commits carry their own time, by the newest protocol and properties that can be read,
        for the log's own sake: no protocol check; None where they do not.

        Searched newest first: the commits after the newest checkpoint, that checkpoint, and what lies before it only
        where it has neither.
        """
        end = self._log.latest + 1
        with self._lock:
            metadata = next(self._newest(_METADATA, end), None)
            if metadata is None or not asks_for_in_commit_times(metadata.properties):
                return None  # without the property the protocol does not matter
            protocol = next(self._newest(_PROTOCOL, end), None)
        return None if protocol is None else in_commit_start(table_protocol(protocol), metadata.properties)

    # -- inside

    def _commits(self) -> dict[int, Definition | None]:
        with self._lock:
            for _ in self._read(self._log.versions()):
                pass
            return dict(sorted(self._of_commit.items()))

    def _read(self, versions: Sequence[int]) -> Iterator[Definition]:
        """The actions of these commits, in this order; neither of one that is corrupt.

        Commits are searched as bytes, and those parsed that may hold one.
        """
        missing = [v for v in versions if v not in self._of_commit]
        pieces = groupby(self._log.each_piece(missing), key=itemgetter(0))
        for version in versions:
            if version not in self._of_commit:
                self._of_commit[version] = _definition(next(pieces)[1])
            yield self._of_commit[version] or (None, None)

    def _newest(self, which: Callable[[Definition], _Action | None], below: int) -> Iterator[_Action]:
        """The protocols or the metadata in force below a version, newest first: of the commits after the newest
        checkpoint, of that checkpoint, and so on back; what cannot be read is passed over."""
        end = below
        versions = self._log.versions()
        for checkpoint in [*(c for c in reversed(self._log.checkpoints()) if c.version < below), None]:
            start = -1 if checkpoint is None else checkpoint.version
            after = versions[bisect_right(versions, start) : bisect_left(versions, end)]
            yield from filter(None, map(which, self._read(after[::-1])))
            if checkpoint is not None:
                end = checkpoint.version + 1
                action = self._from_commits(which, checkpoint.version)
                if action is None:
                    action = self._from_checkpoint(which, self._log.checkpoint(checkpoint))
                if action is not None:
                    yield action

    def _from_commits(self, which: Callable[[Definition], _Action | None], version: int) -> _Action | None:
        """What is in force at a version, if the commits read so far have it: then no checkpoint is read."""
        while (definition := self._of_commit.get(version)) is not None:
            if (action := which(definition)) is not None:
                return action
            version -= 1
        return None

    def _from_checkpoint(self, which: Callable[[Definition], _Action | None], checkpoint: Checkpoint) -> _Action | None:
        try:
            return which(checkpoint.protocol_and_metadata())
        except UNREADABLE:
            return None


def _definition(pieces: Iterable[tuple[int, bytes]]) -> Definition | None:
    """The last protocol and the last metaData among the pieces of one commit; None for a commit that is corrupt, as far
    as the pieces that may hold one show it."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for version, data in pieces:
        if mentions(data, "protocol", "metaData"):
            try:
                newer = parse_commit(data, version).definition
            except CorruptTableError:
                return None
            protocol, metadata = newer[0] or protocol, newer[1] or metadata
    return protocol, metadata


def read_bases(
    log: TableLog, corrupt: Collection[int], read: Callable[[Checkpoint], _T]
) -> tuple[dict[int, _T], dict[int, str]]:
    """What `read` gives of each base, by version, oldest first; and the reasons why others cannot be read, by version.

    A base is a checkpoint at a version that no unbroken run of readable commits reaches, neither from version 0 nor
    from an earlier base: the one before which the log was cleaned up, and each that bridges a gap. `corrupt`: commits
    that cannot be read. A checkpoint that `read` finds broken is no base, the next one may be.
    """
    commits = log.versions()
    bases: dict[int, _T] = {}
    problems: dict[int, str] = {}
    if commits[:1] == [0] and commits[-1] == len(commits) - 1 and not corrupt:
        return bases, problems
    readable = set(commits).difference(corrupt)
    checkpoints = {c.version: c for c in log.checkpoints()}  # at one version the preferred one comes last
    last: int | None = -1
    for version in sorted(readable.union(checkpoints)):
        if last is not None and version == last + 1 and version in readable:
            last = version
            continue
        last = None
        if version in checkpoints:
            try:
                bases[version] = read(log.checkpoint(checkpoints[version]))
                last = version
            except UNREADABLE as error:
                problems[version] = error.message
    return bases, problems


def begins_at_zero(log: TableLog, corrupt: Collection[int]) -> bool:
    """Whether the log still has its first commit, so that what it records begins with an empty table."""
    return log.versions()[:1] == [0] and 0 not in corrupt
