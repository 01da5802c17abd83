"""The main branch of an Iceberg table as a stream follows it: what comes after a snapshot, and what is gone of it."""

from datetime import datetime

from lakeview.iceberg.manifests.tree import has_expired_parent
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.table import IcebergTable
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.snapshot import milliseconds
from lakeview.spark.streams import raise_or_log


class StreamBranch:
    """Of a table as it was listed last. What has expired before a stream came to it raises VersionNotFoundError, or
    with `fail_on_data_loss` false is logged and passed over; a rollback behind what was read raises it in any case."""

    def __init__(self, table: IcebergTable, *, fail_on_data_loss: bool) -> None:
        self.table = table
        self._fail_on_data_loss = fail_on_data_loss

    @property
    def line(self) -> list[SnapshotEntry]:
        """The snapshots that have not expired, oldest first."""
        return ancestors(self.table.metadata, self.table.latest_version)[::-1]

    @property
    def table_id(self) -> str:
        """The uuid of the table."""
        return str(self.table.metadata.table_uuid)

    def first(self, start: int | datetime | None) -> SnapshotEntry | None:
        """The snapshot that an option names, or the first one of that time or later; None for what comes from now on.
        VersionNotFoundError where the branch has not the one that is named."""
        if not isinstance(start, int):
            since = None if start is None else milliseconds(start)
            return next((entry for entry in self.line if since is not None and entry.timestamp_ms >= since), None)
        for entry in self.line:
            if entry.snapshot_id == start:
                return entry
        raise VersionNotFoundError(
            f"{self.table.address} has no snapshot {start} on its main branch",
            fix="start at a snapshot of the table's history, or with startingTimestamp",
            place="startingVersion",
        )

    def following(self, snapshot: int) -> list[SnapshotEntry]:
        """The snapshots after one that was read, oldest first."""
        line = self.line
        ids = [entry.snapshot_id for entry in line]
        if snapshot in ids:
            return line[ids.index(snapshot) + 1 :]
        # the snapshot itself may have expired since it was read
        rest = [e for i, e in enumerate(line) if (line[i - 1].snapshot_id if i else e.parent) == snapshot]
        if rest:
            return line[ids.index(rest[0].snapshot_id) :]
        if snapshot != NO_SNAPSHOT:
            self.check_loss(snapshot, f"what followed snapshot {snapshot}")
        elif self.has_lost_snapshots():
            self.check_loss(snapshot, "the first snapshot")
        return line

    def has_lost_snapshots(self) -> bool:
        """Whether snapshots before the oldest have expired."""
        line, state = self.line, self.table.state
        return bool(line) and has_expired_parent(state.metadata, state.tree, line[0])

    def check_loss(self, snapshot: int, subject: str) -> None:
        """Errors of a snapshot that is not on the branch; `subject`: what of it, or after it, the stream lacks."""
        entry = self.table.metadata.snapshots.get(snapshot)
        # the branch may have come from the snapshot (from any that has expired), if what lay between has expired: no
        # snapshot lies before a branch that begins with the first one of the table
        if not self.has_lost_snapshots() or (entry and entry.timestamp_ms > self.line[0].timestamp_ms):
            raise VersionNotFoundError(
                f"snapshot {snapshot} of {self.table.address}, which the stream has come to, is no longer on the "
                "main branch: the table was rolled back",
                fix="start again with a new checkpoint location",
                place=f"snapshot {snapshot}",
                kind="rolled-back",
            )
        loss = VersionNotFoundError(
            f"{subject} of {self.table.address} has expired before it was read",
            fix="start again with a new checkpoint location, or set failOnDataLoss to false to go on without it",
            place=f"snapshot {snapshot}",
        )
        raise_or_log(loss, fail_on_data_loss=self._fail_on_data_loss)
