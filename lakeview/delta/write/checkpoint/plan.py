"""What the checkpoint of a version is to be, V1 in one file or several parts, or V2, and whether it is there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lakeview.delta.features import check_writable
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.log_segment import CheckpointFiles, checkpoints_of
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS, checkpoint_name, checkpoint_part_name, log_files
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.delta.properties import retention, value
from lakeview.delta.write.rules import active_features
from lakeview.delta.write.target import Target
from lakeview.model import limits
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import InvalidRequestError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage

_FEATURE = "v2Checkpoint"


@dataclass(frozen=True)
class CheckpointPlan:
    """What is written of a state, and when its version was committed.

    `names`: the files of a V1 checkpoint, none of a V2 one; `parts`: how many the file actions are divided into;
    `is_present`: such a V1 checkpoint is there, and whole as far as is known.
    """

    state: Replay
    timestamp: datetime | None
    names: Sequence[str]
    parts: int = 1
    is_present: bool = False

    @property
    def is_v2(self) -> bool:
        """Whether file actions go into sidecars."""
        return not self.names

    @property
    def expired_before(self) -> int | None:
        """The time, in milliseconds, before which a tombstone has expired by this version; None if none has."""
        # "A tombstone expires when the creation timestamp of the delta file exceeds the expiration threshold added to
        # the remove action timestamp"; one without a timestamp has expired
        if self.timestamp is None:
            return None
        return milliseconds(self.timestamp - retention(self.state.properties))


def plan_checkpoint(
    table: Target, state: Replay, parts: int | None = None, *, most_parts: int | None = None
) -> CheckpointPlan:
    """What the checkpoint of a state is to be, as `write_checkpoint` says.

    `most_parts`: divide it into so many where neither `parts` nor the table says otherwise. Deletes an incomplete
    set of the same names. UnsupportedTableError where the table's protocol asks more of writers than is implemented: a
    checkpoint would lose what an unknown feature records.
    """
    check_writable(state.table_protocol, active_features(state.metadata), table.storage.root)
    features = state.protocol.writer_features or ()
    _check_parts(parts, _FEATURE in features)
    is_v2 = _FEATURE in features and value(state.properties, "delta.checkpointPolicy") == "v2"
    if parts is None and most_parts is not None and most_parts > 1 and _FEATURE not in features:
        parts = min(most_parts, limits.CHECKPOINT_PARTS)
    names = [] if is_v2 else _names(state.version, parts)
    storage, version = table.storage, state.version
    is_damaged = table.log.has_damaged(names)
    if names and (
        _has_other_files(storage, version, names) or (not is_damaged and _is_present(storage, version, names))
    ):
        return CheckpointPlan(state, None, names, len(names), is_present=True)
    timestamp = CommitTimes(table.log, in_commit_start(state.table_protocol, state.properties)).of(state.version)
    return CheckpointPlan(state, timestamp, names, len(names) or most_parts or 1)


def _check_parts(parts: int | None, has_v2: bool) -> None:
    if parts is not None and not 1 <= parts <= limits.CHECKPOINT_PARTS:
        raise InvalidRequestError(
            f"a checkpoint cannot be in {parts} parts",
            fix=f"ask for 1 to {limits.CHECKPOINT_PARTS:,}",
            kind="checkpoint-parts",
        )
    # "Multi-part checkpoints are not allowed for tables with v2Checkpoint"  delta protocol, V2 Checkpoint Table Feature
    if parts is not None and has_v2:
        raise InvalidRequestError(
            "a table with the feature v2Checkpoint must not have checkpoints in parts",
            fix="leave parts out; set delta.checkpointPolicy to v2 for sidecars",
            kind="checkpoint-parts",
        )


def _names(version: int, parts: int | None) -> list[str]:
    """The files of a V1 checkpoint."""
    if parts in (None, 1):  # the kernel refuses a set of one part
        return [checkpoint_name(version)]
    return [checkpoint_part_name(version, part, parts) for part in range(1, parts + 1)]


def is_whole(storage: Storage, checkpoint: Checkpoint) -> bool:
    """Whether a table can be read from a checkpoint, as far as its footers, its protocol and metadata, and a listing of
    the sidecars tell."""
    if checkpoint.problem() is not None:
        return False
    try:
        protocol, metadata = checkpoint.definition
    except UNREADABLE:
        return False
    if protocol is None or metadata is None:
        return False
    present = {name for name, _, _ in storage.entries_from(SIDECARS)} if checkpoint.sidecars else set()
    return all(is_absolute(name) or name in present for name in checkpoint.sidecars)


def _has_other_files(storage: Storage, version: int, names: Sequence[str]) -> bool:
    """Whether a version has a whole V1 checkpoint in other files than these: in one, or in another number of parts. The
    Delta kernel does not read a version with two: it takes the parts of one for those of the other ("should have 3
    parts, but it has 2")."""
    files = log_files(storage.entries_from(LOG_FOLDER, f"{version:020d}.checkpoint."))
    others = checkpoints_of(f for f in files if f.kind in ("checkpoint", "part") and f.version == version)
    return any(c.names != tuple(names) and is_whole(storage, Checkpoint(storage, c)) for c in others)


def _is_present(storage: Storage, version: int, names: Sequence[str]) -> bool:
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
