"""An address to the Delta table that is there, or to the reason why Spark cannot do with it what was asked."""

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import UnsupportedTableError


def delta_table(path: str, purpose: str, fix: str) -> DeltaTable:
    """The Delta table at an address. `purpose`: what is not done with tables of other formats, such as "written".

    NotATableError if there is none, UnsupportedTableError for one of another format.
    """
    table = lv.open_table(path)
    if not isinstance(table, DeltaTable):
        raise UnsupportedTableError(
            f"the table is {table.format}, and only Delta tables are {purpose} by lakeview's Spark source",
            fix=fix,
            place=path,
            kind="unsupported-format",
        )
    return table
