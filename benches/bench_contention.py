"""Several lakeview writers and one deltalake writer append to one table at once: commits a second, and how fair it is.

    PYTHONPATH=. python benches/bench_contention.py --seconds 40 --writers 6

Fair: no process has fewer than a quarter of the mean number of commits, and the longest wait of any is at most three
times the median wait of the slowest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.schema import Field, PrimitiveType, Schema

MOST_WAIT, LEAST_SHARE = 3.0, 0.25
SCHEMA = Schema((Field("id", PrimitiveType("long")),))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--writers", type=int, default=6, help="of lakeview; one of deltalake beside them")
    parser.add_argument("--write", metavar="ENGINE")  # what a process of this bench is started with
    parser.add_argument("--address")
    options = parser.parse_args()
    if options.write:
        print(json.dumps(waits(options.write, options.address, options.seconds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "table")
        lv.create_table(address, SCHEMA)
        report(address, options.writers, options.seconds)


def waits(engine: str, address: str, seconds: float) -> list[float]:
    """Seconds that each append of one process took."""
    append = _lakeview(address) if engine == "lakeview" else _deltalake(address)
    row = pl.DataFrame({"id": [1]})
    with tempfile.TemporaryDirectory() as folder:  # what is imported once is no wait
        lv.create_table(folder, SCHEMA, properties={"delta.checkpointInterval": "1"})
        (_lakeview if engine == "lakeview" else _deltalake)(folder)(row)
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.time() + seconds
    found = []
    while (start := time.time()) < end:
        append(row)
        found.append(time.time() - start)
    return found


def _lakeview(address: str) -> Any:
    table = lv.open_table(address)
    assert isinstance(table, DeltaTable)
    return table.append


def _deltalake(address: str) -> Any:
    import deltalake

    def append(row: pl.DataFrame) -> None:
        while True:
            try:
                return deltalake.write_deltalake(address, row.to_arrow(), mode="append")
            except deltalake.exceptions.CommitFailedError:  # it gives up after 15 tries: the wait goes on
                continue

    return append


def report(address: str, writers: int, seconds: float) -> None:
    """Start the processes; print what each did, and whether it was fair."""
    engines = ["lakeview"] * writers + ["deltalake"]
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--write", engine, "--address", address, "--seconds", str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for engine in engines
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "a writer did not start"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found: list[list[float]] = [json.loads(process.communicate()[0]) or [seconds] for process in processes]
    for engine, each in zip(engines, found, strict=True):
        print(f"{engine:10} {len(each):5} commits, wait: median {statistics.median(each) * 1000:7.0f} ms, "
              f"worst {max(each) * 1000:7.0f} ms")  # fmt: skip
    counts = [len(each) for each in found]
    total = sum(counts)
    rows = lv.open_table(address).snapshot().num_records
    worst = max(max(each) for each in found)
    slowest = max(statistics.median(each) for each in found)
    least = min(counts) / statistics.mean(counts)
    fair = worst <= MOST_WAIT * slowest and least >= LEAST_SHARE
    print(f"{total} commits, {total / seconds:.1f} a second; {rows} rows in the table")
    print(f"worst wait {worst:.2f} s, {worst / slowest:.1f} times the slowest median (at most {MOST_WAIT:g})")
    ours = [each for engine, each in zip(engines, found, strict=True) if engine == "lakeview"]
    own = max(max(each) for each in ours) / max(statistics.median(each) for each in ours)
    print(f"of lakeview's alone {own:.1f} times their slowest median")
    print(f"fewest commits: {least:.2f} of the mean (at least {LEAST_SHARE:g}); {'fair' if fair else 'NOT FAIR'}")


if __name__ == "__main__":
    main()
