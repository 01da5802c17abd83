"""The configuration, the sizes and the axes that every chart shares."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import altair as alt
import polars as pl
from altair.utils import schemapi

from lakeview.charts.palette import Palette, palette
from lakeview.model.printable import visible
from lakeview.views import units

AnyChart = alt.Chart | alt.LayerChart
StackedChart = alt.VConcatChart

_FONT = '"Source Sans", "Source Sans 3", "Source Sans Pro", sans-serif'
_Y_EXTENT = 54
_TIME_TICKS = 8
"""About so many labels on a time axis: a year still has its twelve, and a month has weeks, also on half a page."""
_FINER = timedelta(seconds=2)
"""Below this span ticks are parts of a second. Vega joins ticks by their text, which ends with the second, and draws
one of each second: parts of it are given as numbers, and of a longer span there are no more ticks than seconds."""

SELECTION = "picked"
BRUSHED = "brushed"


def config(p: Palette) -> dict[str, Any]:
    """The Vega-Lite configuration: no frame, no ticks, quiet grid, titles at the left edge, no legends."""
    return {
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "mark": {"tooltip": False},  # Streamlit's is true: marks without a tooltip name their fields, colours and all
        "title": {
            "anchor": "start",
            "frame": "group",
            "dx": -_Y_EXTENT,
            "offset": 6,
            "fontSize": 12,
            "fontWeight": 600,
            "color": p.text,
            "subtitleColor": p.muted,
        },
        "axis": {
            "ticks": False,
            "labelPadding": 6,
            "labelFontSize": 11,
            "labelColor": p.muted,
            "titleColor": p.muted,
            "gridColor": p.grid,
            "gridWidth": 1,
            "domainColor": p.axis,
            "domainWidth": 1,
        },
        "axisY": {"domain": False, "minExtent": _Y_EXTENT, "maxExtent": _Y_EXTENT, "tickCount": 3},
        "axisX": {"grid": False},
        "text": {"fontSize": 11, "color": p.muted, "font": _FONT},
        "legend": {"disable": True},
        "scale": {"bandPaddingInner": 0.08, "bandPaddingOuter": 0.04},
    }


def finish_chart(
    chart: AnyChart,
    p: Palette,
    *,
    height: int,
    title: str | alt.TitleParams | None = None,
    width: int | Literal["container"] = "container",
) -> AnyChart:
    """The chart, which is changed, with theme, size and title, what is unseen in a title's text as its escape; `height`
    is the plot's, without title and axis.

    As wide as its container; `stack_charts` gives a picture a width in pixels, `width` one whose texts lie by pixels.

    Altair's own `properties` and `configure` copy all layers of a chart, several times: with them the panels of a
    timeline took 0.15 s to be made, and take 0.10 s without.
    """
    chart["height"], chart["width"] = height, width
    chart["padding"] = {"left": 0, "right": 6, "top": 2, "bottom": 2}
    chart["autosize"] = {"type": "fit-x", "contains": "padding"} if width == "container" else "pad"
    if title:
        chart["title"] = visible(title) if isinstance(title, str) else title
    chart["config"] = config(p)
    return chart


def stack_charts(charts: Sequence[AnyChart], *, dark: bool = False, width: int = 900) -> StackedChart:
    """Panels as one chart, for places that show one: notebooks, saved pictures. `width` in pixels, of the plots."""
    panels = []
    for chart in charts:
        panel = chart.copy(deep=["layer"]) if isinstance(chart, alt.LayerChart) else chart.copy(deep=False)
        for name in ("config", "padding", "autosize"):
            panel[name] = alt.Undefined
        panels.append(panel.properties(width=width))
    p = palette(dark)
    # a picture on its own lies on any page: it brings the colour its words were chosen for
    with warnings.catch_warnings():
        # panels of one picture share their selection on purpose; Altair would rather hear it from us
        warnings.filterwarnings("ignore", "Automatically deduplicated selection parameter", UserWarning)
        whole: StackedChart = alt.vconcat(*panels, spacing=6).configure(**{**config(p), "background": p.page})
    return whole


def make_unchecked() -> None:
    """From now on the parts of charts are made without Altair's check of each, in this process: a sixth of the CPU of a
    page that is drawn again (benches/bench_navigation.py). Tests hold every chart against Vega-Lite's schema."""
    schemapi.disable_debug_mode()


def no_axis() -> alt.Axis:
    """An axis that shows nothing and keeps the left edge of all panels in one line."""
    return alt.Axis(title=None, labelOpacity=0, grid=False, domain=False)


def layer_charts(*layers: AnyChart) -> alt.LayerChart:
    """Layers as one chart (`alt.layer` may also make facets, which have no place here)."""
    chart = alt.layer(*layers)
    if not isinstance(chart, alt.LayerChart):
        raise TypeError("only plain charts can be layered")
    return chart


def words(text: str, *, dark: bool = False) -> AnyChart:
    """A sentence in the place of a picture that there is no data for."""
    p = palette(dark)
    chart: alt.Chart = (
        alt.Chart(pl.DataFrame({"text": [text]}))
        .mark_text(align="left", color=p.muted)
        .encode(x=alt.value(0), text="text:N")
    )
    return finish_chart(chart, p, height=24)


