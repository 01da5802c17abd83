"""A merge by Spark beside the same result by Spark's own join and Parquet writer: seconds by turns, in one session.

    PYTHONPATH=. python benches/bench_spark_merge.py [--rows 10000000] [--changes 1000000] [--rounds 3] [--cores 2]

Half of the changes replace a row, half are new. `spread`: they touch every file; `recent`: the last ids. The peer joins
target and changes (full outer) and writes all rows again, as a folder of Parquet files needs it. Both have to give the
same rows and sums before a time counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benches.bench_spark import rows_of
from lakeview.spark import DeltaTable, session, table

Answer = tuple[object, ...]


def changes_of(spark: SparkSession, rows: int, changes: int, kind: str) -> DataFrame:
    """So many changes: ids that the target has, and as many that it has not."""
    half = changes // 2
    step = max(rows // half, 1) if kind == "spread" else 1
    first = 0 if kind == "spread" else rows - half
    old = spark.range(half).select((f.lit(first) + f.col("id") * step).alias("id"))
    new = spark.range(rows, rows + half).select("id")
    return old.union(new).select("id", f.lit(-1).alias("quantity"))


def answer_of(rows: DataFrame) -> Answer:
    """What both sides have to agree on."""
    row = rows.selectExpr("count(*)", "sum(id)", "sum(quantity)", "sum(amount)").collect()[0]
    return tuple(row)


def merged(spark: SparkSession, home: Path, changes: DataFrame) -> tuple[float, Answer]:
    """Seconds of lakeview's merge into a copy of the target, and its answer."""
    copy = home / "merged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home / "target", copy, copy_function=os.link)
    start = time.perf_counter()
    target = DeltaTable.forPath(spark, str(copy))
    builder = target.alias("t").merge(changes, "t.id = s.id")
    builder.whenMatchedUpdate(set={"quantity": "s.quantity"}).whenNotMatchedInsert(
        values={"id": "s.id", "quantity": "s.quantity"}
    ).execute()
    return time.perf_counter() - start, answer_of(table(spark, str(copy)))


def rewritten(spark: SparkSession, home: Path, changes: DataFrame) -> tuple[float, Answer]:
    """Seconds of Spark's own join and write, and its answer."""
    start = time.perf_counter()
    target = spark.read.option("pathGlobFilter", "*.parquet").parquet((home / "target").as_uri())
    changed = changes.withColumnRenamed("quantity", "new")
    rows = target.join(changed, "id", "full_outer")
    rows = rows.withColumn("quantity", f.coalesce("new", "quantity")).drop("new")
    rows.write.mode("overwrite").parquet((home / "rewritten").as_uri())
    seconds = time.perf_counter() - start
    return seconds, answer_of(spark.read.parquet((home / "rewritten").as_uri()))


def main() -> None:
    """Prints one row of a table for each kind of changes. SystemExit where the sides differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    spark = session("bench", master=f"local[{options.cores}]", memory="2g")
    print("| changes | native, s | lakeview, s | lakeview / native |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        rows_of(spark, options.rows, None).write.format("lakeview").mode("append").save(str(home / "target"))
        for kind in ("spread", "recent"):
            changes = changes_of(spark, options.rows, options.changes, kind)
            seconds: dict[str, list[float]] = {"native": [], "lakeview": []}
            for _ in range(options.rounds):
                one, expected = rewritten(spark, home, changes)
                other, actual = merged(spark, home, changes)
                if actual != expected:
                    raise SystemExit(f"{kind}: the sides differ: {expected} and {actual}")
                seconds["native"].append(one)
                seconds["lakeview"].append(other)
            native, ours = median(seconds["native"]), median(seconds["lakeview"])
            print(f"| {kind} | {native:.1f} | {ours:.1f} | {ours / native:.2f} |", flush=True)


if __name__ == "__main__":
    main()
