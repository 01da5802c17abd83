"""Files that a commit removes to what they were when added: in the commits before it, then in a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import polars as pl

from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.commit_facts import Identity, KnownFile, read_facts
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.model.frames import live_records, sizes


def in_checkpoint(checkpoint: Checkpoint, identities: Collection[Identity]) -> dict[Identity, KnownFile]:
    """Those of these files that a checkpoint holds; none if it cannot be read."""
    try:
        adds = checkpoint.adds(["size", "records"])
    except UNREADABLE:
        return {}
    where = adds["key"].is_in(pl.Series([key for key, _ in identities], dtype=pl.String).implode()).arg_true()
    if not where.len():
        return {}
    rows = adds[where].select("key", "deletion_vector", sizes(), live_records())
    return {
        (key, vector): (size, count) for key, vector, size, count in rows.iter_rows() if (key, vector) in identities
    }


def before(log: TableLog, version: int, identities: set[Identity]) -> dict[Identity, KnownFile]:
    """What these files were, live just before a version: found newest first, in as few files of the log as will do.

    The cost is the commits back to the newest checkpoint, and that checkpoint's paths, sizes and counts; commits before
    it only for a file whose rows the checkpoint does not count.
    """
    found: dict[Identity, KnownFile] = {}
    uncounted: dict[Identity, KnownFile] = {}
    bases = {c.version: c for c in log.checkpoints() if c.version < version}
    for places in _backwards(log, version, bases):
        missing = {identity for identity in identities if identity not in found}
        if not missing:
            break
        if isinstance(places, CheckpointFiles):
            here = in_checkpoint(log.checkpoint(places), missing)
            uncounted |= here
            found |= {identity: was for identity, was in here.items() if was[1] is not None}
        else:
            found |= _in_commits(log, places, missing)
    return {**uncounted, **found}


def _backwards(log: TableLog, version: int, bases: dict[int, CheckpointFiles]) -> Iterator[list[int] | CheckpointFiles]:
    """The unbroken run of commits before a version, newest first, and the newest checkpoint in its place among them."""
    there = set(log.versions())
    newest = max(bases, default=None)
    commits: list[int] = []
    at = version - 1
    while at in there and at != newest:
        commits.append(at)
        at -= 1
    yield commits
    if newest is not None and at == newest:
        yield bases[newest]
        commits = []
        while at in there:
            commits.append(at)
            at -= 1
        yield commits


def _in_commits(log: TableLog, versions: Sequence[int], identities: Collection[Identity]) -> dict[Identity, KnownFile]:
    """The newest word of these commits, newest first, on these files; none is read after the last is found."""
    found: dict[Identity, KnownFile] = {}
    words = {identity: _plain_word(identity[0]) for identity in identities}
    for version, data in log.each_bytes(versions):
        if not words:
            break
        # escapes may spell a name otherwise: then the commit is parsed whatever it holds
        if b"%" in data or b"\\u" in data or any(word in data for word in words.values()):
            here: dict[Identity, KnownFile] = {}
            read_facts(version, data, log.storage.root, here)
            found |= {identity: was for identity, was in here.items() if identity in words}
            words = {identity: word for identity, word in words.items() if identity not in here}
    return found


def _plain_word(key: str) -> bytes:
    """What a commit without escapes that names a file holds for certain: the longest plain word of its path."""
    return max(_PLAIN.findall(key), key=len, default="").encode()


_PLAIN = re.compile(r"[A-Za-z0-9_]+")
