"""TIME_PARTITIONS to a calendar, PARTITION_CELLS to a heatmap, PARTITION_RECTS to a treemap, and one partition's
course."""

from collections.abc import Sequence
from datetime import timedelta

import altair as alt
import polars as pl

from lakeview.charts.marks import (
    exact_count,
    from_zero,
    label_axis,
    peak,
    picks,
    step_line,
    texts,
    tooltips,
    whole_axis,
)
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, byte_unit, finish_chart, layer_charts, time_axis, time_domain
from lakeview.model.printable import shorten
from lakeview.views.units import format_bytes, format_moment, format_percent, format_version

_MOST_YEARS = 5
_CELL = 13
_MOST_ROWS_HIGH = 520
_LABEL_WIDTH = 110
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NAMED_WIDTH, _NAMED_HEIGHT = 0.16, 0.06


def partition_calendar(days: pl.DataFrame, *, selection: str | None = None, dark: bool = False) -> list[AnyChart]:
    """A calendar a year, to be stacked: stronger is more bytes, a day that is missing has a cross, that of `selection`
    an outline. The last _MOST_YEARS.

    `days`: TIME_PARTITIONS whose grain is the day; [] without any.
    """
    if days.is_empty():
        return []
    p = palette(dark)
    cells = days.with_columns(
        year=pl.col("start").dt.year(),
        weekday=pl.col("start").dt.weekday() - 1,
        # counted from the Monday on or before the first of January
        week=(pl.col("start").dt.ordinal_day() - 2 + pl.date(pl.col("start").dt.year(), 1, 1).dt.weekday()) // 7,
    )
    years = cells["year"].unique().sort().tail(_MOST_YEARS).to_list()
    top = peak(days["bytes"])
    earlier = cells["year"].n_unique() - len(years)
    more = f"; {earlier} earlier years are in the table" if earlier else ""
    note = f"{{}}: bytes by day, stronger is more, ✕ is missing{more}"
    return [
        _year(cells.filter(pl.col("year") == year), note.format(year) if i == 0 else str(year), top, selection, p)
        for i, year in enumerate(years)
    ]


def _year(days: pl.DataFrame, title: str, top: float, selection: str | None, p: Palette) -> AnyChart:
    rows = _texts(days).with_columns(
        weekday=days["weekday"], week=days["week"], value=days["bytes"], missing=days["missing"]
    )
    first_weeks = days.group_by(month=pl.col("start").dt.month()).agg(pl.col("week", "start").min())
    months = dict(first_weeks.select("week", pl.col("start").dt.strftime("%b")).iter_rows())
    names = " : ".join(f"datum.value === {week} ? '{label}'" for week, label in months.items()) + " : ''"
    x_axis = alt.Axis(title=None, values=sorted(months), labelExpr=names, labelAngle=0, labelAlign="left")
    x = alt.X("week:O", axis=x_axis, scale=alt.Scale(domain=list(range(54)), paddingInner=0.12))
    y_axis = alt.Axis(title=None, labelExpr=f"{list(_DAYS)}[datum.value]", values=[0, 2, 4])
    y = alt.Y("weekday:O", axis=y_axis, scale=alt.Scale(domain=list(range(7)), paddingInner=0.12))
    color = alt.Color("value:Q", scale=alt.Scale(range=list(p.sequential[2:]), domain=[0, max(top, 1.0)]))
    click = picks("partition")
    layers: list[AnyChart] = [
        alt.Chart(rows.filter(~pl.col("missing"))).mark_rect().encode(x=x, y=y, color=color, tooltip=_TOOLTIP),
        alt.Chart(rows.filter("missing")).mark_text(text="✕", color=p.orange_text).encode(x=x, y=y, tooltip=_TOOLTIP),
        _outline(rows, selection, p).encode(x=x, y=y),
        alt.Chart(rows).mark_rect(opacity=0).encode(x=x, y=y, tooltip=_TOOLTIP).add_params(click),
    ]
    return finish_chart(layer_charts(*layers), p, height=7 * _CELL, title=title)


