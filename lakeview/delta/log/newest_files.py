"""Older and newer FILE_ACTIONS to those that count, the last of each file (delta protocol, Action Reconciliation)."""

from hashlib import blake2b

import polars as pl

from lakeview.delta.log.file_actions import IDENTITY
from lakeview.model.column_values import all_differ


def backwards(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame from its last row to its first, gathered: polars 2 panics when it reverses a map column of nulls."""
    return frame[pl.int_range(frame.height - 1, -1, -1, eager=True)]


def unseen(actions: pl.DataFrame, keys: set[bytes]) -> pl.Series:
    """Which of these actions are of files not seen before; all are seen after this. Digests: a path takes tenfold."""
    is_new = []
    for key, vector in actions.select(IDENTITY).iter_rows():
        digest = blake2b(f"{vector or ''}\n{key}".encode(errors="surrogateescape"), digest_size=16).digest()
        is_new.append(digest not in keys)
        keys.add(digest)
    return pl.Series(is_new, dtype=pl.Boolean)


def once(adds: pl.DataFrame) -> pl.DataFrame:
    """What a checkpoint holds twice, as none should, is one file (Action Reconciliation: a snapshot is a set)."""
    return adds if all_differ(adds["key"]) else adds.unique(IDENTITY, keep="last", maintain_order=True)


def with_newer(old: pl.DataFrame | None, tail: pl.DataFrame, live: pl.DataFrame | None = None) -> pl.DataFrame:
    """The live files after the newest actions of commits, of those that were live before. `live`: the adds of these
    actions, as they are without it, with columns that actions lack."""
    live = rows_where(tail, tail["added"]).drop("added") if live is None else live
    if old is None:
        return live
    if not tail.height:
        return old
    return pl.concat([not_replaced(old, tail), live], how="diagonal", rechunk=False)


def not_replaced(old: pl.DataFrame, tail: pl.DataFrame) -> pl.DataFrame:
    """The older actions, those left out whose file (key and deletion vector) a newer action names."""
    # few of many files: the keys first, and both halves of the identity only where a key is met
    met = old["key"].is_in(tail["key"].implode())
    if not met.any():
        return old
    newer = set(zip(tail["key"], tail["deletion_vector"], strict=True))
    where = met.arg_true()
    both = zip(old["key"].gather(where), old["deletion_vector"].gather(where), strict=True)
    has_newer = pl.Series([identity in newer for identity in both], dtype=pl.Boolean)
    mask = pl.Series([True], dtype=pl.Boolean).new_from_index(0, old.height)
    return rows_where(old, mask.scatter(where.filter(has_newer), False))


def rows_where(frame: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    """The rows where a mask is true."""
    return frame if mask.all() else pl.DataFrame([s.filter(mask) for s in frame.get_columns()])
