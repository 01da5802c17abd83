"""EXPLAINED to what a filter reads of each version; CLUSTERING, DEPTHS and their course to how well files are told
apart."""

import json
from collections.abc import Sequence

import altair as alt
import polars as pl

from lakeview.charts.marks import (
    SHORT_COUNTS,
    as_given,
    exact_count,
    from_zero,
    label_axis,
    lanes,
    picks,
    step_line,
    texts,
    tooltips,
)
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts, time_axis, time_domain
from lakeview.model.printable import shorten
from lakeview.views.units import format_bytes, format_mean, format_means, format_moment, format_percent, format_version
from lakeview.views.values import without_seconds

_WORDS = {"kept": "read", "partition": "skipped by partition", "range": "by min and max", "nulls": "by nulls"}
_MOST_COLUMNS = 60
_ROW_HEIGHT = 18
_LABEL_WIDTH = 150
_MOST_LABELS = 6
_FRACTION = r"(\d\d:\d\d:\d\d)\.\d+$"
"""The fraction of a second of a timestamp as text; the first group is what is before it."""
_LETTER = 5.6
"""Pixels of a letter of a name below its bar."""


def read_bars(versions: Sequence[tuple[str, pl.DataFrame]], *, dark: bool = False) -> list[AnyChart]:
    """Files above bytes, to be stacked: a bar for each version (its label and EXPLAINED), what is read at the left.

    [] where no version has files.
    """
    p = palette(dark)
    rows = pl.concat(
        [pl.DataFrame(schema={"version": pl.String(), "reason": pl.String(), "files": pl.Int64(), "bytes": pl.Int64()})]
        + [counts.select(pl.lit(label).alias("version"), "reason", "files", "bytes") for label, counts in versions]
    )
    if not rows["files"].sum():
        return []
    return [
        _bars(rows, measure, title, p)
        for measure, title in (("files", "Files, share of all"), ("bytes", "Bytes, share of all"))
    ]


def clustering_bars(clustering: pl.DataFrame, *, selection: str | None = None, dark: bool = False) -> list[AnyChart]:
    """How many files hold any one value of a column, a bar a column: those by range blue, those without a range orange.

    The first _MOST_COLUMNS, in the order given; a click picks a column. [] where no column has ranges.
    """
    columns = clustering.filter(pl.col("reads").is_not_null()).head(_MOST_COLUMNS)
    if columns.is_empty():
        return []
    p = palette(dark)
    files = pl.col("files")
    rows = columns.select(
        "column",
        depth_share=pl.col("depth") / files,
        unknown_share=pl.col("unknown") / files,
        reads_share="reads_share",
        figure=_reads_text(columns),
        depth=texts(columns["depth"], format_mean),
        most=texts(columns["most"], exact_count),
        unknown=texts(columns["unknown"], exact_count),
        opacity=pl.when(pl.col("column") == (selection or "")).then(1.0).otherwise(0.72),
    )
    names = columns["column"].to_list()
    y = lanes("column:N", names, label_axis(_LABEL_WIDTH, names))
    percent = alt.Axis(
        title=None, values=[0, 0.25, 0.5, 0.75, 1], labelExpr="datum.value * 100 + ' %'", grid=True, domain=False
    )
    x_scale = alt.Scale(domain=[0, 1.16], nice=False)
    fields = (("column", "column"), ("figure", "a filter for one value opens"), ("depth", "ranges that hold it, mean"))
    more = (("most", "at most"), ("unknown", "files without a range"))
    tooltip = tooltips((*fields, *more))
    base = alt.Chart(rows)
    x = alt.X("depth_share:Q", axis=percent, scale=x_scale)
    opacity = as_given("opacity")
    click = picks("column")
    layers: list[AnyChart] = [
        base.mark_bar(color=p.blue).encode(x=x, y=y, tooltip=tooltip, **opacity),
        base.mark_bar(color=p.orange)
        .transform_calculate(end="datum.depth_share + datum.unknown_share")
        .encode(x=alt.X("depth_share:Q", scale=x_scale), x2="end:Q", y=y, tooltip=tooltip, **opacity),
        base.mark_text(align="left", dx=5).encode(x=alt.X("reads_share:Q", scale=x_scale), y=y, text="figure:N"),
        base.mark_rect(opacity=0).encode(y=y, tooltip=tooltip).add_params(click),
    ]
    return [finish_chart(layer_charts(*layers), p, height=_ROW_HEIGHT * columns.height)]