def partition_heatmap(
    cells: pl.DataFrame,
    names: tuple[str, str],
    *,
    axes: tuple[Sequence[str], Sequence[str]] | None = None,
    selection: str | None = None,
    dark: bool = False,
) -> list[AnyChart]:
    """Bytes by two keys, stronger is more, blank where there is no partition; `names` of the keys across and down, and
    their values in order (`axes`), those of the cells without; the partition in `selection` has an outline."""
    if cells.is_empty():
        return []
    p = palette(dark)
    across, down = axes or (cells[axis].unique(maintain_order=True).to_list() for axis in ("x", "y"))
    rows = _texts(cells).with_columns(x=cells["x"], y=cells["y"], value=cells["bytes"])
    x_axis = alt.Axis(title=None, labelLimit=80, labelOverlap="greedy", labelAngle=0)
    y_axis = label_axis(_LABEL_WIDTH)
    x = alt.X("x:N", sort=None, axis=x_axis, scale=alt.Scale(domain=across, paddingInner=0.06))
    y = alt.Y("y:N", sort=None, axis=y_axis, scale=alt.Scale(domain=down, paddingInner=0.06))
    color = alt.Color("value:Q", scale=alt.Scale(range=list(p.sequential[2:]), domainMin=0))
    click = picks("partition")
    base = alt.Chart(rows)
    chart = layer_charts(
        base.mark_rect().encode(x=x, y=y, color=color, tooltip=_TOOLTIP),
        _outline(rows, selection, p).encode(x=x, y=y),
        base.mark_rect(opacity=0).encode(x=x, y=y, tooltip=_TOOLTIP).add_params(click),
    )
    height = min(max(len(down), 2) * 20, _MOST_ROWS_HIGH)
    title = alt.TitleParams(f"{names[0][:40]} across, {names[1][:40]} down; stronger is more bytes", dx=-_LABEL_WIDTH)
    return [finish_chart(chart, p, height=height, title=title)]


def _outline(rows: pl.DataFrame, selection: str | None, p: Palette) -> alt.Chart:
    chart = alt.Chart(rows.filter(pl.col("partition") == pl.lit(selection)))
    outline: alt.Chart = chart.mark_rect(filled=False, stroke=p.text, strokeWidth=2)
    return outline


