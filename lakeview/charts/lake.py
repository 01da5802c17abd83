"""LAKE to bars: how large each table is, and which ones need attention."""

import json

import altair as alt
import polars as pl

from lakeview.charts.marks import exact_count, peak, picks, texts
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, byte_unit, finish_chart, layer_charts
from lakeview.model.printable import ELLIPSIS
from lakeview.views.lake import LakeState
from lakeview.views.units import format_age, format_bytes, format_count

_MOST_BARS = 24
SIGNS = {
    LakeState.UNREADABLE: "\N{MULTIPLICATION X}",
    LakeState.BROKEN: "\N{MULTIPLICATION X}",
    LakeState.ATTENTION: "\N{BLACK UP-POINTING TRIANGLE}",
    LakeState.FINE: "\N{CHECK MARK}",
    LakeState.UNREAD: "\N{MIDDLE DOT}",
}
"""The sign that stands for a table's state, beside its colour or without one."""
_MOST_CHARACTERS = 28


def lake_bars(tables: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """The largest tables that were read, one bar each; [] if none was. A glyph before the name says what its colour
    does. A click picks `address`."""
    p = palette(dark)
    readable = tables.drop_nulls("bytes")
    top = readable.sort("bytes", descending=True).head(_MOST_BARS)
    if top.is_empty():
        return []
    unit, title = byte_unit(peak(top["bytes"]), "Live bytes", least=1)
    colours = {LakeState.BROKEN: p.red, LakeState.ATTENTION: p.orange, LakeState.FINE: p.blue}
    states = [LakeState(state) for state in top["state"]]
    rows = pl.DataFrame(
        {
            "position": list(range(top.height)),
            "short": [f"{SIGNS[s]} {_short(name)}" for s, name in zip(states, top["name"], strict=True)],
            "table": top["name"],
            "address": top["address"],
            "value": top["bytes"] / unit,
            "figure": texts(top["bytes"], format_bytes),
            "rows": texts(top["records"], format_count),
            "files": texts(top["files"], exact_count),
            "age": texts(top["age"], format_age),
            "verdict": top["verdict"],
            "color": [colours[state] for state in states],
        }
    )
    labels = [str(name) for name in rows["short"]]
    y = alt.Y(
        "position:O",
        axis=alt.Axis(
            title=None, labelExpr=f"{json.dumps(labels, ensure_ascii=False)}[datum.value]", minExtent=190, maxExtent=190
        ),
    )
    x = alt.X("value:Q", axis=alt.Axis(title=None, labels=False, grid=False, domain=False))
    tooltip = [alt.Tooltip(f"{n}:N", title=n) for n in ("table", "rows", "files", "age", "verdict")]
    tooltip.insert(1, alt.Tooltip("figure:N", title="live bytes"))
    base = alt.Chart(rows)
    more = f", the largest {_MOST_BARS} of {readable.height:,}" if readable.height > _MOST_BARS else ""
    return [
        finish_chart(
            layer_charts(
                base.mark_bar(height=12)
                .encode(x=x, y=y, color=alt.Color("color:N", scale=None), tooltip=tooltip)
                .add_params(picks("address")),
                base.mark_text(align="left", dx=5).encode(x=x, y=y, text="figure:N"),
            ),
            p,
            height=max(20 * rows.height, 40),
            title=alt.TitleParams(f"{title}{more}", frame="bounds", dx=0),
        )
    ]


def _short(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{ELLIPSIS}{name[1 - _MOST_CHARACTERS :]}"
