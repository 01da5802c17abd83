"""COLUMN_LIVES and COLUMN_HISTORY to one line a column: since when it is there, where it changed, where it ended."""

from __future__ import annotations

from datetime import datetime

import altair as alt
import polars as pl

from lakeview.charts.marks import texts, tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.schema_diff import change_text
from lakeview.charts.theme import AnyChart, finished, layered, time_axis, time_domain
from lakeview.model.printable import shorten
from lakeview.views.units import format_moment, format_version

_MOST_COLUMNS = 60
_LONGEST = 26
_ROW = 16
_SHAPES = {"added": "circle", "dropped": "cross", "renamed": "triangle-up", "type": "diamond"}


def column_lanes(lives: pl.DataFrame, history: pl.DataFrame, until: datetime, *, dark: bool = False) -> list[AnyChart]:
    """One picture. At most _MOST_COLUMNS, those that changed or ended first; [] without a column of a known time.

    COLUMN_HISTORY has to be in its own order, which tells the lives of a column apart.
    """
    births = lives.with_row_index("lane").drop_nulls("born_timestamp")
    if births.is_empty():
        return []
    eventful = pl.col("changes") + pl.col("dropped").is_not_null().cast(pl.Int64)
    lanes = births.sort(eventful, descending=True, maintain_order=True).head(_MOST_COLUMNS).sort("lane")
    p = palette(dark)
    # as column_lives counts them: a column dropped and added again has two lives
    events = history.with_columns(lane=((pl.col("change") == "added").cum_sum() - 1).cast(pl.UInt32))
    events = events.join(lanes.select("lane"), on="lane", how="semi").drop_nulls("timestamp")
    ended = events.filter(pl.col("change") == "dropped").select("lane", ended="timestamp").unique("lane", keep="last")
    moments = pl.concat([events["timestamp"], pl.Series([until], dtype=events["timestamp"].dtype)])
    domain = time_domain(moments)
    lines = lanes.join(ended, on="lane", how="left", maintain_order="left").select(
        "lane", timestamp="born_timestamp", until=pl.col("ended").fill_null(domain[1])
    )
    names = dict(zip(lanes["lane"], (shorten(name, _LONGEST) for name in lanes["column"]), strict=True))
    order = [str(lane) for lane in names]
    labels = ", ".join(f"'{lane}': {_quoted(name)}" for lane, name in names.items())
    y = alt.Y(
        "lane:O",
        title=None,
        sort=None,
        scale=alt.Scale(domain=order),
        axis=alt.Axis(
            grid=False, minExtent=150, maxExtent=190, labelLimit=180, labelExpr=f"({{{labels}}})[datum.value]"
        ),
    )
    text = pl.col("lane").cast(pl.String)
    bars = (
        alt.Chart(lines.with_columns(text))
        .mark_rule(strokeWidth=3, color=p.quiet)
        .encode(x=time_axis(domain, labels=True), x2="until:T", y=y)
    )
    points = (
        alt.Chart(_events(events, p).with_columns(text))
        .mark_point(filled=True, opacity=1, size=46)
        .encode(
            x=time_axis(domain, labels=True),
            y=y,
            color=alt.Color("color:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
            tooltip=tooltips(_TOOLTIP),
        )
    )
    return [finished(layered(bars, points), p, height=_ROW * len(order))]


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
        committed=texts(events["timestamp"], format_moment),
        writer=writer.fill_null("unknown"),
    )


def _changes(events: pl.DataFrame) -> pl.Series:
    """`type: int → long`, `added: int`: two fields of their own would be empty for most changes."""
    changes = [change_text(before, after) for before, after in events.select("before", "after").iter_rows()]
    return pl.Series([f"{c}: {text}" if text else c for c, text in zip(events["change"], changes, strict=True)])


def _quoted(name: str) -> str:
    """Quote a name as a string literal of Vega's expression language."""
    units = name.encode("utf-16-be", "surrogatepass").hex()
    return "'" + "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)) + "'"
