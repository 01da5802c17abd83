"""DISTRIBUTIONS of one column to bars: a histogram of bins, or the most frequent values one under the other."""

from typing import Literal

import altair as alt
import polars as pl

from lakeview.charts.marks import SHORT_COUNTS, exact_count, peak, picks, texts
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts
from lakeview.model.printable import shorten_column
from lakeview.views.units import format_percent

_HEIGHT = 110
_LABEL_CHARACTERS = 18
_MOMENT = r"^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})"


def distribution_bars(rows: pl.DataFrame, *, absent: str | None = None, dark: bool = False) -> AnyChart:
    """The rows of DISTRIBUTIONS of one column; null and NaN in gray, named in the title too.

    `absent`: the `absent_text` of SCHEMA_TREE, which part of the rows is from before the column existed.
    """
    p = palette(dark)
    marks = rows.with_columns(
        position=pl.int_range(pl.len()),
        figure=texts(rows["count"], exact_count),
        part=texts(rows["share"], format_percent),
        color=pl.when(pl.col("kind").is_in(["null", "nan", "others"])).then(pl.lit(p.gray)).otherwise(pl.lit(p.blue)),
        short=shorten_column(pl.col("label"), _LABEL_CHARACTERS),
    )
    bins = marks.filter(pl.col("kind") == "bin")
    before = alt.Undefined if absent is None else f"{absent}: absent from the files"
    title = alt.TitleParams(_title(rows), subtitle=before, frame="bounds", dx=0, limit=260)
    if bins.height:
        return finish_chart(_histogram(bins, p), p, height=_HEIGHT, title=title)
    return finish_chart(_bars(marks, p), p, height=max(_HEIGHT, 18 * marks.height), title=title)


def _histogram(bins: pl.DataFrame, p: Palette) -> AnyChart:
    """Bars side by side; only the first and the last have labels: where they begin. Of moments
    the day is enough, on one day the time."""
    days, times = (bins["label"].str.extract(_MOMENT, part) for part in (1, 2))
    if not days.has_nulls():
        bins = bins.with_columns(short=times if days[0] == days[-1] else days)
    bins = bins.with_columns(
        short=pl.when(pl.col("position") == bins["position"].max())
        .then(pl.lit("from ") + pl.col("short"))
        .otherwise("short")
    )
    sides: tuple[tuple[pl.DataFrame, Literal["left", "right"], int], ...] = (
        (bins.head(1), "left", -6),
        (bins.tail(1), "right", 6),
    )
    x = alt.X("position:O", axis=alt.Axis(title=None, labels=False, domain=True))
    y = alt.Y("count:Q", axis=alt.Axis(title=None, tickCount=2, labelExpr=SHORT_COUNTS, minExtent=34, maxExtent=34))
    tooltip = [alt.Tooltip("label:N", title="from"), *_TOOLTIP]
    base = alt.Chart(bins)
    labels = [
        alt.Chart(end)
        .mark_text(align=side, baseline="top", dy=5, dx=shift)
        .encode(x=x, y=alt.value(_HEIGHT), text="short:N")
        for end, side, shift in sides
    ]
    return layer_charts(
        base.mark_bar(color=p.blue).encode(x=x, y=y, tooltip=tooltip),
        # the whole column answers to the pointer, however low its bar is
        _clickable(base.mark_rect(color=p.orange).encode(x=x, tooltip=tooltip)),
        *(labels if bins.height > 1 else labels[:1]),
    )


def _bars(rows: pl.DataFrame, p: Palette) -> AnyChart:
    y = alt.Y("position:O", axis=alt.Axis(title=None, labels=False, domain=False, minExtent=0, maxExtent=0))
    # the longest bar leaves room for the shares, which stand one under the other at the right
    x = alt.X("count:Q", axis=None, scale=alt.Scale(domain=[0, max(peak(rows["count"]), 1) * 1.25], nice=False))
    tooltip = [alt.Tooltip("label:N", title="value"), *_TOOLTIP]
    base = alt.Chart(rows)
    return layer_charts(
        base.mark_bar(height=15, opacity=0.45).encode(x=x, y=y, color=alt.Color("color:N", scale=None)),
        base.mark_text(align="left", dx=4, color=p.text).encode(x=alt.value(0), y=y, text="short:N"),
        base.mark_text(align="right", color=p.text).encode(x=alt.value("width"), y=y, text="part:N"),
        _clickable(base.mark_rect(color=p.orange).encode(y=y, tooltip=tooltip)),
    )


def _clickable(marks: alt.Chart) -> alt.Chart:
    """The marks, seen only where they were clicked: `position` is picked."""
    click = picks("position")
    chart: alt.Chart = marks.encode(opacity=alt.when(click).then(alt.value(0.3)).otherwise(alt.value(0)))
    return chart.add_params(click)


_TOOLTIP = (alt.Tooltip("figure:N", title="rows"), alt.Tooltip("part:N", title="of these rows"))


def _title(rows: pl.DataFrame) -> str:
    shares = [
        f"{format_percent(share)} {label}"
        for label, share in rows.filter(pl.col("kind").is_in(["null", "nan"])).select("label", "share").iter_rows()
    ]
    return " · ".join([rows["column"][0], *shares])
