"""The state of a table at a version to the files of a checkpoint: V1 in one file or several parts, or V2 with sidecars.

The adds and removes pass through in batches: neither their statistics nor their rows are in memory all at once
(`benches/bench_checkpoints.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime

import polars as pl
import pyarrow as pa

from lakeview.delta.log.file_actions import COLUMN_TYPES
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS, checkpoint_name, checkpoint_part_name, v2_checkpoint_name
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.delta.properties import retention, value
from lakeview.delta.write.checkpoint.action_file import ActionFile
from lakeview.delta.write.checkpoint.file_rows import add_structs, remove_structs, shape_of
from lakeview.delta.write.checkpoint.hint import LastCheckpoint, point_at
from lakeview.delta.write.checkpoint.order import FileOrder, Spool
from lakeview.delta.write.checkpoint.other_actions import STATE_TYPES, V2_TYPES, action_columns, state_actions
from lakeview.delta.write.checkpoint.present import is_present
from lakeview.delta.write.target import Target
from lakeview.model.errors import InvalidRequestError
from lakeview.model.snapshot import milliseconds

SIDECAR_ROWS = 262_144
"""Actions of a sidecar; a checkpoint of fewer has one."""

_MAX_PARTS = 10_000
_FEATURE = "v2Checkpoint"
_KINDS = {"add": add_structs, "remove": remove_structs}

Group = tuple[int, str, pa.Array]
"""The part, the kind and the structs of one row group."""


def write_checkpoint(table: Target, version: int | None = None, *, parts: int | None = None) -> int:
    """Write the checkpoint of a committed version (the latest without one), then point `_last_checkpoint` at it.

    The kind is the table's: V2 where it has the feature v2Checkpoint and `delta.checkpointPolicy` says v2; else V1, in
    one file or in so many `parts`. The content of a V1 checkpoint depends on the version alone: tombstones expire
    against the version's own commit time, and files have one order, so that two writers make the same bytes and either
    may win; one that is there and whole is left as it is. Returns the version.

    InvalidRequestError for parts that the table must not have.
    """
    state = table.state(version)
    features = state.protocol.writer_features or ()
    _check_parts(parts, _FEATURE in features)
    is_v2 = _FEATURE in features and value(state.properties, "delta.checkpointPolicy") == "v2"
    names = _names(state.version, parts)
    if not is_v2 and is_present(table.storage, state.version, names):
        return state.version
    committed = CommitTimes(table.log, in_commit_start(state.table_protocol, state.properties)).of(state.version)
    with _Actions(state, committed, parts or 1) as actions:
        if is_v2:
            checkpoint = _write_v2(table, state, actions, committed)
        else:
            checkpoint = _write_v1(table, state, actions, committed, names)
    point_at(table.storage, checkpoint)
    return state.version


def _check_parts(parts: int | None, has_v2: bool) -> None:
    if parts is not None and not 1 <= parts <= _MAX_PARTS:
        raise InvalidRequestError(
            f"a checkpoint cannot be in {parts} parts", fix=f"ask for 1 to {_MAX_PARTS:,}", kind="checkpoint-parts"
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
    if parts is None:
        return [checkpoint_name(version)]
    return [checkpoint_part_name(version, part, parts) for part in range(1, parts + 1)]


class _Actions:
    """The adds and unexpired removes of a state, as row groups in their order."""

    def __init__(self, state: Replay, committed: datetime | None, parts: int) -> None:
        self._state = state
        self._shape = shape_of(state)
        self.orders = {
            "add": FileOrder(state.adds([]), parts),
            "remove": FileOrder(_tombstones(state, committed), parts),
        }
        empty = pl.DataFrame(schema={**COLUMN_TYPES})
        self.types = {kind: build(empty, self._shape).to_arrow().type for kind, build in _KINDS.items()}
        self._stack = ExitStack()

    def __enter__(self) -> _Actions:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def groups(self) -> Iterator[Group]:
        """Every row group: part by part, of each the adds first."""
        spools = {kind: self._stack.enter_context(Spool(order, kind)) for kind, order in self.orders.items()}
        for frame in self._state.each_action(self._shape.columns):
            for kind, build in _KINDS.items():
                rows = frame.filter(pl.col("added") if kind == "add" else ~pl.col("added"))
                rows = self.orders[kind].with_places(rows)
                spools[kind].put(rows["place"], build(rows, self._shape))
        of_kind = {kind: spool.groups() for kind, spool in spools.items()}
        waiting = {kind: next(groups, None) for kind, groups in of_kind.items()}
        while any(group is not None for group in waiting.values()):
            part = min(group[0] for group in waiting.values() if group is not None)
            for kind, groups in of_kind.items():
                while (group := waiting[kind]) is not None and group[0] == part:
                    yield part, kind, group[1]
                    waiting[kind] = next(groups, None)


def _tombstones(state: Replay, committed: datetime | None) -> pl.DataFrame:
    """The removes that a checkpoint of a version committed then has to hold."""
    removes = state.removes(["modified"])
    # "A tombstone expires when the creation timestamp of the delta file exceeds the expiration threshold added to
    # the remove action timestamp"; one without a timestamp has expired
    if committed is None:
        return removes
    return removes.filter(pl.col("modified") >= milliseconds(committed - retention(state.properties)))


def _write_v1(
    table: Target, state: Replay, actions: _Actions, committed: datetime | None, names: Sequence[str]
) -> LastCheckpoint:
    types = {**{kind: pl.Series(dtype=t).to_arrow().type for kind, t in STATE_TYPES.items()}, **actions.types}
    size = size_in_bytes = 0
    groups = actions.groups()
    group = next(groups, None)
    for part, name in enumerate(names):
        file = ActionFile(types)
        if part == 0:
            file.write(action_columns(state_actions(state, committed)))
        while group is not None and group[0] == part:
            file.write({group[1]: group[2]})
            group = next(groups, None)
        data = file.close()
        table.storage.put(f"{LOG_FOLDER}/{name}", data)
        size, size_in_bytes = size + file.rows, size_in_bytes + len(data)
    parts = len(names) if names[0] != checkpoint_name(state.version) else None
    return LastCheckpoint(state.version, size, size_in_bytes, actions.orders["add"].count, parts)


def _write_v2(table: Target, state: Replay, actions: _Actions, committed: datetime | None) -> LastCheckpoint:
    """Sidecars first: the top file names what is there. When it cannot be written, they stay, since a store that did
    not answer may have it all the same; log cleanup deletes them when no checkpoint names them."""
    sidecars = []
    size = size_in_bytes = 0
    at = 0 if committed is None else milliseconds(committed)
    for file in _sidecar_files(actions):
        data = file.close()
        name = f"{uuid.uuid4()}.parquet"
        table.storage.put(f"{SIDECARS}/{name}", data)
        sidecars.append({"path": name, "sizeInBytes": len(data), "modificationTime": at, "tags": None})
        size, size_in_bytes = size + file.rows, size_in_bytes + len(data)
    top = [
        ("checkpointMetadata", {"version": state.version, "tags": None}),
        *state_actions(state, committed),
        *(("sidecar", sidecar) for sidecar in sidecars),
    ]
    types = {**STATE_TYPES, **V2_TYPES}
    file = ActionFile({kind: pl.Series(dtype=type_).to_arrow().type for kind, type_ in types.items()})
    file.write(action_columns(top))
    data = file.close()
    table.storage.put(f"{LOG_FOLDER}/{v2_checkpoint_name(state.version, uuid.uuid4())}", data)
    return LastCheckpoint(state.version, size + file.rows, size_in_bytes + len(data), actions.orders["add"].count)


def _sidecar_files(actions: _Actions) -> Iterator[ActionFile]:
    """Files of at most SIDECAR_ROWS, none without rows."""
    file: ActionFile | None = None
    for _, kind, structs in actions.groups():
        if file is not None and file.rows + len(structs) > SIDECAR_ROWS:
            yield file
            file = None
        file = file or ActionFile(actions.types)
        file.write({kind: structs})
    if file is not None:
        yield file
