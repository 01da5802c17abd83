"""An open table to its latest version by now, and what to do where another table has taken its place."""

from lakeview.delta.sharing import is_replaced
from lakeview.model.errors import CorruptTableError
from lakeview.model.table import Table

ANOTHER_TABLE = "another-table"
"""The kind of a CorruptTableError after which a table has to be opened again."""


def look_again(table: Table) -> bool:
    """Look for newer versions; True if there are any. CorruptTableError of the kind above for another table."""
    newer = table.refresh()
    if is_replaced(table):
        raise CorruptTableError(
            f"{table.address} was deleted and recreated since it was opened",
            fix="open it again",
            place=table.address,
            kind=ANOTHER_TABLE,
        )
    return newer
