"""Every page works on every table of the demo lake, and the demo's planted troubles are pointed at."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview import views
from lakeview.app import commits, widths
from lakeview.app.lake import survey
from lakeview.views.health.findings import NUMBERS
from tests.breadth import with_breadth
from tests.pages.app import TABLE_PAGES, column_widths, open_page, text

TABLES = ("flights", "airlines", "claims", "daily_delays", "departures", "weather")
TABLES_DRAWN = with_breadth(["claims"], TABLES)
"""The browser sees every page on `flights` and `departures` (`tests/browser/test_every_page.py`)."""


@pytest.fixture(autouse=True)
def demo(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKEVIEW_DEMO", str(demo_lake))
    return demo_lake


@pytest.mark.parametrize("table", TABLES_DRAWN)
@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_draws_a_demo_table(page: str, table: str) -> None:
    app = open_page(page, f"demo/{table}")
    assert not app.exception
    assert f"{app.query_params['table']}" == f"demo/{table}"


def test_partitions_with_their_ranges_fit_a_narrow_page() -> None:
    (table,) = open_page("quality", "demo/flights", tab="By partition", column="visibility").dataframe
    assert "range_is" in table.value.columns
    assert sum(column_widths(table).values()) <= widths.PLACE - widths.TICK_BOXES


def test_ids_of_branches_are_whole_on_a_narrow_page() -> None:
    tables = open_page("timeline", "demo/departures", tab="Branches and tags").dataframe
    (table,) = [table for table in tables if "ahead" in table.value.columns]
    pixels = column_widths(table)
    assert pixels["id"] >= widths.heading_width(max(table.value["id"], key=len))
    assert sum(pixels.values()) <= widths.PLACE - widths.TICK_BOXES


def test_writers_of_commits_are_whole_beside_the_chart() -> None:
    (table,) = open_page("timeline", "demo/departures").dataframe
    pixels = column_widths(table)
    wider, share = 508 - commits._PLACE, 1 / len(pixels)  # 508 pixels on a page of 1440; columns grow alike
    assert "pyiceberg 0.12.0" in set(table.value["writer"])
    assert pixels["writer"] + wider * share >= 98, "pixels that a browser draws it in, with the space around"


def test_the_start_page_shows_the_demo() -> None:
    app = open_page("start")
    assert not app.exception
    assert app.button(key="open-demo").label == "Open demo / flights"
    rows = app.dataframe[0].value
    assert set(rows["table"]) == {f"demo / {table}" for table in (*TABLES, "long_delays")}
    assert (rows["state"][0], rows["table"][0]) == ("▲", "demo / flights")  # the worst first
    assert "v75: visibility is null in 100 % of 776 rows" in text(app)


def test_the_overview_says_how_late_the_data_is_and_counts_the_findings_it_does_not_show(demo: Path) -> None:
    app = open_page("overview", "demo/flights")
    (last,) = [metric for metric in app.metric if metric.label == "Last commit"]
    assert last.delta == "data 1 day behind"
    severities = lv.open_table(str(demo / "flights")).health()["severity"].to_list()
    attention, notes = severities.count("attention"), severities.count("note")
    assert f"but {NUMBERS[attention]} need attention" in text(app)
    rest = f"{attention + notes - 3} more findings: {attention - 3} need attention, {notes} notes"
    assert [link.label for link in app.page_link if rest in link.label]


def test_the_pipelines_page_shows_the_runs_of_the_demo() -> None:
    app = open_page("pipelines")
    assert not app.exception
    assert "5 rows of 249 failed **arr_delay IS NOT NULL**" in text(app)
    assert len(app.selectbox(key="run").options) == 3


@pytest.mark.parametrize(
    ("page", "troubles"),
    [
        ("overview", ["v75: visibility is null in 100 % of 776 rows, expected 0 %"]),
        ("health", ["History has a hole: v4 cannot be read"]),
        ("files", ["are smaller than 1 MiB", "have no statistics"]),
        ("partitions", ["days late"]),
        (
            "quality",
            [
                "v4: dep_delay reaches 57,600",
                "dest is null in 9.7 % of 30,741 rows, expected 0 %; repaired by v5",
                "v29: arr_time is null in 14.5 %",
                "period=5 arrived 81 days late",
            ],
        ),
    ],
)
def test_a_page_points_at_planted_troubles(page: str, troubles: list[str]) -> None:
    words = text(open_page(page, "demo/flights"))
    assert [trouble for trouble in troubles if trouble not in words] == []


def test_the_timeline_marks_the_loads_that_the_findings_name(demo_lake: Path) -> None:
    look = lv.inspect(lv.open_table(str(demo_lake / "flights")))
    commits = {f.commit for f in look.findings() if f.id in ("load-anomaly", "load-anomaly-repaired")}
    assert commits == {4, 24, 29, 74, 75} == set(look.timeline().filter("suspicious")["version"])
    assert look.findings()[0].command == f"RESTORE TABLE delta.`{demo_lake / 'flights'}` TO VERSION AS OF 73"


def test_no_alarm_is_raised_about_a_clean_table() -> None:
    page_text = text(open_page("quality", "demo/claims"))
    assert "No anomalous loads" in page_text
    assert "expected at most" not in page_text


def test_what_another_branch_gets_is_no_news_of_main(demo: Path) -> None:
    table = lv.open_table(demo / "departures")
    head = table.snapshot().version
    last = table.history().filter(pl.col("version") == head)["timestamp"].item()
    assert table.history()["timestamp"].max() > last
    assert f"{views.units.format_moment(last)} UTC" in text(open_page("quality", "demo/departures"))
    entry = views.lake.LakeEntry("departures", str(demo / "departures"), "iceberg")
    assert survey.read_table(entry, datetime(2027, 1, 1, tzinfo=UTC)).last == last


def test_files_are_told_apart_by_what_their_paths_do_not_share() -> None:
    app = open_page("files", "demo/departures")
    names = next(frame.value for frame in app.dataframe if "size" in frame.value.columns)["file"]
    assert not any("/" in name for name in names), "the partition has a column of its own"
    option = app.selectbox(key="pick_file").options[1]
    app.selectbox(key="pick_file").select_index(1).run()
    assert option.startswith("flight_month=")
    assert app.query_params["file"].endswith(f"/departures/data/{option}")
