"""The state of a table at a version to its version checksum file (today's protocol, Version Checksum File)."""

from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.actions import AddFile, Metadata
from lakeview.delta.log.commits import Commit, without_nulls
from lakeview.delta.log.paths import LOG_FOLDER, checksum_name
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import in_commit_start
from lakeview.delta.write.rules import check_may_write
from lakeview.delta.write.target import Target
from lakeview.model.errors import AccessDeniedError, UnsupportedTableError

CHEAP_BYTES = 1 << 20
"""A log of so many bytes is replayed where the checksum of the version before is not there."""


class _Totals(msgspec.Struct, frozen=True, rename="camel"):
    """What the checksum of an earlier version counts."""

    table_size_bytes: int
    num_files: int
    metadata: Metadata


def write_checksum(
    table: Target, version: int | None = None, *, is_reconciled: bool = False, replay: bool = False
) -> bool:
    """Write `<version>.crc` of a committed version, the latest without one; true if there is one of ours now.

    One that is there is never replaced. Every number is exact, or no file is written: they come from the checksum of
    the version before and the commit's own actions if the caller knows that these are reconciled (`is_reconciled`: what
    the commit adds was not live before it, and what it removes was, as with our transactions); else from the files of
    the state, if its log is small or the caller allows a whole `replay`. UnsupportedTableError where this version, or
    the latest, asks more of writers than is implemented.
    """
    check_may_write(table, [] if version is None else [version])
    state = table.state(version)
    commit = table.log.commit(state.version)
    totals = _following(table, state, commit) if is_reconciled else None
    if totals is None and (replay or _is_small(table, state)):
        totals = _totals(state.adds(["size"])["size"])
    if totals is None:
        return False
    try:
        table.storage.put_if_absent(f"{LOG_FOLDER}/{checksum_name(state.version)}", _encode(state, commit, totals))
    except FileExistsError:
        return False
    return True


def _following(table: Target, state: Replay, commit: Commit) -> tuple[int, int] | None:
    """Files and bytes from the checksum of the version before; None where it is not there or a size is unknown."""
    try:
        data = table.storage.read(f"{LOG_FOLDER}/{checksum_name(state.version - 1)}")
        before = msgspec.json.decode(data, type=_Totals)
    except (FileNotFoundError, AccessDeniedError, UnsupportedTableError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if before.num_files < 0 or before.table_size_bytes < 0 or before.metadata.id != state.metadata.id:
        return None
    files, size = before.num_files, before.table_size_bytes
    for action in commit.files:
        if action.size is None or action.size < 0:
            return None
        sign = 1 if isinstance(action, AddFile) else -1
        files, size = files + sign, size + sign * action.size
    return (files, size) if files >= 0 and size >= 0 else None


def _is_small(table: Target, state: Replay) -> bool:
    segment = state.segment
    size = sum(segment.checkpoint.sizes) if segment.checkpoint is not None else 0
    for version in reversed(segment.commits):
        size += table.log.size(version) or 0
        if size > CHEAP_BYTES:
            return False
    return size <= CHEAP_BYTES


def _totals(sizes: pl.Series) -> tuple[int, int] | None:
    if sizes.null_count() or bool((sizes < 0).any()):
        return None
    return sizes.len(), sum(sizes.to_list())


def _encode(state: Replay, commit: Commit, totals: tuple[int, int]) -> bytes:
    info = commit.info
    # "Present if and only if In-Commit Timestamps are enabled": a commit may carry one all the same
    is_timed = in_commit_start(state.table_protocol, state.properties) is not None
    fields: dict[str, Any] = {
        "txnId": info.txn_id,
        "tableSizeBytes": totals[1],
        "numFiles": totals[0],
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": info.in_commit_timestamp if is_timed else None,
        "metadata": without_nulls(msgspec.to_builtins(state.metadata)),
        "protocol": without_nulls(msgspec.to_builtins(state.protocol)),
    }
    return msgspec.json.encode(without_nulls(fields))
