"""Calendars, grids, rectangles and courses of partitions: they compile, stay small, and say what they must."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from lakeview import charts, views
from lakeview.charts.theme import AnyChart
from tests.charts.drawing import check_theme
from tests.charts.test_charts import rows_of
from tests.views.story import Story
from tests.views.test_partition_map import table


def days(many: int, missing: int = 3) -> pl.DataFrame:
    first = datetime(2024, 2, 28)  # noqa: DTZ001 (keys of partitions have no zone)
    rows = [
        (f"d={first + timedelta(days=i):%Y-%m-%d}", "", first + timedelta(days=i), 1, 100 + i, 5, i == missing)
        for i in range(many)
    ]
    return pl.DataFrame(rows, schema=views.partitions.layout.TIME_PARTITIONS, orient="row")


def cells() -> pl.DataFrame:
    snapshot = table(("c", "d"), "c=A/d=1", "c=A/d=2", "c=B/d=1")
    return views.partitions.layout.partition_cells(
        snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
    )


def rects() -> pl.DataFrame:
    snapshot = table(("a", "b", "c"), "a=1/b=2/c=3", "a=1/b=2/c=4", "a=2/b=2/c=3", sizes=[5, 3, 9])
    return views.partitions.rectangles.partition_rects(
        snapshot.partition_columns, views.partitions.sizes.partition_sizes(snapshot)
    )


def history() -> pl.DataFrame:
    story = Story().append(10).append(30, files=3).optimize(1)
    return views.partitions.history.partition_history(story.files(), story.lifetimes(), story.frame(), "month=1")


def every(dark: bool) -> list[AnyChart]:
    return [
        *charts.partition_maps.partition_calendar(days(400), dark=dark),
        *charts.partition_maps.partition_heatmap(cells(), ("d", "c"), dark=dark),
        *charts.partition_maps.partition_treemap(rects(), dark=dark),
        *charts.partition_maps.partition_course(history(), dark=dark),
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_picture_compiles_in_its_own_colours(dark: bool) -> None:
    for chart in every(dark):
        check_theme(chart, dark=dark)


def test_a_heatmap_says_of_rows_that_they_are_a_bound() -> None:
    marked = cells().with_columns(mark=pl.Series(["\N{GREATER-THAN OR EQUAL TO}", "", ""]), records=pl.lit(7))
    (chart,) = charts.partition_maps.partition_heatmap(marked, ("d", "c"))
    rows_by_partition = {row["partition"]: row["rows"] for row in rows_of(chart) if "rows" in row}
    assert list(rows_by_partition.values()) == ["\N{GREATER-THAN OR EQUAL TO} 7", "7", "7"]


def test_a_calendar_has_a_panel_a_year_and_weeks_that_begin_on_monday() -> None:
    panels = charts.partition_maps.partition_calendar(days(400))
    assert len(panels) == 2
    cells = {r["partition"]: (r["week"], r["weekday"]) for r in rows_of(panels[0]) if "week" in r}
    assert cells["d=2024-03-03"] == (8, 6)  # a Sunday
    assert cells["d=2024-03-04"] == (9, 0)
    assert cells["d=2024-12-31"] == (52, 1)
    assert "✕ is missing" in panels[0].to_dict()["title"]


def test_a_calendar_of_many_years_shows_the_last_ones_and_says_so() -> None:
    panels = charts.partition_maps.partition_calendar(days(9 * 365))
    assert len(panels) == 5
    assert "5 earlier years are in the table" in panels[0].to_dict()["title"]
    assert sum(len({r["partition"] for r in rows_of(p) if "week" in r}) for p in panels) < 5 * 367


def test_a_grid_says_which_key_runs_where() -> None:
    (chart,) = charts.partition_maps.partition_heatmap(cells(), ("d", "c"))
    assert chart.to_dict()["title"]["text"] == "d across, c down; stronger is more bytes"


def test_a_grid_is_blank_where_a_step_is_missing() -> None:
    (chart,) = charts.partition_maps.partition_heatmap(cells(), ("d", "c"), axes=(["1", "2", "3"], ["A", "B"]))
    x, y = (chart.to_dict()["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
    assert (x, y) == (["1", "2", "3"], ["A", "B"])


def test_a_rectangle_says_its_partition_and_share() -> None:
    (chart,) = charts.partition_maps.partition_treemap(rects())
    shares = {r["partition"]: r["share"] for r in rows_of(chart) if "share" in r}
    assert shares["a=2/b=2/c=3"] == "52.9 %"


def test_a_missing_partition_has_a_cross_among_the_bars() -> None:
    snapshot = table(("m",), "m=2024-01", "m=2024-03")
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    steps = views.partitions.layout.time_partitions(snapshot.partition_columns, sizes)
    assert steps is not None
    panels = charts.partitions.partition_bars(views.partitions.layout.with_gaps(sizes, steps[1]))
    words = {r["partition"]: r["words"] for r in rows_of(panels[0]) if "words" in r}
    assert words == {"m=2024-01": "", "m=2024-02": "\N{MULTIPLICATION X}", "m=2024-03": ""}
    names = {r["title"] for r in rows_of(panels[0]) if "title" in r}
    assert names == {"m=2024-01", "m=2024-02; missing", "m=2024-03"}


def test_missing_partitions_are_among_the_bars_of_very_many() -> None:
    snapshot = table(("n",), *(f"n={i}" for i in range(300) if i != 150))
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    steps = views.partitions.layout.number_steps(snapshot.partition_columns, sizes)
    assert steps is not None
    panels = charts.partitions.partition_bars(views.partitions.layout.with_gaps(sizes, steps))
    words = {r["partition"]: r["words"] for r in rows_of(panels[0]) if "words" in r}
    assert (len(words), words["n=150"]) == (200, "\N{MULTIPLICATION X}")
    assert panels[0].to_dict()["title"].endswith("the 199 largest and 1 missing of 300")


def test_a_long_life_is_thinned() -> None:
    whole = pl.concat([history()] * 2000)
    for panel in charts.partition_maps.partition_course(whole):
        assert max(len(rows) for rows in panel.to_dict()["datasets"].values()) <= 1000


def test_a_commit_of_a_life_tells_of_itself_at_any_height() -> None:
    for panel in charts.partition_maps.partition_course(history()):
        (rule,) = (layer for layer in panel.to_dict()["layer"] if layer["mark"]["type"] == "rule")
        assert [field["title"] for field in rule["encoding"]["tooltip"]] == [
            "version", "committed, UTC", "operation", "bytes", "files",
        ]  # fmt: skip
        assert "y" not in rule["encoding"]


def test_nothing_gives_no_picture() -> None:
    assert charts.partition_maps.partition_calendar(days(0)) == []
    assert charts.partition_maps.partition_heatmap(cells().clear(), ("d", "c")) == []
    assert charts.partition_maps.partition_treemap(rects().clear()) == []
    assert charts.partition_maps.partition_course(history().clear()) == []
