"""Live files to an order in which files of similar rows follow each other: what is written together lies together.

A checkpoint lists files by their paths, which are random. Files written together in that order would each cover the
whole range of a column that the data was written or clustered by, and no filter would skip one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from lakeview.delta.write.curve import MOST_COLUMNS, Places, interleaved, spread
from lakeview.delta.write.live_files import LiveFile

Path = tuple[str, ...]


def in_order(files: Sequence[LiveFile], clustering: Sequence[Path] = ()) -> list[LiveFile]:
    """The files in the order of their modification times, which is that of a curve where one was written along it.

    `clustering`: the columns that the table is clustered by, as its statistics name them; by their lower bounds files
    are ordered along a curve.
    """
    by_time = sorted(files, key=lambda file: file.row["modified"] or 0)
    if not clustering:
        return by_time
    documents = [_document(file.row["stats"]) for file in by_time]
    columns = [_ranks([_bound(d, ("minValues", *path)) for d in documents]) for path in clustering[:MOST_COLUMNS]]
    places = interleaved(columns)
    return [by_time[i] for i in np.argsort(places, kind="stable")]


def _document(stats: str | None) -> Any:
    try:
        return msgspec.json.decode(stats or "{}")
    except (msgspec.DecodeError, RecursionError):  # of another writer
        return None


def _bound(document: Any, path: Path) -> tuple[int, Any]:
    """A bound as it can be compared with others: numbers come before texts, and before both one that is not there."""
    for part in path:
        document = document.get(part) if isinstance(document, dict) else None
    if isinstance(document, str):
        return 2, document
    return (1, document) if isinstance(document, int | float) else (0, 0)


def _ranks(values: Sequence[tuple[int, Any]]) -> Places:
    """The place of each value among all, spread over the bits of a curve."""
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return spread(np.array([ranks[value] for value in values], dtype=np.uint64), len(ranks))
