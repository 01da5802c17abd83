"""lakeview: look into a lakehouse table from its log alone.

    import lakeview as lv

    table = lv.open_table("lake/flights")
    table.history()
    table.snapshot(41).files

Importing it is light: readers, views and their libraries load when they are first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from lakeview.model import errors
from lakeview.model.allocator import choose_allocator
from lakeview.model.config import VERSION
from lakeview.model.data_types import Field
from lakeview.model.errors import LakeviewError
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table import Table

if TYPE_CHECKING:
    from lakeview import views
    from lakeview.discovery import convert_to_delta, create_table, find_tables, open_table, scan
    from lakeview.inspection import inspect

choose_allocator()  # before anything loads Arrow

__version__ = VERSION
__all__ = [
    "Field",
    "LakeviewError",
    "Schema",
    "Snapshot",
    "Table",
    "convert_to_delta",
    "create_table",
    "errors",
    "find_tables",
    "inspect",
    "open_table",
    "scan",
    "views",
]

_READERS = ("convert_to_delta", "create_table", "find_tables", "open_table", "scan")


def __getattr__(name: str) -> Any:
    if name == "views":
        return importlib.import_module("lakeview.views")
    if name == "inspect":
        return importlib.import_module("lakeview.inspection").inspect
    if name in _READERS:
        return getattr(importlib.import_module("lakeview.discovery"), name)
    raise AttributeError(f"module 'lakeview' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    """What tab completion offers, and what a misspelt name is compared with: the public names whether they are loaded
    or not, and the packages that are."""
    packages = {name for name, value in globals().items() if getattr(value, "__package__", "").startswith("lakeview.")}
    return sorted({*__all__, "__doc__", "__version__"} | packages)
