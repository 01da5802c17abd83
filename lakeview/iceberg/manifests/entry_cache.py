"""Decoded manifests to a cache that is bounded in bytes: many manifests a frame, addressed one by one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, count
from operator import attrgetter
from typing import TypeAlias

import polars as pl

from lakeview.iceberg.metadata.single_values import own_text
from lakeview.storage.byte_cache import ByteBoundedCache

ManifestKey: TypeAlias = tuple[str, int | None, int | None]
"""A manifest's path, and the first row id and the sequence number that its list gives it: others mean other entries."""


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Manifests that were decoded together, with the metrics of these columns; `size` in bytes."""

    frame: pl.DataFrame
    metrics: frozenset[int]
    size: int


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of one manifest in a batch."""

    batch: Batch
    start: int
    length: int


class EntryCache:
    """Rows by manifest; the least recently used batch goes first. Safe to use from several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._batches: ByteBoundedCache[int, Batch] = ByteBoundedCache(max_bytes, attrgetter("size"))
        self._slices: dict[ManifestKey, tuple[int, int, int]] = {}  # number of the batch, start, length
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._batches)

    def get(self, key: ManifestKey, metrics: frozenset[int] = frozenset()) -> Slice | None:
        """The rows of a manifest, with the metrics of at least these columns; None if they are not there."""
        number, start, length = self._slices.get(key, (-1, 0, 0))
        batch = self._batches.get(number)
        return Slice(batch, start, length) if batch is not None and metrics <= batch.metrics else None

    def put(self, batch: Batch, lengths: Mapping[ManifestKey, int]) -> dict[ManifestKey, Slice]:
        """Add the rows of manifests, `lengths` of each in the order of the frame; replaces what these had."""
        number = next(self._numbers)
        self._batches.put(number, batch)
        starts = accumulate(lengths.values(), initial=0)
        slices = {
            key: Slice(batch, start, length) for (key, length), start in zip(lengths.items(), starts, strict=False)
        }
        self._slices |= {key: (number, each.start, each.length) for key, each in slices.items()}
        return slices

    def forget_evicted(self) -> None:
        """Drop the keys of rows that were evicted: they would accumulate over the states of a table."""
        numbers = self._batches.keys()
        self._slices = {key: slice_ for key, slice_ in self._slices.copy().items() if slice_[0] in numbers}


def frames_of(slices: Iterable[Slice]) -> list[pl.DataFrame]:
    """The rows of slices in their order, neighbours of one batch as one frame: thousands are slow to concatenate."""
    runs: list[tuple[Batch, int, int]] = []
    for each in slices:
        start = each.start
        if runs and runs[-1][0] is each.batch and runs[-1][2] == start:
            start = runs.pop()[1]
        runs.append((each.batch, start, each.start + each.length))
    return [batch.frame.slice(start, end - start) for batch, start, end in runs]


def deep_copy(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame in memory of its own: a column as it comes retains everything that was decoded with it."""
    every = pl.int_range(frame.height, dtype=pl.UInt32, eager=True)

    def copy(values: pl.Series) -> pl.Series:
        match values.dtype:
            case pl.String() | pl.Binary():
                return own_text(values)
            case pl.Struct():  # a partition: its texts too
                return pl.DataFrame([copy(part) for part in values.struct.unnest()]).to_struct(values.name)
        return values.gather(every)

    return pl.DataFrame([copy(column) for column in frame])
