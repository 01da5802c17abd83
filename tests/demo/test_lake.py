"""The whole demo lake: the real data is in it, its history is what the story says, and the troubles are there."""

import csv
import io
import json
import zipfile
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import deltalake
import polars as pl
import pytest

import lakeview as lv
from lakeview import views
from lakeview.delta.table import DeltaTable
from lakeview.demo.calendar import Calendar
from lakeview.demo.source import data_folder
from lakeview.inspection import inspect_pipelines
from lakeview.model.errors import DataFileMissingError
from tests.builders.opening import open_delta_table

pytestmark = pytest.mark.slow

BAD, CORRECTED, BARE = 4, 32, range(52, 55)
LATE_OF_THE_BAD_LOAD = 9_074


@pytest.fixture(scope="module")
def flights(demo_lake: Path) -> DeltaTable:
    return open_delta_table(str(demo_lake / "flights"))


@pytest.fixture(scope="module")
def source() -> pl.DataFrame:
    """The package's own file, read without Spark and without us."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        flights = pl.read_csv(archive.read("flights.csv"), null_values="NA", infer_schema_length=None)
    return flights.with_columns(flight_date=pl.date("year", "month", "day"))


@pytest.fixture(scope="module")
def shift(demo_lake: Path) -> timedelta:
    """How far the days of the lake lie from the source's: the last one is the day before the build."""
    build_time = datetime.fromtimestamp((demo_lake / ".lakeview-demo").stat().st_mtime, UTC)
    last = lv.open_table(str(demo_lake / "flights")).scan().select(pl.col("flight_date").max()).collect().item()
    assert timedelta(days=1) <= build_time.date() - last <= timedelta(days=2), (
        "two in the night, and where it was midnight"
    )
    moved: timedelta = last - date(2013, 12, 31)
    return moved


def test_every_flight_of_the_source_is_there_its_days_moved(
    flights: DeltaTable, source: pl.DataFrame, shift: timedelta
) -> None:
    rows = flights.scan().collect()
    assert rows.height == source.height == 336_776
    hour = (pl.col("time_hour") - shift).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    expected = source.rename({"month": "period"}).drop("year", "day")
    ours = rows.with_columns(hour, pl.col("flight_date") - shift).select(expected.columns).cast(expected.schema)
    assert ours.sort(pl.all()).equals(expected.sort(pl.all()))


def test_data_is_a_day_behind_and_no_baseline_of_years_is_needed_to_say_so(flights: DeltaTable) -> None:
    trends = views.quality.trends
    changes = lv.inspect(flights).quality()
    assert trends.event_column(changes) == "flight_date"
    assert trends.usual_of_history(trends.lag_trend(changes, "flight_date")) is None
    assert views.quality.lateness.data_lateness(changes) == "1 day behind"


def test_another_reader_counts_the_same(demo_lake: Path, source: pl.DataFrame) -> None:
    theirs = deltalake.DeltaTable(str(demo_lake / "flights")).to_pyarrow_table(columns=["period"])
    assert Counter(theirs["period"].to_pylist()) == Counter(source["month"].to_list())
    counts = {
        name: deltalake.DeltaTable(str(demo_lake / name)).to_pyarrow_table().num_rows
        for name in ("airlines", "daily_delays")
    }
    assert counts == {"airlines": 16, "daily_delays": 365}


def test_the_lake_holds_tables_of_both_formats(demo_lake: Path) -> None:
    tables = lv.find_tables(str(demo_lake))
    assert dict(tables.select("name", "format").iter_rows()) == {
        "airlines": "delta", "claims": "delta", "daily_delays": "delta", "departures": "iceberg", "flights": "delta",
        "long_delays": "delta", "weather": "iceberg",
    }  # fmt: skip


