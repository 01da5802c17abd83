"""The state of a table at a version to the files of a checkpoint: V1 in one file or several parts, or V2 with sidecars.

The adds and removes pass through in batches: neither their statistics nor their rows are in memory all at once
(`benches/bench_checkpoints.py`).
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from lakeview.delta.features import check_writable
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.log_segment import CheckpointFiles, checkpoint_hint, checkpoints_of, checksum
from lakeview.delta.log.paths import (
    LAST_CHECKPOINT,
    LOG_FOLDER,
    SIDECARS,
    checkpoint_name,
    checkpoint_part_name,
    log_files,
    v2_checkpoint_name,
)
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.delta.properties import retention, value
from lakeview.delta.write.checkpoint.order import SortedActions, part_without_file
from lakeview.delta.write.checkpoint.other_actions import (
    STATE_ARROW_TYPES,
    V2_ARROW_TYPES,
    Action,
    ActionFile,
    action_columns,
    state_actions,
)
from lakeview.delta.write.rules import active_features, check_may_write
from lakeview.delta.write.target import Progress, Target
from lakeview.model import limits
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import AccessDeniedError, InvalidRequestError, UnsupportedTableError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage

SIDECAR_ROWS = 262_144
"""Actions of a sidecar; a checkpoint of fewer has one."""

_FEATURE = "v2Checkpoint"


def write_checkpoint(
    table: Target, version: int | None = None, *, parts: int | None = None, progress: Progress | None = None
) -> int:
    """Write the checkpoint of a committed version (the latest without one), then point `_last_checkpoint` at it.

    The kind is the table's: V2 where it has the feature v2Checkpoint and `delta.checkpointPolicy` says v2; else V1, in
    one file or in so many `parts`. The content of a V1 checkpoint depends on the version alone: tombstones expire
    against the version's own commit time, and files have one order, so that two writers make the same bytes and either
    may win; one that is there and whole is left as it is, in however many parts.

    Returns the version. `progress`: called with the file actions that are written, and with all.
    InvalidRequestError for parts that the table must not have; UnsupportedTableError as `plan_checkpoint`, also for the
    latest version's protocol.
    """
    check_may_write(table)
    plan = plan_checkpoint(table, table.state(version), parts)
    if plan.is_present:
        return plan.state.version
    with SortedActions(plan.state, plan.parts, plan.expired_before, progress) as actions:
        if plan.is_v2:
            _write_v2(table, plan, actions)
        else:
            _write_v1(table, plan, actions)
    return plan.state.version


@dataclass(frozen=True)
class CheckpointPlan:
    """What is written of a state, and when its version was committed.

    `names`: the files of a V1 checkpoint, none of a V2 one; `parts`: how many the file actions are divided into;
    `is_present`: such a V1 checkpoint is there, and whole.
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
    if names and (has_other_files(storage, version, names) or is_present(storage, version, names)):
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


def _write_v1(table: Target, plan: CheckpointPlan, actions: SortedActions) -> None:
    types = {**STATE_ARROW_TYPES, **actions.types}
    size = size_in_bytes = 0
    groups = actions.groups()
    group = next(groups, None)
    for part, name in enumerate(plan.names):
        file = ActionFile(types, plan.state.properties)
        if part == part_without_file(plan.parts):
            file.write(action_columns(state_actions(plan.state, plan.timestamp)))
        while group is not None and group[0] == part:
            file.write({group[1]: group[2]})
            group = next(groups, None)
        data = file.close()
        table.storage.put(f"{LOG_FOLDER}/{name}", data)
        size, size_in_bytes = size + file.rows, size_in_bytes + len(data)
    point_at_parts(table, plan, size, size_in_bytes, actions.adds)


def point_at_parts(table: Target, plan: CheckpointPlan, size: int, size_in_bytes: int, adds: int) -> None:
    """Point `_last_checkpoint` at a V1 checkpoint, all files of which are written: so many actions, bytes and adds."""
    version = plan.state.version
    parts = len(plan.names) if plan.names[0] != checkpoint_name(version) else None
    replace_hint(table.storage, LastCheckpoint(version, size, size_in_bytes, adds, parts))


