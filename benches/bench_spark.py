"""Spark through lakeview beside Spark's own Parquet source on the same files: seconds by turns, in one session.

    PYTHONPATH=. python benches/bench_spark.py [--rows 5000000] [--rounds 5] [--cores 2 1] [--only plain,write] [--cpu]

Each measurement plans again and runs one action. Tables: `plain`; `partitions`, 12 of them; `joined`, 120 partitions
whose values are joined, since folders do not say them exactly; `vectors`, each tenth row deleted. The peer of the last
two is native Parquet with the join that the same answer needs, by file path. `write` is `lakeview.spark.write`.
`python` is `format("lakeview")`. Both sides have to give the same answer before a time counts. With several core
counts, each runs in a process of its own. `--cpu`: seconds of CPU time, of this process, the JVM and Python workers,
where the machine does other work too (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.spark import session, table, write

GOAL_READ, GOAL_JOINED, GOAL_WRITE = 1.5, 1.0, 1.3
TABLES = {
    "plain": (None, GOAL_READ),
    "partitions": (12, GOAL_READ),
    "joined": (120, GOAL_JOINED),
    "vectors": (None, GOAL_JOINED),
}
"""Name to number of partitions, and how many times the peer's seconds a reader may take."""

HEADER = (
    "| task | native, s | lakeview, s | python, s | lakeview / native | goal | reached |\n|---|---|---|---|---|---|---|"
)
Source = Callable[[], DataFrame]
Times = dict[str, dict[str, float]]


def rows_of(spark: SparkSession, rows: int, partitions: int | None) -> DataFrame:
    """So many rows of ten columns, all of which follow from the id; in as many partitions, or in eight parts."""
    frame = spark.range(0, rows, numPartitions=8).select(
        "id",
        (f.col("id") % (partitions or 97)).cast("double" if partitions == 120 else "int").alias("part"),
        (f.col("id") * 7919 % 100_003 / 100).alias("price"),
        (f.col("id") % 1_000).cast("int").alias("quantity"),
        (f.col("id") * 31 % 1_000_003).cast("string").alias("name"),
        f.concat(f.lit("code-"), f.col("id") % 20).alias("code"),
        f.timestamp_seconds(f.col("id") % 31_536_000).alias("at"),
        f.date_add(f.lit("2020-01-01").cast("date"), (f.col("id") % 365).cast("int")).alias("day"),
        (f.col("id") % 3 == 0).alias("flag"),
        (f.col("id") % 1_000_000 / 100).cast("decimal(12,2)").alias("amount"),
    )
    return frame.repartition(8, "part") if partitions else frame


def make(spark: SparkSession, address: Path, rows: int, name: str) -> None:
    """One of TABLES."""
    partitions, _ = TABLES[name]
    writer = rows_of(spark, rows, partitions).write.format("lakeview").mode("append")
    if partitions:
        writer = writer.option("partitionBy", "part")
    if name == "vectors":
        writer = writer.option("delta.enableDeletionVectors", "true")
    writer.save(str(address))
    if name == "vectors":
        opened = lv.open_table(str(address))
        assert isinstance(opened, DeltaTable)
        opened.delete("id % 10 = 3")


def native(spark: SparkSession, address: Path, name: str, facts: Path) -> Source:
    """The same rows by Spark's own Parquet source; `facts`: what it joins, where it has to."""

    def joined() -> DataFrame:
        source = _parquet(spark, address, partitioned=False)
        metadata = source.metadataColumn("_metadata")
        fact_rows = spark.read.parquet(str(facts))
        if name == "joined":
            rows = source.withColumn("path", metadata.getField("file_path"))
            return rows.join(f.broadcast(fact_rows), "path", "left").drop("path")
        rows = source.select(
            "*", metadata.getField("file_path").alias("path"), metadata.getField("row_index").alias("row")
        )
        return rows.join(fact_rows, ["path", "row"], "left_anti").drop("path", "row")

    return joined if name in ("joined", "vectors") else partial(_parquet, spark, address, partitioned=True)


def _parquet(spark: SparkSession, address: Path, *, partitioned: bool) -> DataFrame:
    """The data files below a folder; partition columns from folders' names, if they are asked for."""
    reader = spark.read.option("pathGlobFilter", "*.parquet").option("recursiveFileLookup", not partitioned)
    return reader.parquet(f"file:{address}")


def make_facts(spark: SparkSession, address: Path, name: str, facts: Path) -> None:
    """What native Parquet joins: the partition value of each file, or the positions of deleted rows."""
    if name not in ("joined", "vectors"):
        return
    rows = _parquet(spark, address, partitioned=False)
    path, row = (rows.metadataColumn("_metadata").getField(part) for part in ("file_path", "row_index"))
    if name == "vectors":
        rows = rows.where("id % 10 = 3").select(path.alias("path"), row.alias("row"))
    else:
        rows = rows.select(path.alias("path"), (f.col("id") % 120).cast("double").alias("part")).distinct()
    rows.coalesce(1).write.mode("overwrite").parquet(str(facts))


def _scan(rows: DataFrame) -> object:
    rows.write.format("noop").mode("overwrite").save()
    return None


TASKS: dict[str, Callable[[DataFrame], object]] = {
    "full scan": _scan,
    "count": lambda rows: rows.count(),
    "filter": lambda rows: rows.where("id >= 1000 AND id < 3000 AND quantity < 500").selectExpr("sum(id)").collect(),
    "one column": lambda rows: rows.selectExpr("sum(quantity)").collect(),
    "group by": lambda rows: rows.groupBy("part").agg(f.sum("amount"), f.count("*")).orderBy("part").collect(),
}