def depth_chart(profile: pl.DataFrame, files: int, *, column: str, dark: bool = False) -> list[AnyChart]:
    """Files that a filter for a value opens, along the values of a column in their order; [] without ranges."""
    if profile.is_empty():
        return []
    p = palette(dark)
    step = max(1, -(-profile.height // _MOST_LABELS))
    texts = without_seconds(profile["value_text"].gather_every(step)).str.replace(_FRACTION, "$1")
    labels = {str(i * step): shorten(text or "", 19) for i, text in enumerate(texts)}
    axis = alt.Axis(
        title=None,
        values=[int(i) for i in labels],
        labelExpr=f"{json.dumps(labels, ensure_ascii=False)}[datum.value]",
        labelAlign="left",
        labelOverlap="greedy",
    )
    # a step reaches to the next place: the last one needs an end
    rows = pl.concat([profile, profile.tail(1).with_columns(place=pl.col("place") + 1)])
    last = rows.height - 1
    x = alt.X("place:Q", axis=axis, scale=alt.Scale(domain=[0, last], nice=False))
    y = alt.Y("reads:Q", title=None, scale=from_zero(), axis=alt.Axis(tickCount=3, labelExpr=SHORT_COUNTS))
    tooltip = [
        alt.Tooltip("value_text:N", title=column[:60]),
        alt.Tooltip("reads:Q", title="files opened", format=","),
        alt.Tooltip("depth:Q", title="ranges that hold it", format=","),
    ]
    base = alt.Chart(rows)
    layers: list[AnyChart] = [
        *step_line(base, x, y, p.blue, fill=0.14),
        base.mark_rule(opacity=0.001, strokeWidth=7).encode(x=x, tooltip=tooltip),
    ]
    title = f"Files opened, of {files:,}, by the value"
    return [finish_chart(layer_charts(*layers), p, height=110, title=title)]


def clustering_course_chart(course: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """How many files a filter for one value opens, version by version, and which share of all that is, to be stacked.

    [] where no version has both a time and ranges.
    """
    points = course.drop_nulls(["timestamp", "reads"]).sort("timestamp")
    if points.is_empty():
        return []
    p = palette(dark)
    rows = points.with_columns(
        share=pl.col("reads_share") * 100,
        label=texts(points["version"], format_version),
        at=texts(points["timestamp"], format_moment),
        figure=_reads_text(points),
        covered=texts(points["coverage"], format_percent),
    ).drop("version")
    domain = time_domain(points["timestamp"])
    return [
        _line(rows, "reads", "Files opened for one value, by version", domain, p, last=False),
        _line(rows, "share", "Share of all files, %", domain, p, last=True),
    ]


def _line(
    rows: pl.DataFrame, measure: str, title: str, domain: tuple[object, object], p: Palette, *, last: bool
) -> AnyChart:
    x = time_axis(domain, labels=last)  # type: ignore[arg-type]  # two moments, as time_domain gives them
    y = alt.Y(f"{measure}:Q", title=None, scale=from_zero(), axis=alt.Axis(tickCount=3, format=",.2~f"))
    fields = (("label", "version"), ("at", "committed, UTC"), ("figure", "files opened"))
    tooltip = tooltips((*fields, ("covered", "files with ranges")))
    base = alt.Chart(rows)
    layers: list[AnyChart] = [
        base.mark_line(interpolate="step-after", color=p.blue, strokeWidth=1.6).encode(x=x, y=y),
        base.mark_point(filled=True, size=22, opacity=1, color=p.blue).encode(x=x, y=y, tooltip=tooltip),
        base.mark_rule(opacity=0.001, strokeWidth=9).encode(x=x, tooltip=tooltip),
    ]
    return finish_chart(layer_charts(*layers), p, height=72, title=title)


def _reads_text(rows: pl.DataFrame) -> pl.Series:
    pairs = zip(format_means(rows["reads"]), rows["files"], strict=True)
    return texts(pairs, lambda pair: f"{pair[0]} of {pair[1]:,}")


def _bars(rows: pl.DataFrame, measure: str, title: str, p: Palette) -> AnyChart:
    whole = pl.col(measure).sum().over("version").clip(1)
    order = pl.col("reason").replace_strict({r: i for i, r in enumerate(_WORDS)}, return_dtype=pl.Int64)
    ends = (pl.col(measure).cum_sum().over("version")) / whole
    colours = {"kept": p.blue, "partition": p.gray, "range": p.quiet, "nulls": p.absent}
    counts = rows.sort("version", order, maintain_order=True).with_columns(
        end=ends, begin=ends - pl.col(measure) / whole, share=pl.col(measure) / whole
    )
    counts = counts.with_columns(
        word=pl.col("reason").replace_strict(_WORDS, return_dtype=pl.String),
        color=pl.col("reason").replace_strict(colours, return_dtype=pl.String),
        figure=texts(counts[measure], format_bytes if measure == "bytes" else exact_count),
        percent=texts(counts["share"], format_percent),
    ).with_columns(text=pl.concat_str("word", "figure", separator=" "))
    versions = rows["version"].unique(maintain_order=True).to_list()
    y = lanes("version:N", versions, alt.Axis(labelLimit=90))
    axis = alt.Axis(title=None, labels=False, domain=False, grid=False)
    x = alt.X("begin:Q", axis=axis, scale=alt.Scale(domain=[0, 1], nice=False))
    tooltip = tooltips((("version", "version"), ("word", "files are"), ("figure", measure), ("percent", "share")))
    base = alt.Chart(counts.filter(pl.col(measure) > 0))
    # a name below its piece, where the piece is as long: on a colour it would be hard to read
    labels = base.transform_filter(f"datum.share * width >= {_LETTER} * length(datum.text)")
    layers: list[AnyChart] = [
        base.mark_bar(stroke=p.page, strokeWidth=1, height=12, yOffset=-5).encode(
            x=x, x2="end:Q", y=y, tooltip=tooltip, **as_given("color")
        ),
        labels.mark_text(align="left", baseline="top", dx=2, dy=5).encode(x=x, y=y, text="text:N"),
    ]
    return finish_chart(layer_charts(*layers), p, height=36 * len(versions), title=title)
