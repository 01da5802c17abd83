"""Spark: sessions, and `format("lakeview")` for reading and writing tables with it. The only home of pyspark."""

from lakeview.spark.datasource import register
from lakeview.spark.dml import DeltaTable
from lakeview.spark.failures import lakeview_errors
from lakeview.spark.session import session
from lakeview.spark.table import table

__all__ = ["DeltaTable", "lakeview_errors", "register", "session", "table"]