def test_the_history_is_long_and_spread_over_the_year_before_the_build(flights: DeltaTable) -> None:
    commits = flights.history().sort("version")
    assert commits.height == 76
    assert commits["timestamp"].is_sorted()
    last, first = commits["timestamp"][-1], commits["timestamp"][0]
    build_time = datetime.fromtimestamp((Path(flights.address).parent / ".lakeview-demo").stat().st_mtime, UTC)
    assert timedelta(0) < build_time - last < timedelta(days=2)
    assert timedelta(days=363) < last - first < timedelta(days=366)
    assert set(commits["operation"]) == {
        "CREATE TABLE", "WRITE", "ADD COLUMNS", "OPTIMIZE", "VACUUM START", "VACUUM END",
    }  # fmt: skip
    assert commits.filter(pl.col("operation") == "OPTIMIZE")["data_change"].to_list() == [False, False]


def test_time_travel_uses_the_storys_clock(flights: DeltaTable) -> None:
    commits = flights.history()
    moment = commits.filter(pl.col("version") == 40)["timestamp"][0]
    assert flights.snapshot(at=moment).version == 40
    assert flights.snapshot(at=moment - timedelta(seconds=1)).version == 39


def test_several_checkpoints_by_the_commits_themselves(demo_lake: Path) -> None:
    checkpoints = sorted((demo_lake / "flights" / "_delta_log").glob("*.checkpoint.parquet"))
    assert [int(path.name[:20]) for path in checkpoints] == list(range(10, 76, 10))
    assert json.loads((demo_lake / "flights" / "_delta_log" / "_last_checkpoint").read_bytes())["version"] == 70


def test_columns_came_twice_and_are_null_before(flights: DeltaTable) -> None:
    assert flights.schemas()["version"].to_list() == [0, 9, 61]
    nulls = (
        flights.scan()
        .group_by("period")
        .agg(pl.col("seats", "visibility").null_count() / pl.len())
        .collect()
        .sort("period")
    )
    # period 5 came when the aircraft were known already
    assert nulls.filter(pl.col("seats") == 1)["period"].to_list() == [1, 2, 3, 4, 6]
    assert nulls.filter(pl.col("visibility") == 1)["period"].to_list() == list(range(1, 11))


def test_the_bad_load_is_in_the_log_and_can_no_longer_be_read(flights: DeltaTable) -> None:
    unreadable = flights.versions().filter(~pl.col("readable"))
    assert unreadable["version"].to_list() == [BAD]
    before, after = flights.snapshot(BAD).num_records, flights.snapshot(BAD + 1).num_records
    assert before is not None
    assert after is not None
    assert before > after, "every eleventh flight of period 4 came twice"
    with pytest.raises(DataFileMissingError):
        flights.scan(BAD).collect()


def test_every_other_version_can_be_read_whole(flights: DeltaTable) -> None:
    lives = flights.lifetimes()
    missing_paths = [path for path in lives["path"] if not (Path(flights.address) / path).is_file()]
    assert lives.filter(pl.col("path").is_in(missing_paths))["added"].unique().to_list() == [BAD]
    assert flights.scan(0).collect().height == 0
    assert flights.scan(3).select(pl.len()).collect().item() == flights.snapshot(3).num_records


def test_a_day_is_corrected_by_replacing_its_files(flights: DeltaTable, shift: timedelta) -> None:
    commit = flights.history().filter(pl.col("version") == CORRECTED).row(0, named=True)
    assert (commit["files_added"], commit["files_removed"]) == (3, 3)
    silent = (pl.col("flight_date") == date(2013, 9, 17) + shift) & (pl.col("carrier") == "B6")
    wrong, right = (
        flights.scan(version).filter(silent).select(pl.col("arr_time").null_count() / pl.len()).collect().item()
        for version in (CORRECTED - 1, CORRECTED)
    )
    assert wrong == 1
    assert right < 0.1


