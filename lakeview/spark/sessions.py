"""Sessions: a few choices to a SparkSession, classic or Connect, with the settings that readers and writers need."""

import atexit
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakeview.model.errors import InvalidRequestError, LakeviewError, MissingExtraError
from lakeview.spark.datasource import register
from lakeview.spark.gateway import Gateway, start_gateway
from lakeview.spark.java import find_java

# Local work has two to a few cores; Spark's own default of 200 shuffle partitions is for clusters.
_SHUFFLE_PARTITIONS = 4

# One at most: pyspark remembers the first JVM of a Python for good.
_gateways: list[Gateway] = []
_starting = threading.Lock()


# What spark-submit's own options say.
_OF_SUBMIT = ("spark.master", "spark.driver.", "spark.ui.")
_PORT = "PYSPARK_GATEWAY_PORT"

# Quick compilation and a collector without threads: a job of a minute on two cores takes a fifth less time. What is
# compiled fills the 48 MB there are for it by default within two minutes, and what comes then is interpreted.
_SHORT_JOB = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=192m", "-XX:+UseSerialGC")

_PACKAGES = ("grpc", "grpc_status", "google.rpc")


def settings(
    *,
    master: str = "local[2]",
    memory: str = "1g",
    shuffle_partitions: int = _SHUFFLE_PARTITIONS,
    short_job: bool = False,
) -> dict[str, str]:
    """Spark's settings for a lakeview session; each differs from Spark's default for the reason beside it."""
    local = master.startswith("local")
    log_configuration = Path(__file__).with_name("log4j2.properties").absolute().as_uri()
    java_options = [f"-Dlog4j2.configurationFile={log_configuration}", *(_SHORT_JOB if short_job else ())]
    return {
        "spark.master": master,
        "spark.driver.memory": memory,
        # Loopback only: the driver otherwise listens on the address of the machine's name, as executors elsewhere need.
        **({"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"} if local else {}),
        # Spark gives a task one core; polars would take them all in every worker.
        "spark.executorEnv.POLARS_MAX_THREADS": os.environ.get("POLARS_MAX_THREADS", "1"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Timestamps are instants in UTC in every table format; the default is the machine's zone.
        "spark.sql.session.timeZone": "UTC",
        # INT96, the default, has no statistics and overflows in readers that convert it to nanoseconds.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # Listing by a job costs a second and more; by the driver, a tenth of a millisecond a file.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        # Two attempts of one task at the same time would only leave orphan files.
        "spark.speculation": "false",
        "spark.driver.extraJavaOptions": " ".join(java_options),
    }


def session(
    app_name: str = "lakeview",
    *,
    master: str = "local[2]",
    memory: str = "1g",
    shuffle_partitions: int = _SHUFFLE_PARTITIONS,
    short_job: bool = False,
    java: str | Path | None = None,
    extra: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    remote: str | None = None,
    own_group: bool = True,
) -> SparkSession:
    """A session with `format("lakeview")` registered; the running one if this Python already has one.

    `memory` is the driver's heap (with a local master: everyone's), fixed once the JVM runs. `java` is a Java home or
    executable, see `find_java`. `short_job` tunes the JVM for a run of a minute or two. `extra` adds to or replaces the
    settings; `environment` adds to the JVM's variables, fixed like its heap. The start sets variables of this process
    too, as pyspark does: native code that reads one meanwhile, in another thread, may crash. Under spark-submit, which
    brings its own JVM, that one is used, with the master, memory and Python that it was given. `remote`: the address of
    a Spark Connect server (`sc://host:port`), which has all of these already. `own_group` false leaves the JVM in the
    process group of this Python, as `start_gateway` says. Raises MissingExtraError without a usable
    Java (for `remote`: without Spark Connect's packages), LakeviewError when the JVM does not start,
    InvalidRequestError for a `remote` where this Python has a classic session.
    """
    spark_settings = settings(master=master, memory=memory, shuffle_partitions=shuffle_partitions, short_job=short_job)
    is_submitted = _PORT in os.environ
    if is_submitted:
        spark_settings = {n: v for n, v in spark_settings.items() if not n.startswith(_OF_SUBMIT)}
    spark_settings.update(extra or {})
    # pyspark imports pandas for its own checks and warns about its version; lakeview hands Spark no pandas frames.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    if remote is not None:
        return connect(app_name, remote, {n: v for n, v in spark_settings.items() if n.startswith("spark.sql.")})
    # Workers are started by the JVM: they need this interpreter, and lakeview where it is not installed.
    variables = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": python_path(),
        "POLARS_MAX_THREADS": os.environ.get("POLARS_MAX_THREADS", "1"),
        **(environment or {}),
    }
    builder = SparkSession.builder.appName(app_name).config(map=dict(spark_settings))
    # It repeats on standard error, as JSON, the exception that is raised anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    with _starting:
        if master.startswith("local") and not is_submitted:
            os.environ["PYSPARK_PYTHON"] = sys.executable
        else:  # executors elsewhere may have theirs in another folder
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = SparkSession.getActiveSession()
        if spark is None and not is_submitted:
            gateway = _gateway_for(java, spark_settings, variables, own_group=own_group)
            with gateway.announce():
                spark = builder.getOrCreate()
            atexit.register(_end, spark, gateway)
        elif spark is None:
            spark = builder.getOrCreate()
    register(spark)
    return spark


def jvm_has_ended() -> bool:
    """True if the JVM that this Python started has ended: no session can be made here any more."""
    return bool(_gateways) and _gateways[0].process.poll() is not None


def _gateway_for(
    java: str | Path | None, settings: Mapping[str, str], environment: Mapping[str, str], *, own_group: bool
) -> Gateway:
    if not _gateways:
        _gateways.append(start_gateway(find_java(java), settings, environment, own_group=own_group))
    elif jvm_has_ended():
        raise LakeviewError("the JVM of Spark has ended, and one Python can start only one", fix="start Python again")
    return _gateways[0]


def _end(spark: SparkSession, gateway: Gateway) -> None:
    """Stop Spark before its JVM, and the talk between them: py4j's thread that gives objects back to the JVM complains
    about one that is going."""
    if gateway.process.poll() is None:
        spark.stop()
        if SparkContext._gateway is not None:
            SparkContext._gateway.shutdown()
    gateway.close()


def python_path() -> str:
    """PYTHONPATH of the workers: the folder that holds lakeview, then what was there."""
    spec = find_spec("lakeview")
    assert spec is not None
    assert spec.origin is not None
    ours = str(Path(spec.origin).parent.parent)
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([ours, before]) if before else ours


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
