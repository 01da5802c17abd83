"""Several lakeview writers and one deltalake writer append to one table at once: commits a second, and how fair it is.

    PYTHONPATH=. python benches/bench_contention.py --seconds 40 --writers 6

Fair: no process has fewer than a quarter of the mean number of commits, and the longest wait of any is at most three
times the median wait of the slowest. On a busy machine one writer alone misses that, so that waits are also counted in
commits that others made meanwhile, and the engines judged apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema

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


def waits(engine: str, address: str, seconds: float) -> list[tuple[float, float]]:
    """When each append of one process began and ended, in seconds."""
    append = _lakeview(address) if engine == "lakeview" else _deltalake(address)
    row = pl.DataFrame({"id": [1]})
    with tempfile.TemporaryDirectory() as folder:  # what is imported once is no wait
        lv.create_table(folder, SCHEMA, properties={"delta.checkpointInterval": "1"})
        (_lakeview if engine == "lakeview" else _deltalake)(folder)(row)
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.time() + seconds
    spans = []
    while (start := time.time()) < end:
        append(row)
        spans.append((start, time.time()))
    return spans


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
            except deltalake.exceptions.DeltaError as error:
                if "Expected contiguous commit files" not in str(error):  # its listing may miss one of the newest files
                    raise

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
    spans = [[tuple(each) for each in json.loads(process.communicate()[0])] for process in processes]
    ends = sorted(end for each in spans for _, end in each)
    for engine, each in zip(engines, spans, strict=True):
        took, passed = _seconds(each), [bisect_left(ends, end) - bisect_right(ends, start) for start, end in each]
        print(f"{engine:10} {len(each):5} commits, wait: median {statistics.median(took) * 1000:7.0f} ms, "
              f"worst {max(took) * 1000:7.0f} ms; commits of others: median {statistics.median(passed):3.0f}, "
              f"worst {max(passed):3}")  # fmt: skip
    total = len(ends)
    rows = lv.open_table(address).snapshot().num_records
    print(f"{total} commits, {total / seconds:.1f} a second; {rows} rows in the table; load {os.getloadavg()[0]:.1f}")
    worst = _worst(spans)
    print(f"worst wait {worst:.1f} times the slowest median (at most {MOST_WAIT:g})")
    for name in dict.fromkeys(engines):
        own = _worst([each for engine, each in zip(engines, spans, strict=True) if engine == name])
        print(f"of {name} alone {own:.1f} times its slowest median")
    least = min(map(len, spans)) / statistics.mean(map(len, spans))
    fair = worst <= MOST_WAIT and least >= LEAST_SHARE
    print(f"fewest commits: {least:.2f} of the mean (at least {LEAST_SHARE:g}); {'fair' if fair else 'NOT FAIR'}")


def _seconds(appends: Sequence[tuple[float, float]]) -> list[float]:
    return [end - start for start, end in appends]


def _worst(processes: Sequence[Sequence[tuple[float, float]]]) -> float:
    """The longest wait of all, in medians of the slowest."""
    took = [_seconds(each) for each in processes]
    return max(map(max, took)) / max(map(statistics.median, took))


if __name__ == "__main__":
    main()
