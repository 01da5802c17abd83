"""The demo's Iceberg tables: hourly weather as it is, and departures with a history, of the same year and airports.

`departures` tells, by the periods of the calendar: one delivery each; a tag on the first quarter; in 7 two columns
renamed, one widened and one added; from 8 on partitions by airport too; 10 brought some flights twice, which position
deletes take out; 11 came without the arrivals of one carrier, whose rows are rewritten; 12 lies on the branch `audit`,
loaded and not yet published. Its partitions are months: a period that begins within one writes into two.

The rows of the main branch come through Spark; what lakeview does not write is pyiceberg's: the tables themselves,
their evolution, the tag, the position deletes and the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import polars as pl
import pyiceberg
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import DateType, DoubleType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from lakeview.demo.calendar import Calendar, at_hour
from lakeview.demo.iceberg_catalog import NAMESPACE, StoryCatalog, one_thread
from lakeview.demo.position_deletes import delete_positions
from lakeview.demo.source import read_csv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRANCH, TAG = "audit", "first-quarter"
SILENT_CARRIER = "B6"
"""Whose arrivals the delivery of period 11 lacked: JetBlue."""
TWICE = 11
"""Period 10 brought flights twice whose number is a multiple of this."""
RENAMED = {"dep_delay": "departure_delay", "arr_delay": "arrival_delay"}

_DEPARTURES = Schema(
    NestedField(1, "flight_date", DateType(), required=False, doc="the day in New York"),
    NestedField(2, "sched_dep_time", IntegerType(), doc="as people write it: 517 is 05:17"),
    NestedField(3, "carrier", StringType()),
    NestedField(4, "flight", IntegerType()),
    NestedField(5, "tailnum", StringType()),
    NestedField(6, "origin", StringType()),
    NestedField(7, "dest", StringType()),
    NestedField(8, "dep_delay", IntegerType(), doc="minutes"),
    NestedField(9, "arr_delay", IntegerType(), doc="minutes"),
)
_WEATHER = Schema(
    NestedField(1, "origin", StringType()),
    NestedField(2, "time_hour", TimestamptzType()),
    NestedField(3, "temp", DoubleType(), doc="degrees Fahrenheit"),
    NestedField(4, "humid", DoubleType(), doc="percent"),
    NestedField(5, "wind_speed", DoubleType(), doc="miles an hour"),
    NestedField(6, "precip", DoubleType(), doc="inches"),
    NestedField(7, "visib", DoubleType(), doc="miles"),
)
_BY = {"engine-name": "pyiceberg", "engine-version": pyiceberg.__version__}


@dataclass(frozen=True)
class Loads:
    """Commits of rows to tables below `folder`, which will be moved to `recorded_folder`, by jobs of Spark."""

    spark: SparkSession
    recorded_folder: Path
    folder: Path

    def write(
        self, name: str, rows: pl.DataFrame, at: datetime, note: str, mode: str = "append", **options: str
    ) -> None:
        """One commit, dated so: the rows in their order, a file for each partition."""
        writer = self.spark.createDataFrame(rows.to_arrow()).coalesce(1).write.format("lakeview").mode(mode)
        places = msgspec.json.encode({str(self.recorded_folder): str(self.folder)}).decode()
        # the catalog that made the table lasts as long as the build
        writer = writer.option("relocate", places).option("withoutCatalog", "true")
        writer = writer.option("commitTimestamp", at.isoformat()).option("snapshot-property.note", note)
        writer.options(**options).save(str(self.folder / name))


def iceberg_tables(
    spark: SparkSession, recorded_folder: Path, folder: Path, calendar: Calendar
) -> list[tuple[str, Iterator[None]]]:
    """The two tables by name, each with what writes it, commit by commit, below `folder`, which will be moved to
    `recorded_folder`.

    Each has a catalog of its own, made by the thread that writes: SQLite in memory is there for one thread only.
    """

    def commits(write: Callable[[StoryCatalog, Loads, Calendar], Iterator[None]]) -> Iterator[None]:
        with one_thread():
            yield from write(StoryCatalog(recorded_folder, folder), Loads(spark, recorded_folder, folder), calendar)

    return [("weather", commits(_write_weather)), ("departures", commits(lambda *own: Departures(*own).write()))]


def read_departures(shift: timedelta) -> pl.DataFrame:
    """Every flight of the year in the order of the source, its days moved by `shift`, in the columns of `departures` as
    they were at first, and `air_time`."""
    day = pl.date("year", "month", "day").alias("flight_date") + shift
    return read_csv("flights").select(day, *(f.name for f in _DEPARTURES.fields[1:]), "air_time")


def read_weather(shift: timedelta) -> pl.DataFrame:
    """The weather at the three airports, hour by hour, its days moved by `shift`, in the columns of `weather`."""
    measures = pl.col("temp", "humid", "wind_speed", "precip", "visib").cast(pl.Float64)
    rows = read_csv("weather").with_columns(pl.col("time_hour") + shift, measures)
    return rows.select(f.name for f in _WEATHER.fields)


def _write_weather(catalog: StoryCatalog, loads: Loads, calendar: Calendar) -> Iterator[None]:
    """A plain table: one file and one snapshot a quarter."""
    rows = read_weather(calendar.shift)
    catalog.moment = at_hour(calendar.after(3), 5)
    catalog.create_table_transaction(f"{NAMESPACE}.weather", _WEATHER, f"{catalog.place}/weather").commit_transaction()
    yield
    for last in (3, 6, 9, 12):
        quarter = calendar.period(last - 2)[0], calendar.period(last)[1]
        part = rows.filter(pl.col("time_hour").dt.date().is_between(*quarter))
        note = f"the weather of periods {last - 2} to {last}"
        loads.write("weather", part, at_hour(calendar.after(last), 6), note)
        yield


@dataclass
class Departures:
    """The table `departures` while it is written."""

    catalog: StoryCatalog
    loads: Loads
    calendar: Calendar

    def write(self) -> Iterator[None]:
        """The whole story, a chapter at a time."""
        self._rows = read_departures(self.calendar.shift)
        self._create()
        yield
        for period in range(1, 7):
            self._append(period)
            yield
            if period == 3:
                self._tag()
        self._rename()
        self._append(7)
        yield
        self._partition_by_airport()
        for period in (8, 9):
            self._append(period)
            yield
        self._some_rows_twice(10)
        yield
        self._missing_arrivals(11)
        yield
        self._load_branch(12)
        yield

    def _now(self, day: date, hour: int) -> None:
        self.catalog.moment = at_hour(day, hour)

    @property
    def _table(self) -> Table:
        return self.catalog.load_table(f"{NAMESPACE}.departures")

    def _flights_of(self, period: int) -> pl.DataFrame:
        return self._rows.filter(pl.col("flight_date").is_between(*self.calendar.period(period)))

    def _fitting(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows in the columns that the table has by now."""
        names = [f.name for f in self._table.schema().fields]
        return rows.rename({old: new for old, new in RENAMED.items() if new in names}).select(names)

    def _create(self) -> None:
        self._now(self.calendar.after(1), 3)
        self.catalog.create_table_transaction(
            f"{NAMESPACE}.departures",
            _DEPARTURES,
            f"{self.catalog.place}/departures",
            PartitionSpec(PartitionField(1, 1000, MonthTransform(), "flight_month")),
            properties={"format-version": "2", "comment": "Departures from New York's three airports"},
        ).commit_transaction()

    def _load(self, rows: pl.DataFrame, at: datetime, note: str, mode: str = "append", **options: str) -> None:
        self.loads.write("departures", self._fitting(rows), at, note, mode, **options)
        self.catalog.follow("departures")

    def _append(self, period: int, rows: pl.DataFrame | None = None) -> None:
        rows = self._flights_of(period) if rows is None else rows
        self._load(rows, at_hour(self.calendar.after(period), 4), f"delivery of period {period}")

    def _tag(self) -> None:
        self._now(self.calendar.day(4, 2), 9)
        head = self._table.current_snapshot()
        assert head is not None, "three periods are loaded"
        self._table.manage_snapshots().create_tag(head.snapshot_id, TAG).commit()

    def _rename(self) -> None:
        self._now(self.calendar.day(7, 15), 11)
        with self._table.update_schema() as change:
            for old, new in RENAMED.items():
                change.rename_column(old, new)
            change.update_column("flight", LongType())
            change.add_column("air_time", IntegerType(), doc="minutes")

    def _partition_by_airport(self) -> None:
        self._now(self.calendar.day(8, 12), 10)
        with self._table.update_spec() as change:
            change.add_field("origin", IdentityTransform(), "origin")

    def _some_rows_twice(self, period: int) -> None:
        """Delivered with some flights twice; their second copies are deleted by position."""
        flights = self._flights_of(period)
        self._append(period, pl.concat([flights, flights.filter(pl.col("flight") % TWICE == 0)]))
        self._now(self.calendar.day(period + 1, 6), 15)
        table = self._table
        since = self.calendar.period(period)[0]
        files = [task.file for task in table.scan(row_filter=f"flight_date >= '{since}'").plan_files()]
        delete_positions(
            table,
            {
                file: positions
                for file in sorted(files, key=lambda f: f.file_path)
                if (positions := _second_copies(table, file))
            },
            _properties(f"flights that the delivery of period {period} brought twice"),
        )

    def _missing_arrivals(self, period: int) -> None:
        """Delivered without one carrier's arrivals; an overwrite replaces those rows and their files."""
        flights = self._flights_of(period)
        silent = pl.col("carrier") == SILENT_CARRIER
        missing = pl.when(silent).then(None).otherwise(pl.col("arr_delay", "air_time")).name.keep()
        self._append(period, flights.with_columns(missing))
        self._load(
            flights.filter(silent),
            at_hour(self.calendar.day(period + 1, 4), 16),
            f"period {period} again for the carrier whose arrivals were missing",
            "overwrite",
            replaceWhere=f"flight_date >= '{self.calendar.period(period)[0]}' AND carrier = '{SILENT_CARRIER}'",
        )

    def _load_branch(self, period: int) -> None:
        """Weekly, onto a branch that is not published yet."""
        self._now(self.calendar.day(period, 6), 9)
        head = self._table.current_snapshot()
        assert head is not None, "eleven periods are loaded"
        self._table.manage_snapshots().create_branch(head.snapshot_id, BRANCH, min_snapshots_to_keep=5).commit()
        for numbers in ((1, 8), (9, 16), (17, 24), (25, 31)):
            first, last = (self.calendar.day(period, number) for number in numbers)
            self._now(last + timedelta(days=1), 4)
            self._table.append(
                self._fitting(self._rows.filter(pl.col("flight_date").is_between(first, last))).to_arrow(),
                snapshot_properties=_properties(f"{first} to {last}, to be looked at"),
                branch=BRANCH,
            )


def _second_copies(table: Table, file: DataFile) -> list[int]:
    """The numbers of rows that stand in the file before."""
    with table.io.new_input(file.file_path).open() as stream:
        rows = pl.read_parquet(stream.read())
    return (~rows.select(pl.struct(pl.all())).to_series().is_first_distinct()).arg_true().to_list()


def _properties(note: str) -> dict[str, str]:
    return {**_BY, "note": note}
