"""The actions of a part of a checkpoint to its file; and, where several processes write it, files of the log to actions
by part.

The parts and the order in them are the same, so that these make the same V1 files as `write_checkpoint`, byte for byte,
but with the actions of a part in memory at once.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO

import polars as pl
import pyarrow as pa

from lakeview.delta.log.checkpoint_files import CheckpointPiece
from lakeview.delta.log.file_actions import not_replaced
from lakeview.delta.log.paths import LOG_FOLDER, SIDECARS
from lakeview.delta.write.checkpoint.file_rows import ACTION_STRUCTS, Definition, Shape, action_types, shape_of
from lakeview.delta.write.checkpoint.order import GROUP_ROWS, identities, part_numbers, part_without_file
from lakeview.delta.write.checkpoint.other_actions import (
    STATE_ARROW_TYPES,
    Action,
    ActionFile,
    action_columns,
    state_actions,
)
from lakeview.delta.write.checkpoint.plan import CheckpointPlan
from lakeview.delta.write.target import Target
from lakeview.storage import Storage
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
class PartFile:
    """A file of a checkpoint that is written: its name, bytes and actions, the adds among these, and its part."""

    name: str
    size_in_bytes: int
    actions: int
    adds: int = 0
    part: int = -1


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
        groups = ((kind, structs) for kind, tables in frames.items() for structs in _groups(tables, kind))
        types = action_types(shape_of(self.definition))
        return self.write_file(self.access.open(self.root, self.roots), part, types, groups)

    def write_file(
        self, storage: Storage, part: int, types: Mapping[str, pa.DataType], groups: Iterable[tuple[str, pa.Array]]
    ) -> PartFile:
        """Write the file of a part: of a V1 one with the actions that are no files, where it is the one that has them.
        `types`: those of the structs, by kind; `groups`: kind and structs of each row group."""
        file = ActionFile({**STATE_ARROW_TYPES, **types} if self.names else types, self.definition.metadata.properties)
        if self.names and part == part_without_file(self.parts):
            file.write(action_columns(self.others))
        adds = 0
        for kind, structs in groups:
            file.write({kind: structs})
            adds += len(structs) if kind == "add" else 0
        data = file.close()
        name = self.names[part] if self.names else f"{uuid.uuid4()}.parquet"
        storage.put(f"{LOG_FOLDER if self.names else SIDECARS}/{name}", data)
        return PartFile(name, len(data), file.rows, adds, part)

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
