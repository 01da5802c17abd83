"""Whether a checkpoint that is there already can be relied on."""

from collections.abc import Sequence

from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.log_segment import CheckpointFiles, checkpoints_of
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS, log_files
from lakeview.model.addresses import is_absolute
from lakeview.storage import Storage


def is_whole(storage: Storage, checkpoint: Checkpoint) -> bool:
    """Whether a table can be read from a checkpoint, as far as its footers, its protocol and metadata, and a listing of
    the sidecars tell."""
    if checkpoint.problem() is not None:
        return False
    try:
        protocol, metadata = checkpoint.protocol_and_metadata()
    except UNREADABLE:
        return False
    if protocol is None or metadata is None:
        return False
    present = {name for name, _, _ in storage.entries_from(SIDECARS)} if checkpoint.sidecars else set()
    return all(is_absolute(name) or name in present for name in checkpoint.sidecars)


def has_other_files(storage: Storage, version: int, names: Sequence[str]) -> bool:
    """Whether a version has a whole V1 checkpoint in other files than these: in one, or in another number of parts. The
    Delta kernel does not read a version with two: it takes the parts of one for those of the other ("should have 3
    parts, but it has 2")."""
    files = log_files(storage.entries_from(LOG_FOLDER, f"{version:020d}.checkpoint."))
    others = checkpoints_of(f for f in files if f.kind in ("checkpoint", "part") and f.version == version)
    return any(c.names != tuple(names) and is_whole(storage, Checkpoint(storage, c)) for c in others)


def is_present(storage: Storage, version: int, names: Sequence[str]) -> bool:
    """Whether all of these files are there and a whole checkpoint: readers may be at it, so it is not replaced.

    Files of a set in parts that is not whole are deleted: beside parts of ours they would be taken for a checkpoint.
    """
    present = [name for name in names if storage.exists(f"{LOG_FOLDER}/{name}")]
    if len(present) == len(names):
        files = CheckpointFiles(version, tuple(names), (0,) * len(names))
        if is_whole(storage, Checkpoint(storage, files)):
            return True
    if len(names) > 1:
        for name in present:
            storage.delete(f"{LOG_FOLDER}/{name}")
    return False
