"""Lake: all tables under a root, those that need attention first."""

from __future__ import annotations

from lakeview.ui import errors, lake
from lakeview.ui.components import card, nothing

with errors.shown(here="lake"), card("Tables under a root", lake.NOTE, key="lake-card"):
    root = lake.chosen_root()
    if root is None:
        nothing("No root is named.", "Type a folder or an address above, or build the demo lake.", "start", "Start")
    else:
        found = lake.surveyed(root)
        tables = found.tables()
        if tables.is_empty():
            nothing("No table was found below this root.", "Look one folder up, or at another root.", "start", "Start")
        else:
            lake.progressive(found)
            lake.download(tables)
