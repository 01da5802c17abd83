"""Builds the demo lake: the story's steps, one after the other, in a folder that is whole or not there.

Delta tables through Spark, two of them by a pipeline, and one by lakeview's own transactions; two Iceberg tables
through Spark too, with pyiceberg for what lakeview does not write; all of the same data.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from threading import Event

import polars as pl

import lakeview as lv
from lakeview.demo.calendar import Calendar
from lakeview.demo.lake import Lake
from lakeview.demo.pipeline import settle_pipeline, write_pipeline
from lakeview.demo.place import built_beside
from lakeview.demo.source import read_airlines, read_flights, to_spark
from lakeview.demo.story import full_story
from lakeview.model.errors import InvalidRequestError, MissingExtraError
from lakeview.spark.pipelines.server import local_server

Progress = Callable[[str], None]

# Small jobs one after the other: planning again while they run costs more than it saves, and most of what a worker does
# is to import.
_SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.python.daemon.module": "lakeview.spark.daemon"}


def build(path: str | Path, *, now: datetime, progress: Progress = lambda _: None) -> Path:
    """Build the demo lake at `path` and return it. Its data and its story end on the day before `now`,
    an aware datetime: see Calendar.

    `progress` gets a line for each step. Nothing is left behind when it fails. Raises InvalidRequestError when
    something lies at `path`, MissingExtraError without the data package, pyiceberg or a Java for Spark.
    """
    if now.tzinfo is None:
        raise InvalidRequestError(f"{now} has no zone", fix="give an aware datetime")
    place = Path(path).absolute()
    start = time.perf_counter()

    def say(line: str) -> None:
        progress(f"[{time.perf_counter() - start:5.1f} s] {line}")

    with built_beside(place) as folder, tempfile.TemporaryDirectory(prefix="lakeview-demo-") as scratch:
        calendar = Calendar.at(now)
        _check_extra()
        steps = full_story(calendar)
        numbers, total = count(1), len(steps) + 3

        given_up = Event()

        def write(name: str, commits: Iterator[None]) -> None:
            for _ in chain([None], commits):
                if given_up.is_set():
                    return
            say(f"{next(numbers):2}/{total} {name}: written")

        # what this process does while Spark is at work in its own
        with ThreadPoolExecutor(max_workers=1) as thread, ExitStack() as at_end:
            at_end.callback(given_up.set)
            say("starting Spark")
            server = local_server(
                "lakeview demo",
                (Path(scratch) / "warehouse").as_uri(),
                _SETTINGS,
                log=Path(scratch) / "pipeline.log",
                short_job=True,
                shuffle_partitions=2,
            )
            # not before: a start sets variables of this process, and native code that reads one meanwhile may crash
            flights = thread.submit(read_flights, calendar.shift)
            # half a second that only a build has to take
            from lakeview.demo.claims import write_claims
            from lakeview.demo.iceberg import iceberg_tables

            tables = [("claims", write_claims(folder, calendar))]
            tables += iceberg_tables(server.spark, place, folder, calendar)
            writes = [thread.submit(write, name, commits) for name, commits in tables]
            source = to_spark(server.spark, flights.result(), Path(scratch))
            say(f"{flights.result().height:,} flights read")
            lake = Lake(folder, server, source, write_pipeline(folder))
            lake.write_airlines(read_airlines(server.spark), steps[0].at)
            say("airlines: written")
            for step in steps:
                done = lake.take(step)
                say(f"{next(numbers):2}/{total} {done}")
            for other in writes:
                other.result()
        date_files(folder)
        settle_pipeline(folder, place)
    say(f"done: {place}")
    return place


def _check_extra() -> None:
    if find_spec("pyiceberg") is None:
        raise MissingExtraError(
            "the demo lake's Iceberg tables are made by pyiceberg, which is not installed",
            fix="pip install 'lakeview[demo]'",
        )


def date_files(folder: Path) -> None:
    """Gives each data file of the Delta tables below a folder the time that its log records of it.

    A vacuum retains files that are younger than the retention by their store, also if the log dates them earlier. In a
    lake that was just built it would delete nothing, though the log spans months.
    """
    for log in sorted(folder.rglob("_delta_log")):
        table = lv.open_table(str(log.parent))
        for version in table.history()["version"]:
            adds = table.commit(version).filter(pl.col("kind") == "add")
            for path, action in adds.select("path", "action").iter_rows():
                file = log.parent / path
                if file.exists():  # not vacuumed
                    seconds = json.loads(action)["modificationTime"] / 1000
                    os.utime(file, (seconds, seconds))
