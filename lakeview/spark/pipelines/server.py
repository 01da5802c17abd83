"""Where a pipeline runs: a server of Spark Connect that is there, or one inside the JVM of a session of ours."""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from lakeview.model.errors import LakeviewError
from lakeview.spark.pipelines.graph import Answer
from lakeview.spark.sessions import connect, python_path, require_client, session

LATE_WORKER = "slow-python-worker"
"""The kind of the error of a Python worker for which Spark's ten seconds were not enough, on a busy machine."""

ATTEMPTS = 3
"""So often what failed for that reason is done."""

SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}
"""Of a server on the loopback interface, on a port that is free."""

_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable that names the token of a server: command lines are seen by other users. Only the JVM gets it: every
client that finds it in its environment shows it to any server, and wants TLS for it."""


@dataclass(frozen=True)
class Server:
    """A session, for publishing, and the address of a Spark Connect server, for Spark Declarative Pipelines. `log`: the
    file that takes what these print, else it goes to standard error."""

    spark: SparkSession
    url: str
    log: Path | None = None

    def run_flows(self, spec: Path, lock: int, user: str | None = None) -> Answer:
        """Dry run, and run, of a pipeline in a process of its own; its lines go to standard error.

        `lock`: a file descriptor that the process holds open, so that a lock on it outlives ours; `user`: the user name
        of the commits to sinks that give none. A run that failed
        because a worker began too late is repeated: flows go on from their checkpoints. LakeviewError with what Spark,
        or the project's files, had to say.
        """
        answer = self._run(spec, lock, user)
        for _ in range(ATTEMPTS - 1):
            if answer.error is None or answer.kind != LATE_WORKER:
                break
            answer = self._run(spec, lock, user)
        return answer

    def _run(self, spec: Path, lock: int, user: str | None) -> Answer:
        with tempfile.TemporaryDirectory(prefix="lakeview-pipeline-") as folder:
            path = Path(folder) / "answer.json"
            command = [sys.executable, "-m", "lakeview.spark.pipelines.definitions", str(spec), str(path)]
            command += [] if user is None else [f"--user={user}"]
            environment = {**os.environ, "PYTHONPATH": python_path(), "SPARK_REMOTE": self.url}
            environment.pop("MASTER", None)  # of a classic driver, which pyspark refuses beside a server
            environment.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
            output = nullcontext(sys.stderr) if self.log is None else self.log.open("a", encoding="utf-8")
            # its standard input closes when we end, and it ends with us
            with (
                output as lines,
                subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=lines, stderr=lines, pass_fds=[lock]
                ) as process,
            ):
                code = process.wait()
            if path.exists():
                return msgspec.json.decode(path.read_bytes(), type=Answer)
        raise LakeviewError(
            f"the files of the pipeline could not be loaded (exit code {code}); the output above says why",
            fix=f"correct the files that {spec} names",
            place=str(spec),
            kind="pipeline-files",
        )


def local_server(
    app_name: str, warehouse: str, settings: Mapping[str, str], *, log: Path | None = None, **choices: Any
) -> Server:
    """A session in this process whose JVM is a Spark Connect server as well, for this user of this machine alone.

    `warehouse`: a URI. `settings` of Spark, and `choices` of `session`, beside those of the server.
    """
    require_client()
    spark = session(
        app_name,
        extra={**SETTINGS, "spark.sql.warehouse.dir": warehouse, **settings},
        environment={_TOKEN: os.environ.get(_TOKEN) or secrets.token_urlsafe(24)},
        **choices,
    )
    return Server(spark, url(spark), log)


def service(spark: SparkSession) -> Any:
    """The server inside the JVM of a session."""
    assert spark._jvm is not None
    return getattr(getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")


def url(spark: SparkSession) -> str:
    """The address of that server, with the token of its JVM, which may be older than this session. Only under the name
    localhost does pyspark send one without TLS."""
    assert spark._jvm is not None
    token = spark._jvm.java.lang.System.getenv(_TOKEN)
    return f"sc://localhost:{service(spark).localPort()}/" + ("" if token is None else f";token={token}")


def remote_server(url: str) -> Server:
    """A Spark Connect server that is there (`sc://host:port`), which has pyspark's Python and lakeview as we do."""
    return Server(connect("lakeview pipeline", url, {}), url)
