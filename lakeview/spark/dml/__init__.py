"""Changes of rows as Spark jobs: delete, update, merge and optimize, with the commits of the library's transactions."""

from lakeview.spark.dml.table import DeltaTable

__all__ = ["DeltaTable"]
