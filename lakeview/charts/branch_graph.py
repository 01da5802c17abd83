"""BRANCH_GRAPH to a picture: a lane a branch, a dot a commit, a line to the commit before, names at the heads."""

from __future__ import annotations

import altair as alt
import polars as pl

from lakeview.charts.marks import label_axis, picks, texts, tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, finished, layered
from lakeview.views.units import format_moment, format_version

_OFF = "no branch"
_LANE_HEIGHT = 34
_LABELS = 110


def branch_graph_chart(graph: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """One chart; a click on a commit picks its `version`. [] without commits."""
    if graph.is_empty():
        return []
    p = palette(dark)
    lanes = [lane or _OFF for lane in graph["lane"].unique(maintain_order=True)]
    dots = pl.DataFrame(
        {
            "version": graph["version"].cast(pl.String),
            "place": graph["place"],
            "lane": graph["lane"].replace("", _OFF),
            "parent_place": graph["parent_place"],
            "parent_lane": graph["parent_lane"].replace("", _OFF),
            "name": texts(graph["version"], format_version),
            "committed": texts(graph["timestamp"], format_moment),
            "operation": graph["operation"].fill_null("unknown"),
            "refs": graph["refs"],
        }
    )
    x = alt.X("place:Q", axis=None, scale=alt.Scale(domain=[-0.5, graph.height - 0.5 + max(1, graph.height // 8)]))
    y = alt.Y("lane:N", sort=None, scale=alt.Scale(domain=lanes), axis=label_axis(_LABELS))
    tooltip = tooltips(
        (("name", "version"), ("version", "id"), ("committed", "committed, UTC"), ("operation", "operation"))
    )
    heads = dots.drop_nulls("refs")
    layers: list[AnyChart] = [
        alt.Chart(dots.drop_nulls("parent_place"))
        .mark_rule(color=p.axis, strokeWidth=1.6)
        .encode(x=x, y=y, x2="parent_place:Q", y2="parent_lane:N"),
        alt.Chart(dots)
        .mark_circle(size=60, color=p.gray, opacity=1)
        .encode(x=x, y=y, tooltip=tooltip)
        .add_params(picks("version")),
        alt.Chart(heads).mark_circle(size=90, color=p.blue, opacity=1).encode(x=x, y=y, tooltip=tooltip),
        alt.Chart(heads)
        .mark_text(align="left", dx=8, dy=-9, color=p.blue_text, fontSize=11)
        .encode(x=x, y=y, text="refs:N"),
    ]
    return [finished(layered(*layers), p, height=_LANE_HEIGHT * len(lanes))]
