"""A table's history told in words, as the frames a reader would make of its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.frames import COMMITS, FILES, LIFETIMES, VERSIONS
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata

START = datetime(2025, 12, 1, 4, tzinfo=UTC)
MIB = 1 << 20

FLIGHTS = Schema(
    (
        Field("flight", PrimitiveType("long"), id=1),
        Field("carrier", PrimitiveType("string"), id=2),
        Field("dep_delay", PrimitiveType("integer"), id=3),
        Field("month", PrimitiveType("integer"), id=4),
    )
)


class Story:
    """Tell what happened, commit by commit; then ask for the frames."""

    def __init__(self, *, start: datetime = START, partitioned: bool = True) -> None:
        self.now = start
        self.partitioned = partitioned
        self.version = -1
        self.commits: list[dict[str, Any]] = []
        self.stays: list[dict[str, Any]] = []

    def after(self, **gap: float) -> Story:
        """Let time pass before the next commit."""
        self.now += timedelta(**gap)
        return self

    def append(
        self,
        records: int | None,
        *,
        files: int = 1,
        size: int = 32 * MIB,
        month: int = 1,
        operation: str = "WRITE",
        **more: Any,
    ) -> Story:
        """Add files that share the rows evenly."""
        return self._commit(operation, added=[self._file(records, files, size, month) for _ in range(files)], **more)

    def delete(self, *versions: int, operation: str = "DELETE", **more: Any) -> Story:
        """Remove what these versions added and is still live."""
        return self._commit(operation, removed=[s for s in self._live() if s["added"] in versions], **more)

    def overwrite(self, *versions: int, records: int, size: int = 32 * MIB, month: int = 1, **more: Any) -> Story:
        """Put one file in the place of what these versions added."""
        stays = [s for s in self._live() if s["added"] in versions]
        return self._commit("WRITE", added=[self._file(records, 1, size, month)], removed=stays, **more)

    def refresh(self, records: int) -> Story:
        """Put one file in the place of all there is."""
        stays = self._live()
        return self._commit("WRITE", added=[self._file(records, 1, MIB, 1)], removed=stays)

    def optimize(self, month: int) -> Story:
        """Put one file in the place of all of a month's."""
        stays = [s for s in self._live() if s["month"] == month]
        records = None if any(s["records"] is None for s in stays) else sum(s["records"] for s in stays)
        whole = self._file(records, 1, sum(s["size"] for s in stays), month)
        return self._commit("OPTIMIZE", added=[whole], removed=stays, data_change=False)

    def alter(self, operation: str = "ADD COLUMNS", *, schema_changed: bool = True) -> Story:
        """Change the schema (or something else of the metadata) without files."""
        return self._commit(operation, schema_changed=schema_changed, data_change=False)

    def frame(self) -> pl.DataFrame:
        """COMMITS, newest first."""
        return pl.DataFrame(self.commits[::-1], schema=COMMITS)

    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES."""
        return pl.DataFrame([{k: s[k] for k in LIFETIMES} for s in self.stays], schema=LIFETIMES)

    def versions(self, unreadable: dict[int, str] | None = None) -> pl.DataFrame:
        """VERSIONS, newest first; `unreadable` with its reasons."""
        reasons = unreadable or {}
        rows = [
            (c["version"], c["timestamp"], c["version"] not in reasons, reasons.get(c["version"]))
            for c in self.commits[::-1]
        ]
        return pl.DataFrame(rows, schema=VERSIONS, orient="row")

    def files(self) -> pl.DataFrame:
        """FILES that are live now."""
        live = self._live()
        frame = pl.DataFrame(
            [
                {
                    "path": s["path"],
                    "size": s["size"],
                    "records": s["records"],
                    "deleted_records": 0,
                    "partition_text": f"month={s['month']}" if self.partitioned else None,
                }
                for s in live
            ],
            schema=FILES,
        )
        if not self.partitioned:
            return frame
        months = pl.DataFrame({"month": pl.Series([s["month"] for s in live], dtype=pl.Int32)})
        return frame.with_columns(partition=months.to_struct("partition"))

    def snapshot(self) -> Snapshot:
        """The table as it is now."""
        partition = ("month",) if self.partitioned else ()
        metadata = TableMetadata("memory://flights", "delta", self.version, self.now, FLIGHTS, partition)
        return Snapshot(metadata, frames={"files": self.files()})

    def _live(self) -> list[dict[str, Any]]:
        return [s for s in self.stays if s["removed"] is None]

    def _file(self, records: int | None, files: int, size: int, month: int) -> dict[str, Any]:
        name = f"part-{len(self.stays)}.parquet"
        self.stays.append(
            {
                "path": f"month={month}/{name}" if self.partitioned else name,
                "deletion_vector": None,
                "added": self.version + 1,
                "removed": None,
                "size": size,
                "records": None if records is None else records // files,
                "month": month,
            }
        )
        return self.stays[-1]

    def _commit(
        self,
        operation: str,
        *,
        added: list[dict[str, Any]] | None = None,
        removed: list[dict[str, Any]] | None = None,
        data_change: bool = True,
        schema_changed: bool = False,
        user: str | None = None,
        engine: str | None = "Apache-Spark/4.3.0",
    ) -> Story:
        self.version += 1
        new, stays_removed = added or [], removed or []
        for stay in stays_removed:
            stay["removed"] = self.version
        self.commits.append(
            {
                "version": self.version,
                "position": self.version,
                "parent": self.version - 1 if self.version else None,
                "timestamp": self.now,
                "timestamp_source": "file",
                "operation": operation,
                "engine": engine,
                "user": user,
                "files_added": len(new),
                "files_removed": len(stays_removed),
                "bytes_added": sum(s["size"] for s in new),
                "bytes_removed": sum(s["size"] for s in stays_removed),
                "records_added": _sum(new),
                "records_removed": _sum(stays_removed),
                "schema_changed": schema_changed,
                "protocol_changed": False,
                "data_change": data_change and bool(new or stays_removed),
            }
        )
        self.now += timedelta(hours=1)
        return self


def _sum(stays: list[dict[str, Any]]) -> int | None:
    return None if any(s["records"] is None for s in stays) else sum(s["records"] for s in stays)


def flights() -> Story:
    """A year of a table: loads every five days, a bad load taken back, a late month, compactions, many small files."""
    story = Story()
    for load in range(60):
        month = load // 5 + 1
        if load == 14:
            story.after(hours=2).alter("ADD COLUMNS")
        if load == 33:
            story.after(hours=2).append(4_120_000, files=3, size=190 * MIB, month=month, user="spark-batch")
            story.after(days=3).delete(story.version, user="li@ops")
        if load in (25, 50):
            story.after(hours=3).optimize(month - 1)
        if load == 40:
            story.after(hours=3).alter("RENAME COLUMN")
        if month == 9:  # arrives late, all at once
            story.after(days=5)
            continue
        if load == 54:
            story.append(5_700_000, files=4, size=200 * MIB, month=9)
        rows = 1_180_000 + (load * 7919 % 13 - 6) * 20_000
        story.after(days=5).append(rows, files=2, size=90 * MIB, month=month, user="spark-batch")
    for _ in range(6):
        story.after(hours=6).append(36_000, files=60, size=290_000, month=12, user="flink-ingest")
    return story
