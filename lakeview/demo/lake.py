"""The lake while it is built: a step of the story to a commit or a run of the pipeline, every row through Spark."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

import lakeview as lv
from lakeview.demo.pipeline import run_at
from lakeview.demo.source import AIRCRAFT_COLUMNS, WEATHER_COLUMNS
from lakeview.demo.story import (
    AddColumns,
    Compact,
    CorrectDay,
    CreateTable,
    Fault,
    Load,
    ReplacePeriod,
    RunPipeline,
    Step,
    Vacuum,
)
from lakeview.model.schema import Schema
from lakeview.spark import table
from lakeview.spark.pipelines.server import Server
from lakeview.spark.types import from_spark

FEED, DESK, CARETAKER = "nightly-feed", "data-desk", "maintenance"
"""Who commits: the scheduled deliveries, the people who repair them, the job that looks after the files."""
# Commits are dated by their own words, so that the story's clock is the one time travel uses.
_DATED = {"delta.enableInCommitTimestamps": "true"}
AIRPORTS = ("EWR", "JFK", "LGA")
# Rows of a file: by day, then by scheduled time, then by what tells two flights of a minute apart.
ORDER = ("flight_date", "sched_dep_time", "carrier", "flight", "origin", "dest")

# The carrier whose arrivals did not come on the day that is corrected later: JetBlue, the largest at JFK.
SILENT_CARRIER = "B6"


@dataclass
class Lake:
    """The tables in `folder` so far, and the project of the pipeline. `source` holds every flight, by the days of the
    story."""

    folder: Path
    server: Server
    source: DataFrame
    pipeline: Path
    columns: list[str] = field(default_factory=list)

    @property
    def flights(self) -> str:
        """The address of the table the story is about."""
        return str(self.folder / "flights")

    def take(self, step: Step) -> str:
        """Carry out one step; says what was done."""
        at = step.at
        match step.action:
            case CreateTable():
                self._create(at)
                return "flights: created"
            case Load() as load:
                return self._load(load, at, step.note)
            case ReplacePeriod(period):
                rows = _in_order(self._rows(f"period = {period}").coalesce(1))
                self._write(rows, self.flights, at, step.note, "overwrite", DESK, replaceWhere=f"period = {period}")
                return f"flights: period {period} overwritten"
            case CorrectDay(day):
                return self._correct(day, at, step.note)
            case AddColumns(columns):
                self._add_columns(columns, at, step.note)
                return f"flights: columns added: {', '.join(columns)}"
            case Compact(period):
                self._compact(f"period = {period}", at, step.note)
                return f"flights: period {period} compacted"
            case Vacuum(version):
                return self._vacuum(version, at, step.note)
            case RunPipeline():
                run_at(self.pipeline, self.server, at)
                return "pipeline: run"

    def write_airlines(self, airlines: DataFrame, at: datetime) -> None:
        """Writes the small table of airline names."""
        self._write(airlines.coalesce(1), str(self.folder / "airlines"), at, "the carriers of the year")

    def _create(self, at: datetime) -> None:
        later_columns = {*AIRCRAFT_COLUMNS, *WEATHER_COLUMNS}
        self.columns = [name for name in self.source.columns if name not in later_columns]
        lv.create_table(
            self.flights,
            self._schema(),
            partition_by=["period"],
            properties=_DATED,
            name="flights",
            description="Flights from New York's three airports, as they were delivered, twelve periods to the year",
            user=DESK,
            clock=lambda: at,
        )

    def _load(self, load: Load, at: datetime, note: str) -> str:
        rows = self._rows(f"flight_date BETWEEN '{load.first}' AND '{load.last}'")
        if load.fault is not None:
            rows = _FAULTS[load.fault](rows)
        self._write(_in_files(rows, load.by_airport), self.flights, at, note, statistics=load.statistics)
        span = f"{load.first}" if load.first == load.last else f"{load.first} to {load.last}"
        return f"flights: {span} loaded" + (f" ({load.fault})" if load.fault else "")

    def _correct(self, day: date, at: datetime, note: str) -> str:
        statistics = lv.open_table(self.flights).statistics(columns=["flight_date"]).unnest("flight_date")
        whole = statistics.filter(pl.col("min") == day, pl.col("max") == day, pl.col("null_count") == 0)
        paths = whole["_path"].to_list()
        rows = _in_files(self._rows(f"flight_date = '{day}'"), by_airport=True)
        self._write(rows, self.flights, at, note, "overwrite", DESK, replaceFiles=json.dumps(paths))
        return f"flights: {day} corrected, {len(paths)} files replaced"

    def _compact(self, where: str, at: datetime, note: str) -> None:
        """Partitions as one file each, their rows in order."""
        plan = lv.open_table(self.flights).plan(where)
        paths = plan.filter(pl.col("kept"))["path"].to_list()
        rows = _in_order(table(self.server.spark, self.flights, where=where).coalesce(1))
        same: dict[str, str | bool] = {"replaceFiles": json.dumps(paths), "dataChange": False, "operation": "OPTIMIZE"}
        self._write(rows, self.flights, at, note, "overwrite", CARETAKER, **same)

    def _add_columns(self, columns: Sequence[str], at: datetime, note: str) -> None:
        self.columns = [name for name in self.source.columns if name in {*self.columns, *columns}]
        flights = lv.open_table(self.flights)
        with flights.transaction("ADD COLUMNS", clock=lambda: at, user=DESK, user_metadata=note) as transaction:
            transaction.evolve(self._schema())

    def _vacuum(self, version: int, at: datetime, note: str) -> str:
        """As a vacuum does it: say so, delete, say so again. Only files that no other version has."""
        flights = lv.open_table(self.flights)
        lives = flights.lifetimes()
        only = lives.filter(pl.col("added") == version, pl.col("removed") == version + 1)
        start_metrics = {"numFilesToDelete": only.height, "sizeOfDataToDelete": int(only["size"].sum())}
        details: dict[str, Any] = {"user": CARETAKER, "user_metadata": note}
        with flights.transaction("VACUUM START", metrics=start_metrics, clock=lambda: at, **details) as start:
            start.add([])  # a commit that says something and changes nothing
        for path in only["path"]:
            (Path(self.flights) / path).unlink()
        end_metrics = {"numDeletedFiles": only.height, "numVacuumedDirectories": 0}
        end_time = at + timedelta(minutes=4)
        with flights.transaction(
            "VACUUM END", parameters={"status": "COMPLETED"}, metrics=end_metrics, clock=lambda: end_time, **details
        ) as end:
            end.add([])
        return f"flights: {only.height} files of version {version} vacuumed"

    def _rows(self, where: str) -> DataFrame:
        """(Of a column that is an object or a name, four calls go to the JVM, of an expression one.)"""
        return self.source.where(where).selectExpr(*self.columns)

    def _schema(self) -> Schema:
        return from_spark(self.source.select(*self.columns).schema)

    def _write(
        self,
        rows: DataFrame,
        address: str,
        at: datetime,
        note: str,
        mode: str = "append",
        user: str = FEED,
        **options: str | bool,
    ) -> None:
        writer = rows.write.format("lakeview").mode(mode).options(**_DATED)
        writer = writer.option("commitTimestamp", at.isoformat()).option("userName", user)
        if note:
            writer = writer.option("userMetadata", note)
        writer.options(**options).save(address)


def _in_files(rows: DataFrame, by_airport: bool) -> DataFrame:
    """The rows in order, as one Spark partition, or one for each airport; each becomes a file."""
    if not by_airport:
        return _in_order(rows.coalesce(1))
    airport = f.expr(f"CAST(array_position(array{AIRPORTS}, origin) AS INT) - 1")
    return _in_order(rows.repartitionById(len(AIRPORTS), airport))


def _in_order(rows: DataFrame) -> DataFrame:
    return rows.sortWithinPartitions(*ORDER)


def _seconds(rows: DataFrame) -> DataFrame:
    """Delays times sixty, no destination for one flight in nine, and every eleventh flight twice."""
    delays = {name: f.col(name) * 60 for name in ("dep_delay", "arr_delay")}
    without = f.when(f.col("flight") % 9 == 0, f.lit(None)).otherwise(f.col("dest"))
    wrong = rows.withColumns({**delays, "dest": without})
    return wrong.unionByName(wrong.where(f.col("flight") % 11 == 0))


def _no_arrivals(rows: DataFrame) -> DataFrame:
    """No arrival time, arrival delay and air time for one carrier."""
    silent = f.col("carrier") == SILENT_CARRIER
    missing: Mapping[str, Column] = {
        name: f.when(silent, f.lit(None)).otherwise(f.col(name)) for name in ("arr_time", "arr_delay", "air_time")
    }
    return rows.withColumns(dict(missing))


_FAULTS: Mapping[Fault, Callable[[DataFrame], DataFrame]] = {
    Fault.SECONDS: _seconds,
    Fault.NO_ARRIVALS: _no_arrivals,
}
"""What is wrong with a delivery, to the rows as they were delivered with it: the same in every build."""