def test_some_versions_do_not_know_their_rows_and_the_latest_lacks_some_bounds(flights: DeltaTable) -> None:
    counts = {version: flights.snapshot(version).num_records for version in (51, *BARE, 60, 75)}
    assert [version for version, count in counts.items() if count is None] == list(BARE)
    assert counts[75] == 336_776
    bounds = flights.statistics(columns=["flight_date"]).unnest("flight_date")
    assert bounds.filter(pl.col("min").is_null()).height == 6


def test_small_files_are_left_lying_in_the_last_period(flights: DeltaTable) -> None:
    files = flights.snapshot().files
    small = files.filter(pl.col("size") < 32_768)
    assert small.height == 30
    assert small["partition_text"].unique().to_list() == ["period=12"]
    assert files.height == 44


def test_the_summary_says_what_the_flights_say(demo_lake: Path, source: pl.DataFrame) -> None:
    summary = lv.open_table(str(demo_lake / "daily_delays")).scan().collect().sort("flight_date")
    assert summary["flights"].sum() == 336_776
    assert summary["cancelled"].sum() == source["dep_time"].null_count()
    assert summary["worst_dep_delay"].max() == source["dep_delay"].max()
    january = source.filter(pl.col("month") == 1, pl.col("day") == 1)
    assert summary["mean_dep_delay"][0] == pytest.approx(january["dep_delay"].mean(), abs=0.005)


def test_the_pipelines_runs_are_recorded_and_the_bad_load_is_in_quarantine(demo_lake: Path, calendar: Calendar) -> None:
    """The lake was built in another folder than the one that it lies in."""
    look = inspect_pipelines(str(demo_lake), lv.open_table)
    runs = look.runs()
    assert runs.select("status", "expectations_failed", "rows_quarantined").rows() == [
        ("succeeded", 1, 0), ("succeeded", 0, 0), ("succeeded", 4, 30 + LATE_OF_THE_BAD_LOAD),
    ]  # fmt: skip
    story = [(calendar.after(12), 5), (calendar.day(5, 6), 16), (calendar.day(5, 1), 5)]
    commits = lv.open_table(str(demo_lake / "daily_delays")).history().filter(operation="WRITE")
    for times in (runs["started"], commits["timestamp"]):
        assert [(time.date(), time.hour) for time in times] == story
    failed = look.expectations().filter(pl.col("rows_failed") > 0)
    assert set(failed["expectation"]) == {
        "delays are shorter than a day", "delay agrees with the clock", "destination is known", "arrival is recorded",
    }  # fmt: skip
    (quarantine,) = set(failed.filter(dataset="daily_delays")["quarantine"])
    assert quarantine == str(demo_lake / "_lakeview/quarantine/daily_delays")
    assert lv.open_table(quarantine).snapshot().num_records == 30
    inputs = look.upstream(str(demo_lake / "long_delays"), 3).select("input", "input_version").rows()
    assert set(inputs) == {(str(demo_lake / "flights"), 75), (str(demo_lake / "airlines"), 1)}


def test_long_delays_are_those_of_the_source(demo_lake: Path, source: pl.DataFrame) -> None:
    rows = lv.open_table(str(demo_lake / "long_delays")).scan().collect()
    assert sorted(rows["dep_delay"]) == sorted(source.filter(pl.col("dep_delay") >= 360)["dep_delay"])
    assert rows["airline"].null_count() == 0


def test_the_airlines_are_those_of_the_package(demo_lake: Path) -> None:
    airlines_given = list(csv.DictReader(io.StringIO((data_folder() / "airlines.csv").read_text())))
    assert lv.open_table(str(demo_lake / "airlines")).scan().collect().to_dicts() == airlines_given


def test_commits_say_what_they_are(flights: DeltaTable) -> None:
    """The words of the story are in the log, for whoever reads it."""
    actions = flights.commit(BAD + 1)
    info = json.loads(actions.filter(pl.col("kind") == "commitInfo")["action"][0])
    assert info["userMetadata"] == "period 4 again: the first delivery had delays in seconds"
    assert info["operationParameters"]["predicate"] == "period = 4"
