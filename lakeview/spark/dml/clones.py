"""Clones of a Delta table, at the address that Delta's own calls name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeview.delta.table import DeltaTable
from lakeview.model.errors import UnsupportedTableError
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml.catalog import path_of
from lakeview.storage.access import StoreAccess


def clone_table(
    table: DeltaTable, target: str, properties: Mapping[str, str], *, copies: bool, **point: Any
) -> DeltaTable:
    """A shallow clone of the latest version, or of that at `version=` or `at=`, with `properties` besides its own.

    UnsupportedTableError with `copies`: where files would be copied, or take the place of others.
    """
    address = path_of(target) or target
    if copies:
        raise UnsupportedTableError(
            "lakeview clones without copies of the files, and to an address without a table",
            fix="clone to another address with isShallow=True, or write toDF() to it",
            place=address,
            kind="unsupported-clone",
        )
    options = table.storage.options
    table.refresh()
    table.clone(address, properties=properties, storage_options=options, **point)
    return delta_table(address, "changed", "", StoreAccess(options))
