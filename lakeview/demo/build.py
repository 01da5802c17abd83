"""Builds the demo lake: the story's steps, told one after the other, in a folder that is whole or not there."""

import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from lakeview.demo.lake import Lake
from lakeview.demo.place import built_beside
from lakeview.demo.source import read_airlines, read_flights
from lakeview.demo.story import END, Plan, full_story
from lakeview.errors import InvalidRequestError
from lakeview.spark import session

Progress = Callable[[str], None]

# Small jobs one after the other: planning anew while they run costs more than it finds.
_SETTINGS = {"spark.sql.adaptive.enabled": "false"}


def build(path: str | Path, *, now: datetime, plan: Plan | None = None, progress: Progress = lambda _: None) -> Path:
    """Build the demo lake at `path` and return it; the story (the full one) ends at `now`, an aware datetime.

    `progress` gets a line for each step. Nothing is left behind when it fails. Raises InvalidRequestError when
    something lies at `path`, MissingExtraError without the data package or a Java for Spark.
    """
    if now.tzinfo is None:
        raise InvalidRequestError(f"{now} has no zone", fix="give an aware datetime")
    place = Path(path).absolute()
    started = time.perf_counter()

    def say(line: str) -> None:
        progress(f"[{time.perf_counter() - started:5.1f} s] {line}")

    with built_beside(place) as folder, tempfile.TemporaryDirectory(prefix="lakeview-demo-") as scratch:
        say("starting Spark")
        spark = session("lakeview demo", short_job=True, shuffle_partitions=2, extra=_SETTINGS)
        source = read_flights(spark, Path(scratch))
        say(f"{source.count():,} flights read")
        # whole days, so that what is done at night in the story is done at night
        lake = Lake(folder, spark, source, timedelta(days=(now - END).days))
        steps = (full_story() if plan is None else plan).steps
        lake.write_airlines(read_airlines(spark), steps[0].at)
        say("airlines: written")
        for number, step in enumerate(steps, start=1):
            say(f"{number:2}/{len(steps)} {lake.take(step)}")
        source.unpersist()
    say(f"done: {place}")
    return place
