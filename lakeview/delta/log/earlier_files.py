"""Files that a commit removes to what they were when added: in the commits before it, then in a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.commit_facts import Identity, Known, read_facts
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.errors import CorruptTableError, UnsupportedTableError


def in_checkpoint(checkpoint: Checkpoint, wanted: Collection[Identity]) -> dict[Identity, Known]:
    """Those of these files that a checkpoint holds; none if it cannot be read."""
    try:
        adds = checkpoint.adds(["size", "records"])
    except (CorruptTableError, UnsupportedTableError):
        return {}
    where = adds["key"].is_in(pl.Series([key for key, _ in wanted], dtype=pl.String).implode()).arg_true()
    if not where.len():
        return {}
    rows = adds[where].select("key", "deletion_vector", "size", pl.col("records") - pl.col("deleted_records"))
    return {(key, vector): (size, count) for key, vector, size, count in rows.iter_rows() if (key, vector) in wanted}


def before(log: TableLog, version: int, wanted: set[Identity]) -> dict[Identity, Known]:
    """What these files were, live just before a version: found newest first, in as few files of the log as will do.

    The cost is the commits back to the newest checkpoint, and that checkpoint's paths, sizes and counts; commits before
    it only for a file whose rows the checkpoint does not tell.
    """
    found: dict[Identity, Known] = {}
    bases = {c.version: c for c in log.checkpoints() if c.version < version}
    seen: dict[Identity, Known] = {}
    for place in _backwards(log, version, bases):
        missing = {i for i in wanted if i not in found}
        if not missing:
            break
        if isinstance(place, CheckpointFiles):
            here = in_checkpoint(log.checkpoint(place), missing)
            seen = {**here, **seen}
        else:
            here = _added_in(log, place, missing)
        found |= {i: was for i, was in here.items() if was[1] is not None or isinstance(place, int)}
    return {**seen, **found}


def _backwards(log: TableLog, version: int, bases: dict[int, CheckpointFiles]) -> list[int | CheckpointFiles]:
    """The unbroken run of commits before a version, newest first, and the newest checkpoint in its place among them."""
    places: list[int | CheckpointFiles] = []
    commits: Sequence[int] = log.versions()
    there = set(commits)
    newest = max(bases, default=None)
    at = version - 1
    if newest == at:
        places.append(bases[at])
    while at in there:
        places.append(at)
        at -= 1
        if newest == at:
            places.append(bases[at])
    return places


def _added_in(log: TableLog, version: int, wanted: Collection[Identity]) -> dict[Identity, Known]:
    live: dict[Identity, Known] = {}
    read_facts(version, log.commit_bytes(version), log.storage.root, live)
    return {identity: was for identity, was in live.items() if identity in wanted}
