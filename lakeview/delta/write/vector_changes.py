"""More deleted rows in files that stay: new deletion vectors, and the actions that put them in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyroaring

from lakeview.delta.write.file_changes import FileChanges, add_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.statistics_text import with_deletions
from lakeview.delta.write.vectors import write_vectors
from lakeview.model.clock import Clock
from lakeview.model.snapshot import milliseconds
from lakeview.storage import Storage


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file of so many physical `rows` of which those at `positions` go, beside those at `before`."""

    file: LiveFile
    before: pyroaring.BitMap64
    positions: pyroaring.BitMap64
    rows: int


def replace_vectors(
    pending: Sequence[VectorChange], changes: FileChanges, storage: Storage, prefix: str, clock: Clock
) -> None:
    """Write one deletion vector file for all; each data file is removed, and added again with its new vector unless
    no row of it is left."""
    now = milliseconds(clock())
    remaining = [c for c in pending if not c.file.has_only(storage, len(c.before) + len(c.positions))]
    for change in pending:
        changes.remove(change.file.row, now, data_change=True)
    path, descriptors = write_vectors([c.before | c.positions for c in remaining], storage, prefix)
    if path is not None:
        changes.paths.append(path)
    for change, descriptor in zip(remaining, descriptors, strict=True):
        row = change.file.row
        stats = with_deletions(row["stats"], change.rows)
        changes.adds.append(add_of(row, deletion_vector=descriptor, stats=stats, data_change=True))
