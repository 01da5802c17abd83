"""A checkpoint that several processes write: files of the log to actions by part, and a part's actions to its file.

The parts and the order in them are those of `write_checkpoint`, so that both make the same V1 files, byte for byte. The
actions of a part are in memory at once.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO

import polars as pl
import pyarrow as pa

from lakeview.delta.log.checkpoint_files import CheckpointPiece
from lakeview.delta.log.file_actions import not_replaced
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS
from lakeview.delta.write.checkpoint.file_rows import ACTION_STRUCTS, Definition, Shape, action_types, shape_of
from lakeview.delta.write.checkpoint.files import CheckpointPlan, SidecarFile, point_at_parts, write_top_file
from lakeview.delta.write.checkpoint.order import GROUP_ROWS, identities, part_numbers, part_without_file
from lakeview.delta.write.checkpoint.other_actions import (
    STATE_ARROW_TYPES,
    Action,
    ActionFile,
    action_columns,
    state_actions,
)
from lakeview.delta.write.target import Target
from lakeview.model.errors import StoreUnavailableError
from lakeview.storage.access import StoreAccess

PART_BYTES = 32 << 20
"""Of the files of the log that one part is made of: about 250,000 adds with statistics of many columns."""

PACKED_ROWS = 65_536
"""Actions of a file of the log that are divided into parts at once."""

_IDENTITY = "identity"


@dataclass(frozen=True)
class PackedActions:
    """Some actions of one kind and one part: their identities and structs, as an Arrow file."""

    part: int
    kind: str
    data: bytes


@dataclass(frozen=True)
class PartFile(SidecarFile):
    """The file of a part, and the adds among its actions."""

    part: int
    adds: int


@dataclass(frozen=True)
class PartWork:
    """What reading pieces of a log and writing parts of a checkpoint takes, as a value that can travel to another
    process.

    `expired_before`: tombstones older than this (milliseconds) have expired, None keeps all; `names`: the files of the
    parts, none for sidecars; `others`: the actions that are no files, which stand first in one of them.
    """

    root: str
    definition: Definition
    expired_before: int | None
    parts: int
    names: tuple[str, ...]
    others: tuple[Action, ...] = field(repr=False)
    roots: tuple[str, ...] = ()
    access: StoreAccess = field(default_factory=StoreAccess)

    def of_piece(self, piece: CheckpointPiece, newer: pl.DataFrame) -> Iterator[PackedActions]:
        """The actions of a file of an earlier checkpoint, without those whose file `newer` names (key, deletion
        vector)."""
        storage, shape = self.access.open(self.root, self.roots), shape_of(self.definition)
        for kind in ACTION_STRUCTS:
            for frame in _join_frames(piece.each_action(storage, kind, shape.columns)):
                yield from self._pack(not_replaced(frame, newer), kind, shape)

    def of_commits(self, tail: pl.DataFrame) -> Iterator[PackedActions]:
        """The newest actions of the files that commits touch, as `Replay.pieces` gives them."""
        shape = shape_of(self.definition)
        for kind in ACTION_STRUCTS:
            yield from self._pack(tail.filter(pl.col("added") if kind == "add" else ~pl.col("added")), kind, shape)

    def write(self, part: int, pieces: Iterable[PackedActions]) -> PartFile:
        """Write the file of a part; of two actions of one file the last is taken."""
        frames: dict[str, list[pa.Table]] = {kind: [] for kind in ACTION_STRUCTS}
        for actions in pieces:
            frames[actions.kind].append(pa.ipc.open_file(BytesIO(actions.data)).read_all())
        types = action_types(shape_of(self.definition))
        properties = self.definition.metadata.properties
        file = ActionFile({**STATE_ARROW_TYPES, **types} if self.names else types, properties)
        if self.names and part == part_without_file(self.parts):
            file.write(action_columns(self.others))
        before = file.rows
        adds = 0
        for kind, tables in frames.items():
            for structs in _groups(tables, kind):
                file.write({kind: structs})
            adds = file.rows - before if kind == "add" else adds
        data = file.close()
        name = self.names[part] if self.names else f"{uuid.uuid4()}.parquet"
        self.access.open(self.root, self.roots).put(f"{LOG_FOLDER if self.names else SIDECARS}/{name}", data)
        return PartFile(name, len(data), file.rows, part, adds)

    def _pack(self, actions: pl.DataFrame, kind: str, shape: Shape) -> Iterator[PackedActions]:
        if kind == "remove" and self.expired_before is not None:
            actions = actions.filter(pl.col("modified") >= self.expired_before)
        if not actions.height:
            return
        names = identities(actions)
        structs = ACTION_STRUCTS[kind](actions, shape)
        frame = pl.DataFrame([names.alias(_IDENTITY), structs.alias(kind), part_numbers(names, self.parts)])
        for (part,), rows in frame.group_by("part", maintain_order=True):
            sink = BytesIO()
            table = rows.drop("part").to_arrow()
            with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                writer.write_table(table)
            assert isinstance(part, int)
            yield PackedActions(part, kind, sink.getvalue())


def _join_frames(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Frames of PACKED_ROWS: one for each part that they are divided into costs its schema again."""
    waiting: list[pl.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        if sum(part.height for part in waiting) >= PACKED_ROWS:
            yield pl.concat(waiting, how="diagonal_relaxed")
            waiting = []
    if waiting:
        yield pl.concat(waiting, how="diagonal_relaxed")


def _groups(tables: Sequence[pa.Table], kind: str) -> Iterator[pa.Array]:
    """Structs in the order of their identities, by row group; of two with one identity the last."""
    if not tables:
        return
    table = pa.concat_tables(tables)
    names = pl.DataFrame({"name": pl.Series(table[_IDENTITY]), "row": pl.int_range(table.num_rows, eager=True)})
    rows = names.unique("name", keep="last").sort("name")["row"]
    structs = table[kind].combine_chunks()
    for first in range(0, rows.len(), GROUP_ROWS):
        yield structs.take(rows.slice(first, GROUP_ROWS).to_arrow())


def part_work(table: Target, plan: CheckpointPlan) -> PartWork:
    """What the processes that write a planned checkpoint get."""
    state, storage = plan.state, table.storage
    definition = Definition.of(state)
    return PartWork(
        storage.root,
        definition,
        plan.expired_before,
        plan.parts,
        () if plan.is_v2 else tuple(plan.names),
        () if plan.is_v2 else tuple(state_actions(state, plan.timestamp)),
        tuple(storage.config.roots),
        StoreAccess.of(storage),
    )


def finish_parts(table: Target, plan: CheckpointPlan, part_files: Sequence[PartFile]) -> None:
    """Make the files of all parts a checkpoint: write the top file of a V2 one, and point `_last_checkpoint` at it.

    StoreUnavailableError if a part of a V1 checkpoint is missing: the set is no checkpoint, and readers pass over it.
    """
    files = sorted(part_files, key=lambda file: file.part)
    if not plan.is_v2 and [file.name for file in files] != list(plan.names):
        raise StoreUnavailableError(
            f"{len(files)} of {len(plan.names)} parts of checkpoint {plan.state.version} were written",
            fix="write it again: readers pass over an incomplete checkpoint",
            place=plan.names[0],
            kind="incomplete-checkpoint",
        )
    size, size_in_bytes = sum(file.actions for file in files), sum(file.size_in_bytes for file in files)
    adds = sum(file.adds for file in files)
    if plan.is_v2:
        write_top_file(table, plan, files, adds)
    else:
        point_at_parts(table, plan, size, size_in_bytes, adds)
