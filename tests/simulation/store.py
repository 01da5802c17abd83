"""Calls on a store that is a value: files before and a call to files after and a reply."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple, TypeAlias

from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER

SAFE = frozenset({"list", "walk", "read", "range", "exists"})
"""Kinds of calls that change nothing."""

LISTINGS = frozenset({"list", "walk"})


class Call(NamedTuple):
    """One call of a writer. `kind`: list, walk, read, range, exists, create (only if absent), put or delete.

    `path`: below the root, a folder for `list`; `start`: the first name listed; `first`, `length`: of a range.
    """

    kind: str
    path: str
    data: bytes = b""
    start: str = ""
    first: int = 0
    length: int = 0

    def __str__(self) -> str:
        size = f" ({len(self.data):,} bytes)" if self.data else ""
        return f"{self.kind} {self.path or '.'}{' from ' + self.start if self.start else ''}{size}"


class Stored(NamedTuple):
    """One file. `modified`: milliseconds since 1970."""

    data: bytes
    modified: int


@dataclass(frozen=True)
class Failure:
    """A reply that is an error: absent, present, or unavailable."""

    kind: str
    path: str


Reply: TypeAlias = Hashable
"""Bytes, entries as tuples, a truth value, None or a Failure: what a writer learns from a call."""


class Files:
    """The files of a store at one moment. Immutable; equal to another with the same files."""

    def __init__(self, content: Mapping[str, Stored]) -> None:
        self.content = content

    @cached_property
    def key(self) -> frozenset[tuple[str, Stored]]:
        """What makes it equal to another."""
        return frozenset(self.content.items())

    @cached_property
    def commits(self) -> dict[int, bytes]:
        """The commits, by version. Not to be changed."""
        return {version_of(name): file.data for name, file in self.content.items() if is_commit(name)}

    @cached_property
    def log(self) -> frozenset[tuple[str, Stored]]:
        """The files of the log, as `key`."""
        return frozenset(item for item in self.content.items() if item[0].startswith(LOG_FOLDER))

    def with_file(self, path: str, file: Stored) -> Files:
        """These files and another, which may replace one."""
        return Files({**self.content, path: file})

    def only(self, condition: Callable[[str], bool]) -> Files:
        """Those of these files whose paths are wanted."""
        return Files({name: file for name, file in self.content.items() if condition(name)})

    def without(self, path: str) -> Files:
        """These files but one."""
        return Files({name: file for name, file in self.content.items() if name != path})


def effect(files: Files, call: Call, now: int) -> Files:
    """The files after a call that reached the store."""
    there = call.path in files.content
    if call.kind == "put" or (call.kind == "create" and not there):
        return files.with_file(call.path, Stored(call.data, now))
    if call.kind == "delete" and there:
        return files.without(call.path)
    return files


def reply(files: Files, call: Call) -> Reply:
    """What a call gets for an answer of a store that holds these files."""
    if call.kind == "walk":
        return tuple(sorted((name, len(f.data), f.modified) for name, f in files.content.items()))
    if call.kind == "list":
        parts = ((*_split(name), file) for name, file in files.content.items())
        return tuple(sorted(
            (name, len(f.data), f.modified) for folder, name, f in parts if folder == call.path and name >= call.start
        ))  # fmt: skip
    file = files.content.get(call.path)
    if call.kind == "exists":
        return file is not None
    if call.kind == "create":
        return None if file is None else Failure("present", call.path)
    if call.kind in ("put", "delete"):
        return None
    if file is None:
        return Failure("absent", call.path)
    return file.data if call.kind == "read" else file.data[call.first : call.first + call.length]


@cache
def _split(path: str) -> tuple[str, str]:
    """The folder and the name in a path: listings ask for those of few paths, hundreds of thousands of times."""
    return posixpath.split(path)


@cache
def is_log(path: str) -> bool:
    """Whether writers share a name: all know those of the log beforehand, others are unique and told by commits."""
    return posixpath.dirname(path) == LOG_FOLDER


@cache
def is_commit(path: str) -> bool:
    """Whether a path is that of a commit."""
    return is_log(path) and path.endswith(".json") and posixpath.basename(path)[:20].isdecimal()


def is_hint(path: str) -> bool:
    """Whether a path is that of `_last_checkpoint`."""
    return path == LAST_CHECKPOINT


@cache
def version_of(path: str) -> int:
    """The version in the name of a file of the log."""
    return int(posixpath.basename(path)[:20])


@dataclass(frozen=True)
class LogNames:
    """The files of a table whose names its writers know beforehand: a format's log.

    `is_log`: whether a path is one of them; `is_commit`: whether its creation is a commit; `is_hint`: whether it is
    replaced to point at newer ones; `version_of`: the number in a name; `is_listed`: whether writers that list a folder
    look for the name, None if they look for all; `lists_late`: whether listings may be old: a catalog's are not.
    """

    folder: str
    is_log: Callable[[str], bool]
    is_commit: Callable[[str], bool]
    is_hint: Callable[[str], bool]
    version_of: Callable[[str], int]
    is_listed: Callable[[str], bool] | None = None
    lists_late: bool = True


DELTA_NAMES = LogNames(LOG_FOLDER, is_log, is_commit, is_hint, version_of)
