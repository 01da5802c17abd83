"""The demo's Iceberg tables: hourly weather as it is, and departures with a history, of the same year and airports.

`departures` tells, in story time: monthly deliveries; a tag on the first quarter; in July two columns renamed, one
widened and one added; from August on partitions by airport too; October brought some flights twice, which position
deletes take out; November came without the arrivals of one carrier, whose rows are written anew; December lies on the
branch `audit`, loaded and not yet published.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyiceberg
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import DateType, DoubleType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from lakeview.demo.iceberg_catalog import NAMESPACE, StoryCatalog
from lakeview.demo.position_deletes import delete_positions
from lakeview.demo.source import data_folder
from lakeview.demo.story import at_hour

BRANCH, TAG = "audit", "first-quarter"
SILENT_CARRIER = "B6"
"""Whose arrivals November's delivery lacked: JetBlue."""
TWICE = 11
"""October brought flights twice whose number is a multiple of this."""
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


def iceberg_tables(recorded: Path, folder: Path, shift: timedelta) -> list[tuple[str, Callable[[], None]]]:
    """The two tables by name, each with what writes it, below `folder`, which will be moved to `recorded`; `shift`
    moves story time to commit time."""
    catalog = StoryCatalog(recorded, folder)
    return [
        ("weather", lambda: _write_weather(catalog, shift)),
        ("departures", lambda: Departures(catalog, shift).write()),
    ]


