"""EVENTS to a strip of names above the panels, staggered so that they do not cover each other."""

from datetime import datetime

import altair as alt
import polars as pl

from lakeview.charts.marks import as_given
from lakeview.charts.palette import Palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts, no_axis, time_axis
from lakeview.model.printable import shorten
from lakeview.views.conform import first_label

_ROWS = 3
_ROW_HEIGHT = 13
_LETTER = 6.2
"""The width of a letter in pixels at 11 px."""

_NARROW = 600
"""The names must not overlap on a plot of this width; on wider ones they stand wider apart."""

_LONGEST = 33
"""Letters of a name: half of a plot beside another card, and `flight integer → long and 3 more`."""


def event_colours(events: pl.DataFrame, p: Palette) -> pl.Series:
    """The colour of each event's words and rule, by what it means: as of the mark of its commit."""
    lanes = {"append": p.green_text, "change": p.orange_text, "schema": p.violet_text, "maintenance": p.gray_text}
    lane_colour = pl.col("lane").replace_strict(lanes, default=p.gray_text, return_dtype=pl.String)
    is_open = pl.col("suspicious") & ~pl.col("taken_back")
    colour = first_label({p.red_text: is_open, p.orange_text: "suspicious"}, lane_colour)
    return events.select(colour.alias("color")).to_series()


def event_labels(events: pl.DataFrame, domain: tuple[datetime, datetime], p: Palette) -> AnyChart | None:
    """The strip; None when no event lies in the time shown."""
    labels = events.with_columns(color=event_colours(events, p)).filter(pl.col("timestamp").is_between(*domain))
    if labels.is_empty():
        return None
    rows = _with_positions(labels, domain)
    num_rows = rows["row"].n_unique()
    y = alt.Y("row:Q", axis=no_axis(), scale=alt.Scale(domain=[-0.5, num_rows - 0.5], nice=False, reverse=True))
    layers = [
        alt.Chart(rows.filter(pl.col("left") == left))
        .mark_text(align="left" if left else "right", dx=3 if left else -3, baseline="middle")
        .encode(x=time_axis(domain, labels=False), y=y, text="label:N", **as_given("color"))
        for left in (True, False)
    ]
    chart = layer_charts(*layers)
    return finish_chart(chart, p, height=_ROW_HEIGHT * num_rows)


def _with_positions(events: pl.DataFrame, domain: tuple[datetime, datetime]) -> pl.DataFrame:
    """`timestamp, label, color, row, left`: each name in the first row where it is free of the others."""
    span = (domain[1] - domain[0]).total_seconds()
    intervals: list[list[tuple[float, float]]] = [[] for _ in range(_ROWS)]
    places: list[tuple[int | None, bool]] = []
    labels = [shorten(text, _LONGEST) for text in events["label"]]
    for moment, label in zip(events["timestamp"], labels, strict=True):
        at = (moment - domain[0]).total_seconds() / span * _NARROW
        left = at < _NARROW / 2
        reach = len(label) * _LETTER + 8
        start, end = (at, at + reach) if left else (at - reach, at)
        overlaps = [sum(a < end and start < b for a, b in row) for row in intervals]
        row = overlaps.index(min(overlaps))
        if overlaps[row]:  # no room: the rule through the panels tells of it, and its tooltip
            places.append((None, left))
            continue
        intervals[row].append((start, end))
        places.append((row, left))
    return (
        events.select("timestamp", "color")
        .with_columns(
            label=pl.Series(labels, dtype=pl.String),
            row=pl.Series([row for row, _ in places], dtype=pl.Int64),
            left=pl.Series([left for _, left in places], dtype=pl.Boolean),
        )
        .drop_nulls("row")
    )
