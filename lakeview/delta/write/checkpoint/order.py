"""The file actions of a state to their places in a checkpoint: one order for every writer, so that all of them make the
same files, byte for byte."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from operator import itemgetter

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from lakeview.delta.log.file_actions import IDENTITY, not_replaced, rows_where
from lakeview.delta.log.paths import encode_paths
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.checkpoint.file_rows import ACTION_STRUCTS, Shape, action_types
from lakeview.delta.write.checkpoint.plan import CheckpointPlan
from lakeview.delta.write.target import Progress
from lakeview.model.errors import CorruptTableError

GROUP_ROWS = 32_768
"""Actions of a row group: with statistics, some tens of megabytes before they are compressed."""

Group = tuple[int, str, pa.Array]
"""The part, the kind and the structs of one row group."""


def identities(files: pl.DataFrame) -> pl.Series:
    """The key of each file and its deletion vector, as one text."""
    vectors = files["deletion_vector"]
    if vectors.null_count() == vectors.len():
        return files["key"]
    # a key cannot hold a null character: no store has such a path
    return files.select(
        pl.when(pl.col("deletion_vector").is_null())
        .then("key")
        .otherwise(pl.concat_str("key", pl.lit("\0"), "deletion_vector"))
    ).to_series()


class Spool:
    """Structs of one kind of action (adds, or removes), put aside in any order and given back group by group, in the
    order of their files: by part, then by path and deletion vector.

    The part is the one that the protocol says. Places are numbered through all parts; each group of them is of one
    part, and has at most GROUP_ROWS. The structs of one group are retained in memory, more go to a temporary file,
    compressed: a million adds with statistics are a gigabyte.
    """

    def __init__(self, files: pl.DataFrame, kind: str, parts: int = 1) -> None:
        """`files`: FILE_ACTIONS, of which `key` and `deletion_vector` are used."""
        names = identities(files)
        order = names.arg_sort()
        self._names = names.gather(order)
        del names, order
        count = self._names.len()
        ends = [count]
        if parts == 1:
            self._places: pl.Series | None = None  # each identity stands where it is sorted to
        else:
            part = part_numbers(self._names, parts)
            # a stable sort: the order of names holds within each part
            by_part = part.to_frame().with_row_index().sort("part", maintain_order=True)["index"]
            self._places = by_part.arg_sort().cast(pl.Int64)
            ends = [int((part <= number).sum()) for number in range(parts)]
        starts = [
            (number, first)
            for number, (start, end) in enumerate(pairwise([0, *ends]))
            for first in range(start, end, GROUP_ROWS)
        ]
        self.count = count
        self._kind = kind
        self._parts = [number for number, _ in starts]
        self._starts = pl.Series([first for _, first in starts], dtype=pl.Int64)
        self._pieces: list[list[pa.RecordBatch | int]] = [[] for _ in starts]
        self._file = tempfile.TemporaryFile() if len(starts) > 1 else None  # noqa: SIM115 (closed by close)
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._batches = 0

    def close(self) -> None:
        """Drop what was put aside."""
        if self._file is not None:
            self._file.close()

    def put(self, actions: pl.DataFrame, shape: Shape) -> None:
        """Put those of the actions aside whose file is one of these."""
        if not self.count or not actions.height:
            return
        names = identities(actions)
        at = self._names.search_sorted(names).cast(pl.Int64).clip(0, self.count - 1)
        met = self._names.gather(at) == names
        if self._places is not None:
            at = self._places.gather(at)
        actions = actions.with_columns(at.alias("place")).filter(met).sort("place", maintain_order=True)
        if not actions.height:
            return
        places = actions["place"]
        frame = pl.DataFrame([places, ACTION_STRUCTS[self._kind](actions, shape).alias(self._kind)])
        ends = [*places.search_sorted(self._starts[1:]), places.len()] if self._starts.len() > 1 else [places.len()]
        for group, (start, end) in enumerate(pairwise([0, *ends])):
            if start < end:
                for batch in frame.slice(start, end - start).to_arrow().combine_chunks().to_batches():
                    self._pieces[group].append(self._spill(batch))

    def _spill(self, batch: pa.RecordBatch) -> pa.RecordBatch | int:
        if self._file is None:
            return batch
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(self._file, batch.schema, options=options)
        self._writer.write_batch(batch)
        self._batches += 1
        return self._batches - 1

    def groups(self) -> Iterator[Group]:
        """Each group, its structs in order; of two at one place the one put last. Nothing may be put after this."""
        reader = None
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.seek(0)
            reader = pa.ipc.open_file(self._file)
        for part, pieces in zip(self._parts, self._pieces, strict=True):
            batches = [reader.get_batch(p) if isinstance(p, int) and reader is not None else p for p in pieces]
            if batches:
                yield part, self._kind, self._in_order(pa.Table.from_batches(batches))

    def _in_order(self, table: pa.Table) -> pa.Array:
        places = pl.Series(table["place"])
        rows = pl.DataFrame({"place": places, "row": pl.int_range(places.len(), eager=True)})
        rows = rows.unique("place", keep="last").sort("place")
        return table[self._kind].combine_chunks().take(rows["row"].to_arrow())


_FEW_BYTES = 1 << 20
"""Of a checkpoint whose actions are in memory at once: a thousand adds or some thousand."""


class SortedActions:
    """The adds and unexpired removes of a state, as row groups in their order. `types`: those of the structs, by kind.

    `progress`: called with the actions of the row groups done, and of all. Few actions are read and sorted at once; of
    many, first the identities, then batches of the rest (`benches/bench_contention.py`: a checkpoint takes half the CPU
    time, which is the longest wait of an append; `benches/bench_checkpoints.py`: memory).
    """

    def __init__(self, plan: CheckpointPlan, shape: Shape, progress: Progress | None = None) -> None:
        self._state = state = plan.state
        self._progress = progress
        self._expired_before = plan.expired_before
        self._shape = shape
        self.types = action_types(shape)
        self._stack = ExitStack()
        while True:
            segment = state.segment
            self._newest = state.small_tail(shape.columns)
            try:
                few = _few_actions(state, shape.columns, self._newest) if plan.parts == 1 else None
                self._groups = self._spool(plan.parts) if few is None else self._sort(few)
            except CorruptTableError as error:
                self._stack.close()
                state.leave_checkpoint(error, segment)
            else:
                if state.segment.checkpoint == segment.checkpoint:
                    break
                self._stack.close()  # left meanwhile, by another thread: what was read may be of both

    def __enter__(self) -> SortedActions:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def groups(self) -> Iterator[Group]:
        """Every row group, once: part by part, of each the adds first."""
        done = 0
        for group in self._groups:
            yield group
            done += len(group[2])
            if self._progress is not None:
                self._progress(done, self._count)

    def _drop_expired(self, removes: pl.DataFrame) -> pl.DataFrame:
        return removes if self._expired_before is None else removes.filter(pl.col("modified") >= self._expired_before)

    def _sort(self, actions: pl.DataFrame) -> Iterator[Group]:
        adds = rows_where(actions, actions["added"])
        removes = self._drop_expired(rows_where(actions, ~actions["added"]))
        self._count = adds.height + removes.height
        rows = {kind: of[identities(of).arg_sort()] for kind, of in (("add", adds), ("remove", removes)) if of.height}
        return ((0, kind, ACTION_STRUCTS[kind](of, self._shape).to_arrow()) for kind, of in rows.items())

    def _spool(self, parts: int) -> Iterator[Group]:
        state = self._state
        both = state.adds_and_removes() if self._newest is None else state.adds_and_removes_after(self._newest)
        adds, removes = both
        spools = {"add": Spool(adds, "add", parts), "remove": Spool(self._drop_expired(removes), "remove", parts)}
        del adds, removes
        self._count = sum(spool.count for spool in spools.values())
        for spool in spools.values():
            self._stack.enter_context(closing(spool))
        for frame in self._state.each_action(self._shape.columns, self._newest):
            for kind, spool in spools.items():
                spool.put(rows_where(frame, frame["added"] if kind == "add" else ~frame["added"]), self._shape)
        # of one part, the first kind first
        return heapq.merge(*(spool.groups() for spool in spools.values()), key=itemgetter(0))


def _few_actions(state: Replay, columns: Sequence[str], newest: pl.DataFrame | None) -> pl.DataFrame | None:
    """The newest action of each file, with `added`; None where they are more than one row group."""
    checkpoint = state.segment.checkpoint
    if newest is None or newest.height > GROUP_ROWS:
        return None
    if checkpoint is None:
        return newest
    if len(checkpoint.names) > 1 or sum(checkpoint.sizes) > _FEW_BYTES:
        return None
    frames, rows = [], newest.height
    for frame in state.each_action(columns, newest.clear()):
        rows += frame.height
        if rows > GROUP_ROWS:
            return None
        frames.append(frame)
    old = pl.concat(frames, how="diagonal_relaxed").unique([*IDENTITY, "added"], keep="last", maintain_order=True)
    return pl.concat([not_replaced(old, newest), newest], how="diagonal_relaxed")


_SEED = 42
_ROWS = 65_536
"""Texts that are hashed at once: numbers for each in memory, whatever the length of the checkpoint."""

Hashes = NDArray[np.uint32]


def part_without_file(parts: int) -> int:
    """The part, from 0, of the actions that have no path: null leaves the seed as it is."""
    return _SEED % parts


def part_numbers(names: pl.Series, parts: int) -> pl.Series:
    """The part, from 0, of the file of each identity, as `part`: by its path as the log has it, then by its deletion
    vector if it has one. "MUST be clustered by spark-style hash partitioning" (delta protocol, Multi-part checkpoint),
    so that writers that race make one checkpoint; Delta's own in Spark hashes the path alone (Checkpoints.scala)."""
    if parts == 1:
        return pl.Series("part", [0], dtype=pl.Int64).new_from_index(0, names.len())
    pieces = [_part_numbers(names[at : at + _ROWS], parts) for at in range(0, names.len(), _ROWS)]
    return pl.Series("part", np.concatenate(pieces) if pieces else [], dtype=pl.Int64)