def read_departures() -> pl.DataFrame:
    """Every flight of the year in the order of the source, in the columns of `departures` as they were at first, and
    `air_time`."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        found = pl.read_csv(archive.read("flights.csv"), null_values="NA", infer_schema_length=None)
    day = pl.date("year", "month", "day").alias("flight_date")
    return found.select(day, *(f.name for f in _DEPARTURES.fields[1:]), "air_time").with_columns(
        pl.col("sched_dep_time", "flight", "dep_delay", "arr_delay", "air_time").cast(pl.Int32)
    )


def read_weather() -> pl.DataFrame:
    """The weather at the three airports, hour by hour, in the columns of `weather`."""
    found = pl.read_csv(data_folder() / "weather.csv", null_values="NA", infer_schema_length=None)
    hour = pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us").dt.replace_time_zone("UTC")
    rows = found.with_columns(hour, pl.col("temp", "humid", "wind_speed", "precip", "visib").cast(pl.Float64))
    return rows.select(f.name for f in _WEATHER.fields)


def _write_weather(catalog: StoryCatalog, shift: timedelta) -> None:
    """A plain table: one file and one snapshot a quarter."""
    rows = read_weather()
    table: Table | None = None
    for months in ((1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)):
        part = rows.filter(pl.col("time_hour").dt.month().is_in(months)).to_arrow()
        catalog.moment = at_hour(_first_of(months[-1] + 1), 6) + shift
        properties = {**_BY, "note": f"the weather of months {months[0]} to {months[-1]}"}
        if table is None:
            name = f"{NAMESPACE}.weather"
            with catalog.create_table_transaction(name, _WEATHER, f"{catalog.place}/weather") as created:
                created.append(part, snapshot_properties=properties)
            table = catalog.load_table(name)
        else:
            table.append(part, snapshot_properties=properties)


@dataclass
class Departures:
    """The table `departures` while it is written."""

    catalog: StoryCatalog
    shift: timedelta

    def write(self) -> None:
        """The whole story."""
        self._rows = read_departures()
        self._create()
        for month in range(2, 7):
            self._append(month)
            if month == 3:
                self._tag()
        self._rename()
        self._append(7)
        self._partition_by_airport()
        for month in (8, 9):
            self._append(month)
        self._october()
        self._november()
        self._december()

    def _now(self, day: date, hour: int) -> None:
        self.catalog.moment = at_hour(day, hour) + self.shift

    @property
    def _table(self) -> Table:
        return self.catalog.load_table(f"{NAMESPACE}.departures")

    def _month(self, month: int) -> pa.Table:
        """A month's flights in the columns that the table has by now."""
        rows = self._rows.filter(_in_month(month))
        return self._fitting(rows)

    def _fitting(self, rows: pl.DataFrame) -> pa.Table:
        names = [f.name for f in self._table.schema().fields]
        return rows.rename({old: new for old, new in RENAMED.items() if new in names}).select(names).to_arrow()

    def _create(self) -> None:
        self._now(_first_of(2), 4)
        spec = PartitionSpec(PartitionField(1, 1000, MonthTransform(), "flight_month"))
        with self.catalog.create_table_transaction(
            f"{NAMESPACE}.departures",
            _DEPARTURES,
            f"{self.catalog.place}/departures",
            spec,
            properties={"format-version": "2", "comment": "Departures from New York's three airports in 2013"},
        ) as created:
            rows = self._rows.filter(_in_month(1)).select(f.name for f in _DEPARTURES.fields)
            created.append(rows.to_arrow(), snapshot_properties=_properties("monthly delivery 1"))

    def _append(self, month: int, rows: pa.Table | None = None) -> None:
        self._now(_first_of(month + 1), 4)
        found = self._month(month) if rows is None else rows
        self._table.append(found, snapshot_properties=_properties(f"monthly delivery {month}"))

    def _tag(self) -> None:
        self._now(date(2013, 4, 2), 9)
        head = self._table.current_snapshot()
        assert head is not None, "three months are loaded"
        self._table.manage_snapshots().create_tag(head.snapshot_id, TAG).commit()

    def _rename(self) -> None:
        self._now(date(2013, 7, 15), 11)
        with self._table.update_schema() as change:
            for old, new in RENAMED.items():
                change.rename_column(old, new)
            change.update_column("flight", LongType())
            change.add_column("air_time", IntegerType(), doc="minutes")

    def _partition_by_airport(self) -> None:
        self._now(date(2013, 8, 12), 10)
        with self._table.update_spec() as change:
            change.add_field("origin", IdentityTransform(), "origin")

    def _october(self) -> None:
        """Delivered with some flights twice; their second copies are deleted by position."""
        october = self._rows.filter(_in_month(10))
        again = october.filter(pl.col("flight") % TWICE == 0)
        self._append(10, self._fitting(pl.concat([october, again])))
        self._now(date(2013, 11, 6), 15)
        table = self._table
        files = [task.file for task in table.scan(row_filter="flight_date >= '2013-10-01'").plan_files()]
        delete_positions(
            table,
            {
                file: found
                for file in sorted(files, key=lambda f: f.file_path)
                if (found := _second_copies(table, file))
            },
            _properties("flights that October's delivery brought twice"),
        )

    def _november(self) -> None:
        """Delivered without one carrier's arrivals; an overwrite replaces those rows and their files."""
        november = self._rows.filter(_in_month(11))
        silent = pl.col("carrier") == SILENT_CARRIER
        missing = pl.when(silent).then(None).otherwise(pl.col("arr_delay", "air_time")).name.keep()
        self._append(11, self._fitting(november.with_columns(missing)))
        self._now(date(2013, 12, 4), 16)
        self._table.overwrite(
            self._fitting(november.filter(silent)),
            f"flight_date >= '2013-11-01' and carrier = '{SILENT_CARRIER}'",
            snapshot_properties=_properties("November again for the carrier whose arrivals were missing"),
        )

    def _december(self) -> None:
        """Weekly, onto a branch that is not published yet."""
        self._now(date(2013, 12, 6), 9)
        head = self._table.current_snapshot()
        assert head is not None, "eleven months are loaded"
        self._table.manage_snapshots().create_branch(head.snapshot_id, BRANCH, min_snapshots_to_keep=5).commit()
        for first, last in ((1, 8), (9, 16), (17, 24), (25, 31)):
            day = pl.col("flight_date").dt.day()
            december = self._rows.filter(_in_month(12), day.is_between(first, last))
            self._now(date(2013, 12, last) + timedelta(days=1), 4)
            properties = _properties(f"December {first} to {last}, to be looked at")
            self._table.append(self._fitting(december), snapshot_properties=properties, branch=BRANCH)


def _second_copies(table: Table, file: DataFile) -> list[int]:
    """The numbers of rows that stand in the file before."""
    with table.io.new_input(file.file_path).open() as stream:
        rows = pl.read_parquet(stream.read())
    return (~rows.select(pl.struct(pl.all())).to_series().is_first_distinct()).arg_true().to_list()


def _in_month(month: int) -> pl.Expr:
    return pl.col("flight_date").dt.month() == month


def _first_of(month: int) -> date:
    """The first day of a month of 2013; of January after it, for the thirteenth."""
    return date(2013 + (month - 1) // 12, (month - 1) % 12 + 1, 1)


def _properties(note: str) -> dict[str, str]:
    return {**_BY, "note": note}
