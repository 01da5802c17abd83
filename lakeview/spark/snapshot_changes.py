"""What snapshots of an Iceberg table change to micro-batches: whole snapshots, with the kind of each change."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lakeview.iceberg.manifests.tree import has_expired_parent
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.table import IcebergTable
from lakeview.model.errors import VersionNotFoundError
from lakeview.spark.change_stream import ChangeReader
from lakeview.spark.reader import FilePartition
from lakeview.spark.stream_branch import StreamBranch
from lakeview.spark.streams import raise_or_log


class SnapshotChangeReader(ChangeReader):
    """Tails what the snapshots of the main branch of an Iceberg table change. Their changes are derived from files and
    deletes, so that the snapshot before the first one that is read has to be there."""

    KIND = "snapshot"

    @cached_property
    def table(self) -> IcebergTable:
        """The table."""
        table = self.options.table()
        assert isinstance(table, IcebergTable)  # the data source asked for its format
        return table

    @cached_property
    def _branch(self) -> StreamBranch:
        return StreamBranch(self.table, fail_on_data_loss=self.options.fail_on_data_loss)

    def _begin(self) -> int:
        entry = self._branch.first(self.options.start)
        if entry is None:
            return self.table.latest_version
        return NO_SNAPSHOT if entry.parent is None else entry.parent

    def _versions(self, before: int, last: int | None) -> Sequence[int]:
        """Errors as `StreamBranch`, and VersionNotFoundError for a snapshot whose parent has expired, unless an option
        says to go on without it."""
        entries = [] if before == last else self._branch.following(before)
        ids = [entry.snapshot_id for entry in entries]
        if last is not None:
            ids = ids[: ids.index(last) + 1] if last in ids else []
        state = self.table.state
        if ids and has_expired_parent(state.metadata, state.tree, entries[0]):
            loss = VersionNotFoundError(
                f"the snapshot before {ids[0]} of {self.table.address} has expired, so that what it changed is not "
                "known",
                fix="start again with a new checkpoint location, or set failOnDataLoss to false to go on without it; "
                "expire snapshots with a retention that is longer than the stream lags behind",
                place=f"snapshot {ids[0]}",
            )
            raise_or_log(loss, fail_on_data_loss=self.options.fail_on_data_loss)
            return ids[1:]
        return ids

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FilePartition]:
        """As of all formats; VersionNotFoundError where the snapshot of an offset was rolled back, or has expired with
        what followed it: then what is left comes with later offsets."""
        begin, stop = self._check_offset(start), self._check_offset(end)
        if stop.version not in (begin.begin_of(stop), *self._ids()):
            self._branch.check_loss(stop.version, f"snapshot {stop.version}")
            return [FilePartition(())]
        return super().partitions(start, end)

    def _is_behind(self, version: int) -> bool:
        ids = self._ids()
        return self._version in ids[ids.index(version) :]

    def _ids(self) -> list[int]:
        return [entry.snapshot_id for entry in self._branch.line]
