"""The protocol and metaData actions of a log, version by version: of its commits, and of the checkpoints that bridge
what is gone (its bases)."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator
from operator import itemgetter
from typing import TypeVar

from lakeview.delta.log.actions import Metadata, Protocol, table_protocol
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.commits import Definition
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import asks_for_in_commit_times, in_commit_start

_Action = TypeVar("_Action", Protocol, Metadata)
_PROTOCOL: Callable[[Definition], Protocol | None] = itemgetter(0)
_METADATA: Callable[[Definition], Metadata | None] = itemgetter(1)

_T = TypeVar("_T")


def definitions_in_force(log: TableLog) -> tuple[dict[int, Protocol], dict[int, Metadata], dict[int, str]]:
    """The protocols and the metadata by the version from which each is in force, those of bases included, and why a
    base cannot be read, by its version. In ascending order."""
    commits = dict(log.definitions(log.versions()))
    corrupt = {v for v, d in commits.items() if d is None}
    bases, problems = read_bases(log, corrupt, lambda checkpoint: checkpoint.definition)
    start = -1 if begins_at_zero(log, corrupt) else min(bases, default=-1)
    definitions = {v: d for v, d in commits.items() if d is not None and v > start}
    for version, base in bases.items():
        own = definitions.get(version, (None, None))
        definitions[version] = (base[0] or own[0], base[1] or own[1])
    in_order = sorted(definitions.items())
    protocols = {v: d[0] for v, d in in_order if d[0] is not None}
    return protocols, {v: d[1] for v, d in in_order if d[1] is not None}, problems


def schema_texts(log: TableLog) -> list[tuple[int, str]]:
    """(version, schemaString) of each version that changed the schema, oldest first."""
    texts: list[tuple[int, str]] = []
    for version, metadata in definitions_in_force(log)[1].items():
        text = metadata.schema_string
        if text is not None and (not texts or texts[-1][1] != text):
            texts.append((version, text))
    return texts


def schema_before(log: TableLog, version: int) -> str | None:
    """The schemaString in force before a commit; None where the log no longer records one."""
    newest = _newest(log, _METADATA, version)
    return next((m.schema_string for m in newest if m.schema_string is not None), None)


def newest_in_commit_start(log: TableLog) -> int | None:
    """The version from which commits carry their own time, by the newest protocol and properties that can be read, for
    the log's own sake: no protocol check; None where they do not.

    Searched newest first: the commits after the newest checkpoint, that checkpoint, and what lies before it only where
    it has neither.
    """
    end = log.latest + 1
    metadata = next(_newest(log, _METADATA, end), None)
    if metadata is None or not asks_for_in_commit_times(metadata.properties):
        return None  # without the property the protocol does not matter
    protocol = next(_newest(log, _PROTOCOL, end), None)
    return None if protocol is None else in_commit_start(table_protocol(protocol), metadata.properties)


def allows_v2_checkpoints(log: TableLog) -> bool:
    """Whether the newest protocol that can be read has the feature v2Checkpoint. The feature is only dropped once no V2
    checkpoint is left."""
    protocol = next(_newest(log, _PROTOCOL, log.latest + 1), None)
    return protocol is not None and "v2Checkpoint" in (protocol.reader_features or ())


def _newest(log: TableLog, which: Callable[[Definition], _Action | None], below: int) -> Iterator[_Action]:
    """The protocols or the metadata in force below a version, newest first: of the commits after the newest checkpoint,
    of that checkpoint, and so on back; what cannot be read is passed over."""
    end = below
    versions = log.versions()
    of_version: dict[int, CheckpointFiles] = {c.version: c for c in log.checkpoints() if c.version < below}
    for checkpoint in [*reversed(of_version.values()), None]:
        start = -1 if checkpoint is None else checkpoint.version
        after = versions[bisect_right(versions, start) : bisect_left(versions, end)]
        yield from filter(None, (which(definition or (None, None)) for _, definition in log.definitions(after[::-1])))
        if checkpoint is not None:
            end = checkpoint.version + 1
            action = _from_commits(log, which, checkpoint.version)
            if action is None:
                action = _from_checkpoint(log, which, checkpoint)
            if action is not None:
                yield action


def _from_commits(log: TableLog, which: Callable[[Definition], _Action | None], version: int) -> _Action | None:
    """What is in force at a version, if the commits read so far have it: then no checkpoint is read."""
    while (definition := log.known_definitions.of([version]).get(version)) is not None:
        if (action := which(definition)) is not None:
            return action
        version -= 1
    return None


def _from_checkpoint(
    log: TableLog, which: Callable[[Definition], _Action | None], files: CheckpointFiles
) -> _Action | None:
    try:
        return which(log.read_checkpoint(files, lambda checkpoint: checkpoint.definition))
    except UNREADABLE:
        return None


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
    checkpoints = {c.version: c for c in log.checkpoints()}
    last: int | None = -1
    for version in sorted(readable.union(checkpoints)):
        if last is not None and version == last + 1 and version in readable:
            last = version
            continue
        last = None
        if version in checkpoints:
            try:
                bases[version] = log.read_checkpoint(checkpoints[version], read)
                last = version
            except UNREADABLE as error:
                problems[version] = error.message
    return bases, problems


def begins_at_zero(log: TableLog, corrupt: Collection[int]) -> bool:
    """Whether the log still has its first commit, so that what it records begins with an empty table."""
    return log.versions()[:1] == [0] and 0 not in corrupt
