"""The lives of files together with their statistics, for what is to be told of every version at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import msgspec
import polars as pl

from lakeview.delta.data.statistics import Leaf, LeafStatistics
from lakeview.delta.log.file_lines import AddLine, events_of, log_lines, stats_of, unique_id
from lakeview.delta.log.paths import decoded_paths
from lakeview.delta.log.table_log import TableLog
from lakeview.errors import CorruptTableError, UnsupportedTableError
from lakeview.schema import leaf_name

_BATCH = 8_192
_IDENTITY = ["added", "path", "deletion_vector"]
_TEXTS = pl.Schema({"added": pl.Int64(), "path": pl.String(), "deletion_vector": pl.String(), "stats": pl.String()})

_Add = tuple[int, str, str | None, str | None]
"""Version, path, deletion vector, statistics document."""


def with_statistics(lives: pl.DataFrame, log: TableLog, base: int | None, leaves: Sequence[Leaf]) -> pl.DataFrame:
    """LIFETIMES with a struct `statistics`: one field a leaf, named and made as in STATISTICS.

    `base`: the checkpoint that the lives start from, if they do. The log is read once, its documents are never held.
    """
    reader = LeafStatistics(leaves)
    parts = [_read(reader, rows) for rows in _batches(_adds(log, -1 if base is None else base))]
    parts.append(_base(log, base, reader))
    told = pl.concat(parts).unique(_IDENTITY, keep="last")
    found = lives.join(told, on=_IDENTITY, how="left", nulls_equal=True, maintain_order="left")
    fields = found["statistics"].struct.unnest().get_columns()[1:]
    columns = {leaf_name(path): field for (path, _, _), field in zip(leaves, fields, strict=True)}
    if not columns:
        return lives
    return lives.with_columns(pl.DataFrame(columns).to_struct("statistics"))


def _read(reader: LeafStatistics, adds: Sequence[_Add]) -> pl.DataFrame:
    frame = pl.DataFrame(adds, schema=_TEXTS, orient="row")
    return frame.select(_IDENTITY).with_columns(reader.read(frame["stats"], None, frame.height))


def _base(log: TableLog, version: int | None, reader: LeafStatistics) -> pl.DataFrame:
    """What the checkpoint holds, as if added before every version; nothing of one that cannot be read."""
    checkpoint = next((c for c in log.checkpoints() if c.version == version), None)
    if checkpoint is not None:
        try:
            adds = log.checkpoint(checkpoint).adds([], reader)
        except (CorruptTableError, UnsupportedTableError):  # the lives leave its files out as well
            return _read(reader, [])
        if "statistics" in adds.columns:
            before = adds.with_columns(pl.lit(None, pl.Int64).alias("added"))
            return before.select(*_IDENTITY, "statistics")
    return _read(reader, [])


def _adds(log: TableLog, above: int) -> Iterator[_Add]:
    """Every add of the commits above a version; a commit that is corrupt tells nothing."""
    for version, data in log.each_bytes([v for v in log.versions() if v > above]):
        try:
            actions = [action for action in events_of(log_lines(data, version)) if isinstance(action, AddLine)]
            texts = [stats_of(action) for action in actions]
        except (CorruptTableError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        paths = decoded_paths([action.path for action in actions])
        vectors = [unique_id(action.deletion_vector) for action in actions]
        yield from ((version, path, vector, text) for path, vector, text in zip(paths, vectors, texts, strict=True))


def _batches(adds: Iterator[_Add]) -> Iterator[list[_Add]]:
    for first in adds:
        yield list(chain([first], islice(adds, _BATCH - 1)))
