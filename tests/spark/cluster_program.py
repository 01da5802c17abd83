"""What a cluster does with tables: a program whose last line of output is its results as JSON.

    cluster_program.py FOLDER [REMOTE]

Without REMOTE, the address of a Connect server, under spark-submit: the driver is such a server as well, and the
program runs a second time as a client of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import lakeview as lv
from lakeview.model.errors import LakeviewError
from lakeview.spark import DeltaTable, lakeview_errors, session, table, write
from lakeview.spark.dml.jobs import run_parts
from lakeview.spark.pipelines.server import service


def results(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What a write, reads both ways, a merge and a task that fails gave: the same on every kind of cluster."""
    address = str(folder / "numbers")
    numbers = spark.range(0, 100, 1, 2).selectExpr("id", "CAST(id % 3 AS INT) AS part", "CAST(id AS STRING) AS text")
    numbers.write.format("lakeview").mode("append").option("partitionBy", "part").save(address)
    write(numbers, str(folder / "by-spark"), partitionBy="part")
    results_found: dict[str, Any] = {"written": _sums(table(spark, str(folder / "by-spark")))}
    results_found["table"] = [_sums(table(spark, address, where="part = 1", native=native)) for native in (True, False)]
    changes = spark.range(90, 110, 1, 2).selectExpr("id", "CAST(0 AS INT) AS part", "'new' AS text")
    merge = DeltaTable.forPath(spark, address).merge(changes, "target.id = source.id")
    results_found["version"] = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    results_found["changed"] = _sums(table(spark, address), "count_if(text = 'new')")
    first = lv.open_table(address).files()["path"][0]
    (Path(address) / first).rename(folder / "elsewhere")
    results_found["error"] = _error(lambda: table(spark, address, native=False).count())
    return results_found


def executors(spark: SparkSession) -> list[list[str]]:
    """The folders that the Python workers of a job ran in, and the lakeview that each imported."""

    def places(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"folder": [os.getcwd()], "lakeview": [lv.__file__]})

    rows = spark.range(0, 1_000, 1, 4).mapInArrow(places, "folder string, lakeview string").distinct().collect()
    return sorted(list(row) for row in rows)


def with_killed_executors(spark: SparkSession, folder: Path) -> dict[str, list[int]]:
    """What a copy, a stream and an optimize of a table gave, amid each of which one executor was killed: sums, the
    version, and how many data files there are that the table does not name."""
    source, copied, streamed = (str(folder / name) for name in ("source", "copy", "stream"))

    def kill_once(job: str) -> None:
        """End this task's executor, the first time."""
        with suppress(FileExistsError):
            os.close(os.open(folder / f"killed-{job}", os.O_CREAT | os.O_EXCL))
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")  # the executor's child
            os.kill(int(daemon.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)

    def killing(rows: DataFrame, job: str) -> DataFrame:
        """The rows, and an executor that ends amid them."""

        def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                kill_once(job)

        return rows.mapInArrow(pass_on, rows.schema)

    def run_killing(spark: SparkSession, parts: Sequence[Any], do: Callable[[Any], object]) -> list[Any]:
        """`run_parts`, and an executor that ends when it has written a part's files."""

        def do_and_end(part: Any) -> object:
            outcome = do(part)
            kill_once("optimize")
            return outcome

        return run_parts(spark, parts, do_and_end)

    rows = spark.range(0, 100, 1, 2).selectExpr("id", "CAST(id % 3 AS INT) AS part")
    rows.write.format("lakeview").mode("append").save(source)
    killing(table(spark, source), "copy").write.format("lakeview").mode("append").save(copied)
    stream = killing(spark.readStream.format("lakeview").load(source), "stream").writeStream.format("lakeview")
    stream = stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    stream.start(streamed).awaitTermination()
    with patch("lakeview.spark.dml.changes.run_parts", run_killing):
        DeltaTable.forPath(spark, source).optimize().executeCompaction()
    tables = {"copy": copied, "stream": streamed, "optimize": source}
    report = {job: [*_sums(table(spark, address)), *_files(address)] for job, address in tables.items()}
    return {**report, "marks": [len(list(folder.glob("killed-*")))]}


def _files(address: str) -> list[int]:
    """The version of a table, and how many data files there are beside its own."""
    opened = lv.open_table(address)
    return [opened.latest_version, len(list(Path(address).rglob("*.parquet*"))) - opened.files().height]


def by_connect(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What this program gives as a client of the Connect server in this driver's JVM."""
    folder.mkdir()
    command = [sys.executable, __file__, str(folder), f"sc://127.0.0.1:{service(spark).localPort()}"]
    of_driver = ("PYSPARK_GATEWAY", "MASTER")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(of_driver)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def _sums(frame: DataFrame, *more: str) -> list[int]:
    row = frame.selectExpr("count(*)", "sum(id)", "sum(part)", *more).first()
    assert row is not None
    return list(row)


def _error(call: Callable[[], object]) -> str:
    """The class of lakeview's error by which a call fails in a task."""
    try:
        with lakeview_errors():
            call()
    except LakeviewError as error:
        return type(error).__name__
    return "no error"


def main(folder: str, remote: str | None = None) -> None:
    spark = session("cluster", remote=remote)
    report: dict[str, Any] = {"results": results(spark, Path(folder)), "executors": executors(spark)}
    if remote is None:
        report["connect"] = by_connect(spark, Path(folder) / "connect")
        report["killed"] = with_killed_executors(spark, Path(folder))  # last: each new executor imports all again
    sys.stdout.write(json.dumps(report) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
