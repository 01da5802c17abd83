"""The live files of a large log, by partition and size: Spark's replay beside the one on one machine.

    PYTHONPATH=. python benches/bench_spark_replay.py [--files 100000 1000000]

Each job runs in a fresh process on a table (`make_tables.py`) with a checkpoint of all its files in parts, and ten
commits after it. Seconds without the start of Spark's session; memory is the peak of the Python process (the driver)
above what it held before. Both have to count the same files and bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import polars as pl

import lakeview as lv
from benches.make_tables import files_table
from benches.memory import peak, settled


def one_machine(address: str) -> tuple[int, int]:
    files = lv.open_table(address).files(columns=["size", "partition"])
    classes = files.group_by("partition", (pl.col("size") // (1 << 20)).alias("class")).agg(
        pl.len(), pl.col("size").sum()
    )
    return int(classes["len"].sum()), int(classes["size"].sum())


def spark(address: str) -> tuple[int, int]:
    from lakeview.spark import replay, session

    found = replay.roll_up(session(short_job=True), address).collect()
    return sum(row.files for row in found), sum(row.bytes for row in found)


ENGINES = {"one machine": one_machine, "spark": spark}


def work(engine: str, address: str) -> None:
    """One job in this process: its cost as a line of JSON."""
    if engine == "spark":
        from lakeview.spark import session

        session(short_job=True).range(1).count()
    before, start = settled(), time.perf_counter()
    found = ENGINES[engine](address)
    print(json.dumps({"seconds": time.perf_counter() - start, "memory": peak() - before, "found": found}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="*", default=[100_000, 1_000_000])
    options = parser.parse_args()
    print("| files | one machine, s | Spark, s | one machine, MB | driver, MB |")
    print("|---|---|---|---|---|")
    for count in options.files:
        address = str(files_table(count, "parts").path)
        cost = {}
        for engine in ENGINES:
            command = [sys.executable, __file__, "--work", engine, address]
            env = {**os.environ, "PYTHONPATH": "."}
            ended = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
            if ended.returncode:
                raise SystemExit(f"{engine}:\n{ended.stderr}")
            cost[engine] = json.loads(ended.stdout.splitlines()[-1])
        if cost["one machine"]["found"] != cost["spark"]["found"]:
            raise SystemExit(f"the two differ: {cost}")
        seconds, memory = ([cost[e][what] for e in ENGINES] for what in ("seconds", "memory"))
        print(
            f"| {count:,} | {seconds[0]:.2f} | {seconds[1]:.2f} | {memory[0] / 2**20:.0f} | {memory[1] / 2**20:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        main()
