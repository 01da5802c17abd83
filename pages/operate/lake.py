"""Lake: all tables under a root, those that need attention first."""

from __future__ import annotations

from lakeview.app import errors
from lakeview.app.components import card, nothing
from lakeview.app.lake import panels

with errors.messages(here="lake"), card("Tables under a root", panels.NOTE, key="lake-card"):
    root = panels.chosen_root()
    if root is None:
        nothing("No root is named.", "Type a folder or an address above, or build the demo lake.", "start", "Start")
    else:
        found = panels.surveyed(root)
        tables = found.tables()
        if tables.is_empty():
            nothing("No table was found below this root.", "Look one folder up, or at another root.", "start", "Start")
        else:
            panels.progressive(found)
            panels.download(tables)
