"""The loads of every column, cached by version: the quality page draws them, and the shell reads them ahead."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lakeview import views
from lakeview.app import answers, cache
from lakeview.app.memo import cached
from lakeview.app.session import OpenTable
from lakeview.model.schema import leaf_name

MOST_COLUMNS = 40
MOST_VALUES = 4_000_000
"""So many files times columns are compared: about six seconds, however they are spread."""


@dataclass(frozen=True, slots=True)
class Loads:
    """SUDDEN of the first leaf columns, how many these are, and how many leaf columns there are."""

    changes: pl.DataFrame
    columns: int
    all_columns: int


def loads(now: OpenTable) -> Loads:
    """The loads of every column, compared with each other; of a huge table those of its first columns."""
    leaves, fitting = leaf_columns(now)
    return Loads(_changes(now.address, now.latest, now.ref, fitting), len(fitting), len(leaves))


def leaf_columns(now: OpenTable) -> tuple[list[str], tuple[str, ...]]:
    """All leaf columns that are no partition columns, in the types of the newest version; and as many as are read."""
    newest = now.newest
    files = views.quality.column_loads.files_ever(now.history, newest.num_files)
    most = MOST_VALUES // max(1, now.lifetimes.height if files is None else files)
    leaves = [leaf_name(path) for path, _ in newest.schema.leaves() if path[0] not in newest.partition_columns]
    return leaves, tuple(leaves[: min(MOST_COLUMNS, max(1, most))])


@cached(16)
def _changes(address: str, latest: int, ref: str | None, names: tuple[str, ...]) -> pl.DataFrame:
    lifetimes = cache.column_lifetimes(address, latest, ref, names)
    return views.quality.column_loads.sudden_changes(
        views.quality.column_loads.column_loads(lifetimes, answers.timeline_of(address, latest, ref))
    )