def _through_lakeview(spark: SparkSession, address: Path) -> DataFrame:
    return table(spark, str(address))


def _through_python(spark: SparkSession, address: Path) -> DataFrame:
    return spark.read.format("lakeview").load(str(address))


def _run(task: Callable[[DataFrame], object], source: Source, columns: Sequence[str]) -> object:
    return task(source().select(*columns))


def cpu_seconds() -> float:
    """CPU time so far of this process and of all that it, or a child of it, has started."""
    ticks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))  # with children that have ended
    family, size = {os.getpid()}, 0
    while size < len(family):
        size = len(family)
        family |= {process for process, parent in parents.items() if parent in family}
    return sum(ticks[process] for process in family) / os.sysconf("SC_CLK_TCK")


CLOCKS: dict[bool, Callable[[], float]] = {False: time.perf_counter, True: cpu_seconds}


def by_turns(
    sides: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each side. SystemExit if their answers differ."""
    answers = {repr(side()) for side in sides.values()}  # and the first round, which compiles
    if len(answers) != 1:
        raise SystemExit(f"{', '.join(sides)} differ: {answers}")
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        order: Sequence[str] = list(sides)[:: 1 if number % 2 == 0 else -1]
        for name in order:
            start = clock()
            sides[name]()
            seconds[name].append(clock() - start)
    return {name: median(times) for name, times in seconds.items()}


def reading(
    spark: SparkSession, home: Path, rows: int, rounds: int, names: Sequence[str], clock: Callable[[], float]
) -> Times:
    """Seconds of each task on each table, by side."""
    times: Times = {}
    for name in names:
        address, facts = home / name, home / f"{name}-facts"
        if not address.exists():
            make(spark, address, rows, name)
            make_facts(spark, address, name, facts)
        frames: dict[str, Source] = {
            "native": native(spark, address, name, facts),
            "lakeview": partial(_through_lakeview, spark, address),
            "python": partial(_through_python, spark, address),
        }
        columns = frames["lakeview"]().columns
        for title, task in TASKS.items():
            sides = {side: partial(_run, task, source, columns) for side, source in frames.items()}
            times[f"{name}: {title}"] = by_turns(sides, rounds, clock)
    return times


def writing(spark: SparkSession, home: Path, rows: int, rounds: int, clock: Callable[[], float]) -> Times:
    """Seconds to write the rows of the plain table as another one."""
    target = home / "written"

    def by_format(name: str) -> object:
        shutil.rmtree(target, ignore_errors=True)
        rows_of(spark, rows, None).write.format(name).mode("append").save(str(target))
        return None

    def by_lakeview() -> object:
        shutil.rmtree(target, ignore_errors=True)
        write(rows_of(spark, rows, None), str(target))
        return None

    sides: dict[str, Callable[[], object]] = {
        "native": partial(by_format, "parquet"),
        "lakeview": by_lakeview,
        "python": partial(by_format, "lakeview"),
    }
    return {"write": by_turns(sides, rounds, clock)}


def measured(home: Path, rows: int, rounds: int, cores: int, names: Sequence[str], clock: Callable[[], float]) -> Times:
    """All seconds with so many cores, in this process."""
    spark = session("bench", master=f"local[{cores}]", memory="2g")
    times = reading(spark, home, rows, rounds, [name for name in names if name != "write"], clock)
    return times | (writing(spark, home, rows, rounds, clock) if "write" in names else {})


def lines(times: Times) -> list[str]:
    """The rows of the table."""
    rows = []
    for title, seconds in times.items():
        goal = GOAL_WRITE if title == "write" else TABLES[title.partition(":")[0]][1]
        ratio = seconds["lakeview"] / seconds["native"]
        python = seconds.get("python")
        cells = [
            title,
            *(f"{seconds[side]:.2f}" for side in ("native", "lakeview")),
            "" if python is None else f"{python:.2f}",
        ]
        rows.append(f"| {' | '.join(cells)} | {ratio:.2f} | {goal} | {'yes' if ratio <= goal * 1.05 else 'NO'} |")
    return rows


def main() -> None:
    """Measure, print, and compare core counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--only", default=",".join([*TABLES, "write"]))
    parser.add_argument("--home", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    names = options.only.split(",")
    if options.json:
        clock = CLOCKS[options.cpu]
        print(json.dumps(measured(options.home, options.rows, options.rounds, options.cores[0], names, clock)))
        return
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or Path(folder)
        by_cores: dict[int, Times] = {}
        for cores in options.cores:
            command = [
                sys.executable,
                __file__,
                "--json",
                "--cores",
                str(cores),
                "--home",
                str(home),
                "--only",
                options.only,
            ]
            command += [
                "--rows",
                str(options.rows),
                "--rounds",
                str(options.rounds),
                *(["--cpu"] if options.cpu else []),
            ]
            ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ}, text=True)
            by_cores[cores] = json.loads(ended.stdout.splitlines()[-1])
            print(f"\n{options.rows:,} rows, {cores} cores\n")
            print(HEADER)
            print("\n".join(lines(by_cores[cores])), flush=True)
        if len(by_cores) > 1:
            most, least = max(by_cores), min(by_cores)
            print(f"\nfrom {least} to {most} cores, times faster\n\n| task | native | lakeview |\n|---|---|---|")
            for title in by_cores[most]:
                gains = [by_cores[least][title][side] / by_cores[most][title][side] for side in ("native", "lakeview")]
                print(f"| {title} | {' | '.join(f'{gain:.2f}' for gain in gains)} |")


if __name__ == "__main__":
    main()
