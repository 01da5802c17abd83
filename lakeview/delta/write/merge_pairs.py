"""The rows of one file that a source matches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyroaring

from lakeview.delta.write.rewrites import NO_NUMBERS, Numbers


@dataclass(slots=True)
class Pairs:
    """Rows of a file and of a source that match. `rows`: positions in the file, ascending, one for each pair; `every`:
    the positions of all live rows, where they are needed."""

    rows: Numbers = field(default_factory=NO_NUMBERS.copy)
    of_source: Numbers = field(default_factory=NO_NUMBERS.copy)
    every: pyroaring.BitMap64 = field(default_factory=pyroaring.BitMap64)

    def add(self, rows: Numbers, of_source: Numbers) -> None:
        """Add pairs of rows behind those that are here."""
        self.rows = np.concatenate([self.rows, rows])
        self.of_source = np.concatenate([self.of_source, of_source])

    @property
    def positions(self) -> pyroaring.BitMap64:
        """The positions that are matched."""
        return pyroaring.BitMap64(self.rows.astype(np.uint64))

    @property
    def matched_source_rows(self) -> pyroaring.BitMap64:
        """The source rows that match any."""
        return pyroaring.BitMap64(self.of_source.astype(np.uint64))

    @property
    def sources(self) -> Numbers:
        """The first source row of each position."""
        return self.of_source[np.diff(self.rows, prepend=-1) > 0]

    def sources_at(self, positions: Numbers) -> Numbers:
        """The first source row of each of some positions that are matched."""
        return self.of_source[np.searchsorted(self.rows, positions)]

    @property
    def is_ambiguous(self) -> bool:
        """Whether several source rows match one position."""
        return bool((np.diff(self.rows) == 0).any())

    def first_ambiguous(self) -> Numbers:
        """The source rows of the first position that several of them match."""
        row = self.rows[np.flatnonzero(np.diff(self.rows) == 0)[0]]
        start, end = np.searchsorted(self.rows, [row, row + 1])
        return self.of_source[start:end]
