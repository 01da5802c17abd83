"""Spark's classes to one file, as a JVM that has loaded them has them in memory: other JVMs map it, and load less.

    python -m tests.spark.class_archive FILE

A JVM ignores a file that was written with another Java or other jars, and starts without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lakeview.spark import session
from lakeview.spark.gateway import spark_home
from tests.spark.cluster import SETTINGS, java_home
from tests.spark.cluster_program import results

ROOT = Path(__file__).parents[2]


def write(archive: Path) -> None:
    """Runs `program` under `spark-submit`, whose JVM writes the file when it ends; CalledProcessError if it fails."""
    java_options = "spark.driver.extraJavaOptions"
    settings = {**SETTINGS, java_options: f'{SETTINGS[java_options]} "-XX:ArchiveClassesAtExit={archive}"'}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", *words, __file__],
            env={**os.environ, "JAVA_HOME": str(java_home(Path(folder))), **environment},
            capture_output=True,
            check=True,
        )


def program() -> None:
    """What tests do, most of it: so that the classes for it are loaded."""
    spark = session("classes")
    with tempfile.TemporaryDirectory() as folder:
        results(spark, Path(folder))
    spark.stop()


if __name__ == "__main__":
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        program()
    else:
        write(Path(sys.argv[1]).absolute())
