"""A run of commits to one file that holds what they add up to (today's protocol, Log Compaction Files)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from lakeview.delta.features import check_writable
from lakeview.delta.log.actions import DeletionVectorDescriptor
from lakeview.delta.log.commits import RAW_LINES, parse_commit, parse_lines
from lakeview.delta.log.paths import LOG_FOLDER, canonical_path, commit_name, compaction_name, decode_path
from lakeview.delta.write.rules import active_features
from lakeview.delta.write.target import Target
from lakeview.model.errors import InvalidRequestError


class _Subject(msgspec.Struct, frozen=True, rename="camel"):
    """What tells an action from another of its kind."""

    path: str = ""
    deletion_vector: DeletionVectorDescriptor | None = None
    app_id: str = ""
    domain: str = ""


_SUBJECT = msgspec.json.Decoder(_Subject | None)
_FILES = ("add", "remove")
_RECONCILED = (*_FILES, "protocol", "metaData", "txn", "domainMetadata")
"""Kinds of actions that a state is made of; provenance and change data stay with their commits."""


def compact_log(table: Target, start: int, end: int) -> str:
    """Write `<start>.<end>.compacted.json`: the newest action of each file, application and domain among these commits,
    the newest protocol and metaData, each as it is recorded. Tombstones and removed domains stay, since earlier
    versions may have what they remove. Returns the name.

    A file of that name is left as it is. InvalidRequestError for a range of less than two commits, or one with a commit
    that is not in the log; CorruptTableError for a commit that cannot be read; UnsupportedTableError as `vacuum`.
    """
    state = table.state()
    check_writable(state.table_protocol, active_features(state.metadata), table.storage.root)
    versions = table.log.versions()
    if not 0 <= start < end or bisect_right(versions, end) - bisect_left(versions, start) != end - start + 1:
        raise InvalidRequestError(
            f"commits {start} to {end} of {table.storage.root} cannot be compacted: two or more are needed, and all of "
            "them have to be in the log",
            fix="choose a range among the versions that the table lists",
            kind="log-compaction-range",
        )
    name = compaction_name(start, end)
    newest = dict[tuple[str, ...], bytes]()
    for key, line in _actions(table, range(start, end + 1)):
        newest.pop(key, None)  # the newest comes last, as in the commits
        newest[key] = line
    with suppress(FileExistsError):
        table.storage.put_if_absent(f"{LOG_FOLDER}/{name}", b"".join(newest.values()))
    return name


def _actions(table: Target, versions: range) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """What each action is about, and its line, oldest first."""
    with table.log.whole_lines():
        for version, data in table.log.each_piece(versions):
            parse_commit(data, version)  # raises for what no reader can read
            for line in parse_lines(RAW_LINES, data, commit_name(version)):
                for kind in _RECONCILED:
                    if kind in line and (subject := _SUBJECT.decode(line[kind])) is not None:
                        yield _key(kind, subject, table.storage.root), b'{"%s":%s}\n' % (kind.encode(), line[kind])


def _key(kind: str, subject: _Subject, root: str) -> tuple[str, ...]:
    if kind in _FILES:
        vector = subject.deletion_vector
        return "file", canonical_path(decode_path(subject.path), root), "" if vector is None else vector.unique_id
    return kind, subject.app_id, subject.domain