@dataclass(frozen=True)
class SidecarFile:
    """A sidecar, or another file of a checkpoint, that is written: its name, bytes and actions."""

    name: str
    size_in_bytes: int
    actions: int


def _write_v2(table: Target, plan: CheckpointPlan, actions: SortedActions) -> None:
    sidecars = []
    for file in _sidecar_files(actions, plan.state.properties):
        data = file.close()
        name = f"{uuid.uuid4()}.parquet"
        table.storage.put(f"{SIDECARS}/{name}", data)
        sidecars.append(SidecarFile(name, len(data), file.rows))
    write_top_file(table, plan, sidecars, actions.adds)


def write_top_file(table: Target, plan: CheckpointPlan, sidecars: Sequence[SidecarFile], adds: int) -> None:
    """Write the file that makes sidecars a checkpoint, and point `_last_checkpoint` at it; `adds`: of them all.

    The sidecars are there before: when this file cannot be written, they stay, since a store that did not answer may
    have it all the same; log cleanup deletes them when no checkpoint names them.
    """
    at = 0 if plan.timestamp is None else milliseconds(plan.timestamp)
    version = plan.state.version
    top: list[Action] = [
        ("checkpointMetadata", {"version": version, "tags": None}),
        *state_actions(plan.state, plan.timestamp),
    ]
    for s in sidecars:
        fields = {"path": s.name, "sizeInBytes": s.size_in_bytes, "modificationTime": at, "tags": None}
        top.append(("sidecar", fields))
    file = ActionFile({**STATE_ARROW_TYPES, **V2_ARROW_TYPES}, plan.state.properties)
    file.write(action_columns(top))
    data = file.close()
    table.storage.put(f"{LOG_FOLDER}/{v2_checkpoint_name(version, uuid.uuid4())}", data)
    size = file.rows + sum(sidecar.actions for sidecar in sidecars)
    size_in_bytes = len(data) + sum(sidecar.size_in_bytes for sidecar in sidecars)
    replace_hint(table.storage, LastCheckpoint(version, size, size_in_bytes, adds))


def _sidecar_files(actions: SortedActions, properties: Mapping[str, str]) -> Iterator[ActionFile]:
    """Files of at most SIDECAR_ROWS, none without rows."""
    file: ActionFile | None = None
    for _, kind, structs in actions.groups():
        if file is not None and file.rows + len(structs) > SIDECAR_ROWS:
            yield file
            file = None
        file = file or ActionFile(actions.types, properties)
        file.write({kind: structs})
    if file is not None:
        yield file


class LastCheckpoint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`_last_checkpoint`: which checkpoint a reader may start from (delta protocol, Last Checkpoint File).

    `size`: actions; `size_in_bytes`: of all its files; `parts`: of a multi-part one.
    """

    version: int
    size: int
    size_in_bytes: int
    num_of_add_files: int
    parts: int | None = None
    checksum: str | None = None


def replace_hint(storage: Storage, checkpoint: LastCheckpoint) -> None:
    """Name a checkpoint in the hint, unless that names a later version: a reader that follows it must not miss a newer
    checkpoint."""
    try:
        present = checkpoint_hint(storage.read(LAST_CHECKPOINT))
    except (FileNotFoundError, AccessDeniedError, UnsupportedTableError):
        present = None  # absent, a link out of the table, or too large: it is a hint only
    if present is None or present <= checkpoint.version:
        digest = checksum(msgspec.json.encode(checkpoint))
        # not written through to the disk, which takes as long as the checkpoint's own flushes: Delta Lake, deltalake,
        # the kernel and Sail list the log where a power cut left nothing whole here
        storage.put_hint(LAST_CHECKPOINT, msgspec.json.encode(msgspec.structs.replace(checkpoint, checksum=digest)))


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
