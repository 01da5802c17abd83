"""Rows of files that are written again, and what of them changes or goes: small parts with one change are changed at
once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lakeview.delta.write.live_files import LiveFile, portions_of, together
from lakeview.model.schema import Schema
from lakeview.rows.arrays import arrow_to_numpy, numpy_to_arrow
from lakeview.storage import Storage

_TOGETHER_BYTES = 4 << 20
"""Bytes of rows in memory that a change is applied to at once."""

Numbers: TypeAlias = npt.NDArray[np.int64]
"""Of each row that changes, the number that the caller gave with its position."""

NO_NUMBERS: Numbers = np.empty(0, np.int64)

Change: TypeAlias = Callable[[pa.RecordBatch, Numbers], pa.RecordBatch]
"""What becomes of rows, the columns of `RowChanges.schema` in and out."""


class Copy(NamedTuple):
    """A file that is written again. The rows at `positions` go, or become what `change` makes of them; `numbers`: what
    it is given with each of them, or none at all."""

    file: LiveFile
    positions: pyroaring.BitMap64
    change: Change | None = None
    numbers: Numbers = NO_NUMBERS


@dataclass(slots=True, eq=False)
class Pack:
    """Small files of one partition that are written again together, but for rows that leave the partition: the first of
    them, those that are not in memory, and the bytes of all."""

    first: LiveFile
    copies: list[Copy] = field(default_factory=list)
    size: int = 0


class Rewrite(NamedTuple):
    """Rows of a file that is written again. `mask`: those that `change` applies to, or that go without one; none
    without it. `numbers`: of those that it applies to; `pack`: where they are written, None for files of any partition.
    """

    rows: pa.RecordBatch
    mask: npt.NDArray[np.bool_] | None = None
    change: Change | None = None
    numbers: Numbers = NO_NUMBERS
    pack: Pack | None = None


def apply_changes(parts: Iterable[Rewrite]) -> Iterator[pa.RecordBatch]:
    """The rows with their changes, in their order. Small parts that one change applies to are changed at once."""
    pending: list[Rewrite] = []
    size = 0
    for part in parts:
        more = part.rows.nbytes
        if pending and (size + more > _TOGETHER_BYTES or not _alike(part, pending[0])):
            yield from _apply_to(pending)
            pending, size = [], 0
        pending.append(part)
        size += more
        if more > _TOGETHER_BYTES // 2:  # a large one is not kept beside the next
            yield from _apply_to(pending)
            pending, size = [], 0
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


def rewrites_of(copy: Copy) -> Iterator[Rewrite]:
    """The rows of a file that are in memory."""
    start = 0
    for rows, positions in copy.file.in_memory or ():
        mask = _are_among(positions, copy.positions)
        end = start + int(np.count_nonzero(mask))
        yield Rewrite(rows, mask, copy.change, copy.numbers[start:end])
        start = end


def rewrites(copies: Sequence[Copy], storage: Storage, schema: Schema) -> Iterator[Rewrite]:
    """The rows of files in their order, in these columns; small files are read together."""
    for _, alike in groupby(copies, key=lambda copy: id(copy.change)):
        rest = list(alike)
        for files in together([copy.file for copy in rest]):
            yield from _of_files(rest[: len(files)], storage, schema)
            rest = rest[len(files) :]


def _of_files(copies: Sequence[Copy], storage: Storage, schema: Schema) -> Iterator[Rewrite]:
    counts = [0] * len(copies)
    change = copies[0].change
    for portion in portions_of([copy.file for copy in copies], storage, schema):
        places = np.arange(portion.rows.num_rows)
        mask = np.zeros(len(places), np.bool_)
        numbers = []
        for number, part in portion.by_file(places):
            copy, start = copies[number], counts[number]
            mask[part] = here = _are_among(portion.positions[part], copy.positions)
            counts[number] += int(np.count_nonzero(here))
            numbers.append(copy.numbers[start : counts[number]])
        yield Rewrite(portion.rows, mask, change, np.concatenate([NO_NUMBERS, *numbers]))


def _are_among(positions: npt.NDArray[np.int64], selection: pyroaring.BitMap64) -> npt.NDArray[np.bool_]:
    """Whether each of some positions, which ascend, is selected."""
    mask = np.zeros(len(positions), np.bool_)
    near = selection & pyroaring.BitMap64(range(int(positions[0]), int(positions[-1]) + 1))
    if near:
        targets = np.frombuffer(near.to_array(), np.int64)
        places = np.searchsorted(positions, targets)
        mask[places[positions[places] == targets]] = True
    return mask
