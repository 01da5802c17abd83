"""Live add actions to FILES, and all that is read of the files of one version."""

from collections.abc import Sequence

import polars as pl

from lakeview.delta.data.column_rules import rules
from lakeview.delta.data.partition_values import partition_columns, partition_text
from lakeview.delta.data.row_tracking import tracked_schema
from lakeview.delta.data.scan import Scan
from lakeview.delta.data.statistics import LeafStatistics, physical_leaves, statistics_of, string_prefix
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


class VersionFiles(SnapshotLoader):
    """The files of a Delta table at one version, as listings, statistics and scans, and what else a Snapshot loads.

    `state`: the table at that version, from which each is read when it is asked for; `partitions`: the partition
    columns of `schema`; `root`: the table's address.
    """

    def __init__(self, state: TableState, schema: Schema, partitions: Sequence[Field], root: str) -> None:
        self.state = state
        self.schema = schema
        self._partitions = partitions
        self._root = root

    def files(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """FILES with these columns, in this order, or all; only what they need is read from the log.

        `base_row_id` and `default_row_commit_version` (i64?) are there when asked for by name.
        InvalidRequestError for a column FILES does not have, or one that is named twice.
        """
        partitions = self._partitions
        names = [c for c in (*FILES.names()[:5], "partition", *FILES.names()[5:]) if partitions or c != "partition"]
        columns = names if columns is None else file_columns(columns, [*names, *_ASKED_BY_NAME])
        adds = self.state.adds(sorted({need for c in columns for need in _NEEDS[c]}))
        return pl.DataFrame([_column(adds, c, partitions) for c in columns])

    def statistics(self, columns: Sequence[str] | None = None, share: float = 1.0) -> pl.DataFrame:
        """STATISTICS of these columns, or all, of the files or about this share of them; partition columns have none.
        InvalidRequestError for a column that the schema does not have."""
        leaves = physical_leaves(self.schema, columns, [field.name for field in self._partitions])
        reader = LeafStatistics(leaves, string_prefix(self.state.properties), share)
        adds = self.state.adds_with_statistics([], reader)
        return statistics_of(adds.filter(pl.col("statistics").is_not_null()) if reader.is_sample else adds, leaves)

    def scan(self) -> Scan:
        """The files, ready to be pruned."""
        return Scan(self.state, self.schema, self._partitions, self._root)

    def tracked_scan(self) -> Scan:
        """The scan with the columns of row tracking. InvalidRequestError if rows are not tracked."""
        schema = tracked_schema(self.schema, self.state.table_protocol, self.state.properties, self._root)
        return Scan(self.state, self.schema, self._partitions, self._root, tracked_schema=schema)

    def tombstones(self) -> pl.DataFrame:
        """TOMBSTONES."""
        removes = self.state.removes().rename({"modified": "deleted"})
        return removes.with_columns(moments("deleted"), sizes()).select(TOMBSTONES.names())

    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS."""
        return self.state.transactions()

    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA."""
        return self.state.domain_metadata()

    def rules(self) -> pl.DataFrame:
        """RULES."""
        return rules(self.schema, self.state.properties, self.state.domain_metadata())


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
