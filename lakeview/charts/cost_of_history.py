"""HISTORY_COST to bars: the bytes that only old versions need, by the commit that left them behind."""

from __future__ import annotations

import altair as alt
import polars as pl

from lakeview.charts.marks import exact_count, peak, texts, tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, byte_unit, finished, layered
from lakeview.views.sums import total_of
from lakeview.views.units import format_bytes, format_count, format_moment, format_percent, format_version

_MOST_BARS = 12


def history_cost_bars(cost: pl.DataFrame, *, dark: bool = False) -> AnyChart:
    """The dearest commits, one bar each, maintenance in gray; the others together in the last."""
    p = palette(dark)
    top = cost.head(_MOST_BARS)
    rest = cost.slice(_MOST_BARS)
    unit, title = byte_unit(peak(top["bytes"]), "Bytes only old versions need")
    rows = pl.DataFrame(
        {
            "commit": [_commit_name(v, o) for v, o in top.select("version", "operation").iter_rows()],
            "value": top["bytes"] / unit,
            "figure": texts(top["bytes"], format_bytes),
            "share": texts(top["share"], format_percent),
            "files": texts(top["files"], exact_count),
            "committed": pl.Series([f"{format_moment(m)} UTC" for m in top["timestamp"]], dtype=pl.String),
            "writer": top["writer"].fill_null("unknown"),
            "color": [p.gray if lane == "maintenance" else p.orange for lane in top["lane"]],
        }
    )  # fmt: skip
    if rest.height:
        size = total_of(rest["bytes"])
        others = rows.head(1).with_columns(
            commit=pl.lit(f"{rest.height:,} other commits"),
            value=pl.lit(None if size is None else size / unit, pl.Float64),
            figure=pl.lit(format_bytes(size)),
            share=pl.lit(format_percent(None if size is None else float(rest["share"].sum()))),
            files=pl.lit(format_count(int(rest["files"].sum()), exact=True)),
            committed=pl.lit(""),
            writer=pl.lit(""),
            color=pl.lit(p.gray),
        )
        rows = pl.concat([rows, others])
    y = alt.Y("commit:N", sort=None, axis=alt.Axis(title=None, minExtent=150, maxExtent=220, labelLimit=210))
    x = alt.X("value:Q", axis=alt.Axis(title=None, labels=False, grid=False, domain=False))
    tooltip = tooltips(
        (
            ("commit", "commit"),
            ("committed", "committed"),
            ("writer", "writer"),
            ("files", "files"),
            ("figure", "bytes"),
            ("share", "of all retained for old versions"),
        )
    )
    bars = alt.Chart(rows)
    layers: list[AnyChart] = [
        bars.mark_bar(height=12).encode(x=x, y=y, color=alt.Color("color:N", scale=None), tooltip=tooltip),
        bars.mark_text(align="left", dx=5).encode(x=x, y=y, text="figure:N"),
    ]
    heading = alt.TitleParams(title, frame="bounds", dx=0)
    return finished(layered(*layers), p, height=max(22 * rows.height, 30), title=heading)


def _commit_name(version: int, operation: str | None) -> str:
    return f"{format_version(version)} · {operation or 'unknown'}"
