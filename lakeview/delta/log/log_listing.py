"""The log's folder to LOG_FILES: what the log itself takes in the store."""

from __future__ import annotations

import polars as pl

from lakeview.delta.log.checkpoints import SIDECARS
from lakeview.delta.log.table_log import TableLog
from lakeview.model.frames import LOG_FILES

_KINDS = {"commit": "commit", "checkpoint": "checkpoint", "part": "checkpoint", "v2": "checkpoint"}


def listed_log(log: TableLog) -> pl.DataFrame:
    """LOG_FILES, by name. One listing that the log has made already, and one of the sidecars if a checkpoint may have
    any."""
    files = log.files
    found = files.with_columns(pl.col("kind").replace_strict(_KINDS, default="other")).select(LOG_FILES.names())
    if "v2" not in files["kind"]:
        return found.cast(LOG_FILES)
    sidecars = log.storage.list_from(SIDECARS).select(
        "name", pl.lit("checkpoint").alias("kind"), pl.lit(None, pl.Int64).alias("version"), "size", "modified"
    )
    return pl.concat([found, sidecars]).cast(LOG_FILES)
