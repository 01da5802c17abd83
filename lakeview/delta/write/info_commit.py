"""What an operation that changes no table has to say, to a commit that holds a commitInfo alone."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lakeview.delta.features import check_writable
from lakeview.delta.log.commits import Commit, encode_actions
from lakeview.delta.log.times import in_commit_start, time_before
from lakeview.delta.write.commit_loop import CommitLoop
from lakeview.delta.write.follow_up import follow_up
from lakeview.delta.write.rules import active_features
from lakeview.delta.write.target import Target
from lakeview.delta.write.writer import ENGINE
from lakeview.model.clock import Clock
from lakeview.model.snapshot import milliseconds


def commit_info(
    table: Target,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, int],
    clock: Clock,
    user: str | None = None,
) -> int:
    """Commit what an operation did, and its user's name; returns the version. It follows every other commit.

    Errors as `CommitLoop.run`, and UnsupportedTableError if another commit made the table one that must not be written.
    """
    base = table.state().version
    unique = str(uuid.uuid4())

    def encode(version: int) -> bytes:
        now, state = clock(), table.state()
        enabled = in_commit_start(state.table_protocol, state.properties)
        info = {
            "timestamp": milliseconds(now),
            "operation": operation,
            "operationParameters": dict(parameters),
            "operationMetrics": {name: str(number) for name, number in metrics.items()},
            "readVersion": base,
            "isolationLevel": "SnapshotIsolation",
            "isBlindAppend": True,
            "engineInfo": ENGINE,
            "txnId": unique,
        }
        if user is not None:
            info["userName"] = user
        if enabled is not None:
            # In-Commit Timestamps: "the larger of" now and one millisecond above the previous commit's
            previous = time_before(table.log, enabled, version)
            own = now if previous is None else max(now, previous + timedelta(milliseconds=1))
            info["inCommitTimestamp"] = milliseconds(own)
        return encode_actions([("commitInfo", info)])

    def follow(winner: Commit) -> None:
        if winner.definition != (None, None):
            state = table.state()
            check_writable(state.table_protocol, active_features(state.metadata), table.storage.root)

    version = CommitLoop(table, unique).run(base, encode, follow)
    table.refresh()
    follow_up(table, version, table.state().properties, clock)
    return version
