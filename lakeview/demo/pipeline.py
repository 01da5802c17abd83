"""The demo's pipeline: the project that computes tables from others, and its runs.

It lies in the folder `pipeline` of the lake, as `lakeview pipeline init` would have written it, and can be run again.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

from lakeview.spark.pipelines.project import FILE, write_files, write_specification
from lakeview.spark.pipelines.run import run_pipeline
from lakeview.spark.pipelines.server import Server

FOLDER, NAME = "pipeline", "delays"
OPERATOR = "delays-operator"
"""The user name of its commits."""

_FLOWS = '''\
"""What is computed from the flights: the delays of each day, and the flights that left hours late."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

spark: SparkSession  # Spark gives every file of a pipeline its session
LAKE = Path(__file__).resolve().parents[2]
LATE = 6 * 60  # minutes


def table(name: str, columns: str) -> DataFrame:
    """Columns of a table of the lake, at its latest version. No others are read."""
    return spark.read.format("lakeview").schema(columns).load(str(LAKE / name))


def minutes(time: str) -> Column:
    """Minutes since midnight of a column with times such as 517, which is 05:17."""
    return F.floor(F.col(time) / 100) * 60 + F.col(time) % 100


@dp.materialized_view
def daily_delays() -> DataFrame:
    """A row for each day."""
    flights = table("flights", "flight_date date, dep_time int, dep_delay int, arr_delay int")
    days = flights.groupBy("flight_date").agg(
        F.count(F.lit(1)).alias("flights"),
        F.count_if(F.col("dep_time").isNull()).alias("cancelled"),
        F.round(F.avg("dep_delay"), 2).alias("mean_dep_delay"),
        F.round(F.avg("arr_delay"), 2).alias("mean_arr_delay"),
        F.max("dep_delay").alias("worst_dep_delay"),
    )
    return days.coalesce(1).sortWithinPartitions("flight_date")


@dp.materialized_view
def long_delays() -> DataFrame:
    """A row for each flight that left LATE minutes late or more, with its delay by the clock too."""
    flights = table(
        "flights",
        "flight_date date, dep_time int, sched_dep_time int, dep_delay int, arr_delay int, carrier string, flight int, "
        "origin string, dest string",
    )
    by_clock = F.pmod(minutes("dep_time") - minutes("sched_dep_time"), F.lit(24 * 60)).cast("int")
    late = flights.where(F.col("dep_delay") >= LATE).withColumn("delay_by_clock", by_clock)
    names = table("airlines", "carrier string, name string").withColumnRenamed("name", "airline")
    return late.join(F.broadcast(names), "carrier", "left").drop("dep_time", "sched_dep_time").coalesce(1)
'''

_CONFIG = """\
# How the results of transformations/ become tables of the lake. docs/pipelines.md explains every word.
output: ..                 # published tables lie beside this folder, records of the runs in ../_lakeview

tables:
  daily_delays:
    view: daily_delays
    publish: overwrite
    properties: {delta.enableInCommitTimestamps: "true"}
    expectations:
      - {name: delays are shorter than a day, condition: worst_dep_delay < 1440, action: quarantine}

  long_delays:
    view: long_delays
    publish: overwrite
    properties: {delta.enableInCommitTimestamps: "true"}
    expectations:
      - {name: delay agrees with the clock, condition: dep_delay = delay_by_clock, action: quarantine}
      - {name: destination is known, condition: dest IS NOT NULL, action: quarantine}
      - {name: one row per flight, unique: [flight_date, carrier, flight, origin], action: drop}
      - {name: arrival is recorded, condition: arr_delay IS NOT NULL, action: warn}
"""


def write_pipeline(lake: Path) -> Path:
    """Write the project into the folder of a lake; returns its folder."""
    project = lake / FOLDER
    write_files(project, {"transformations/delays.py": _FLOWS, FILE: _CONFIG}, NAME)
    return project


def run_at(project: Path, server: Server, at: datetime) -> None:
    """Run the project as if it had been started at that moment: records and commits are dated from there on, and take
    as long as they take. LakeviewError where a flow or a publication fails."""
    start = time.perf_counter()
    run_pipeline(
        project,
        server,
        clock=lambda: at + timedelta(seconds=time.perf_counter() - start),
        say=lambda _: None,
        user=OPERATOR,
    )


def settle_pipeline(lake: Path, place: Path) -> None:
    """Have the project in the folder of a lake say that it lies at `place`: where the lake goes when it is built."""
    write_specification(lake / FOLDER, place / FOLDER, NAME)
