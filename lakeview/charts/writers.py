"""Marks of commits to one lane a writer: who writes when, and what, by colour and shape."""

from __future__ import annotations

import altair as alt
import polars as pl

from lakeview.charts.commit_marks import marked, tooltip_rows
from lakeview.charts.marks import tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, finished, layered, time_axis, time_domain
from lakeview.model.printable import shorten

_LONGEST = 26
_ROW = 22


def writer_lanes(marks: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """One lane a writer, the busiest on top; shapes and colours as on the timeline. `marks`: THINNED, as `writer_marks`
    names the writers; [] where no commit has a time."""
    commits = marks.drop_nulls("timestamp")
    if commits.is_empty():
        return []
    p = palette(dark)
    sums = commits.group_by("writer").agg(pl.col("commits").sum()).sort("commits", "writer", descending=[True, False])
    names = {name: shorten(name, _LONGEST) for name in sums["writer"]}
    if len(set(names.values())) < len(names):  # two that begin alike
        names = {name: name for name in names}
    rows = marked(commits, tooltip_rows(commits), p).with_columns(lane_of=commits["writer"].replace_strict(names))
    y = alt.Y(
        "lane_of:O",
        title=None,
        sort=None,
        scale=alt.Scale(domain=list(names.values())),
        axis=alt.Axis(grid=True, tickBand="center", minExtent=150, maxExtent=190, labelLimit=180),
    )
    domain = time_domain(commits["timestamp"])
    fields = (("version_text", "version"), ("committed", "committed, UTC"), ("operation", "operation"),
            ("writer", "writer"), ("change", "rows added, removed"))  # fmt: skip
    points = (
        alt.Chart(rows)
        .mark_point(filled=True, opacity=0.9)
        .encode(
            x=time_axis(domain, labels=True),
            y=y,
            color=alt.Color("color:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
            size=alt.Size("size:Q", scale=None),
            tooltip=tooltips(fields),
        )
    )
    return [finished(layered(points), p, height=_ROW * len(names))]
