"""The lifetimes of files with their statistics, for views of every version at once."""

from collections.abc import Iterator, Sequence

import polars as pl

from lakeview.delta.data.statistics import Leaf, LeafStatistics
from lakeview.delta.log.commits import readable
from lakeview.delta.log.file_actions import each_frame
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.schema import leaf_name

_IDENTITY = ["added", "path", "deletion_vector"]
_TEXTS = pl.Schema({"added": pl.Int64(), "path": pl.String(), "deletion_vector": pl.String(), "stats": pl.String()})


def with_statistics(
    lives: pl.DataFrame,
    log: TableLog,
    bases: Sequence[tuple[int | None, CheckpointFiles]],
    leaves: Sequence[Leaf],
    prefix: int,
    *,
    of_all: bool = True,
) -> pl.DataFrame:
    """LIFETIMES with a struct `statistics`: one field a leaf, named and made as in STATISTICS.

    `bases`: the checkpoints that the lifetimes start from, as `History.bases`; `prefix`: see `string_prefix`.
    The log is read once, its documents are never retained. `of_all`: the lifetimes are those of all files; else
    checkpoints are searched for theirs.
    """
    reader = LeafStatistics(leaves, prefix)
    first = next((files.version for version, files in bases if version is None), -1)
    parts = [_read(reader, adds) for adds in _adds(log, first)]
    paths = None if of_all else lives["path"].unique()
    parts += [_base(log, version, files, reader, paths) for version, files in bases]
    statistics = pl.concat(parts, rechunk=False)
    rows = _join_statistics(lives, statistics)
    if rows.height > lives.height:  # a file is named twice: rare, and to look for it takes half as long as the join
        rows = _join_statistics(lives, statistics.unique(_IDENTITY, keep="last"))
    fields = rows["statistics"].struct.unnest().get_columns()[1:]
    columns = {leaf_name(path): field for (path, _, _), field in zip(leaves, fields, strict=True)}
    if not columns:
        return lives
    return lives.with_columns(pl.DataFrame(columns).to_struct("statistics"))


def _join_statistics(lives: pl.DataFrame, statistics: pl.DataFrame) -> pl.DataFrame:
    return lives.join(statistics, on=_IDENTITY, how="left", nulls_equal=True, maintain_order="left")


def _read(reader: LeafStatistics, adds: pl.DataFrame) -> pl.DataFrame:
    return adds.select(_IDENTITY).with_columns(reader.read(adds["stats"], None, adds.height))


def _nothing(reader: LeafStatistics) -> pl.DataFrame:
    return _read(reader, pl.DataFrame(schema=_TEXTS))


def _base(
    log: TableLog, version: int | None, files: CheckpointFiles, reader: LeafStatistics, paths: pl.Series | None
) -> pl.DataFrame:
    """The statistics of a checkpoint's files, or those with these paths, as added at a version; none of one that cannot
    be read."""
    if paths is not None and paths.is_empty():
        return _nothing(reader)
    try:
        checkpoint = log.checkpoint(files)
        adds = checkpoint.adds_with_statistics([], reader) if paths is None else checkpoint.adds_of(paths, reader)
    except (CorruptTableError, UnsupportedTableError):  # the lifetimes leave its files out as well
        return _nothing(reader)
    if "statistics" not in adds.columns:
        return _nothing(reader)
    return adds.with_columns(pl.lit(version, pl.Int64).alias("added")).select(*_IDENTITY, "statistics")


def _adds(log: TableLog, above: int) -> Iterator[pl.DataFrame]:
    """Every add of the commits above a version, some at a time; a corrupt commit adds nothing."""
    commits = readable(log.each_bytes([v for v in log.versions() if v > above]))
    for actions in each_frame(commits, log.storage.root, ["version", "stats"]):
        yield actions.filter("added").with_columns(added="version").select(*_IDENTITY, "stats")
