"""lakeview: look into a lakehouse table from its log alone.

    import lakeview as lv

    table = lv.open_table("lake/flights")
    table.history()
    table.snapshot(41).files

Importing it is light: readers, views and their libraries load when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lakeview import errors
from lakeview.config import VERSION
from lakeview.errors import LakeviewError
from lakeview.schema import Field, Schema
from lakeview.snapshot import Snapshot
from lakeview.table import Table

if TYPE_CHECKING:
    from lakeview import views
    from lakeview.discovery import create_table, find_tables, open_table

__version__ = VERSION
__all__ = [
    "Field",
    "LakeviewError",
    "Schema",
    "Snapshot",
    "Table",
    "create_table",
    "errors",
    "find_tables",
    "open_table",
    "views",
]

_READERS = ("create_table", "find_tables", "open_table")


def __getattr__(name: str) -> Any:
    if name == "views":
        return importlib.import_module("lakeview.views")
    if name in _READERS:
        return getattr(importlib.import_module("lakeview.discovery"), name)
    raise AttributeError(f"module 'lakeview' has no attribute {name!r}")
