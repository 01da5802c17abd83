"""One Spark session for the whole run of a test process: starting it costs seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakeview.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("lakeview tests", short_job=True)
    yield running
    running.stop()
