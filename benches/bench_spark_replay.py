"""The live files of a large log, by partition and size, and its next checkpoint: Spark's replay beside the one on one
machine.

    PYTHONPATH=. python benches/bench_spark_replay.py [--files 100000 1000000] [--jobs "roll up" checkpoint]

Each job runs in a fresh process on a table (`make_tables.py`) with a checkpoint of all its files in parts, and ten
commits after it. Seconds without the start of Spark's session; memory is the peak of the Python process (the driver)
above what it held before, and the peak of the JVM, which in local mode has the executors too. Both have to count the
same files and bytes; a checkpoint has the same bytes, and is deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

import lakeview as lv
from benches.make_tables import files_table
from benches.memory import peak, peak_of, settled
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint.parts import PART_BYTES


def one_machine(address: str) -> tuple[int, int]:
    files = lv.open_table(address).files(columns=["size", "partition"])
    classes = files.group_by("partition", (pl.col("size") // (1 << 20)).alias("class")).agg(
        pl.len(), pl.col("size").sum()
    )
    return int(classes["len"].sum()), int(classes["size"].sum())


def spark(address: str) -> tuple[int, int]:
    from lakeview.spark import replay, session

    rows = replay.roll_up(session(short_job=True), address).collect()
    return sum(row.files for row in rows), sum(row.bytes for row in rows)


def one_machine_checkpoint(address: str) -> tuple[int, int]:
    table = delta_table(address)
    return _checkpoint_sum(address, table.checkpoint(parts=_parts(table)))


def spark_checkpoint(address: str) -> tuple[int, int]:
    from lakeview.spark import session
    from lakeview.spark.checkpoint import checkpoint

    parts = _parts(delta_table(address))
    return _checkpoint_sum(address, checkpoint(session(short_job=True), address, parts=parts))


def delta_table(address: str) -> DeltaTable:
    table = lv.open_table(address)
    assert isinstance(table, DeltaTable)
    return table


def _parts(table: DeltaTable) -> int:
    """One for each 32 MB of the last checkpoint, and two at least."""
    return max(2, -(-sum(piece.size for piece in table.state().pieces([])[0]) // PART_BYTES))


def _checkpoint_sum(address: str, version: int) -> tuple[int, int]:
    """How many files of the log the checkpoint of a version is, and a checksum of their bytes."""
    files = sorted(Path(address, "_delta_log").glob(f"{version:020d}.checkpoint.*"))
    checksum = 0
    for file in files:
        checksum = zlib.crc32(file.read_bytes(), checksum)
    return len(files), checksum


JOBS = {
    "roll up": {"one machine": one_machine, "spark": spark},
    "checkpoint": {"one machine": one_machine_checkpoint, "spark": spark_checkpoint},
}
ENGINES = ("one machine", "spark")


def work(job: str, engine: str, address: str) -> None:
    """One job in this process: its cost as a line of JSON."""
    jvm = None
    if engine == "spark":
        from lakeview.spark import session

        started = session(short_job=True)
        started.range(1).count()
        assert started._jvm is not None
        jvm = started._jvm.java.lang.ProcessHandle.current().pid()
    before, start = settled(), time.perf_counter()
    answer = JOBS[job][engine](address)
    seconds, memory = time.perf_counter() - start, peak() - before
    print(
        json.dumps({"seconds": seconds, "memory": memory, "jvm": 0 if jvm is None else peak_of(jvm), "answer": answer})
    )


def cost_of(job: str, engine: str, address: str) -> dict[str, Any]:
    """What a job costs in a process of its own; the log is as before."""
    log = Path(address) / "_delta_log"
    names, hint = set(os.listdir(log)), (log / "_last_checkpoint").read_bytes()
    command = [sys.executable, __file__, "--work", job, engine, address]
    env = {**os.environ, "PYTHONPATH": "."}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    for name in set(os.listdir(log)) - names:
        (log / name).unlink()
    (log / "_last_checkpoint").write_bytes(hint)
    if ended.returncode:
        raise SystemExit(f"{engine}:\n{ended.stderr}")
    cost: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--jobs", nargs="*", choices=JOBS, default=list(JOBS))
    options = parser.parse_args()
    print("| job | files | one machine, s | Spark, s | one machine, MB | driver, MB | JVM, MB |")
    print("|---|---|---|---|---|---|---|")
    for count, job in product(options.files, options.jobs):
        address = str(files_table(count, "parts").path)
        cost = {engine: cost_of(job, engine, address) for engine in ENGINES}
        if cost["one machine"]["answer"] != cost["spark"]["answer"]:
            raise SystemExit(f"the two differ: {cost}")
        seconds, memory = ([cost[e][what] for e in ENGINES] for what in ("seconds", "memory"))
        memory.append(cost["spark"]["jvm"])
        cells = [job, f"{count:,}", *(f"{s:.1f}" for s in seconds), *(f"{m / 2**20:.0f}" for m in memory)]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        main()
