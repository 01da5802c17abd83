"""What a commit says about itself: its commitInfo action (delta protocol, Commit Provenance Information)."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import in_commit_start, time_before
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.file_changes import FileChanges
from lakeview.model.clock import Clock
from lakeview.model.snapshot import milliseconds

_OWN_METRICS = frozenset({"DELETE", "UPDATE", "MERGE", "OPTIMIZE", "REORG", "RESTORE", "CONVERT", "CLONE"})
"""Operations that count what they do in words of their own."""

_FILES_OF_ROWS = (
    "numAddedFiles", "numAddedBytes", "numRemovedFiles", "numRemovedBytes", "numCopiedRows", "numAddedChangeFiles",
    "numDeletionVectorsAdded", "numDeletionVectorsUpdated", "numDeletionVectorsRemoved",
)  # fmt: skip
_ALWAYS = {"DELETE": _FILES_OF_ROWS, "UPDATE": _FILES_OF_ROWS}
"""Metrics that other engines record where they are 0, too."""

_COUNT_EVERY_ROW = ("DELETE", "UPDATE", "MERGE")
"""Operations whose metrics account for every row that comes and goes, also where a commit does more than its name
says."""


@dataclass
class Entry:
    """The provenance of one commit. `metrics` are given, `counts` are what its operations did so far; `txn_id` makes
    it known again. `unknown`: metrics that the log does not tell for all of them."""

    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, Any]
    user: str | None
    user_metadata: str | None
    engine: str
    clock: Clock
    counts: dict[str, int] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    _conditions: list[str] = field(default_factory=list)
    _target: dict[str, Any] = field(default_factory=dict)
    txn_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def count(self, metrics: Mapping[str, int]) -> None:
        """Take what an operation did, in the words of operationMetrics: numbers add up to those of others before it."""
        for name, number in metrics.items():
            self.counts[name] = number + (self.counts.get(name, 0) if name.startswith("num") else 0)

    def count_appended(self, records: Sequence[int | None]) -> None:
        """Count the rows of files that a commit appends though its operation is no append; None: unknown."""
        if self.operation in _COUNT_EVERY_ROW:
            rows = None if None in records else sum(n for n in records if n is not None)
            self.count_rows("numTargetRowsInserted", rows)

    def count_removed(self, rows: int | None) -> None:
        """Count the rows of files that it removes whole, as `count_appended`."""
        if self.operation in _COUNT_EVERY_ROW:
            self.count_rows("numDeletedRows", rows)

    def count_rows(self, name: str, rows: int | None) -> None:
        """Add to a metric a number of rows; it is left out where one is unknown (None)."""
        if rows is None:
            self.unknown.add(name)
        else:
            self.count({name: rows})

    def record_condition(self, where: str | pl.Expr | None) -> None:
        """Record which rows a DELETE or an UPDATE is about, unless the caller has: without a predicate it is about all.
        Of several operations in one commit it is that of any."""
        if self.operation in ("DELETE", "UPDATE") and (self._conditions or "predicate" not in self.parameters):
            self._conditions.append("true" if where is None else str(where))
            some = self._conditions if len(self._conditions) == 1 else [f"({c})" for c in self._conditions]
            self.parameters["predicate"] = msgspec.json.encode([" OR ".join(some)]).decode()

    def record_target(self, version: int | None, at: datetime | None) -> None:
        """Record what a RESTORE restores, unless the caller's parameters do; a commit that does more records none."""
        number = None if version is None else int(version)  # one of numpy has no form in JSON
        self._target = {"version": number, "timestamp": None if at is None else at.isoformat()}

    def _restores_alone(self, metrics: Mapping[str, int]) -> bool:
        counts = (self.counts.get("numRestoredFiles"), self.counts.get("numRemovedFiles"))
        return self.operation == "RESTORE" and counts == (metrics["numFiles"], metrics["numRemovedFiles"])

    @cached_property
    def _first_try_time(self) -> int:
        """When the commit was first tried: an attempt that follows another writer's commit has the same bytes."""
        return milliseconds(self.clock())

    def info(
        self,
        *,
        read_version: int,
        blind: bool,
        files: FileChanges,
        in_commit: datetime | None,
        level: str,
        row_ids_kept: bool = False,
    ) -> dict[str, Any]:
        """The commitInfo action: with what its files add up to, in the words of a WRITE, or those that came and went,
        in the words of other operations, for what these count."""
        metrics, whole_files = files.metrics(), files.whole_files()
        has_files = any(metrics.values())  # a change of the definition alone has no metrics in Spark
        counts = dict.fromkeys(_ALWAYS.get(self.operation, ()), 0) | self.counts
        counts |= metrics if has_files and self.operation not in _OWN_METRICS else {}
        if self.operation != "RESTORE":  # which counts files that get another deletion vector
            counts |= {name: number for name, number in whole_files.items() if name in counts}
        counts |= self.metrics
        info: dict[str, Any] = {} if in_commit is None else {"inCommitTimestamp": milliseconds(in_commit)}
        info |= {
            "timestamp": self._first_try_time,
            "operation": self.operation,
            "operationParameters": {**(self._target if self._restores_alone(metrics) else {}), **self.parameters},
            "operationMetrics": {name: str(count) for name, count in counts.items() if name not in self.unknown},
            "readVersion": read_version,
            "isolationLevel": level,
            "isBlindAppend": blind,
            "engineInfo": self.engine,
            "txnId": self.txn_id,
        }
        if row_ids_kept:
            info["tags"] = {"delta.rowTracking.preserved": "true"}
        texts = {"userName": self.user, "userMetadata": self.user_metadata}
        return {**info, **{name: text for name, text in texts.items() if text is not None}}


def next_in_commit_time(log: TableLog, table: Definition | Replay, version: int, now: datetime) -> datetime | None:
    """The time that a commit says it has; None for tables whose commits have that of their file.

    In-Commit Timestamps: "the larger of" now and one millisecond above the previous commit's.
    """
    start = in_commit_start(table.table_protocol, table.properties)
    if start is None:
        return None
    previous = time_before(log, start, version)
    return now if previous is None else max(now, previous + timedelta(milliseconds=1))
