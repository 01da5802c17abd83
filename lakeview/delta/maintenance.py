"""Maintenance of the tables that lakeview itself writes: compaction, vacuum and cleanup of the log.

An audit log that is written once a minute has half a million commits a year, and a shared view is copied whole for each
version of its table. No row is lost: only files and commits that no version of the last weeks needs are deleted.
"""

from __future__ import annotations

import logging
from datetime import timedelta

import polars as pl

from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.delta.properties import retention
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.writer import discard, write_files
from lakeview.model.clock import Clock
from lakeview.model.errors import CommitConflictError, InvalidRequestError, LakeviewError
from lakeview.rows.parquet import read_task

SMALL_FILES = 64
"""Compaction starts at so many small files."""

_SMALL = 8 << 20
_MAX_COMPACTION_BYTES = 64 << 20
_LOG_RETENTION = timedelta(days=30)
_LOG = logging.getLogger(__name__)


def maintain(table: DeltaTable, clock: Clock) -> bool:
    """Compact small files when there are many, and then delete old ones; True if something was done.

    An error is only logged: another process may be compacting the same files, and the rows are written already.
    """
    try:
        if not _compact(table, clock):
            return False
    except (LakeviewError, OSError) as error:
        _LOG.warning("%s could not be maintained: %s", table.address, error)
        return True
    delete_old(table, clock)
    return True


def delete_old(table: DeltaTable, clock: Clock) -> None:
    """Delete the files and commits that no version of the last weeks needs. An error is only logged.

    The table has to be opened again: files that it has listed may be gone.
    """
    try:
        _delete_old_files(table, clock)
        _delete_old_commits(table, clock)
    except (LakeviewError, OSError) as error:
        _LOG.warning("%s could not be maintained: %s", table.address, error)


def _compact(table: DeltaTable, clock: Clock) -> bool:
    table.refresh()
    files = table.files(columns=["path", "size", "deletion_vector"])
    small = files.filter((pl.col("size") < _SMALL) & pl.col("deletion_vector").is_null()).sort("size")
    small = small.filter(pl.col("size").cum_sum() <= _MAX_COMPACTION_BYTES)
    if small.height < SMALL_FILES:
        return False
    paths = set(small["path"])
    batches = [b for task in table.tasks() if task.path in paths for b in read_task(task, table.storage)]
    with table.transaction("OPTIMIZE", parameters={"predicate": "[]"}, engine="lakeview share", clock=clock) as txn:
        written = write_files(txn.context(), batches, data_change=False, clock=clock, storage=table.storage)
        try:
            txn.remove(paths=sorted(paths), data_change=False)
            txn.add(written)
            txn.commit()
        except (CommitConflictError, InvalidRequestError):  # another process was first
            discard(written, table.storage)
            raise
    return True


def _delete_old_files(table: DeltaTable, clock: Clock) -> None:
    """Delete data files that only versions beyond the table's retention need, a week by default."""
    table.refresh()
    state = table.state()
    before = clock() - retention(state.properties)
    tombstones = state.removes().select("key", pl.from_epoch("modified", "ms").dt.replace_time_zone("UTC"))
    needed = pl.concat([state.adds([])["key"], tombstones.filter(pl.col("modified") >= before)["key"]])
    name = pl.col("name")
    old = table.storage.walk().filter(
        name.str.ends_with(".parquet") & ~name.str.starts_with("_") & (pl.col("modified") < before)
    )
    for path in old.filter(~name.is_in(needed.implode()))["name"]:
        table.storage.delete(path)


def _delete_old_commits(table: DeltaTable, clock: Clock) -> None:
    """Delete commits and checkpoints before the newest checkpoint that is older than a month."""
    log = table.log.files
    before = clock() - _LOG_RETENTION
    complete = pl.Series([c.version for c in table.log.checkpoints()], dtype=pl.Int64)
    old = log.filter(pl.col("modified") < before)
    bases = old.filter(pl.col("version").is_in(complete.implode()) & (pl.col("kind") == "checkpoint"))
    base = bases["version"].max()
    if base is not None:
        for name in old.filter(pl.col("version") < base).sort("version")["name"]:
            table.storage.delete(f"{LOG_FOLDER}/{name}")
