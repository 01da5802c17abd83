"""Pictures of trends and differences: at most so many marks, nothing drawn for nothing, both themes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import altair as alt
import polars as pl
import pytest

from lakeview import charts, views
from lakeview.charts.marks import from_zero
from lakeview.charts.palette import LIGHT, palette
from lakeview.charts.quality import MOST_POINTS
from lakeview.charts.theme import finish_chart
from tests.charts.drawing import drawn
from tests.views.story import Story

START = datetime(2026, 1, 1, tzinfo=UTC)


def trend(loads: int, odd: int | None = None) -> pl.DataFrame:
    rows = [
        (i, START + timedelta(hours=i), "feed", 900.0 if i == odd else 1.0 + i % 3, "", 0.0, 4.0, i == odd, False, None)
        for i in range(loads)
    ]
    return pl.DataFrame(rows, schema=views.quality.trends.LOAD_TREND, orient="row")


def marks(chart: charts.theme.AnyChart) -> int:
    return sum(len(rows) for rows in chart.to_dict()["datasets"].values())


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", ["share", "count", "number", "days"])
def test_a_trend_names_the_load_that_falls_out(kind: charts.quality.TrendKind, dark: bool) -> None:
    (chart,) = charts.quality.load_trend_chart(trend(30, odd=12), "x", kind, dark=dark)
    assert ", v12" in str(chart.to_dict())


def test_a_load_outside_the_band_that_is_no_anomaly_is_marked_and_says_why() -> None:
    rows = trend(30).with_columns(value=pl.when(pl.col("version") == 12).then(9.0).otherwise("value"))
    (chart,) = charts.quality.load_trend_chart(rows, "x")
    near = {row["load"]: row["usual"] for data in chart.to_dict()["datasets"].values() for row in data if row["near"]}
    assert near == {"v12": "0 to 4; not far enough outside for an anomaly"}


@pytest.mark.parametrize("repaired", [False, True])
def test_a_bad_load_is_red_until_it_is_repaired(repaired: bool) -> None:
    rows = trend(30, odd=12).with_columns(repaired=pl.lit(repaired))
    (chart,) = charts.quality.load_trend_chart(rows, "x")
    colours = {row["color"] for data in chart.to_dict()["datasets"].values() for row in data if "color" in row}
    p = charts.palette.palette(dark=False)
    assert colours == {p.orange if repaired else p.red}


@pytest.mark.parametrize(
    ("days", "unit", "axis"),
    [
        (90.0, "90.0 days", "days"),
        (0.5, "12.0 hours", "hours"),
        (0.005, "7.2 minutes", "minutes"),
        (1e-8, "0.0 seconds", "seconds"),
        (0.0, "0.0 days", "days"),
    ],
)
def test_days_are_told_in_the_unit_that_fits_them(days: float, unit: str, axis: str) -> None:
    rows = trend(30).with_columns(value=pl.lit(days), band_low=pl.lit(0.0), band_high=pl.lit(days))
    (chart,) = charts.quality.load_trend_chart(rows, "Since the load before", "days")
    spec = chart.to_dict()
    assert f"Since the load before, {axis}" in str(spec)
    assert unit in {row["figure"] for data in spec["datasets"].values() for row in data if "figure" in row}


@pytest.mark.parametrize(("highest", "form"), [(9_000.0, "',.4~r'"), (15_000.0, "'.3~s'")])
def test_the_labels_of_an_axis_have_one_form(highest: float, form: str) -> None:
    (chart,) = charts.quality.load_trend_chart(trend(30).with_columns(value=pl.lit(highest)), "x")
    axes = {str(layer["encoding"]["y"].get("axis")) for layer in chart.to_dict()["layer"] if "y" in layer["encoding"]}
    labels = [axis for axis in axes if "labelExpr" in axis]
    assert labels
    assert all(form in axis and "?" not in axis for axis in labels)


def test_the_tooltip_of_the_whole_table_has_no_writer_and_no_expected_range() -> None:
    of_loads, of_table = trend(30), trend(30).with_columns(writer=None, band_low=None, band_high=None)
    titles = []
    for rows in (of_loads, of_table):
        (chart,) = charts.quality.load_trend_chart(rows.cast(views.quality.trends.LOAD_TREND), "x")
        titles.append([tip["title"] for tip in chart.to_dict()["layer"][-1]["encoding"]["tooltip"]])
    assert titles == [["load", "committed, UTC", "by", "value", "expected"], ["load", "committed, UTC", "value"]]


def test_the_label_of_an_anomaly_below_zero_stands_on_no_axis() -> None:
    rows = trend(30, odd=12).with_columns(value=pl.when("outside").then(-500.0).otherwise("value"))
    (chart,) = charts.quality.load_trend_chart(rows, "x", "number")
    scales = [layer["encoding"]["y"].get("scale", {}) for layer in chart.to_dict()["layer"] if "y" in layer["encoding"]]
    domains = [scale["domain"] for scale in scales if "domain" in scale]
    assert domains
    assert all(low < -500 and high >= 0 for low, high in domains)


def test_a_trend_without_anomalies_has_no_layer_without_rows() -> None:
    """Vega warns of a field that no row has."""
    (chart,) = charts.quality.load_trend_chart(trend(30).with_columns(outside=pl.lit(value=False)), "x")
    assert all(chart.to_dict()["datasets"].values())


def test_a_band_of_rows_by_the_days_passed_says_so() -> None:
    (chart,) = charts.quality.load_trend_chart(trend(3).with_columns(band_days=pl.Series([None, 61.0, 0.5])), "Rows")
    spec = chart.to_dict()
    assert "Rows; band by the days passed" in str(spec)
    expected = {row["usual"] for data in spec["datasets"].values() for row in data if "usual" in row}
    assert expected == {"0 to 4", "0 to 4 after 61 days", "0 to 4 after 12 h"}


def test_a_long_trend_is_thinned_and_keeps_what_falls_out() -> None:
    (chart,) = charts.quality.load_trend_chart(trend(20_000, odd=777), "x")
    assert marks(chart) <= 3 * MOST_POINTS <= 5_000
    assert "v777" in str(chart.to_dict())


def test_a_trend_without_values_is_no_chart() -> None:
    assert charts.quality.load_trend_chart(pl.DataFrame(schema=views.quality.trends.LOAD_TREND), "x") == []


def test_one_load_far_beyond_the_others_makes_the_scale_logarithmic() -> None:
    (far,), (near,) = (charts.quality.load_trend_chart(trend(30, odd=odd), "x") for odd in (3, None))
    assert "symlog" in str(far.to_dict())
    assert "symlog" not in str(near.to_dict())


def labels(chart: charts.theme.AnyChart, role: int, width: int = 400) -> list[str]:
    """The words along an axis as drawn: 0 the first, 1 the second."""
    axis = re.findall(r'role-axis-label".*?</g>', drawn(chart, width))[role]
    return re.findall(r'opacity="1">([^<]+)</text>', axis)


def test_a_logarithmic_scale_is_marked_by_powers_of_ten() -> None:
    value = pl.when(pl.col("version") == 3).then(1.0).otherwise(0.01)
    rows = trend(30, odd=3).with_columns(value=value, band_high=pl.lit(0.02))
    (chart,) = charts.quality.load_trend_chart(rows, "x", "share")
    assert labels(chart, 1) == ["0", "1", "10", "100"]


def test_so_is_one_of_delays_from_zero_on() -> None:
    value = pl.when(pl.col("version") == 3).then(81.0).otherwise(1.2)
    rows = trend(30, odd=3).with_columns(value=value, band_low=pl.lit(1.1), band_high=pl.lit(1.3))
    (chart,) = charts.quality.load_trend_chart(rows, "x", "days")
    assert labels(chart, 1) == ["0", "1", "10"]


def test_an_axis_from_zero_ends_with_a_label() -> None:
    rows = pl.DataFrame({"x": [0, 1], "y": [20.0, 98.0]})
    chart = alt.Chart(rows).mark_line().encode(x="x:Q", y=alt.Y("y:Q", scale=from_zero()))
    assert labels(finish_chart(chart, LIGHT, height=72), 1) == ["0", "50", "100"]


@pytest.mark.parametrize("panel", [0, 2])
def test_no_label_of_an_axis_of_counts_lies_between_two_numbers(panel: int) -> None:
    story = Story()
    for month in range(30):
        story.append(1, month=month)
    chart = charts.partitions.partition_bars(views.partitions.sizes.partition_sizes(story.snapshot()))[panel]
    assert labels(chart, 1 if panel else 0) == ["0", "1"]


def test_what_is_zero_throughout_lies_on_the_ground_of_a_scale() -> None:
    rows = trend(30, odd=None).with_columns(value=0.0, band_low=0.0, band_high=0.0)
    (chart,) = charts.quality.load_trend_chart(rows, "x", "share")
    assert labels(chart, 1) == ["0", "0.5", "1"]


@pytest.mark.parametrize("low", [21.9871, 1.18, 0.4])
def test_a_scale_of_days_that_hardly_differ_says_no_number_twice(low: float) -> None:
    value = low + pl.col("version") * 1e-5
    rows = trend(30).with_columns(value=value, band_low=value, band_high=value)
    (chart,) = charts.quality.load_trend_chart(rows, "x", "days")
    texts = labels(chart, 1)
    assert len(set(texts)) == len(texts) >= 2


@pytest.mark.parametrize("hours", [0.001, 0.002, 0.004, 0.02, 0.1, 2, 30, 80, 200, 500, 2_000, 9_000, 50_000])
def test_a_time_axis_says_no_moment_twice(hours: float) -> None:
    rows = trend(3).with_columns(timestamp=pl.Series([START + timedelta(hours=hours * i / 2) for i in range(3)]))
    (chart,) = charts.quality.load_trend_chart(rows, "x")
    texts = labels(chart, 0, 420)
    days = [label for label in texts if ":" not in label]
    assert len(texts) >= 2
    assert len(set(days)) == len(days)
    assert hours > 24 or len(set(texts)) == len(texts)


@pytest.mark.parametrize("first", [11, 12, 2])
def test_a_time_axis_names_the_year_by_one_month(first: int) -> None:
    begin = datetime(2026, first, 27, tzinfo=UTC)
    rows = trend(3).with_columns(timestamp=pl.Series([begin + timedelta(days=100 * i) for i in range(3)]))
    (chart,) = charts.quality.load_trend_chart(rows, "x")
    texts = labels(chart, 0, 420)
    assert [label for label in texts if "20" in label] == ["Mar 2026" if first == 2 else "Jan 2027"]


@pytest.mark.parametrize(("loads", "is_dotted"), [(1, True), (2, True), (30, False)])
def test_few_loads_are_seen_without_a_line_between_them(loads: int, is_dotted: bool) -> None:
    (chart,) = charts.quality.load_trend_chart(trend(loads), "x")
    svg = drawn(chart, 400)
    assert svg.count('aria-roledescription="point"') == (loads if is_dotted else 0)


@pytest.mark.parametrize("dark", [False, True])
def test_differences_are_bars_both_ways_at_most_forty(dark: bool) -> None:
    rows = [(f"day={i}", i % 5, i % 3 if i else 0, 0, 10, 10, None, None) for i in range(300)]
    (chart,) = charts.compare.partition_diff_chart(
        pl.DataFrame(rows, schema=views.compare.versions.PARTITION_DIFF, orient="row"), dark=dark
    )
    assert marks(chart) <= 81
    assert "day=0" not in str(chart.to_dict())  # neither added nor removed
    assert charts.compare.partition_diff_chart(pl.DataFrame(schema=views.compare.versions.PARTITION_DIFF)) == []


@pytest.mark.parametrize("dark", [False, True])
def test_shifts_label_only_what_moved(dark: bool) -> None:
    rows = [
        ("a", "shifted", 0.1, 0.5, "", "", 0.4, 0.25, "25.0 % before v3", None, None, None, None, None),
        ("b", "new", None, 0.7, None, "\N{LESS-THAN OR EQUAL TO}", None, None, None, None, None, None, None, None),
        ("c", "same", 0.2, 0.2, "", "", 0.0, None, None, None, None, None, None, None),
    ]
    (chart,) = charts.compare.shift_chart(
        pl.DataFrame(rows, schema=views.compare.statistics.STATISTICS_SHIFT, orient="row"), dark=dark
    )
    pale = chart.to_dict()["layer"][0]
    assert (pale["mark"]["type"], pale["mark"]["color"]) == ("bar", palette(dark).absent)
    assert [row["absent_text"] for row in chart.to_dict()["datasets"][pale["data"]["name"]]] == ["25.0 % before v3"]
    words = [layer["mark"].get("stroke") for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "text"]
    assert words == [palette(dark).page, None] * 3, "the bar does not cross the words out"
    labels = [row["label"] for rows_ in chart.to_dict()["datasets"].values() for row in rows_ if "label" in row]
    assert labels[1:3] == ["10.0 % \N{RIGHTWARDS ARROW} 50.0 %", "new, \N{LESS-THAN OR EQUAL TO} 70.0 %"]
    assert charts.compare.shift_chart(pl.DataFrame(schema=views.compare.statistics.STATISTICS_SHIFT)) == []
