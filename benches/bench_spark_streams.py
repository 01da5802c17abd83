"""The latency of a stream's batches: lakeview's source and sink beside Spark's own file source and Parquet sink.

    PYTHONPATH=. python benches/bench_spark_streams.py [--batches 40] [--rows 1000] [--rounds 3] [--cores 2]

A stream takes one file a batch. Four pipelines by turns in one session: each source with each sink. The seconds of a
batch are those that Spark reports (`triggerExecution`), without the first ones, in which Java compiles. All rows
have to arrive before a time counts.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

import lakeview as lv
from benches.bench_spark import rows_of
from lakeview.spark import session, table

LAKEVIEW, NATIVE = "lakeview", "native"
FORMATS = {LAKEVIEW: "lakeview", NATIVE: "parquet"}
FIRST_BATCHES = 5


def source_of(spark: SparkSession, home: Path, batches: int, rows: int) -> None:
    """A Delta table of so many commits of one file each, and a folder with the same files alone."""
    for _ in range(batches):
        rows_of(spark, rows, None).coalesce(1).write.format("lakeview").mode("append").save(str(home / LAKEVIEW))
    (home / NATIVE).mkdir()
    for name in lv.open_table(str(home / LAKEVIEW)).files()["path"]:
        shutil.copy(home / LAKEVIEW / name, home / NATIVE / name)


def latencies(spark: SparkSession, home: Path, source: str, sink: str) -> list[float]:
    """Seconds of each batch of a pipeline after the first ones. SystemExit if rows differ from those of the source."""
    target, checkpoint = home / "target", home / "checkpoint"
    for folder in (target, checkpoint):
        shutil.rmtree(folder, ignore_errors=True)
    schema = spark.read.parquet((home / NATIVE).as_uri()).schema
    reader = spark.readStream.format(FORMATS[source]).option("maxFilesPerTrigger", "1")
    rows = (reader if source == LAKEVIEW else reader.schema(schema)).load(str(home / source))
    writer = rows.writeStream.format(FORMATS[sink]).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(target))
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress.numInputRows > 0]
    arrived = table(spark, str(target)) if sink == LAKEVIEW else spark.read.parquet(target.as_uri())
    source_rows = spark.read.parquet((home / NATIVE).as_uri())
    sums = ("count(*)", "sum(id)", "sum(amount)")
    if arrived.selectExpr(*sums).collect() != source_rows.selectExpr(*sums).collect():
        raise SystemExit(f"{source} to {sink}: the rows that arrived differ from those of the source")
    return [progress.durationMs["triggerExecution"] / 1000 for progress in batches[FIRST_BATCHES:]]


def main() -> None:
    """Prints one row of a table for each source and sink."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    spark = session("bench", master=f"local[{options.cores}]")
    pipelines = [(source, sink) for source in FORMATS for sink in FORMATS]
    seconds: dict[tuple[str, str], list[float]] = {pipeline: [] for pipeline in pipelines}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source_of(spark, home, options.batches, options.rows)
        for number in range(options.rounds):
            for source, sink in pipelines if number % 2 else reversed(pipelines):
                seconds[source, sink] += latencies(spark, home, source, sink)
    native = median(seconds[NATIVE, NATIVE])
    print("| source | sink | median batch, s | slowest, s | median / native |\n|---|---|---|---|---|")
    for (source, sink), times in seconds.items():
        print(f"| {source} | {sink} | {median(times):.3f} | {max(times):.3f} | {median(times) / native:.2f} |")


if __name__ == "__main__":
    main()
