"""Spark: sessions, and `format("lakeview")` for reading and writing tables with it. The only home of pyspark.

What is here loads when it is first used: Spark imports the data source, which lies below, in many processes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakeview.spark.datasource import register
    from lakeview.spark.dml import DeltaTable, IdentityGenerator
    from lakeview.spark.failures import lakeview_errors
    from lakeview.spark.frame_writer import write
    from lakeview.spark.sessions import session
    from lakeview.spark.tables import table

__all__ = ["DeltaTable", "IdentityGenerator", "lakeview_errors", "register", "session", "table", "write"]

_MODULES = {
    "DeltaTable": "dml", "IdentityGenerator": "dml", "lakeview_errors": "failures", "register": "datasource",
    "session": "sessions", "table": "tables", "write": "frame_writer",
}  # fmt: skip
"""No module has the name of what it holds: once imported, it would stand in its place."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lakeview.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lakeview.spark.{_MODULES[name]}"), name)
