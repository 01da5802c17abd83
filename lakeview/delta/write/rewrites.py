"""Rows of files that are written again, and what changes of them: small parts with one change are changed at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeview.rows.arrays import arrow_to_numpy, numpy_to_arrow

_TOGETHER_BYTES = 4 << 20
"""Bytes of rows in memory that a change is applied to at once."""

Numbers: TypeAlias = npt.NDArray[np.int64]
"""Of each row that changes, the number that the caller gave with its position."""

NO_NUMBERS: Numbers = np.empty(0, np.int64)

Change: TypeAlias = Callable[[pa.RecordBatch, Numbers], pa.RecordBatch]
"""What becomes of rows, the columns of `RowChanges.schema` in and out."""


class Rewrite(NamedTuple):
    """Rows of a file that is written again. `mask`: those that `change` applies to, or that go without one; none
    without it. `numbers`: of those that it applies to; `pack`: parts of one share new files, apart from others."""

    rows: pa.RecordBatch
    mask: npt.NDArray[np.bool_] | None = None
    change: Change | None = None
    numbers: Numbers = NO_NUMBERS
    pack: int = 0


def apply_changes(parts: Iterable[Rewrite]) -> Iterator[pa.RecordBatch]:
    """The rows with their changes, in their order. Small parts that one change applies to are changed at once."""
    pending: list[Rewrite] = []
    size = 0
    for part in parts:
        if pending and (size + part.rows.nbytes > _TOGETHER_BYTES or not _alike(part, pending[0])):
            yield from _apply_to(pending)
            pending, size = [], 0
        pending.append(part)
        size += part.rows.nbytes
    yield from _apply_to(pending)


def _alike(part: Rewrite, other: Rewrite) -> bool:
    return part.change is other.change and (part.mask is None) is (other.mask is None)


def _apply_to(parts: Sequence[Rewrite]) -> Iterator[pa.RecordBatch]:
    """The rows of parts that have one change, or none."""
    masks = [part.mask for part in parts if part.mask is not None]
    if not any(mask.any() for mask in masks):
        yield from (part.rows for part in parts)
        return
    rows = parts[0].rows if len(parts) == 1 else pa.concat_batches([part.rows for part in parts])
    mask = np.concatenate(masks)
    change = parts[0].change
    if change is None:
        yield rows.filter(numpy_to_arrow(~mask))
        return
    yield with_changed_rows(rows, numpy_to_arrow(mask), change, np.concatenate([part.numbers for part in parts]))


def with_changed_rows(
    rows: pa.RecordBatch, mask: pa.BooleanArray, change: Change, numbers: Numbers = NO_NUMBERS
) -> pa.RecordBatch:
    """Rows with what `change` makes of those that a mask selects, in their place; a column without a change is not
    copied."""
    before = rows.filter(mask)
    after = change(before, numbers)
    columns = []
    for column, old, new in zip(rows.columns, before.columns, after.columns, strict=True):
        if _is_unchanged(old, new):
            columns.append(column)
        elif pa.types.is_nested(column.type):
            places = np.arange(rows.num_rows)
            places[arrow_to_numpy(mask)] = rows.num_rows + np.arange(after.num_rows)
            columns.append(pa.concat_arrays([column, new]).take(numpy_to_arrow(places)))
        else:
            columns.append(pc.replace_with_mask(column, mask, new))
    return pa.RecordBatch.from_arrays(columns, schema=after.schema)


def _is_unchanged(old: pa.Array, new: pa.Array) -> bool:
    """Whether values are equal to the bit: to Arrow -0.0 equals 0.0. False for nested values with floats in them."""
    if pa.types.is_floating(old.type):
        bits = pa.type_for_alias(f"int{old.type.bit_width}")
        return bool(new.view(bits).equals(old.view(bits)))
    return not _has_floats(old.type) and bool(new.equals(old))


def _has_floats(type_: pa.DataType) -> bool:
    return pa.types.is_floating(type_) or any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))
