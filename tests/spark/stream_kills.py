"""A stream from table to table whose driver is killed at random moments: no row may be lost, none be there twice.

    python -m tests.spark.stream_kills --seconds 60 --folder build/stream-kills

A process of its own runs the query, Spark and all; its process group gets SIGKILL after a random time, while rows go
on arriving. In the end the query runs to its end once more, and the rows of both tables are compared.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl

import lakeview as lv
from lakeview.delta.table import DeltaTable
from tests.builders.iceberg import IcebergHistory

LONGEST_RUN = 12.0


def rows(first: int, count: int) -> pl.DataFrame:
    return pl.DataFrame({"id": range(first, first + count)}, schema={"id": pl.Int64})


def query(folder: Path, *, to_the_end: bool) -> None:
    """Run the query in this process."""
    from lakeview.spark import session

    stream = session("stream kills", short_job=True).readStream.format("lakeview")
    sink = stream.option("maxFilesPerTrigger", "5").load(str(folder / "source")).writeStream.format("lakeview")
    sink = sink.option("checkpointLocation", str(folder / "checkpoint"))
    trigger = sink.trigger(availableNow=True) if to_the_end else sink.trigger(processingTime="0 seconds")
    trigger.start(str(folder / "target")).awaitTermination()


def start(folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.spark.stream_kills", "--folder", str(folder), "--run", *flags]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--folder", type=Path, default=Path("build/stream-kills"))
    parser.add_argument("--iceberg", action="store_true", help="the stream goes to an Iceberg table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", action="store_true")  # what a process of this program is started with
    parser.add_argument("--to-the-end", action="store_true")
    options = parser.parse_args()
    if options.run:
        query(options.folder, to_the_end=options.to_the_end)
        return
    chance = random.Random(options.seed)
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    source = lv.create_table(str(options.folder / "source"), rows(0, 0).to_arrow().schema)
    assert isinstance(source, DeltaTable)
    if options.iceberg:
        place = options.folder.resolve() / "target"
        IcebergHistory(place, [{"id": 1, "name": "id", "required": False, "type": "long"}], location=str(place))
    end, count, kills = time.monotonic() + options.seconds, 0, 0
    while time.monotonic() < end:
        process = start(options.folder)
        until = time.monotonic() + chance.uniform(6.0, LONGEST_RUN)  # the session alone takes some seconds
        while time.monotonic() < until and process.poll() is None:
            source.append(rows(count, 10))
            count += 10
            with suppress(subprocess.TimeoutExpired):  # rows arrive while the query runs
                process.wait(0.4)
        if process.poll() is not None:
            raise SystemExit(f"the query ended by itself, with {process.returncode}")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    if start(options.folder, "--to-the-end").wait():
        raise SystemExit("the last run of the query failed")
    target = lv.open_table(str(options.folder / "target"))
    ids = target.scan().collect()["id"].sort()
    batches = target.history().height
    if ids.to_list() != list(range(count)):
        twice, missing_ids = ids.len() - ids.n_unique(), count - ids.n_unique()
        raise SystemExit(f"{missing_ids} rows lost and {twice} twice, of {count}, after {kills} kills")
    sys.stdout.write(f"{count:,} rows once each, after {kills} kills and {batches} batches\n")


if __name__ == "__main__":
    main()
