"""A log's files to the checkpoints that its history starts from, or goes on from after a gap."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.table_log import TableLog

_T = TypeVar("_T")


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
    reached: int | None = -1
    for version in sorted(readable.union(checkpoints)):
        if reached is not None and version == reached + 1 and version in readable:
            reached = version
            continue
        reached = None
        if version in checkpoints:
            try:
                bases[version] = read(log.checkpoint(checkpoints[version]))
                reached = version
            except UNREADABLE as error:
                problems[version] = error.message
    return bases, problems


def begins_at_zero(log: TableLog, corrupt: Collection[int]) -> bool:
    """Whether the log still has its first commit, so that what it records begins with an empty table."""
    return log.versions()[:1] == [0] and 0 not in corrupt
