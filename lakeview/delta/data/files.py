"""Live add actions to FILES, and the loader that fills a Delta Snapshot."""

from collections.abc import Sequence

import polars as pl

from lakeview.delta.data.column_rules import rules
from lakeview.delta.data.partition_values import partition_columns, partition_text
from lakeview.delta.log.state import TableState
from lakeview.model.arguments import file_columns
from lakeview.model.column_values import moments, sizes
from lakeview.model.data_types import Field
from lakeview.model.frames import FILES, TOMBSTONES
from lakeview.model.schema import Schema
from lakeview.model.snapshot_sources import SnapshotLoader

# column of FILES -> columns of FILE_ACTIONS it is made of
_NEEDS = {
    "path": [],
    "size": ["size"],
    "records": ["records"],
    "deleted_records": [],
    "modified": ["modified"],
    "partition": ["partition_values"],
    "partition_text": ["partition_values"],
    "deletion_vector": [],
    "tags": ["tags"],
    "base_row_id": ["base_row_id"],
    "default_row_commit_version": ["default_row_commit_version"],
}
_ASKED_BY_NAME = ("base_row_id", "default_row_commit_version")
"""Columns beyond FILES, of Delta's own: of tables that track their rows."""


def files_frame(replay: TableState, partitions: Sequence[Field], columns: Sequence[str] | None = None) -> pl.DataFrame:
    """FILES at a version with these columns, in this order; only what they need is read from the log.

    `base_row_id` and `default_row_commit_version` (i64?) are there when asked for by name.
    InvalidRequestError for a column FILES does not have, or one that is named twice.
    """
    names = [c for c in (*FILES.names()[:5], "partition", *FILES.names()[5:]) if partitions or c != "partition"]
    columns = names if columns is None else file_columns(columns, [*names, *_ASKED_BY_NAME])
    adds = replay.adds(sorted({need for c in columns for need in _NEEDS[c]}))
    return pl.DataFrame([_column(adds, c, partitions) for c in columns])


def _column(adds: pl.DataFrame, name: str, partitions: Sequence[Field]) -> pl.Series:
    match name:
        case "size":
            return adds.select(sizes()).to_series()
        case "modified":
            return adds.select(moments("modified")).to_series()
        case "partition":
            columns = partition_columns(adds["partition_values"], partitions)
            return pl.DataFrame({s.name: s for s in columns}).to_struct("partition")
        case "partition_text":
            if not partitions:
                return pl.Series("partition_text", [None] * adds.height, dtype=pl.String)
            return partition_text(adds["partition_values"], partitions)
    return adds[name]


class DeltaLoader(SnapshotLoader):
    """The frames of one Delta snapshot, read on first touch."""

    def __init__(self, replay: TableState, schema: Schema, partitions: Sequence[Field]) -> None:
        self._replay = replay
        self._schema = schema
        self._partitions = partitions

    def files(self, columns: Sequence[str] | None) -> pl.DataFrame:
        """FILES with these columns, or all."""
        return files_frame(self._replay, self._partitions, columns)

    def tombstones(self) -> pl.DataFrame:
        """TOMBSTONES."""
        removes = self._replay.removes().rename({"modified": "deleted"})
        return removes.with_columns(moments("deleted"), sizes()).select(TOMBSTONES.names())

    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS."""
        return self._replay.transactions()

    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA."""
        return self._replay.domain_metadata()

    def rules(self) -> pl.DataFrame:
        """RULES."""
        return rules(self._schema, self._replay.properties, self._replay.domain_metadata())
