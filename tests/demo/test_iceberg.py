"""The demo's Iceberg tables: the same real data, a history of every kind, and others read them too."""

from __future__ import annotations

from datetime import UTC, datetime
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
    read_departures,
    read_weather,
)
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from lakeview.inspection.frames import TableFrames
from lakeview.inspection.history import with_partition_bounds
from lakeview.inspection.inspection import Inspection
from lakeview.views.partitions.history import partition_history
from lakeview.views.partitions.sizes import partition_sizes, with_row_bounds


@pytest.fixture(scope="module")
def departures(demo_lake: Path) -> IcebergTable:
    return open_iceberg(str(demo_lake / "departures"))


@pytest.fixture(scope="module")
def source(calendar: Calendar) -> pl.DataFrame:
    return read_departures(calendar.shift)


def periods(calendar: Calendar, first: int, last: int) -> pl.Expr:
    """The days of these periods, both included."""
    return pl.col("flight_date").is_between(calendar.period(first)[0], calendar.period(last)[1])


def as_first_named(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.rename({new: old for old, new in RENAMED.items()})


def same(actual: pl.DataFrame, expected: pl.DataFrame) -> bool:
    """The same rows in any order."""
    actual = actual.select(expected.columns)
    return actual.schema == expected.schema and actual.hash_rows().sort().equals(expected.hash_rows().sort())


def test_main_holds_eleven_periods_and_the_branch_all_twelve(
    departures: IcebergTable, source: pl.DataFrame, calendar: Calendar
) -> None:
    expected = source.with_columns(
        pl.col("flight").cast(pl.Int64),
        pl.when(periods(calendar, 7, 12)).then("air_time").alias("air_time"),
    )
    assert same(as_first_named(departures.scan(ref=BRANCH).collect()), expected)
    assert same(as_first_named(departures.scan().collect()), expected.filter(periods(calendar, 1, 11)))


def test_the_tag_is_the_first_quarter_under_its_old_names(
    departures: IcebergTable, source: pl.DataFrame, calendar: Calendar
) -> None:
    rows = departures.scan(ref=TAG).collect()
    assert same(rows, source.filter(periods(calendar, 1, 3)).select(rows.columns))
    assert rows.schema["flight"] == pl.Int32


def test_the_weather_is_the_packages(demo_lake: Path, calendar: Calendar) -> None:
    table = open_iceberg(str(demo_lake / "weather"))
    assert same(table.scan().collect(), read_weather(calendar.shift))
    assert table.history()["operation"].to_list() == ["append"] * 4


def test_second_copies_are_deleted_by_position(
    departures: IcebergTable, source: pl.DataFrame, calendar: Calendar
) -> None:
    again = source.filter(periods(calendar, 10, 10), pl.col("flight") % TWICE == 0).height
    commits = departures.history().sort("position")
    (deleting,) = commits.filter(pl.col("operation") == "delete").select("version", "parent").iter_rows()
    before, after = (
        departures.scan(version).filter(periods(calendar, 10, 10)).select(pl.len()).collect().item()
        for version in deleting[::-1]
    )
    assert before - after == again > 0
    deletes = departures.snapshot().delete_files
    assert deletes["records"].sum() == again
    months = {f"{day:%Y-%m}" for day in calendar.period(10)}
    assert deletes.height == 3 * len(months), "one for each file: of three airports, in each month"


def test_missing_arrivals_came_by_rewritten_files(departures: IcebergTable, calendar: Calendar) -> None:
    silent = periods(calendar, 11, 11) & (pl.col("carrier") == SILENT_CARRIER)
    unknown = {
        commit["timestamp"]: departures.scan(commit["version"])
        .filter(silent).select(pl.col("arrival_delay").is_null().mean()).collect().item()
        for commit in departures.history().filter(pl.col("operation") != "delete").iter_rows(named=True)
        if commit["timestamp"].date() > calendar.period(11)[1]
    }  # fmt: skip
    first, *_, last = (unknown[moment] for moment in sorted(unknown))
    assert (first, last < 0.1) == (1, True)


def test_partitions_and_columns_changed_on_the_way(departures: IcebergTable, calendar: Calendar) -> None:
    assert departures.schemas().height == 2
    assert departures.snapshot().partition_columns == ["flight_month", "origin"]
    texts = departures.snapshot().files["partition_text"].to_list()
    # where period 7 ends within a month, that month lies in partitions of both specs
    ends, begins = calendar.period(7)[1], calendar.period(8)[0]
    assert {f"flight_month={ends:%Y-%m}", f"flight_month={begins:%Y-%m}/origin=EWR"} <= set(texts)


def test_every_moment_is_the_storys(demo_lake: Path, departures: IcebergTable, calendar: Calendar) -> None:
    first, last = calendar.day(2, 1), calendar.end
    for table in (departures, open_iceberg(str(demo_lake / "weather"))):
        metadata = table.metadata
        moments = [s.timestamp_ms for s in metadata.snapshots.values()]
        moments += [entry.timestamp_ms for entry in metadata.snapshot_log]
        moments += [entry.timestamp_ms for entry in metadata.metadata_log]
        moments += [metadata.last_updated_ms or 0]
        moments_found = [datetime.fromtimestamp(m / 1000, UTC) for m in moments]
        assert first <= min(moments_found).date()
        assert max(moments_found) < last
        assert max(moments) == metadata.last_updated_ms


def test_the_library_reads_them_from_where_they_were_moved_to(demo_lake: Path, departures: IcebergTable) -> None:
    for name, refs in (("departures", {"main", BRANCH, TAG}), ("weather", {"main"})):
        table = open_iceberg(str(demo_lake / name))
        theirs = StaticTable.from_metadata(str(demo_lake / name / table.state.metadata_file.path))
        assert theirs.scan().count() == table.scan().select(pl.len()).collect().item()
        assert set(theirs.refs()) == refs == set(table.metadata.refs)
    hints = [path.parents[1].name for path in demo_lake.glob("*/metadata/version-hint.text")]
    assert hints == ["weather"], "the catalog went on with the other, and keeps no hint"


def test_rows_of_the_main_branch_came_through_spark(departures: IcebergTable) -> None:
    snapshots = sorted(departures.metadata.snapshots.values(), key=lambda s: s.sequence_number)
    on_branch = {a.snapshot_id for a in ancestors(departures.metadata, departures.metadata.refs[BRANCH].snapshot_id)}
    on_main = {a.snapshot_id for a in ancestors(departures.metadata, departures.latest_version)}
    commits = [(s.summary["operation"], "spark-version" in s.summary, s.summary["note"]) for s in snapshots]
    assert [each[:2] for each in commits if each[0] != "delete"][:12] == [*[("append", True)] * 11, ("overwrite", True)]
    assert {s.summary["engine-name"] for s in snapshots if s.snapshot_id in on_branch - on_main} == {"pyiceberg"}
    assert commits[0][2] == "delivery of period 1"


def test_the_doctor_finds_nothing_to_say(demo_lake: Path, departures: IcebergTable) -> None:
    for table in (departures, open_iceberg(str(demo_lake / "weather"))):
        assert [f.claim for f in table.check()] == ["The metadata contradicts itself nowhere"]


def test_deleted_rows_are_no_rows_of_their_partitions(departures: IcebergTable) -> None:
    snapshot = departures.snapshot()
    sizes = with_row_bounds(partition_sizes(snapshot), snapshot)
    bounded = sizes.filter(mark="\N{GREATER-THAN OR EQUAL TO}")
    assert bounded["partition_text"].to_list() == sorted(snapshot.delete_files["partition_text"].unique())
    rows = departures.scan().collect()
    months = pl.concat_str(
        pl.lit("flight_month="), pl.col("flight_date").dt.strftime("%Y-%m"), pl.lit("/origin="), "origin"
    )
    counts = dict(rows.group_by(months.alias("partition")).len().iter_rows())
    assert [counts[name] for name in bounded["partition_text"]] == bounded["records"].to_list()
    assert sizes["records"].sum() == rows.height


def test_the_history_of_a_partition_has_the_bounds_that_the_list_of_partitions_has(
    demo_lake: Path, departures: IcebergTable
) -> None:
    frames = TableFrames(departures, departures.latest_version, address=str(demo_lake / "departures"))
    snapshot, partition = departures.snapshot(), "flight_month=2026-09/origin=EWR"
    states = partition_history(snapshot.files, frames.lifetimes, Inspection(frames).commit_timeline(), partition)
    bounded = with_partition_bounds(states, frames, partition)
    sizes = with_row_bounds(partition_sizes(snapshot), snapshot).filter(partition_text=partition)
    assert bounded.select("mark", "records").row(-1) == sizes.select("mark", "records").row(0)
    assert bounded["mark"].to_list() == ["", *["\N{GREATER-THAN OR EQUAL TO}"] * 3]
