"""The curves of a cleanup and the cost of history: both themes, few marks, and the figures in words."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from lakeview import charts, views
from lakeview.charts.palette import palette
from tests.charts.drawing import check_drawn, check_theme
from tests.charts.test_charts import MOST_MARKS, rows_of
from tests.views.story import Story, flights
from tests.views.test_retention import found_in, story


def retention_charts(past: Story, *, dark: bool) -> list[charts.theme.AnyChart]:
    retention = found_in(past)
    cost = views.retention.cost.history_cost(retention, views.timeline.commits.timeline(past.frame(), past.lifetimes()))
    curves = charts.retention.retention_curves(
        views.retention.simulation.retention_curve(retention), 7.0, longest=60.0, dark=dark
    )
    return [*curves, charts.retention.history_cost_bars(cost, dark=dark)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_they_compile_in_both_themes_in_their_own_colours(dark: bool) -> None:
    for chart in retention_charts(flights(), dark=dark):
        assert chart.to_dict()["config"]["title"]["color"] == palette(dark).text
        check_theme(chart, dark=dark)


def test_a_long_past_sends_few_marks() -> None:
    past = Story()
    for _ in range(600):
        past.append(1).delete(past.version)
    for chart in retention_charts(past, dark=False):
        assert len(rows_of(chart)) <= MOST_MARKS


def test_the_dot_says_what_the_simulation_says() -> None:
    retention = found_in(story())
    done = views.retention.simulation.simulate(retention, timedelta(days=20))
    freed, versions_lost = charts.retention.retention_curves(
        views.retention.simulation.retention_curve(retention), 20.0, longest=60.0
    )
    dots = [[row["figure"] for row in rows_of(c) if "retention" not in row] for c in (freed, versions_lost)]
    assert dots == [[views.units.format_bytes(done.bytes)], [str(done.versions)]]


@pytest.mark.parametrize(
    ("versions", "lists_all_files", "texts"),
    [(3, False, ("unknown", "unknown")), (0, False, ("0 B", "0")), (3, True, ("0 B", "0"))],
)
def test_bytes_and_files_that_the_log_does_not_list_are_unknown_and_not_none(
    versions: int, lists_all_files: bool, texts: tuple[str, str]
) -> None:
    curve = pl.DataFrame([(0.0, 0, 0, versions)], schema=views.retention.simulation.CURVE.names(), orient="row").cast(
        views.retention.simulation.CURVE
    )
    freed, _ = charts.retention.retention_curves(curve, 7.0, longest=60.0, lists_all_files=lists_all_files)
    assert {(row["figure"], row.get("files", texts[1])) for row in rows_of(freed)} == {texts}


def test_the_axis_has_the_unit_of_the_figure_at_its_dot() -> None:
    size = int(1.87 * (1 << 20))
    curve = pl.DataFrame([(0.0, size, 1, 1)], schema=views.retention.simulation.CURVE.names(), orient="row").cast(
        views.retention.simulation.CURVE
    )
    freed, _ = charts.retention.retention_curves(curve, 7.0, longest=60.0)
    assert freed.to_dict()["title"] == "Bytes freed, MiB, by days retained"
    assert {row["figure"] for row in rows_of(freed)} == {"1.87 MiB"}


def test_commits_beyond_the_dearest_are_told_together() -> None:
    past = Story()
    for number in range(20):
        past.append(1, size=100 + number).delete(past.version)
    chart = retention_charts(past, dark=False)[2]
    commits = [row["commit"] for row in rows_of(chart)]
    assert commits[0] == "v39 · DELETE"
    assert commits[-1] == "8 other commits"


def test_a_table_that_lost_nothing_is_drawn() -> None:
    curve = views.retention.simulation.retention_curve(found_in(Story().append(1)))
    assert curve.select(pl.col("bytes").sum()).item() == 0
    for chart in charts.retention.retention_curves(curve, 7.0, longest=14.0):
        check_drawn(chart.to_dict(), 300)
