"""What is due after a commit: a version checksum, a checkpoint, and the cleanup of the log where the table wants it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from lakeview.delta.properties import value
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.checksum import write_checksum
from lakeview.delta.write.log_cleanup import clean_log
from lakeview.delta.write.target import Target
from lakeview.model.clock import Clock
from lakeview.model.errors import LakeviewError


def follow_up(
    table: Target, version: int, properties: Mapping[str, str], clock: Clock, *, reconciled: bool = True
) -> str | None:
    """Do what is due after the commit of a version; returns what failed of it: the commit is made, and the next
    checkpoint is due in a few commits. `reconciled`: as `write_checksum`."""
    every: int = value(properties, "delta.checkpointInterval") or 10
    try:
        table.refresh()
        if table.log.has_checksum(version - 1):  # a chain that some engine began goes on
            write_checksum(table, version, reconciled=reconciled)
        if version % every == 0:
            write_checkpoint(table, version)
            if value(properties, "delta.enableExpiredLogCleanup"):
                clean_log(table, dry_run=False, clock=clock)
    except (LakeviewError, OSError, ValueError, TypeError, pa.ArrowException, pl.exceptions.PolarsError) as error:
        return str(error)
    return None
