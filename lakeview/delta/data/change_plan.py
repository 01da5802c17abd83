"""Commits to the files that hold what they changed (today's protocol, Reader Requirements for AddCDCFile)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.actions import AddCDCFile
from lakeview.delta.log.commits import Commit
from lakeview.delta.log.file_actions import PARTITION_VALUES, VECTOR, text_maps
from lakeview.delta.log.paths import commit_name, decode_path
from lakeview.delta.log.record_counts import records
from lakeview.model.column_values import sizes
from lakeview.model.errors import CorruptTableError

CHANGE_FILES = pl.Schema(
    {
        "version": pl.Int64(),
        "change_type": pl.String(),
        "path": pl.String(),
        "rows": pl.Int64(),
        "size": pl.Int64(),
        "partition_values": PARTITION_VALUES,
        "deleted": VECTOR,
        "selected": VECTOR,
        "without": VECTOR,
    }
)
"""One row a file to read, by version. `change_type` insert or delete; null for a change data file, which has a column
that says it. `path` decoded once. `rows` it gives and `size` of the file in bytes are null where unknown. Of the file
are read: the rows that `selected` names and `without` does not, if it is there; else those `deleted` does not name."""

_UNCHANGED_MERGE = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


def change_files(commits: Sequence[Commit], actions: pl.DataFrame) -> pl.DataFrame:
    """CHANGE_FILES of these commits, whose FILE_ACTIONS are `actions`.

    CorruptTableError for a cdc action that cannot be read.
    """
    cdc_files = [(c.version, cdc) for c in commits for cdc in cdc_actions(c)]
    recorded_versions = {version for version, _ in cdc_files} | {c.version for c in commits if merged_nothing(c)}
    rest = _inferred_changes(actions.filter(~pl.col("version").is_in(recorded_versions)))
    return pl.concat([_recorded_changes(cdc_files), rest]).sort("version", maintain_order=True).with_columns(sizes())


def cdc_actions(commit: Commit) -> Iterator[AddCDCFile]:
    """The change data files of a commit. CorruptTableError for an action that cannot be read."""
    for action in commit.actions:
        raw = bytes(action.cdc)
        if raw and raw != b"null":
            try:
                yield msgspec.json.decode(raw, type=AddCDCFile)
            except msgspec.DecodeError as error:
                name = commit_name(commit.version)
                raise CorruptTableError(
                    f"commit {name} has a cdc action that cannot be read: {error}",
                    fix="restore the file from a backup; versions can be read all the same, only changes cannot",
                    place=name,
                    kind="corrupt-commit",
                ) from error


def merged_nothing(commit: Commit) -> bool:
    """A MERGE that says it changed no row rewrote its files all the same: its adds and removes are no changes."""
    info = commit.info
    if info.operation != "MERGE" or info.metrics is None:
        return False
    metrics: Any = msgspec.json.decode(info.metrics)
    return isinstance(metrics, Mapping) and all(str(metrics.get(name)) == "0" for name in _UNCHANGED_MERGE)


def _recorded_changes(actions: Sequence[tuple[int, AddCDCFile]]) -> pl.DataFrame:
    """ "If there are cdc actions in this version, then read only those"."""
    frame = pl.DataFrame(
        {
            "version": [version for version, _ in actions],
            "path": [decode_path(a.path) for _, a in actions],
            "size": [a.size for _, a in actions],
        },
        schema={"version": pl.Int64(), "path": pl.String(), "size": pl.Int64()},
    ).with_columns(text_maps([a.partition_values for _, a in actions]).alias("partition_values"))
    return _whole(frame)


def _inferred_changes(actions: pl.DataFrame) -> pl.DataFrame:
    """ "If there are no cdc actions in this version, read and treat all the rows in the add and remove actions as
    inserted and deleted rows". Of a file that is removed and added again only the difference of its deletion vectors
    has changed. Actions with dataChange false move rows about and change none.
    """
    one = actions.with_columns((records(actions["stats"], None) - actions["deleted_records"]).alias("rows"))
    key = ["version", "key"]
    adds = one.filter("added").unique(key, keep="last", maintain_order=True)
    removes = one.filter(~pl.col("added")).unique(key, keep="last", maintain_order=True)
    inserts = _with_change(adds.join(removes, on=key, how="anti"), "insert")
    deletes = _with_change(removes.join(adds, on=key, how="anti"), "delete")
    pairs = adds.join(removes, on=key, suffix="_before").filter(
        pl.col("data_change") | pl.col("data_change_before"),
        pl.col("deletion_vector").ne_missing(pl.col("deletion_vector_before")),
    )
    new_deletes = _difference(pairs, "delete", "vector", "vector_before")
    restores = _difference(pairs, "insert", "vector_before", "vector")
    return pl.concat([deletes, new_deletes, restores, inserts])


def _with_change(files: pl.DataFrame, change: str) -> pl.DataFrame:
    files = files.filter("data_change")
    return _whole(files.with_columns(pl.lit(change).alias("change_type"), pl.col("vector").alias("deleted")))


def _difference(pairs: pl.DataFrame, change: str, vector: str, without: str) -> pl.DataFrame:
    """Rows that the vector `vector` names and the vector `without` does not."""
    count = pl.col(vector).struct.field("cardinality")
    changes = pairs.filter(pl.col(vector).is_not_null()).with_columns(
        pl.lit(change).alias("change_type"),
        pl.when(pl.col(without).is_null()).then(count).alias("rows"),  # two vectors may share rows
        pl.coalesce("size", "size_before").alias("size"),
        pl.coalesce("partition_values", "partition_values_before").alias("partition_values"),
        pl.col(vector).alias("selected"),
        pl.col(without).alias("without"),
    )
    return _whole(changes)


def _whole(files: pl.DataFrame) -> pl.DataFrame:
    """With the columns of CHANGE_FILES that it does not have as nulls."""
    missing = [pl.lit(None, type_).alias(name) for name, type_ in CHANGE_FILES.items() if name not in files.columns]
    return files.with_columns(missing).select(CHANGE_FILES.names())
