"""One Spark session for the whole run of a test process: starting it costs seconds."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakeview.spark import session
from lakeview.spark.pipelines.server import SETTINGS, url
from lakeview.spark.sessions import python_path
from tests.quick_spark import WORKERS, quick_settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, whose JVM is a Spark Connect server as well."""
    extra = {
        **quick_settings(),
        **SETTINGS,
        "spark.python.daemon.module": "lakeview.spark.daemon",
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(),
    }
    running = session(
        "lakeview tests",
        short_job=True,
        extra=extra,
        environment={"PYTHONPATH": os.pathsep.join([str(WORKERS), python_path()])},
    )
    yield running
    running.stop()


@pytest.fixture
def connect_url(spark: SparkSession) -> str:
    """The address of that server."""
    return url(spark)