def time_domain(moments: pl.Series) -> tuple[datetime, datetime]:
    """What a time axis spans: first to last, and a little more so that the last mark is whole."""
    times = moments.drop_nulls().sort().to_list()
    if not times:
        raise ValueError("a time axis needs at least one moment")
    first, last = times[0], times[-1]
    # a script's commits lie milliseconds apart, and a browser's dates know nothing finer
    span = timedelta(hours=2) if last == first else max(last - first, timedelta(milliseconds=20))
    before, after = timedelta(hours=1) if last == first else span * 0.004, span * 0.012
    # a clock may stand at either end of what a date can be
    earliest, latest = datetime.min.replace(tzinfo=first.tzinfo), datetime.max.replace(tzinfo=first.tzinfo)
    return max(first, earliest + before) - before, min(last, latest - after) + after


def time_axis(domain: tuple[datetime, datetime], *, labels: bool, field: str = "timestamp") -> alt.X:
    """A time axis in UTC over a fixed domain, so that all panels share it; the label of a new year says so."""
    axis = alt.Axis(
        title=None,
        labels=labels,
        domain=labels,
        format="",
        labelExpr=_label(domain),
        labelOverlap="greedy",
        labelSeparation=6,
        labelFlush=False,
        labelAlign=_inside(domain),
        tickCount=min(_TIME_TICKS, int((domain[1] - domain[0]).total_seconds())),
    )
    if domain[1] - domain[0] < _FINER:
        axis.values, axis.tickCount = alt.ExprRef(str(_parts_of_a_second(domain))), _TIME_TICKS
    if not labels:
        axis = alt.Axis(title=None, labels=False, domain=False, grid=False)
    # ends given one by one are another domain where a layer has an `x2`: Vega-Lite unites the two, and warns of it
    ends = alt.ExprRef("[" + ", ".join(f"datetime('{moment.isoformat()}')" for moment in domain) + "]")
    return alt.X(f"{field}:T", axis=axis, scale=alt.Scale(type="utc", domain=ends, nice=False, padding=0))


def count_unit(largest: float | None, what: str) -> tuple[float, str]:
    """What to divide counts by, and the panel's title: `Rows, million`."""
    for size, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if largest is not None and largest >= 2 * size:
            return size, f"{what}, {name}"
    return 1.0, what


def span_unit(days: float | None) -> tuple[float, str]:
    """What to divide days by, and what they are then: of loads a minute apart `minutes`."""
    for parts, name in ((1, "days"), (24, "hours"), (1_440, "minutes")):
        if not days or days * parts >= 2:
            return 1 / parts, name
    return 1 / 86_400, "seconds"


def byte_unit(largest: float | None, what: str, *, least: int = 2) -> tuple[float, str]:
    """What to divide bytes by, and the panel's title: `Live bytes, GiB`. The axis reaches `least` at least: 1 where the
    largest is written beside its mark too, in the unit of `format_bytes`."""
    name, bytes_ = units.byte_unit((largest or 0) / least)
    return float(bytes_), f"{what}, {name}"


def _inside(domain: tuple[datetime, datetime]) -> Any:
    """Labels stand under their ticks, but for those at the right end: a word that leaves the plot would shrink it, and
    this panel alone."""
    last = (domain[1] - (domain[1] - domain[0]) * 0.05).timestamp() * 1000
    return {"condition": {"test": f"datum.value > {last:.0f}", "value": "right"}, "value": "center"}


def _parts_of_a_second(domain: tuple[datetime, datetime]) -> list[int]:
    """Ticks at round parts of a second, in milliseconds since 1970."""
    first, last = (round(moment.timestamp() * 1000) for moment in domain)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if (last - first) // step < 5)
    return list(range(-(-first // step) * step, last + 1, step))


def _label(domain: tuple[datetime, datetime]) -> str:
    span = domain[1] - domain[0]
    # one month names the year: a wide first label hides that of January beside it
    year = "utcmonth(datum.value) === 0" if domain[0].year < domain[1].year else "datum.index === 0"
    if span > timedelta(days=1500):
        return "utcFormat(datum.value, '%Y')"
    if span > timedelta(days=120):  # before, ticks are weeks
        return f"utcFormat(datum.value, {year} ? '%b %Y' : '%b')"
    year = "(datum.index === 0 || utcmonth(datum.value) === 0 && utcdate(datum.value) === 1)"
    day = f"utcFormat(datum.value, {year} ? '%-d %b %Y' : '%-d %b')"
    if span > timedelta(days=24):
        return day
    # ticks at parts of a day: a day is named where it begins, and at the first tick
    clock = "%H:%M" if span >= timedelta(minutes=10) else "%H:%M:%S"
    if span < _FINER:
        first = f"datum.value === {_parts_of_a_second(domain)[0]} ? '%-d %b %H:%M:%S' : "
        whole, part = f"{first}'%H:%M:%S'", f"{first.replace('%S', '%S.%L')}'.%L'"
        return f"utcFormat(datum.value, datum.value % 1000 === 0 ? ({whole}) : ({part}))"
    hour = f"utcFormat(datum.value, datum.index === 0 ? '%-d %b {clock}' : '{clock}')"
    return f"time(datum.value) % 86400000 === 0 ? {day} : {hour}"
