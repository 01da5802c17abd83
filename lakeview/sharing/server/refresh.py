"""An open table to its latest version by now, and what to do where another table has taken its place."""

from __future__ import annotations

from lakeview.delta.sharing import is_replaced
from lakeview.model.errors import CorruptTableError
from lakeview.model.table import Table

ANOTHER_TABLE = "another-table"
"""The kind of a CorruptTableError after which a table has to be opened anew."""


def latest_of(table: Table) -> int:
    """Look for newer versions; the latest. CorruptTableError of the kind above if another table lies there now."""
    look_again(table)
    return table.latest_version


def look_again(table: Table) -> bool:
    """Look for newer versions; whether there are. CorruptTableError as `latest_of`."""
    newer = table.refresh()
    if is_replaced(table):
        raise CorruptTableError(
            f"{table.address} was deleted and recreated since it was opened",
            fix="open it again",
            place=table.address,
            kind=ANOTHER_TABLE,
        )
    return newer
