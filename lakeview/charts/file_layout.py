"""COLUMN_CHUNKS to bars: which columns a file's bytes go to, before and after compression."""

from __future__ import annotations

import altair as alt
import polars as pl

from lakeview.charts.marks import label_axis, texts, tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, byte_unit, finished, layered
from lakeview.views.units import format_bytes, format_percent

_MOST_COLUMNS = 30
_ROW_HEIGHT = 18
_LABEL_WIDTH = 150


def column_bars(chunks: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """Bytes by column, compressed as a bar and before compression as a pale one behind it; [] without columns.

    The _MOST_COLUMNS largest; the title says so.
    """
    if chunks.is_empty():
        return []
    p = palette(dark)
    columns = chunks.head(_MOST_COLUMNS)
    largest = columns.select(pl.max_horizontal("compressed", "uncompressed").max()).item()
    divisor, title = byte_unit(float(largest), "Bytes by column")
    rows = pl.DataFrame(
        {
            "column": columns["column"],
            "compressed": columns["compressed"] / divisor,
            "uncompressed": columns["uncompressed"] / divisor,
            "end": columns.select(pl.max_horizontal("compressed", "uncompressed") / divisor).to_series(),
            "figure": texts(columns["compressed"], format_bytes),
            "before": texts(columns["uncompressed"], format_bytes),
            "share": texts(columns["share"], format_percent),
            "encodings": columns["encodings"],
        }
    )
    axis = label_axis(_LABEL_WIDTH)
    y = alt.Y("column:N", sort=None, axis=axis, scale=alt.Scale(domain=columns["column"].to_list()))
    scale = alt.Scale(domain=[0, max(float(rows["end"].max() or 0), 1e-9) * 1.16], nice=False)  # type: ignore[arg-type]  # numbers alone
    x_axis = alt.Axis(title=None, format="~s", grid=True, tickCount=5, domain=False)
    fields = (
        ("column", "column"),
        ("figure", "bytes"),
        ("before", "before compression"),
        ("share", "of the file's columns"),
    )
    tooltip = tooltips((*fields, ("encodings", "encodings")))
    base = alt.Chart(rows)
    layers: list[AnyChart] = [
        base.mark_bar(color=p.band).encode(x=alt.X("uncompressed:Q", axis=x_axis, scale=scale), y=y, tooltip=tooltip),
        base.mark_bar(color=p.blue, height={"band": 0.55}).encode(
            x=alt.X("compressed:Q", scale=scale), y=y, tooltip=tooltip
        ),
        base.mark_text(align="left", dx=5).encode(x=alt.X("end:Q", scale=scale), y=y, text="figure:N"),
    ]
    more = f"; the {_MOST_COLUMNS} largest of {chunks.height:,}" if chunks.height > _MOST_COLUMNS else ""
    return [
        finished(
            layered(*layers),
            p,
            height=_ROW_HEIGHT * columns.height,
            title=f"{title}; pale: before compression{more}",
        )
    ]
