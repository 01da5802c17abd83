"""The lives of files together with their statistics, for what is to be told of every version at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import polars as pl

from lakeview.delta.data.statistics import Leaf, LeafStatistics
from lakeview.delta.log.actions import DeletionVectorDescriptor
from lakeview.delta.log.commits import parse_lines
from lakeview.delta.log.file_lines import unique_id
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.paths import commit_name, decoded_paths
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.schema import leaf_name

_BATCH = 8_192
_IDENTITY = ["added", "path", "deletion_vector"]
_TEXTS = pl.Schema({"added": pl.Int64(), "path": pl.String(), "deletion_vector": pl.String(), "stats": pl.String()})


class _Add(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Of an add what says which file it is, and its statistics document; everything else is passed over."""

    path: str
    stats: str | None = None
    deletion_vector: DeletionVectorDescriptor | None = None


class _Line(msgspec.Struct, frozen=True, gc=False):
    add: _Add | None = None


_LINES = msgspec.json.Decoder(_Line)


def with_statistics(
    lives: pl.DataFrame,
    log: TableLog,
    bases: Sequence[tuple[int | None, CheckpointFiles]],
    leaves: Sequence[Leaf],
    prefix: int,
) -> pl.DataFrame:
    """LIFETIMES with a struct `statistics`: one field a leaf, named and made as in STATISTICS.

    `bases`: the checkpoints that the lifetimes start from, as `History.bases`; `prefix`: see `string_prefix`.
    The log is read once, its documents are never retained.
    """
    reader = LeafStatistics(leaves, prefix)
    first = next((files.version for added, files in bases if added is None), -1)
    parts = [_read(reader, adds) for adds in _adds(log, first)]
    parts += [_base(log, added, files, reader) for added, files in bases] or [_nothing(reader)]
    told = pl.concat(parts).unique(_IDENTITY, keep="last")
    found = lives.join(told, on=_IDENTITY, how="left", nulls_equal=True, maintain_order="left")
    fields = found["statistics"].struct.unnest().get_columns()[1:]
    columns = {leaf_name(path): field for (path, _, _), field in zip(leaves, fields, strict=True)}
    if not columns:
        return lives
    return lives.with_columns(pl.DataFrame(columns).to_struct("statistics"))


def _read(reader: LeafStatistics, adds: pl.DataFrame) -> pl.DataFrame:
    return adds.select(_IDENTITY).with_columns(reader.read(adds["stats"], None, adds.height))


def _nothing(reader: LeafStatistics) -> pl.DataFrame:
    return _read(reader, pl.DataFrame(schema=_TEXTS))


def _base(log: TableLog, added: int | None, files: CheckpointFiles, reader: LeafStatistics) -> pl.DataFrame:
    """The statistics of a checkpoint's files, as added at a version; none of one that cannot be read."""
    try:
        adds = log.checkpoint(files).adds([], reader)
    except (CorruptTableError, UnsupportedTableError):  # the lifetimes leave its files out as well
        return _nothing(reader)
    if "statistics" not in adds.columns:
        return _nothing(reader)
    return adds.with_columns(pl.lit(added, pl.Int64).alias("added")).select(*_IDENTITY, "statistics")


def _adds(log: TableLog, above: int) -> Iterator[pl.DataFrame]:
    """Every add of the commits above a version, some at a time; a commit that is corrupt tells nothing."""
    versions: list[int] = []
    found: list[_Add] = []
    for version, data in log.each_bytes([v for v in log.versions() if v > above]):
        try:
            adds = [line.add for line in parse_lines(_LINES, data, commit_name(version)) if line.add is not None]
        except CorruptTableError:
            continue
        versions += [version] * len(adds)
        found += adds
        if len(found) >= _BATCH:
            yield _texts(versions, found)
            versions, found = [], []
    if found:
        yield _texts(versions, found)


def _texts(versions: list[int], adds: list[_Add]) -> pl.DataFrame:
    columns = {
        "added": versions,
        "path": decoded_paths([add.path for add in adds]),
        "deletion_vector": [unique_id(add.deletion_vector) for add in adds],
        "stats": [add.stats for add in adds],
    }
    return pl.DataFrame(columns, schema=_TEXTS)
