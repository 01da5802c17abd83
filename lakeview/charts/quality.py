"""LOAD_TREND to a panel: the usual range as a band, a step line, a cross and a label where a load falls out of it,
red while its rows are in the latest version, orange once they were removed. A ring where it is not far outside."""

from datetime import timedelta
from typing import Literal

import altair as alt
import polars as pl

from lakeview.charts.marks import picks, texts, tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, count_unit, finish_chart, layer_charts, span_unit, time_axis, time_domain
from lakeview.views.units import format_age, format_count, format_figure, format_moment, format_percent, format_version

TrendKind = Literal["share", "count", "number", "days"]

MOST_POINTS = 600
_MOST_LABELS = 3
_FEW_LOADS = 12
"""So many loads at most have a dot each: of one alone there is no line."""
_SYMLOG_TIMES = 8.0
"""One load this many times beyond all the others would flatten them: the scale is then logarithmic."""
_VISIBLE = 0.1
"""Loads outside the band by this share of the largest value are marked though they are no anomalies."""
_NEAR = "; not far enough outside for an anomaly"
_LEAST_SPAN = 0.1
"""A scale that does not begin at zero spans this share of its largest value: its labels show no finer difference."""


def load_trend_chart(
    trend: pl.DataFrame, title: str, kind: TrendKind = "number", *, dark: bool = False
) -> list[AnyChart]:
    """One panel with its time axis, at most MOST_POINTS loads, those that fall out always among them; [] where no
    load tells a value. `kind`: a share in percent, a count in thousands or millions, a number as it is, or days, drawn
    as hours, minutes or seconds where they are few. A click picks `commit`."""
    loads = trend.drop_nulls(["value", "timestamp"])
    if loads.is_empty():
        return []
    p = palette(dark)
    divisor, unit = 0.01 if kind == "share" else 1.0, ""
    if kind == "count":
        divisor, title = count_unit(_largest(loads["value"]), title)
    elif kind == "days":
        divisor, unit = span_unit(_largest(loads["value"].abs()))
        title = f"{title}, {unit}"
    if loads["band_days"].count():
        title = f"{title}; band by the days passed"
    rows = _texts(_sample_runs(loads), kind, divisor, unit).with_columns(
        pl.col("value", "band_low", "band_high") / divisor
    )
    domain = time_domain(rows["timestamp"])
    x = time_axis(domain, labels=True)
    scale, axis = _scale(rows, kind)
    y = alt.Y("value:Q", title=None, scale=scale, axis=axis)
    is_repaired = pl.col("repaired")
    out = rows.filter("outside").with_columns(
        color=pl.when(is_repaired).then(pl.lit(p.orange)).otherwise(pl.lit(p.red)),
        text_color=pl.when(is_repaired).then(pl.lit(p.orange_text)).otherwise(pl.lit(p.red_text)),
    )
    moments = rows["timestamp"].sort()
    middle = moments.to_list()[0] + (moments.to_list()[-1] - moments.to_list()[0]) / 2
    labels = out.sort("value", descending=True).head(_MOST_LABELS)
    # the whole table at a version has no writer and no expected range, nor has one load alone
    fields = {"load": "load", "committed": "committed, UTC", "by": "by", "figure": "value", "usual": "expected"}
    empty = {"by": not rows["writer"].count(), "usual": not rows["band_low"].count()}
    tooltip = tooltips((name, title) for name, title in fields.items() if not empty.get(name))
    layers: list[AnyChart] = [
        alt.Chart(rows.drop_nulls("band_low"))
        .mark_area(color=p.band, interpolate="step-after")
        .encode(x=x, y=alt.Y("band_low:Q", title=None, scale=scale, axis=axis), y2="band_high:Q"),
        alt.Chart(rows).mark_line(color=p.blue, strokeWidth=1.4, interpolate="step-after").encode(x=x, y=y),
        alt.Chart(rows.head(rows.height if rows.height <= _FEW_LOADS else 0))
        .mark_point(filled=True, size=26, color=p.blue, opacity=1)
        .encode(x=x, y=y),
        alt.Chart(rows.filter("near")).mark_point(size=24, color=p.muted, strokeWidth=1.2, opacity=1).encode(x=x, y=y),
        alt.Chart(out)
        .mark_point(shape="cross", filled=True, size=70, opacity=1)
        .encode(x=x, y=y, color=alt.Color("color:N", scale=None)),
    ]
    for left, part in (
        (True, labels.filter(pl.col("timestamp") >= middle)),
        (False, labels.filter(pl.col("timestamp") < middle)),
    ):
        layers.append(
            alt.Chart(part)
            .mark_text(align="right" if left else "left", dx=-9 if left else 9, clip=False)
            .encode(x=x, y=y, text="label:N", color=alt.Color("text_color:N", scale=None))
        )
    # ids of 64 bits are text: a browser's numbers have 53
    at = rows.with_columns(commit=pl.col("version").cast(pl.String))
    whole: alt.Chart = alt.Chart(at).mark_rule(opacity=0.001, strokeWidth=7).encode(x=x, tooltip=tooltip)
    layers.append(whole.add_params(picks("commit")))
    # a field without a value has no extent, of which Vega warns in the browser's console
    visible = [layer for layer in layers if isinstance(layer.data, pl.DataFrame) and not layer.data.is_empty()]
    return [finish_chart(layer_charts(*visible), p, height=90, title=title)]


