"""Spark Connect: the address of a server to a session of its own kind, which has no JVM in reach."""

import os
from collections.abc import Mapping
from importlib.util import find_spec

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakeview.model.errors import InvalidRequestError, MissingExtraError
from lakeview.spark.datasource import register

_PACKAGES = ("grpc", "grpc_status", "google.rpc")


def connect(app_name: str, remote: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a Spark Connect server (`sc://host:port`), with these SQL settings and `format("lakeview")`.

    The server's Python needs lakeview, and the server's machine the files: tables are planned here, and read there, by
    the same paths. MissingExtraError without the client's packages, InvalidRequestError where this Python has a classic
    session: pyspark's functions serve one of the two.
    """
    require_client()
    if SparkContext._active_spark_context is not None:
        raise InvalidRequestError(
            "this Python has a classic Spark session, and pyspark's functions serve one kind of session",
            fix="connect in another Python process",
            place=remote,
            kind="classic-session",
        )
    # the master of a classic driver that started this process: pyspark refuses a remote beside it
    os.environ.pop("MASTER", None)
    spark = SparkSession.builder.appName(app_name).config(map=dict(settings)).remote(remote).getOrCreate()
    register(spark)
    return spark


def require_client() -> None:
    """MissingExtraError without the packages of a client of Spark Connect."""
    missing = [name for name in _PACKAGES if not _is_there(name)]
    if missing:
        raise MissingExtraError(
            f"Spark Connect needs {', '.join(missing)}, which this Python does not have",
            fix="pip install 'lakeview[spark]'",
        )


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False
