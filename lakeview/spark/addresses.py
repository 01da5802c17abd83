"""An address to the Delta table that is there, or to the reason why Spark cannot do with it what was asked; a table to
what its tasks open its store with."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import NotATableError, UnsupportedTableError
from lakeview.storage.access import NO_OPTIONS, StoreAccess

if TYPE_CHECKING:
    from lakeview.iceberg.table import IcebergTable
    from lakeview.sharing.client.table import SharedTable

    OpenTable: TypeAlias = DeltaTable | IcebergTable | SharedTable


def task_access(table: OpenTable) -> StoreAccess:
    """What tasks open the table's store with; nothing for a share, whose tasks have signed URLs."""
    return StoreAccess.of(table.storage) if hasattr(table, "storage") else NO_OPTIONS


def delta_table(path: str, purpose: str, fix: str, access: StoreAccess = NO_OPTIONS) -> DeltaTable:
    """The Delta table at an address. `purpose`: what is not done with tables of other formats, such as "written".

    NotATableError if there is none, UnsupportedTableError for one of another format.
    """
    table = lv.open_table(path, storage_options=access.options)
    if not isinstance(table, DeltaTable):
        raise unsupported_format(path, table.format, f"Delta tables are {purpose}", fix)
    return table


def find_delta_table(path: str, purpose: str, fix: str, access: StoreAccess = NO_OPTIONS) -> DeltaTable | None:
    """As `delta_table`; None where no table is."""
    try:
        return delta_table(path, purpose, fix, access)
    except NotATableError:
        return None


def unsupported_format(address: str, table_format: str, done: str, fix: str) -> UnsupportedTableError:
    """The error for a table of another format. `done`: what is done with which formats alone, such as "Delta tables are
    written"."""
    return UnsupportedTableError(
        f"the table is {table_format}, and only {done} by lakeview's Spark source",
        fix=fix,
        place=address,
        kind="unsupported-format",
    )
