"""Manifests beside the snapshots that list them, some at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.manifest_lists import MANIFESTS

_ENTRIES_AT_ONCE, _ENTRIES_UNKNOWN = 100_000, 10_000


@dataclass(frozen=True, slots=True)
class Span:
    """A manifest's row of MANIFESTS, and from which to which place on a line of snapshots it was listed."""

    row: Mapping[str, Any]
    first: int
    last: int

    @property
    def entries(self) -> int:
        """About how many entries it has."""
        counts = [self.row[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
        return sum(count or 0 for count in counts) if any(counts) else _ENTRIES_UNKNOWN


def together(spans: Iterable[Span], most: int | None = None) -> Iterator[list[Span]]:
    """Manifests in their order, some at a time: as many as have entries enough for one pass, and bounded memory."""
    chunk: list[Span] = []
    size = 0
    for manifest in spans:
        if chunk and size + manifest.entries > (most or _ENTRIES_AT_ONCE):
            yield chunk
            chunk, size = [], 0
        chunk.append(manifest)
        size += manifest.entries
    if chunk:
        yield chunk


def rows_of(spans: Sequence[Span]) -> pl.DataFrame:
    """The rows of MANIFESTS of these manifests."""
    return pl.DataFrame([span.row for span in spans], schema=MANIFESTS)
