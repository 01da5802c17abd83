"""One core of Spark and two: seconds of a scan and of a merge by turns, in two sessions that run at the same time.

    PYTHONPATH=. python benches/bench_spark_cores.py [--rows 5000000] [--changes 500000] [--rounds 5]

`local[1]` runs one task at a time, `local[2]` two. Threads of the JVM that run no task, and the Python worker of a
task, may use another core in both. Rounds begin with one and the other session by turns. Printed is the median of the
rounds' ratios, with the load of the machine before and after. The sessions have to give the same answers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benches.bench_spark import TASKS as SCANS
from benches.bench_spark import native, rows_of
from benches.bench_spark_merge import Answer, changes_of, merged, rewritten
from lakeview.spark import session, table

CORES = (1, 2)
Task = Callable[[SparkSession, Path, DataFrame], tuple[float, Answer]]


def _scanned(side: str, spark: SparkSession, home: Path, changes: DataFrame) -> tuple[float, Answer]:  # noqa: ARG001 (as a merge)
    target = home / "target"
    start = time.perf_counter()
    rows = table(spark, str(target)) if side == "lakeview" else native(spark, target, "plain", home)()
    SCANS["full scan"](rows)
    return time.perf_counter() - start, (len(rows.columns),)


TASKS: dict[tuple[str, str], Task] = {
    ("full scan", "native"): partial(_scanned, "native"),
    ("full scan", "lakeview"): partial(_scanned, "lakeview"),
    ("merge", "native"): rewritten,
    ("merge", "lakeview"): merged,
}


def work(cores: str, home: Path, rows: int, changes: int) -> None:
    """A session that runs the tasks named on standard input: seconds and answer of each, a line of JSON."""
    spark = session("bench", master=f"local[{cores}]", memory="2g")
    if not (home / "target").exists():
        rows_of(spark, rows, None).write.format("lakeview").mode("append").save(str(home / "target"))
    changed = changes_of(spark, rows, changes, "spread")
    for line in sys.stdin:
        task, side = json.loads(line)
        print(json.dumps(TASKS[task, side](spark, home, changed), default=str), flush=True)


class Worker:
    """A process with a session of so many cores."""

    def __init__(self, cores: int, home: str, rows: int, changes: int) -> None:
        command = [sys.executable, __file__, "--work", str(cores), home, str(rows), str(changes)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, task: tuple[str, str]) -> tuple[float, Any]:
        """Seconds and answer. SystemExit if the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{' by '.join(task)} failed: its process says why above")
        seconds, answer = json.loads(line)
        return seconds, answer

    def end(self) -> None:
        """Let it end, and wait for that."""
        self._process.communicate()


def main() -> None:
    """Prints one row a task and side. SystemExit where answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        workers = {cores: Worker(cores, home, options.rows, options.changes) for cores in CORES[:1]}
        workers[1].run(("full scan", "native"))  # the target is there: the other session finds it
        workers |= {cores: Worker(cores, home, options.rows, options.changes) for cores in CORES[1:]}
        print(f"load before: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")
        print("| task | side | one core, s | two cores, s | one / two |\n|---|---|---|---|---|")
        for task in TASKS:
            seconds: dict[int, list[float]] = {cores: [] for cores in CORES}
            answers = {repr(workers[cores].run(task)[1]) for cores in CORES}  # the first run compiles
            for number in range(options.rounds):
                for cores in CORES[:: 1 if number % 2 == 0 else -1]:
                    spent, answer = workers[cores].run(task)
                    seconds[cores].append(spent)
                    answers.add(repr(answer))
            if len(answers) != 1:
                raise SystemExit(f"{' by '.join(task)}: the sessions differ: {answers}")
            ratio = median(one / two for one, two in zip(seconds[1], seconds[2], strict=True))
            print(
                f"| {' | '.join(task)} | {median(seconds[1]):.2f} | {median(seconds[2]):.2f} | {ratio:.2f} |",
                flush=True,
            )
        print(f"load after: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")
        for worker in workers.values():
            worker.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
