"""Where Spark looks for a data source that no session has registered: in packages whose names begin with `pyspark_`."""

from lakeview.spark.datasource import LakeviewDataSource as DefaultSource

__all__ = ["DefaultSource"]
