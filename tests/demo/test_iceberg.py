"""The demo's Iceberg tables: the same real data, a history of every kind, and others read them too."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from pyiceberg.table import StaticTable

from lakeview.demo.calendar import Calendar
from lakeview.demo.iceberg import (
    BRANCH,
    RENAMED,
    SILENT_CARRIER,
    TAG,
    TWICE,
    iceberg_tables,
    read_departures,
    read_weather,
)
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable

CALENDAR = Calendar(date(2026, 11, 23))
"""Its periods begin on any day of a month."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two tables alone, written to one folder and moved to another, as the build does it."""
    base = tmp_path_factory.mktemp("demo")
    (base / "written").mkdir()
    for _, write in iceberg_tables(base / "lake", base / "written", CALENDAR):
        write()
    return (base / "written").rename(base / "lake")


@pytest.fixture(scope="module")
def departures(lake: Path) -> IcebergTable:
    return open_iceberg(str(lake / "departures"))


@pytest.fixture(scope="module")
def source() -> pl.DataFrame:
    return read_departures(CALENDAR.shift)


def periods(first: int, last: int) -> pl.Expr:
    """The days of these periods, both included."""
    return pl.col("flight_date").is_between(CALENDAR.period(first)[0], CALENDAR.period(last)[1])


def as_first_named(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.rename({new: old for old, new in RENAMED.items()})


def same(found: pl.DataFrame, wanted: pl.DataFrame) -> bool:
    return found.select(wanted.columns).sort(pl.all()).equals(wanted.sort(pl.all()))


def test_main_holds_eleven_periods_and_the_branch_all_twelve(departures: IcebergTable, source: pl.DataFrame) -> None:
    known = source.with_columns(
        pl.col("flight").cast(pl.Int64),
        pl.when(periods(7, 12)).then("air_time").alias("air_time"),
    )
    assert same(as_first_named(departures.scan(ref=BRANCH).collect()), known)
    assert same(as_first_named(departures.scan().collect()), known.filter(periods(1, 11)))


def test_the_tag_is_the_first_quarter_under_its_old_names(departures: IcebergTable, source: pl.DataFrame) -> None:
    found = departures.scan(ref=TAG).collect()
    assert same(found, source.filter(periods(1, 3)).select(found.columns))
    assert found.schema["flight"] == pl.Int32


def test_the_weather_is_the_packages(lake: Path) -> None:
    table = open_iceberg(str(lake / "weather"))
    assert same(table.scan().collect(), read_weather(CALENDAR.shift))
    assert table.history()["operation"].to_list() == ["append"] * 4


def test_second_copies_are_deleted_by_position(departures: IcebergTable, source: pl.DataFrame) -> None:
    again = source.filter(periods(10, 10), pl.col("flight") % TWICE == 0).height
    commits = departures.history().sort("position")
    (deleting,) = commits.filter(pl.col("operation") == "delete").select("version", "parent").iter_rows()
    before, after = (
        departures.scan(version).filter(periods(10, 10)).select(pl.len()).collect().item() for version in deleting[::-1]
    )
    assert before - after == again > 0
    deletes = departures.snapshot().delete_files
    assert deletes["records"].sum() == again
    assert deletes.height == 6, "one for each file: of three airports, in two months"


def test_missing_arrivals_came_by_rewritten_files(departures: IcebergTable) -> None:
    silent = periods(11, 11) & (pl.col("carrier") == SILENT_CARRIER)
    unknown = {
        commit["timestamp"]: departures.scan(commit["version"])
        .filter(silent).select(pl.col("arrival_delay").is_null().mean()).collect().item()
        for commit in departures.history().filter(pl.col("operation") != "delete").iter_rows(named=True)
        if commit["timestamp"].date() > CALENDAR.period(11)[1]
    }  # fmt: skip
    first, *_, last = (unknown[moment] for moment in sorted(unknown))
    assert (first, last < 0.1) == (1, True)


def test_partitions_and_columns_changed_on_the_way(departures: IcebergTable) -> None:
    assert departures.schemas().height == 2
    assert departures.snapshot().partition_columns == ["flight_month", "origin"]
    texts = departures.snapshot().files["partition_text"].to_list()
    # period 7 ends and 8 begins on 23 and 24 June: one month lies in partitions of both specs
    assert {"flight_month=2026-06", "flight_month=2026-06/origin=EWR"} <= set(texts)


def test_every_moment_is_the_storys(lake: Path, departures: IcebergTable) -> None:
    first, last = CALENDAR.day(2, 1), CALENDAR.end
    for table in (departures, open_iceberg(str(lake / "weather"))):
        metadata = table.metadata
        moments = [s.timestamp_ms for s in metadata.snapshots.values()]
        moments += [entry.timestamp_ms for entry in metadata.snapshot_log]
        moments += [entry.timestamp_ms for entry in metadata.metadata_log]
        moments += [metadata.last_updated_ms or 0]
        told = [datetime.fromtimestamp(m / 1000, UTC) for m in moments]
        assert first <= min(told).date()
        assert max(told) < last
        assert max(moments) == metadata.last_updated_ms


def test_the_library_reads_them_from_where_they_were_moved_to(lake: Path, departures: IcebergTable) -> None:
    for name in ("departures", "weather"):
        newest = max((lake / name / "metadata").glob("*.metadata.json"))
        theirs = StaticTable.from_metadata(str(newest))
        assert theirs.scan().count() == open_iceberg(str(lake / name)).scan().select(pl.len()).collect().item()
    refs = StaticTable.from_metadata(str(max((lake / "departures" / "metadata").glob("*.metadata.json")))).refs()
    assert set(refs) == {"main", BRANCH, TAG} == set(departures.metadata.refs)


def test_the_doctor_finds_nothing_to_say(lake: Path, departures: IcebergTable) -> None:
    for table in (departures, open_iceberg(str(lake / "weather"))):
        assert [f.claim for f in table.check()] == ["The metadata contradicts itself nowhere"]
