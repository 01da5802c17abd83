"""Record batches of a file of actions: few small ones made of many, and the leaves of the actions in them; errors of
libraries over such a file to ours."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeAlias

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakeview.delta.log.checkpoint_footer import FEW_ROWS, corrupt_checkpoint
from lakeview.model.errors import LakeviewError

Piece: TypeAlias = pa.Array | pl.Series
Arrays: TypeAlias = dict[str, list[Piece]]
Structs: TypeAlias = dict[str, list[dict[str, Any]]]
"""Actions by kind, without what is null."""


def merge_batches(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The rows of batches in few larger ones, of at most so many rows unless one has more: to take a batch apart costs
    some milliseconds whatever its size (`benches/bench_logs.py`, all columns' statistics of ten parts: 1.2 times the
    speed)."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if waiting and rows + batch.num_rows > most:
            yield _whole(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if waiting:
        yield _whole(waiting)


def _whole(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if len(batches) > 1 else batches[0]  # one alone would be copied


def join_pieces(pieces: Iterable[Mapping[str, Piece]]) -> Arrays:
    """What batches gave, leaf by leaf."""
    arrays: Arrays = {}
    for piece in pieces:
        for leaf, array in piece.items():
            arrays.setdefault(leaf, []).append(array)
    return arrays


def actions_of(column: pa.Array, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The structs of a column where one of these leaves is not null."""
    if column.null_count == len(column):
        return []
    if len(column) > FEW_ROWS:  # of fewer, Arrow's functions take longer than the whole file takes to be opened
        column = column.filter(reduce(pc.or_, (leaf_of(column, key).is_valid() for key in keys)))
    rows = [row for row in column.to_pylist() if row is not None and any(row[key] is not None for key in keys)]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def leaf_of(struct: pa.Array, leaf: str) -> pa.Array:
    """A leaf of a struct, `deletionVector.offset` for a nested one; null where a struct above it is: some writers
    declare the leaves of an optional action as required, and then they have values where there is no action."""
    for part in leaf.split("."):
        struct = struct.flatten()[struct.type.get_field_index(part)]
    return struct


def with_values(arrays: Arrays) -> Arrays:
    """The leaves that are not null throughout."""
    return {leaf: pieces for leaf, pieces in arrays.items() if not all(map(_is_null, pieces))}


def _is_null(piece: Piece) -> bool:
    nulls = piece.null_count() if isinstance(piece, pl.Series) else piece.null_count
    return bool(nulls == len(piece))


@contextmanager
def readable(name: str, parent: str | None = None) -> Iterator[None]:
    """Errors of the Parquet and frame libraries over one file of a checkpoint, or a sidecar of one, become ours."""
    what = f"checkpoint {name}" if parent is None else f"sidecar {name} of checkpoint {parent}"
    try:
        yield
    except FileNotFoundError as error:
        if parent is not None:
            raise corrupt_checkpoint(f"{what} is missing", name) from error
        raise corrupt_checkpoint(f"{what} was listed and is gone", name, "refresh: a cleanup may be running") from error
    except (
        pa.ArrowException,
        pl.exceptions.PolarsError,
        msgspec.DecodeError,
        RecursionError,
        OSError,
        TypeError,
        KeyError,
        ValueError,
        OverflowError,
    ) as error:
        if isinstance(error, LakeviewError):  # access denied, or a store that does not answer: not the file's fault
            raise
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise corrupt_checkpoint(f"{what} cannot be read: {reason}", name) from error
