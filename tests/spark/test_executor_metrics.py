"""Rows pass through executors, never through the driver: what Spark's own metrics say of each kind of work.

The same work is done on few rows and on forty times as many. Bytes that tasks give to the driver, and bytes that the
driver's Python reads, must not grow with the rows, which tasks have read or written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakeview as lv
from lakeview.spark import DeltaTable, table
from lakeview.spark.dml import merge
from lakeview.spark.profile import profile
from tests.builders.iceberg import IcebergHistory

pytestmark = pytest.mark.spark

FEW, MANY = 500, 20_000
ICEBERG_FIELDS = [
    {"id": i, "name": n, "required": False, "type": t} for i, n, t in ((1, "id", "long"), (2, "text", "string"))
]
ROW_BYTES = 100
"""At least so many bytes of a row cannot be compressed away."""


class Metrics(NamedTuple):
    """Of the stages of one piece of work: tasks, bytes of their results for the driver, records that they read from
    files; and bytes that the driver's Python has read from files meanwhile."""

    tasks: int
    result_bytes: int
    input_records: int
    driver_bytes: int


def bytes_read() -> int:
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


def measured(spark: SparkSession, name: str, work: Callable[[], object]) -> Metrics:
    """The metrics of what the work ran, from the store that feeds Spark's web pages."""
    context = spark.sparkContext
    before = bytes_read()
    context.setJobGroup(name, name)
    work()
    context.setJobGroup("", "")
    driver_bytes = bytes_read() - before
    jvm = context._jsc.sc()
    jvm.listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(name)) if job is not None]
    stages = [jvm.statusStore().lastStageAttempt(stage) for job in jobs for stage in set(job.stageIds)]
    assert jobs, "the work ran in another thread, and was not measured"
    return Metrics(
        sum(stage.numCompleteTasks() for stage in stages),
        sum(stage.resultSize() for stage in stages),
        sum(stage.inputRecords() for stage in stages),
        driver_bytes,
    )


def rows_of(spark: SparkSession, count: int, salt: str) -> DataFrame:
    return spark.range(0, count, numPartitions=2).selectExpr(
        "id", f"concat(sha2(concat('{salt}', id), 256), sha2(concat(id, '{salt}'), 256)) AS text"
    )


def every_kind_of_work(spark: SparkSession, folder: Path, count: int) -> dict[str, Metrics]:
    address, iceberg = str(folder / f"rows-{count}"), str(folder / f"iceberg-{count}")
    IcebergHistory(Path(iceberg), ICEBERG_FIELDS, location=iceberg)
    target = DeltaTable.forPath
    source = rows_of(spark, count, "b")
    kinds: dict[str, Callable[[], object]] = {
        "write": lambda: rows_of(spark, count, "a").write.format("lakeview").mode("append").save(address),
        "append to Iceberg": lambda: rows_of(spark, count, "i").write.format("lakeview").mode("append").save(iceberg),
        "read": lambda: table(spark, address).write.format("noop").mode("overwrite").save(),
        "read through Python": lambda: table(spark, address, native=False)
        .write.format("noop").mode("overwrite").save(),
        "optimize": lambda: target(spark, address).optimize().executeCompaction(),
        "update": lambda: target(spark, address).update("id % 2 = 0", {"text": "concat(text, 'u')"}),
        "merge": lambda: target(spark, address)
        .alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
        "profile": lambda: profile(spark, address),
    }  # fmt: skip
    metrics = {kind: measured(spark, f"{kind} of {count}", work) for kind, work in kinds.items()}
    assert lv.scan(address).collect().height == lv.scan(iceberg).collect().height == count
    return metrics


def test_results_of_tasks_do_not_grow_with_the_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the source of a merge is shuffled, as a large one is: a small one goes to all executors through the driver
    monkeypatch.setattr(merge, "BROADCAST_BYTES", 0)
    few, many = (every_kind_of_work(spark, tmp_path, count) for count in (FEW, MANY))
    data = MANY * ROW_BYTES
    for kind, metrics in many.items():
        more_tasks = metrics.tasks / few[kind].tasks
        assert metrics.result_bytes < data / 10, (kind, metrics)
        assert metrics.result_bytes < few[kind].result_bytes * max(more_tasks, 1) * 1.5, (kind, few[kind], metrics)
        assert metrics.driver_bytes < data / 4, (kind, few[kind], metrics)
    for kind in ("read", "profile"):
        assert many[kind].input_records >= MANY, (kind, many[kind])


def test_rows_that_are_collected_are_seen_by_the_metrics(spark: SparkSession) -> None:
    metrics = measured(spark, "collect", lambda: rows_of(spark, MANY, "c").collect())
    assert metrics.result_bytes > MANY * ROW_BYTES / 2
