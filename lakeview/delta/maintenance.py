"""Maintenance of the tables that lakeview itself writes: compaction, vacuum and cleanup of the log.

An audit log that is written once a minute has half a million commits a year, and a shared view is copied whole for each
version of its table. No row is lost: only files and commits that no version of the last weeks needs are deleted.
"""

import logging

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.log_cleanup import clean_log
from lakeview.delta.write.vacuum import vacuum
from lakeview.model.clock import Clock
from lakeview.model.errors import LakeviewError

SMALL_FILES = 64
"""Compaction starts at so many small files."""

_SMALL = 8 << 20
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

    The table has to be opened again: files that it has listed may be gone. No commit says so: versions of the tables
    that lakeview keeps for itself stand for something.
    """
    try:
        vacuum(table, dry_run=False, record=False, clock=clock)
        clean_log(table, dry_run=False, clock=clock)
    except (LakeviewError, OSError) as error:
        _LOG.warning("%s could not be maintained: %s", table.address, error)


def _compact(table: DeltaTable, clock: Clock) -> bool:
    """Pack small files where there are many; false if there are few."""
    table.refresh()
    sizes = table.files(columns=["size"])["size"]
    if (sizes < _SMALL).sum() < SMALL_FILES:
        return False
    with table.transaction("OPTIMIZE", parameters={"predicate": "[]"}, engine="lakeview share", clock=clock) as txn:
        txn.optimize(target_bytes=_SMALL)
    return txn.version is not None
