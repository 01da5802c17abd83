"""Changes of Delta tables as Spark jobs, with the commits of the library's transactions."""

from lakeview.spark.dml.table import DeltaTable
from lakeview.spark.dml.table_builder import IdentityGenerator

__all__ = ["DeltaTable", "IdentityGenerator"]
