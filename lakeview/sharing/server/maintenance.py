"""Tables that the server writes, kept small and quick to open: little files put together, what is old gone.

An audit log that is written once a minute has half a million commits a year, and a view is copied whole for each
version of its table. No row is lost: only files and commits that no version of the last weeks needs are removed.
"""

from __future__ import annotations

import logging
from datetime import timedelta

import polars as pl

from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.delta.properties import retention
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.writer import Clock, discard, write_files
from lakeview.model.errors import CommitConflictError, InvalidRequestError, LakeviewError
from lakeview.rows.parquet import read_task

SMALL_FILES = 64
"""So many small files are put together."""

_SMALL = 8 << 20
_AT_ONCE = 64 << 20
_LOG_KEPT = timedelta(days=30)
_LOG = logging.getLogger("lakeview.sharing.server")


def tend(table: DeltaTable, clock: Clock) -> bool:
    """Put small files together when there are many, and remove what is old; True if something was done.

    A fault only goes to the server's log: another process may be at the same, and the rows are written already.
    """
    try:
        if not _packed(table, clock):
            return False
    except (LakeviewError, OSError) as error:
        _LOG.warning("%s could not be tidied: %s", table.address, error)
        return True
    remove_old(table, clock)
    return True


def remove_old(table: DeltaTable, clock: Clock) -> None:
    """Remove what no version of the last weeks needs. A fault only goes to the server's log. What was listed of the
    table before may be gone: it has to be opened anew."""
    try:
        _without_old_files(table, clock)
        _without_old_commits(table, clock)
    except (LakeviewError, OSError) as error:
        _LOG.warning("%s could not be tidied: %s", table.address, error)


def _packed(table: DeltaTable, clock: Clock) -> bool:
    table.refresh()
    files = table.files(columns=["path", "size", "deletion_vector"])
    small = files.filter((pl.col("size") < _SMALL) & pl.col("deletion_vector").is_null()).sort("size")
    small = small.filter(pl.col("size").cum_sum() <= _AT_ONCE)
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


def _without_old_files(table: DeltaTable, clock: Clock) -> None:
    """Remove data files that no version needs which is younger than the table's retention, a week by default."""
    table.refresh()
    state = table.state()
    before = clock() - retention(state.properties)
    gone = state.removes().select("key", pl.from_epoch("modified", "ms").dt.replace_time_zone("UTC"))
    kept = pl.concat([state.adds([])["key"], gone.filter(pl.col("modified") >= before)["key"]])
    name = pl.col("name")
    old = table.storage.walk().filter(
        name.str.ends_with(".parquet") & ~name.str.starts_with("_") & (pl.col("modified") < before)
    )
    for path in old.filter(~name.is_in(kept.implode()))["name"]:
        table.storage.delete(path)


def _without_old_commits(table: DeltaTable, clock: Clock) -> None:
    """Remove commits and checkpoints before the newest checkpoint that is older than a month."""
    log = table.log.files
    before = clock() - _LOG_KEPT
    complete = pl.Series([c.version for c in table.log.checkpoints()], dtype=pl.Int64)
    old = log.filter(pl.col("modified") < before)
    bases = old.filter(pl.col("version").is_in(complete.implode()) & (pl.col("kind") == "checkpoint"))
    base = bases["version"].max()
    if base is not None:
        for name in old.filter(pl.col("version") < base).sort("version")["name"]:
            table.storage.delete(f"{LOG_FOLDER}/{name}")