def _part_numbers(names: pl.Series, parts: int) -> NDArray[np.int64]:
    columns = names.str.split_exact("\0", 1).struct.unnest()
    path, vector = (columns[name] for name in columns.columns)
    hashes = spark_hash(encode_paths(path), np.full(names.len(), _SEED, np.uint32))
    hashes = spark_hash(vector, hashes) if vector.null_count() < vector.len() else hashes
    return hashes.view(np.int32).astype(np.int64) % parts  # of a positive divisor, which is Spark's pmod


def spark_hash(texts: pl.Series, seeds: Hashes) -> Hashes:
    """Spark's `hash` of each text, from a seed of its own; null leaves the seed as it is.

    MurmurHash3 for x86 with 32 bits, but for the bytes behind the last whole word: each is a word of its own, signed.
    """
    data = np.frombuffer(b"".join(texts.fill_null("").cast(pl.Binary).to_list()) + bytes(4), np.uint8)
    sizes = texts.fill_null("").str.len_bytes().to_numpy().astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    state = seeds.copy()
    with np.errstate(over="ignore"):
        for word in range(int(sizes.max(initial=0)) // 4):
            rows = np.flatnonzero(sizes >= 4 * word + 4)
            places = starts[rows, None] + range(4 * word, 4 * word + 4)
            state[rows] = _mix(state[rows], data[places].view("<u4").ravel())
        for tail in range(3):
            rows = np.flatnonzero(sizes % 4 > tail)
            block = data[starts[rows] + sizes[rows] // 4 * 4 + tail].view(np.int8).astype(np.int32).view(np.uint32)
            state[rows] = _mix(state[rows], block)
        state ^= sizes.astype(np.uint32)
        state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EB_CA6B)
        state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2_AE35)
    return np.where(texts.is_null().to_numpy(), seeds, state ^ state >> np.uint32(16))


def _mix(state: Hashes, block: Hashes) -> Hashes:
    block = block * np.uint32(0xCC9E_2D51)
    state = state ^ (block << np.uint32(15) | block >> np.uint32(17)) * np.uint32(0x1B87_3593)
    return (state << np.uint32(13) | state >> np.uint32(19)) * np.uint32(5) + np.uint32(0xE654_6B64)
