"""Times of the demo's data files: as if each was written when its commit was made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl

import lakeview as lv


def date_files(folder: Path) -> None:
    """Gives each data file of the Delta tables below a folder the time that its log records of it.

    A vacuum keeps files that are younger than the retention, whatever the log says of them: in a lake that was just
    built it would find nothing, while the log's months tell that it will.
    """
    for log in sorted(folder.rglob("_delta_log")):
        table = lv.open_table(str(log.parent))
        for version in table.history()["version"]:
            added = table.commit(version).filter(pl.col("kind") == "add")
            for path, action in added.select("path", "action").iter_rows():
                file = log.parent / path
                if file.exists():  # not vacuumed
                    seconds = json.loads(action)["modificationTime"] / 1000
                    os.utime(file, (seconds, seconds))
