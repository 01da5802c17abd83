"""Files that are written again to their rows, with what of them changes or goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyroaring

from lakeview.delta.write.live_files import LiveFile, portions_of, together
from lakeview.delta.write.rewrites import NO_NUMBERS, Change, Numbers, Rewrite
from lakeview.model.schema import Schema
from lakeview.storage import Storage


class Copy(NamedTuple):
    """A file that is written again. The rows at `positions` go, or become what `change` makes of them; `numbers`: what
    it is given with each of them, or none at all."""

    file: LiveFile
    positions: pyroaring.BitMap64
    change: Change | None = None
    numbers: Numbers = NO_NUMBERS


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


def _are_among(positions: npt.NDArray[np.int64], selected: pyroaring.BitMap64) -> npt.NDArray[np.bool_]:
    """Whether each of some positions, which ascend, is selected."""
    mask = np.zeros(len(positions), np.bool_)
    near = selected & pyroaring.BitMap64(range(int(positions[0]), int(positions[-1]) + 1))
    if near:
        targets = np.frombuffer(near.to_array(), np.int64)
        places = np.searchsorted(positions, targets)
        mask[places[positions[places] == targets]] = True
    return mask
