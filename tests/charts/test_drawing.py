"""The check of drawn charts can fail: for marks without a place, and for no marks at all."""

from __future__ import annotations

import altair as alt
import jsonschema_rs
import polars as pl
import pytest

from lakeview.charts.theme import layer_charts
from tests.charts.drawing import check_drawn, check_specification, mark_counts, silent_fields


def points(*values: float | None) -> alt.Chart:
    chart: alt.Chart = alt.Chart(pl.DataFrame({"x": values, "y": values})).mark_point().encode(x="x:Q", y="y:Q")
    return chart


def test_a_specification_is_checked_against_the_schema_of_vega_lite() -> None:
    chart = layer_charts(points(1.0), points(2.0))
    spec = chart.to_dict(validate=False)
    check_specification(spec)
    spec["layer"][0]["encoding"]["x"]["scale"] = {"domian": [0, 1]}
    with pytest.raises(jsonschema_rs.ValidationError):
        check_specification(spec)


def test_so_is_every_chart_that_is_turned_into_one() -> None:
    chart = layer_charts(points(1.0), points(2.0))
    chart.layer[1]["name"] = 7
    with pytest.raises(jsonschema_rs.ValidationError):
        chart.to_dict()


def test_marks_are_counted_by_kind() -> None:
    assert mark_counts(points(1.0, 2.0, 3.0).to_dict())["symbol"] == 3
    check_drawn(points(1.0, 2.0).to_dict())


@pytest.mark.parametrize("values", [(None, None), ()], ids=["rows without a place", "no rows"])
def test_a_chart_that_draws_nothing_fails(values: tuple[None, ...]) -> None:
    with pytest.raises(AssertionError):
        check_drawn(points(*values).to_dict())


@pytest.mark.parametrize("empty", [None, "", "None"], ids=["null", "no text", "the text of None"])
def test_a_tooltip_with_an_empty_field_is_found_in_any_layer(empty: str | None) -> None:
    rows = pl.DataFrame({"x": [1.0, 2.0], "note": ["late", empty], "kind": ["a", "b"]})
    marks = alt.Chart(rows).mark_point().encode(x="x:Q", tooltip=[alt.Tooltip(f"{n}:N") for n in ("kind", "note")])
    line = alt.Chart(rows).mark_line().encode(x="x:Q")
    assert silent_fields(marks) == silent_fields(layer_charts(line, marks)) == {"note"}
    assert silent_fields(line) == set()
