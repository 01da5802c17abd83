"""A micro-batch of a stream to properties of its snapshot and of the table, and back to whether a table has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import Metadata

_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
"""As Iceberg's own Spark sink calls them (SparkWrite.java, BaseStreamingWrite), so that each knows the other's batches;
the specification names none."""

_PROPERTY = "lakeview.stream."
"""Before the query: the epoch that it committed last, `@` and the id of the snapshot."""


@dataclass(frozen=True)
class StreamBatch:
    """The number of a batch, which grows, and the id of the query that it is of."""

    query_id: str
    epoch: int

    @property
    def summary(self) -> Mapping[str, str]:
        """What the summary of its snapshot holds."""
        return {_QUERY: self.query_id, _EPOCH: str(self.epoch)}

    def properties(self, snapshot_id: int) -> Mapping[str, str]:
        """The table property that is set with its snapshot: a summary expires with its snapshot, a property stays."""
        return {f"{_PROPERTY}{self.query_id}": f"{self.epoch}@{snapshot_id}"}

    def is_committed(self, metadata: Metadata) -> bool:
        """Whether the table has this batch of the query, or a later one.

        The newest of the query's that the current snapshot or one before it has counts, and where those have expired,
        the table property. Batches that were rolled back are not committed, as long as their snapshots are there.
        """
        line = ancestors(metadata, metadata.current_snapshot_id)
        for snapshot in line:
            epoch = snapshot.summary.get(_EPOCH)
            number = whole(epoch, None) if isinstance(epoch, str) else None
            if snapshot.summary.get(_QUERY) == self.query_id and number is not None:
                return self.epoch <= number
        recorded, _, snapshot_id = metadata.properties.get(f"{_PROPERTY}{self.query_id}", "").partition("@")
        number, at = whole(recorded, None), whole(snapshot_id, None)
        entry = None if at is None else metadata.snapshots.get(at)
        # not of the line although later than where the line begins
        rolled_back = entry is not None and (not line or entry.timestamp_ms > line[-1].timestamp_ms)
        return number is not None and self.epoch <= number and not rolled_back
