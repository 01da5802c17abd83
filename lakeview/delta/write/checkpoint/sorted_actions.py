"""The state of a table at a version to the structs of its file actions, in one order for every writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import polars as pl
import pyarrow as pa

from lakeview.delta.log.newest_files import IDENTITY, not_replaced, rows_where
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.checkpoint.file_rows import ACTION_STRUCTS, action_types, shape_of
from lakeview.delta.write.checkpoint.order import GROUP_ROWS, FileOrder, Spool, identities

Group = tuple[int, str, pa.Array]
"""The part, the kind and the structs of one row group."""

_FEW_BYTES = 1 << 20
"""Of a checkpoint whose actions are in memory at once: a thousand adds or some thousand."""


class SortedActions:
    """The adds and unexpired removes of a state, as row groups in their order. `adds`: how many adds.

    `expired_before`: the time, in milliseconds, before which a tombstone has expired; None if none has. Few actions are
    read and sorted at once; of many, first the identities, then batches of the rest (`benches/bench_contention.py`: a
    checkpoint takes half the CPU time, which is the longest wait of an append; `benches/bench_checkpoints.py`: memory).
    """

    def __init__(self, state: Replay, parts: int, expired_before: int | None) -> None:
        self._state = state
        self._expired_before = expired_before
        self._shape = shape_of(state)
        self._newest = state.small_tail(self._shape.columns)
        self._stack = ExitStack()
        self.types = action_types(self._shape)
        few = _few_actions(state, self._shape.columns, self._newest) if parts == 1 else None
        self._groups = self._spool(parts) if few is None else self._sort(few)

    def __enter__(self) -> SortedActions:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def groups(self) -> Iterator[Group]:
        """Every row group, once: part by part, of each the adds first."""
        return self._groups

    def _drop_expired(self, removes: pl.DataFrame) -> pl.DataFrame:
        return removes if self._expired_before is None else removes.filter(pl.col("modified") >= self._expired_before)

    def _sort(self, actions: pl.DataFrame) -> Iterator[Group]:
        adds = rows_where(actions, actions["added"])
        removes = self._drop_expired(rows_where(actions, ~actions["added"]))
        self.adds = adds.height
        rows = {kind: of[identities(of).arg_sort()] for kind, of in (("add", adds), ("remove", removes)) if of.height}
        return ((0, kind, ACTION_STRUCTS[kind](of, self._shape).to_arrow()) for kind, of in rows.items())

    def _spool(self, parts: int) -> Iterator[Group]:
        adds, removes = self._state.adds_and_removes(self._newest)
        self.adds = adds.height
        return self._each({"add": FileOrder(adds, parts), "remove": FileOrder(self._drop_expired(removes), parts)})

    def _each(self, orders: dict[str, FileOrder]) -> Iterator[Group]:
        spools = {kind: self._stack.enter_context(Spool(order, kind)) for kind, order in orders.items()}
        for frame in self._state.each_action(self._shape.columns, self._newest):
            for kind, build in ACTION_STRUCTS.items():
                rows = rows_where(frame, frame["added"] if kind == "add" else ~frame["added"])
                if rows.height and (rows := orders[kind].with_places(rows)).height:
                    spools[kind].put(rows["place"], build(rows, self._shape))
        return _part_by_part(spools)


def _part_by_part(spools: Mapping[str, Spool]) -> Iterator[Group]:
    of_kind = {kind: spool.groups() for kind, spool in spools.items()}
    waiting = {kind: next(groups, None) for kind, groups in of_kind.items()}
    while any(group is not None for group in waiting.values()):
        part = min(group[0] for group in waiting.values() if group is not None)
        for kind, groups in of_kind.items():
            while (group := waiting[kind]) is not None and group[0] == part:
                yield part, kind, group[1]
                waiting[kind] = next(groups, None)


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
