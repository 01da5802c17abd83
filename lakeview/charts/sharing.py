"""READS_BY_DAY to bars: what was given out each day, and what was refused."""

from datetime import datetime, timedelta

import altair as alt
import polars as pl

from lakeview.charts.marks import exact_count, from_zero, peak, texts, tooltips, whole_axis
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, byte_unit, finish_chart, time_axis
from lakeview.views.units import count_text, format_bytes


def reads_by_day_bars(days: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """Two panels on one axis of at least one day: bytes given, then refused requests in orange."""
    p = palette(dark)
    unit, title = byte_unit(peak(days["bytes"]), "Given out by day")
    rows = days.select(
        pl.col("day").cast(pl.Datetime("ms")),
        (pl.col("bytes") / unit).alias("volume"),
        "refused",
        on=days["day"].dt.to_string("%Y-%m-%d"),
        figure=texts(days["bytes"], format_bytes),
        requests=texts(days["requests"], exact_count),
        who=texts(days["recipients"], lambda number: count_text(number, "recipient")),
    )
    fields = (("on", "day"), ("figure", "given out"), ("requests", "requests"), ("refused", "refused"), ("who", "by"))
    tooltip = tooltips(fields)
    first, last = rows["day"].min(), rows["day"].max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    ends = first - timedelta(hours=18), last + timedelta(hours=18)
    thick = max(2, min(24, 360 // rows.height))
    panels: list[AnyChart] = []
    for value, heading, color, height in (
        ("volume", title, p.blue, 110),
        ("refused", "Refused requests by day", p.orange, 60),
    ):
        x = time_axis(ends, labels=value == "refused", field="day")
        axis = whole_axis() if value == "refused" else alt.Axis()
        y = alt.Y(f"{value}:Q", title=None, scale=from_zero(), axis=axis)
        # rules and not bars: bars on a time axis pad its domain, and the panels would slip
        chart: alt.Chart = (
            alt.Chart(rows).mark_rule(strokeWidth=thick, color=color).encode(x=x, y=y, y2=alt.datum(0), tooltip=tooltip)
        )
        panels.append(finish_chart(chart, p, height=height, title=heading))
    return panels
