"""File actions of commits to columns of FILE_ACTIONS: only what is asked for is decoded, only the newest word kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.actions import (
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Long,
    Metadata,
    Protocol,
    Txn,
    parse_commit_info,
)
from lakeview.delta.log.commits import action_frame, parse_commit, parse_lines, vector_value
from lakeview.delta.log.paths import canonical_paths, commit_name, decoded_paths
from lakeview.delta.log.record_counts import rows

# Without the garbage collector's books: it walks a million young structs again and again, and none is in a cycle.


class AddLine(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An add action as a listing needs it: statistics and tags stay bytes of the log until someone asks."""

    path: str
    size: Long
    partition_values: dict[str, str | None] | None = None
    modified: Long | None = msgspec.field(name="modificationTime", default=None)
    data_change: bool = True
    stats: msgspec.Raw = msgspec.Raw(b"")
    tags: msgspec.Raw = msgspec.Raw(b"")
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None


class RemoveLine(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A remove action as a listing needs it."""

    path: str
    size: Long | None = None
    partition_values: dict[str, str | None] | None = None
    modified: Long | None = msgspec.field(name="deletionTimestamp", default=None)
    data_change: bool = True
    tags: msgspec.Raw = msgspec.Raw(b"")
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None


class LogLine(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One line of a commit, as `actions.Action`."""

    add: AddLine | None = None
    remove: RemoveLine | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    txn: Txn | None = None
    commit_info: msgspec.Raw = msgspec.Raw(b"")
    domain_metadata: DomainMetadata | None = None


FileLine = AddLine | RemoveLine

LINES = msgspec.json.Decoder(LogLine)
_TEXT = msgspec.json.Decoder(str | None)
_TAGS = msgspec.json.Decoder(dict[str, str | None] | None)
_FIRST_KEY = re.compile(rb'"\s*\{\s*\\"numRecords\\"\s*:\s*(\d{1,15})\s*[,}]')
_ABSENT = (b"", b"null")


class _Counted(msgspec.Struct, frozen=True):
    num_records: Any = msgspec.field(name="numRecords", default=None)


_COUNTED = msgspec.json.Decoder(_Counted)


def log_lines(data: bytes, version: int) -> list[LogLine]:
    """The lines of a commit. CorruptTableError says which line cannot be read, and why."""
    return parse_lines(LINES, data, commit_name(version))


def records_of(action: FileLine) -> int | None:
    """Physical rows of a file, None where its statistics do not say.

    `numRecords` is nearly always the first key: it is read where it stands, without decoding the statistics.
    """
    raw = memoryview(action.stats) if isinstance(action, AddLine) else b""
    if not raw:
        return None
    if found := _FIRST_KEY.match(raw):
        return int(found[1])
    try:
        text = _TEXT.decode(raw)
        return None if text is None else rows(_COUNTED.decode(text).num_records)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def stats_of(action: FileLine) -> str | None:
    """The statistics document of an add. msgspec.DecodeError for one that is no text."""
    raw = bytes(action.stats) if isinstance(action, AddLine) else b""
    return None if raw in _ABSENT else _TEXT.decode(raw)


def _tags(action: FileLine) -> str | None:
    raw = bytes(action.tags)
    return None if raw in _ABSENT else json.dumps(_TAGS.decode(raw))


def unique_id(vector: DeletionVectorDescriptor | None) -> str | None:
    """A deletion vector's half of a file's identity; None without one."""
    return None if vector is None else vector.unique_id


_VALUES: Mapping[str, Callable[[FileLine], Any]] = {
    "added": lambda a: isinstance(a, AddLine),
    "deletion_vector": lambda a: None if a.deletion_vector is None else a.deletion_vector.unique_id,
    "deleted_records": lambda a: 0 if a.deletion_vector is None else a.deletion_vector.cardinality,
    "records": records_of,
    "stats": stats_of,
    "tags": _tags,
    "vector": lambda a: vector_value(a.deletion_vector),
}
_FIELDS = ("size", "modified", "data_change", "partition_values", "base_row_id", "default_row_commit_version")


def newest_actions(commits: Iterable[tuple[int, bytes]], root: str, columns: Iterable[str]) -> pl.DataFrame:
    """The newest action of each file in (version, bytes) of commits, oldest first, in the order recorded.

    FILE_ACTIONS with `key`, `path`, `deletion_vector`, `deleted_records`, `added` and these columns; `records` may be
    asked for. One that no commit can tell (`stats_parsed`) is left out.
    CorruptTableError says which line of which commit cannot be read.
    """
    wanted = [*_ALWAYS, *(c for c in columns if (c in _FIELDS or c in _VALUES) and c not in _ALWAYS)]
    values: dict[str, list[Any]] = {column: [] for column in wanted}
    keys: list[str] = []
    for version, data in commits:
        actions = events_of(log_lines(data, version))
        if not actions:
            continue
        paths = decoded_paths([a.path for a in actions])
        keys += canonical_paths(paths, root)
        for column in wanted:
            if column == "path":
                values["path"] += paths
            elif column in _FIELDS:
                values[column] += [getattr(a, column) for a in actions]
            else:
                values[column] += _each(column, actions, version, data)
    newest = {identity: i for i, identity in enumerate(zip(keys, values["deletion_vector"], strict=True))}
    frame = action_frame({"key": keys, **values})
    return frame[sorted(newest.values())] if len(newest) < len(keys) else frame


_ALWAYS = ("path", "deletion_vector", "deleted_records", "added")


def _each(column: str, actions: Sequence[FileLine], version: int, data: bytes) -> list[Any]:
    value = _VALUES[column]
    try:
        return [value(a) for a in actions]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parse_commit(data, version, commit_name(version))  # says which line it is
        raise


def events_of(lines: Iterable[LogLine]) -> list[FileLine]:
    """The file actions among the lines of a commit, in the order recorded."""
    known = list(lines)
    found: list[FileLine] = [a for a in [line.add or line.remove for line in known] if a is not None]
    # one action a line is the rule; of a line that holds both, neither is lost
    both = [line.remove for line in known if line.remove is not None and line.add is not None]
    return [*both, *found] if both else found


def mentions(data: bytes, *kinds: str) -> bool:
    """Whether a commit may hold an action of one of these kinds: its bytes are searched, nothing is parsed.

    Inside a JSON string the quotes would be escaped. A key may be spelled with escapes (`pro\\u0074ocol`): a commit
    with an escape that may stand for an ASCII letter is always worth parsing.
    """
    return any(f'"{kind}"'.encode() in data for kind in kinds) or b"\\u00" in data


def info_of(lines: Iterable[LogLine]) -> CommitInfo:
    """What a commit says about itself; empty when it says nothing."""
    for line in lines:
        if line.commit_info and (raw := bytes(line.commit_info)) not in _ABSENT:
            return parse_commit_info(raw)
    return CommitInfo()