def partition_treemap(rects: pl.DataFrame, *, selection: str | None = None, dark: bool = False) -> list[AnyChart]:
    """A rectangle a partition, its area its share of the bytes, beside those of its first key; that of `selection` has
    an outline; [] without bytes."""
    if rects.is_empty():
        return []
    p = palette(dark)
    whole = int(rects["bytes"].sum())
    rows = rects.select("group", "label", "x0", "y0", "x1", "y1", value="bytes").with_columns(
        partition=rects["partition_text"].fill_null(rects["label"]),
        pickable=rects["partition_text"].is_not_null(),
        files=texts(rects["files"], exact_count),
        size=texts(rects["bytes"], format_bytes),
        share=texts(rects["bytes"] / whole, format_percent),
    )
    frames = rects.group_by("group", maintain_order=True).agg(
        pl.col("x0", "y0").min(), pl.col("x1", "y1").max(), bytes=pl.col("bytes").sum()
    )
    labels = frames.filter((pl.col("x1") - pl.col("x0") > _NAMED_WIDTH) & (pl.col("y1") - pl.col("y0") > _NAMED_HEIGHT))
    words = [
        f"{shorten(group, 24)} · {format_bytes(size)}" for group, size in labels.select("group", "bytes").iter_rows()
    ]
    labels = labels.with_columns(figure=pl.Series(words, dtype=pl.String))
    none = alt.Axis(title=None, labels=False, grid=False, domain=False)
    x = alt.X("x0:Q", axis=none, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Y("y0:Q", axis=none, scale=alt.Scale(domain=[1, 0], nice=False))
    click = picks("partition")
    tooltip = tooltips((("partition", "partition"), ("size", "bytes"),
                                                            ("share", "of all bytes"), ("files", "files")))  # fmt: skip
    color = alt.Color("value:Q", scale=alt.Scale(type="sqrt", range=list(p.sequential[1:5]), domainMin=0))
    layers: list[AnyChart] = [
        alt.Chart(rows)
        .mark_rect(stroke=p.page, strokeWidth=1)
        .encode(x=x, x2="x1:Q", y=y, y2="y1:Q", color=color, tooltip=tooltip)
        .add_params(click),
        _outline(rows, selection, p).encode(x=x, x2="x1:Q", y=y, y2="y1:Q"),
        alt.Chart(frames).mark_rect(filled=False, stroke=p.page, strokeWidth=4).encode(x=x, x2="x1:Q", y=y, y2="y1:Q"),
        alt.Chart(labels)
        .mark_text(align="left", baseline="top", dx=7, dy=6, color=p.text, fontWeight=600)
        .encode(x=x, y=y, text="figure:N"),
    ]
    return [finish_chart(layer_charts(*layers), p, height=340, title="Bytes, area by partition")]


def partition_course(history: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """Bytes and files that one partition held, commit by commit, to be stacked; [] where no moment is known."""
    commits = history.drop_nulls("timestamp").sort("timestamp")
    if commits.is_empty():
        return []
    p = palette(dark)
    divisor, title = byte_unit(peak(commits["bytes"]), "Bytes")
    if commits.height > _MOST_COMMITS:  # the last commit of each span: what the partition then held is what shows
        commits = commits.gather_every(-(-commits.height // _MOST_COMMITS))
    rows = commits.select("timestamp", "files").with_columns(
        size=commits["bytes"] / divisor,
        label=texts(commits["version"], format_version),
        at=texts(commits["timestamp"], format_moment),
        operation=commits["operation"].fill_null("unknown"),
        size_text=texts(commits["bytes"], format_bytes),
        files_text=texts(commits["files"], exact_count),
    )
    domain = time_domain(commits["timestamp"])
    if domain[1] - domain[0] < timedelta(hours=2):
        domain = (domain[0] - timedelta(hours=1), domain[1] + timedelta(hours=1))
    return [
        _step(rows, "size", title, p, time_axis(domain, labels=False)),
        _step(rows, "files", "Files", p, time_axis(domain, labels=True)),
    ]


_MOST_COMMITS = 1_000


def _step(rows: pl.DataFrame, measure: str, title: str, p: Palette, x: alt.X) -> AnyChart:
    axis = whole_axis(tickCount=3) if measure == "files" else alt.Axis(tickCount=3, format=",.2~f")
    y = alt.Y(f"{measure}:Q", title=None, scale=from_zero(), axis=axis)
    fields = (("label", "version"), ("at", "committed, UTC"), ("operation", "operation"), ("size_text", "bytes"))
    tooltip = tooltips((*fields, ("files_text", "files")))
    base = alt.Chart(rows)
    layers: list[AnyChart] = [
        *step_line(base, x, y, p.blue),
        base.mark_point(filled=True, size=24, opacity=1, color=p.blue).encode(x=x, y=y),
        base.mark_rule(opacity=0.001, strokeWidth=9).encode(x=x, tooltip=tooltip),  # a dot is hard to hit
    ]
    return finish_chart(layer_charts(*layers), p, height=72, title=title)


_TOOLTIP = tooltips((("partition", "partition"), ("size", "bytes"), ("rows", "rows"), ("files", "files")))


def _texts(parts: pl.DataFrame) -> pl.DataFrame:
    """What a tooltip says of each partition; `mark`, if there is one, is that of a bound of its rows."""
    rows = texts(parts["records"], exact_count)
    if "mark" in parts.columns:
        rows = (parts["mark"] + " " + rows).str.strip_chars()
    return pl.DataFrame(
        {
            "partition": parts["partition_text"],
            "size": texts(parts["bytes"], format_bytes),
            "rows": rows,
            "files": texts(parts["files"], exact_count),
        },
        schema={"partition": pl.String(), "size": pl.String(), "rows": pl.String(), "files": pl.String()},
    )
