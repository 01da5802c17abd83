"""The state of a table at a version to the files of a checkpoint: V1 in one file or several parts, or V2 with sidecars.

The adds and removes pass through in batches: neither their statistics nor their rows are in memory all at once
(`benches/bench_checkpoints.py`).
"""

import uuid
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import msgspec

from lakeview.delta.log.log_segment import checkpoint_hint, checksum
from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, v2_checkpoint_name
from lakeview.delta.write.checkpoint.file_rows import shape_of
from lakeview.delta.write.checkpoint.order import Group, SortedActions
from lakeview.delta.write.checkpoint.other_actions import (
    STATE_ARROW_TYPES,
    V2_ARROW_TYPES,
    Action,
    ActionFile,
    action_columns,
    state_actions,
)
from lakeview.delta.write.checkpoint.parts import PartFile, PartWork, part_work
from lakeview.delta.write.checkpoint.plan import CheckpointPlan, plan_checkpoint
from lakeview.delta.write.rules import check_may_write
from lakeview.delta.write.target import Progress, Target
from lakeview.model.errors import AccessDeniedError, StoreUnavailableError, UnsupportedTableError
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage

SIDECAR_ROWS = 262_144
"""Actions of a sidecar; a checkpoint of fewer has one."""


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
    if not plan.is_present:
        work = part_work(table, plan)
        with SortedActions(plan, shape_of(work.definition), progress) as actions:
            files = list(_write_files(table.storage, work, actions))
        finish_parts(table, plan, files)
    return plan.state.version


def _write_files(storage: Storage, work: PartWork, actions: SortedActions) -> Iterator[PartFile]:
    """Every part of a V1 checkpoint is a file, also one without actions; no sidecar is without any."""
    empty_parts = set(range(len(work.names)))
    groups = actions.groups() if work.names else _by_sidecar(actions.groups())
    for part, of_part in groupby(groups, key=itemgetter(0)):
        empty_parts.discard(part)
        yield work.write_file(storage, part, actions.types, (group[1:] for group in of_part))
    for part in empty_parts:
        yield work.write_file(storage, part, actions.types, ())


def _by_sidecar(groups: Iterable[Group]) -> Iterator[Group]:
    """Row groups, each with the number of its sidecar for a part."""
    number = rows = 0
    for _, kind, structs in groups:
        if rows and rows + len(structs) > SIDECAR_ROWS:
            number, rows = number + 1, 0
        rows += len(structs)
        yield number, kind, structs


def finish_parts(table: Target, plan: CheckpointPlan, part_files: Iterable[PartFile]) -> None:
    """Make the files of all parts a checkpoint: write the top file of a V2 one, and point `_last_checkpoint` at it.

    StoreUnavailableError if a part of a V1 checkpoint is missing: the set is no checkpoint, and readers pass over it.
    """
    files = sorted(part_files, key=lambda file: file.part)
    if plan.is_v2:
        files.append(_write_top_file(table, plan, files))
    elif [file.name for file in files] != list(plan.names):
        raise StoreUnavailableError(
            f"{len(files)} of {len(plan.names)} parts of checkpoint {plan.state.version} were written",
            fix="write it again: readers pass over an incomplete checkpoint",
            place=plan.names[0],
            kind="incomplete-checkpoint",
        )
    size, size_in_bytes = sum(file.actions for file in files), sum(file.size_in_bytes for file in files)
    adds, parts = sum(file.adds for file in files), len(plan.names) if len(plan.names) > 1 else None
    replace_hint(table.storage, LastCheckpoint(plan.state.version, size, size_in_bytes, adds, parts))


def _write_top_file(table: Target, plan: CheckpointPlan, sidecars: Iterable[PartFile]) -> PartFile:
    """The file that makes sidecars a checkpoint.

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
    data, name = file.close(), v2_checkpoint_name(version, uuid.uuid4())
    table.storage.put(f"{LOG_FOLDER}/{name}", data)
    return PartFile(name, len(data), file.rows)


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
