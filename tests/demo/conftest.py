"""The demo lake, and a Spark session for short stories."""

from tests.fixtures_demo import demo_lake
from tests.spark.conftest import spark

__all__ = ["demo_lake", "spark"]
