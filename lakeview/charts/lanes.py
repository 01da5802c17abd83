"""Marks of commits, COLUMN_LIVES or BRANCH_GRAPH to lanes: one a writer, a column or a branch."""

from datetime import datetime
from typing import Any

import altair as alt
import polars as pl

from lakeview.charts.commit_marks import style_marks, tooltip_rows
from lakeview.charts.compare import change_text
from lakeview.charts.marks import as_given, label_axis, lanes, picks, targets, texts, tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts, time_axis, time_domain
from lakeview.model.printable import shorten, shorten_apart
from lakeview.views.units import format_moment, format_version

_LONGEST = 26
_LANE: dict[str, Any] = {"minExtent": 150, "maxExtent": 190, "labelLimit": 180}
_WRITER_HEIGHT, _COLUMN_HEIGHT, _BRANCH_HEIGHT = 22, 16, 34


def writer_lanes(marks: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """One lane a writer, the busiest on top; shapes and colours as on the timeline. `marks`: SAMPLED, as `writer_marks`
    names the writers; [] where no commit has a time. A click picks `version`."""
    commits = marks.drop_nulls("timestamp")
    if commits.is_empty():
        return []
    p = palette(dark)
    sums = commits.group_by("writer").agg(pl.col("commits").sum()).sort("commits", "writer", descending=[True, False])
    names = {name: shorten(name, _LONGEST) for name in sums["writer"]}
    if len(set(names.values())) < len(names):  # two that begin alike
        names = {name: name for name in names}
    rows = style_marks(commits, tooltip_rows(commits), p).with_columns(lane_of=commits["writer"].replace_strict(names))
    y = lanes("lane_of:O", list(names.values()), alt.Axis(grid=True, tickBand="center", **_LANE))
    domain = time_domain(commits["timestamp"])
    fields = (("version_text", "version"), ("committed", "committed, UTC"), ("operation", "operation"),
            ("writer", "writer"), ("change", "rows added, removed"))  # fmt: skip
    base = alt.Chart(rows).encode(x=time_axis(domain, labels=True), y=y, tooltip=tooltips(fields))
    points = base.mark_point(filled=True, opacity=0.9).encode(**as_given("color", "shape", "size"))
    return [finish_chart(layer_charts(points, targets(base, "version")), p, height=_WRITER_HEIGHT * len(names))]


_MOST_COLUMNS = 60
_SHAPES = {"added": "circle", "dropped": "cross", "renamed": "triangle-up", "type": "diamond"}


def column_lanes(lives: pl.DataFrame, history: pl.DataFrame, until: datetime, *, dark: bool = False) -> list[AnyChart]:
    """One picture. At most _MOST_COLUMNS, those that changed or ended first; [] without a column of a known time.

    COLUMN_HISTORY has to be in its own order, which tells the lives of a column apart. A click on a change picks its
    `commit`.
    """
    births = lives.with_row_index("lane").drop_nulls("born_timestamp")
    if births.is_empty():
        return []
    eventful = pl.col("changes") + pl.col("dropped").is_not_null().cast(pl.Int64)
    rows = births.sort(eventful, descending=True, maintain_order=True).head(_MOST_COLUMNS).sort("lane")
    p = palette(dark)
    # as column_lives counts them: a column dropped and added again has two lives
    events = history.with_columns(lane=((pl.col("change") == "added").cum_sum() - 1).cast(pl.UInt32))
    events = events.join(rows.select("lane"), on="lane", how="semi").drop_nulls("timestamp")
    drops = events.filter(pl.col("change") == "dropped").select("lane", ended="timestamp").unique("lane", keep="last")
    moments = pl.concat([events["timestamp"], pl.Series([until], dtype=events["timestamp"].dtype)])
    domain = time_domain(moments)
    lines = rows.join(drops, on="lane", how="left", maintain_order="left").select(
        "lane", timestamp="born_timestamp", until=pl.col("ended").fill_null(domain[1])
    )
    names = dict(zip(rows["lane"], shorten_apart(rows["column"].to_list(), _LONGEST), strict=True))
    order = [str(lane) for lane in names]
    labels = ", ".join(f"'{lane}': {_string_literal(name)}" for lane, name in names.items())
    y = lanes("lane:O", order, alt.Axis(grid=False, labelExpr=f"({{{labels}}})[datum.value]", **_LANE))
    text = pl.col("lane").cast(pl.String)
    bars = (
        alt.Chart(lines.with_columns(text))
        .mark_rule(strokeWidth=3, color=p.quiet)
        .encode(x=time_axis(domain, labels=True), x2="until:T", y=y)
    )
    base = alt.Chart(_events(events, p).with_columns(text)).encode(
        x=time_axis(domain, labels=True), y=y, tooltip=tooltips(_TOOLTIP)
    )
    points = base.mark_point(filled=True, opacity=1, size=46).encode(**as_given("color", "shape"))
    return [finish_chart(layer_charts(bars, points, targets(base, "commit")), p, height=_COLUMN_HEIGHT * len(order))]


_TOOLTIP = (
    ("column", "column"), ("change", "change"),
    ("version", "version"), ("committed", "committed, UTC"), ("writer", "writer"),
)  # fmt: skip


def _events(events: pl.DataFrame, p: Palette) -> pl.DataFrame:
    colours = {"added": p.green, "dropped": p.orange, "comment": p.gray, "metadata": p.gray, "default": p.gray}
    writer = events["writer"] if "writer" in events.columns else pl.Series([None] * events.height, dtype=pl.String)
    return events.select(
        "lane",
        "timestamp",
        "column",
        change=_changes(events),
        color=pl.col("change").replace_strict(colours, default=p.violet, return_dtype=pl.String),
        shape=pl.col("change").replace_strict(_SHAPES, default="square", return_dtype=pl.String),
        version=texts(events["version"], format_version),
        commit=pl.col("version").cast(pl.String),
        committed=texts(events["timestamp"], format_moment),
        writer=writer.fill_null("unknown"),
    )


def _changes(events: pl.DataFrame) -> pl.Series:
    """`type: int → long`, `added: int`: two fields of their own would be empty for most changes."""
    changes = [change_text(before, after) for before, after in events.select("before", "after").iter_rows()]
    return pl.Series([f"{c}: {text}" if text else c for c, text in zip(events["change"], changes, strict=True)])


def _string_literal(name: str) -> str:
    """Quote a name as a string literal of Vega's expression language."""
    units = name.encode("utf-16-be", "surrogatepass").hex()
    return "'" + "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)) + "'"


_OFF = "no branch"
_LABELS = 110


def branch_graph_chart(graph: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """One chart; a click on a commit picks its `version`. [] without commits."""
    if graph.is_empty():
        return []
    p = palette(dark)
    names = [lane or _OFF for lane in graph["lane"].unique(maintain_order=True)]
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
    y = lanes("lane:N", names, label_axis(_LABELS))
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
    return [finish_chart(layer_charts(*layers), p, height=_BRANCH_HEIGHT * len(names))]
