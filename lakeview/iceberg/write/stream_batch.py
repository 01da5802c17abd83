"""A micro-batch of a stream to properties of the snapshot that has its rows, and back to whether a table has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import Metadata

_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
"""As Iceberg's own Spark sink calls them (SparkWrite.java, BaseStreamingWrite), so that each knows the other's batches;
the specification names none."""


@dataclass(frozen=True)
class StreamBatch:
    """The number of a batch, which grows, and the id of the query that it is of."""

    query_id: str
    epoch: int

    @property
    def summary(self) -> Mapping[str, str]:
        """What the summary of its snapshot holds."""
        return {_QUERY: self.query_id, _EPOCH: str(self.epoch)}

    def is_committed(self, metadata: Metadata) -> bool:
        """Whether the current snapshot or one before it has this batch of the query, or a later one: the newest of the
        query's counts. Snapshots that have expired are not known."""
        for snapshot in ancestors(metadata, metadata.current_snapshot_id):
            epoch = snapshot.summary.get(_EPOCH)
            number = whole(epoch, None) if isinstance(epoch, str) else None
            if snapshot.summary.get(_QUERY) == self.query_id and number is not None:
                return self.epoch <= number
        return False