def _sample_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the min and max of each run of loads, and the anomalies."""
    if rows.height <= MOST_POINTS:
        return rows
    runs = rows.with_row_index("row").with_columns(run=pl.col("row") * (MOST_POINTS // 3) // rows.height)
    extremes = runs.group_by("run").agg(
        pl.col("row").get(pl.col("value").arg_min()).alias("least"), pl.col("row").get(pl.col("value").arg_max())
    )
    out = runs.filter("outside")["row"].head(MOST_POINTS // 3)
    return rows[pl.concat([extremes["least"], extremes["row"], out]).unique().sort()]


def _texts(rows: pl.DataFrame, kind: TrendKind, divisor: float, unit: str) -> pl.DataFrame:
    def text(value: float | None) -> str:
        match kind:
            case _ if value is None:
                return "unknown"
            case "share":
                return format_percent(value)
            case "days":
                return f"{value / divisor:,.1f} {unit}"
            case "count":
                return format_count(value)
        return format_figure(value)

    values = [
        f"{mark} {text(value)}".strip() for value, mark in zip(rows["value"], rows["mark"].fill_null(""), strict=True)
    ]
    loads = texts(rows["version"], format_version)
    beyond = pl.max_horizontal(pl.col("band_low") - pl.col("value"), pl.col("value") - pl.col("band_high"))
    visible = _VISIBLE * (_largest(rows["value"].abs()) or 0.0)
    near = rows.select((~pl.col("outside") & (beyond > visible)).fill_null(value=False)).to_series()
    return rows.with_columns(
        near=near,
        load=loads,
        committed=texts(rows["timestamp"], format_moment),
        by=pl.col("writer").fill_null("unknown"),
        figure=pl.Series(values, dtype=pl.String),
        usual=pl.Series(
            [
                "unknown"
                if low is None or high is None
                else f"{text(max(low, 0.0) if kind != 'number' else low)} to {text(high)}{_after(days)}{_NEAR * n}"
                for low, high, days, n in rows.select("band_low", "band_high", "band_days", near).iter_rows()
            ],
            dtype=pl.String,
        ),
        label=pl.Series([f"{v}, {load}" for v, load in zip(values, loads, strict=True)], dtype=pl.String),
    )


def _after(days: float | None) -> str:
    return "" if days is None else f" after {format_age(timedelta(days=days))}"


_BELOW = 1.1
"""The end of an axis below zero, as a multiple of the lowest anomaly."""
_SHORT_FROM = 10_000.0
"""An axis that reaches it has labels such as `5k`."""


def _scale(rows: pl.DataFrame, kind: TrendKind) -> tuple[alt.Scale, alt.Axis]:
    """A linear scale from zero; where one load would flatten the others a logarithmic one, which powers of ten mark.
    What is zero throughout lies on the ground of a scale that goes somewhere."""
    values = pl.concat([rows[name] for name in ("value", "band_low", "band_high")])
    form = ",.4~r" if (_largest(values.abs()) or 0.0) < _SHORT_FROM else ".3~s"  # one for all labels: 5k below 15k
    axis = alt.Axis(labelExpr=f"format(datum.value, '{form}')")
    highest = max((abs(v) for v in (_largest(rows[n]) for n in ("value", "band_high")) if v is not None), default=0.0)
    if highest == 0 and not (rows["value"] < 0).any():
        return alt.Scale(domain=[0, 1]), axis
    if _is_flattened(rows):
        marks = [0.0, *(10.0**n for n in range(0, 16, 1 if highest < 10_000 else 3) if 10.0**n <= highest)]
        axis.values, axis.tickCount = marks, 2 * len(marks)  # of more marks than ticks are asked for Vega drops some
        return alt.Scale(zero=True, nice=False, type="symlog"), axis
    if span := _least_span(rows, highest) if kind == "days" else _room_below(rows):
        return alt.Scale(domain=span, nice=True), axis
    return alt.Scale(zero=kind != "days", nice=True), axis


def _room_below(rows: pl.DataFrame) -> list[float] | None:
    """A domain that ends below the lowest anomaly, so that its label stands on no axis; None where none is below
    zero."""
    depth = _largest(-rows.filter("outside")["value"])
    return None if depth is None or depth <= 0 else [-_BELOW * depth, max(_largest(rows["value"]) or 0.0, 0.0)]


def _least_span(rows: pl.DataFrame, highest: float) -> list[float] | None:
    """A domain of _LEAST_SPAN around values that lie closer together; None where they do not."""
    values = pl.concat([rows[name] for name in ("value", "band_low", "band_high")]).drop_nulls()
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    more = (_LEAST_SPAN * highest - (high - low)) / 2
    return [low - more, high + more] if more > 0 else None


def _is_flattened(rows: pl.DataFrame) -> bool:
    inside = _largest(rows.filter(~pl.col("outside"))["value"])
    most = _largest(rows["value"])
    return inside is not None and most is not None and inside > 0 and most > _SYMLOG_TIMES * inside


def _largest(values: pl.Series) -> float | None:
    largest = values.max()
    return float(largest) if isinstance(largest, int | float) else None
