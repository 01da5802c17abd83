"""What a filter reads and how files are told apart, as pictures: they compile, stay small, and say what they must."""

from __future__ import annotations

import json
from datetime import timedelta

import polars as pl
import pytest

from lakeview import charts, views
from lakeview.charts.theme import AnyChart
from tests.charts.drawing import check_theme
from tests.charts.test_charts import rows_of
from tests.views.story import START


def explanation(**files: int) -> pl.DataFrame:
    rows = [
        (reason, files.get(reason, 0), 100 * files.get(reason, 0)) for reason in ("kept", "partition", "range", "nulls")
    ]
    return pl.DataFrame(rows, schema=views.pruning.plan.EXPLAINED, orient="row")


def columns(many: int) -> pl.DataFrame:
    rows = [(f"c{i}", "integer", 10, 8, 0, 2, 0.8, 1.0, True, 1.5, 3, 3.5, 0.35) for i in range(many)]
    return pl.DataFrame(rows, schema=views.pruning.clustering.CLUSTERING, orient="row")


def profile(places: int) -> pl.DataFrame:
    rows = [(i, f"value {i} of a long column", 1 + i % 3, 2 + i % 3) for i in range(places)]
    return pl.DataFrame(rows, schema=views.pruning.clustering.DEPTHS, orient="row")


def course(versions: int) -> pl.DataFrame:
    rows = [(v, START + timedelta(days=v), 10, 1.0, 1.5, 1.5, 0.15) for v in range(versions)]
    return pl.DataFrame(rows, schema=views.pruning.clustering.CLUSTERING_COURSE, orient="row")


def every(dark: bool) -> list[AnyChart]:
    return [
        *charts.pruning.read_bars(
            [("v1", explanation(kept=3, partition=2)), ("v2", explanation(kept=1, range=3, nulls=1))], dark=dark
        ),
        *charts.pruning.clustering_bars(columns(3), selection="c1", dark=dark),
        *charts.pruning.depth_chart(profile(9), 10, column="c1", dark=dark),
        *charts.pruning.clustering_course_chart(course(5), dark=dark),
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_picture_compiles_in_its_own_colours(dark: bool) -> None:
    for chart in every(dark):
        check_theme(chart, dark=dark)


def test_pieces_of_a_bar_follow_each_other_and_are_named() -> None:
    files, _ = charts.pruning.read_bars([("v1", explanation(kept=1, partition=2, range=1))])
    pieces = {r["word"]: (r["begin"], r["end"], r["text"]) for r in rows_of(files)}
    assert pieces["read"] == (0, 0.25, "read 1")
    assert pieces["skipped by partition"] == (0.25, 0.75, "skipped by partition 2")
    assert pieces["by min and max"] == (0.75, 1, "by min and max 1")


def test_two_versions_have_a_bar_each_in_the_order_given() -> None:
    files, _ = charts.pruning.read_bars([("v9", explanation(kept=1)), ("v10", explanation(kept=2))])
    assert '["v9", "v10"]' in files.to_json(indent=None)


def test_columns_beyond_what_a_picture_holds_are_left_to_the_table() -> None:
    (chart,) = charts.pruning.clustering_bars(columns(500))
    assert len({r["column"] for r in rows_of(chart)}) == 60


def test_figures_of_bars_have_the_same_decimals() -> None:
    (chart,) = charts.pruning.clustering_bars(columns(2).with_columns(reads=pl.Series([2.5, 4.0])))
    assert [row["figure"] for row in rows_of(chart)] == ["2.5 of 10", "4.0 of 10"]


def test_columns_whose_names_begin_alike_have_labels_that_differ() -> None:
    names = [f"lifetime_value_estimate_for_region_{place:02}" for place in range(3)]
    (chart,) = charts.pruning.clustering_bars(columns(3).with_columns(column=pl.Series(names)))
    specification = json.dumps(chart.to_dict())
    assert "on_02" in specification.partition('"labelExpr": "[')[2].partition("indexof")[0]
    (chart,) = charts.pruning.clustering_bars(columns(3))
    assert "indexof" not in json.dumps(chart.to_dict())


def test_a_column_is_picked_by_a_click() -> None:
    (chart,) = charts.pruning.clustering_bars(columns(3))
    assert [param["name"] for param in chart.to_dict()["params"]] == ["picked"]


def test_counts_have_no_labels_at_fractions() -> None:
    (chart,) = charts.pruning.depth_chart(profile(2), 10, column="c")
    assert '"labelExpr": "datum.value % 1 ? \'\' : ' in json.dumps(chart.to_dict())


def test_labels_of_timestamps_have_seconds_only_where_they_are_not_0_and_no_fractions() -> None:
    texts = pl.Series("value_text", ["2026-11-22 11:00:00", "2026-11-22 11:00:05.721000"])
    (chart,) = charts.pruning.depth_chart(profile(2).with_columns(texts), 10, column="c")
    assert '{"0": "2026-11-22 11:00", "1": "2026-11-22 11:00:05"}' in json.dumps(chart.to_dict()).replace('\\"', '"')


def test_nothing_gives_no_picture() -> None:
    assert charts.pruning.read_bars([("v1", explanation())]) == []
    assert charts.pruning.read_bars([]) == []
    assert charts.pruning.clustering_bars(columns(2).with_columns(reads=pl.lit(None, pl.Float64))) == []
    assert charts.pruning.depth_chart(profile(0), 0, column="c") == []
    assert (
        charts.pruning.clustering_course_chart(course(3).with_columns(timestamp=pl.lit(None, pl.Datetime("ms", "UTC"))))
        == []
    )
