"""PARTITION_DIFF to diverging bars, STATISTICS_SHIFT to dumbbells: what was added and removed, what moved.

SCHEMA_DIFF to a picture of words: glyph and colour of each change, the column, before and after, what it breaks.
"""

from collections.abc import Sequence
from typing import Literal

import altair as alt
import polars as pl

from lakeview.charts.marks import lanes, picks, short_label_axis, texts, tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.partitions import short_names
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts
from lakeview.model.printable import shorten
from lakeview.views.units import format_bytes, format_change, format_share

_MOST_PARTITIONS = 40
_MOST_COLUMNS = 30
_ROW = 18
_ARROW = "\N{RIGHTWARDS ARROW}"


def partition_diff_chart(diff: pl.DataFrame, *, keys: Sequence[str] = (), dark: bool = False) -> list[AnyChart]:
    """One bar a side and partition, added right and removed left on a log scale; the _MOST_PARTITIONS with the largest
    difference, in their order; labels leave out the names of `keys`. [] where no file was added or removed.
    A click picks `partition_text`."""
    size = pl.max_horizontal("files_added", "files_removed")
    top = diff.with_row_index("place").filter(size > 0).sort(-size, "place").head(_MOST_PARTITIONS).sort("place")
    if top.is_empty():
        return []
    p = palette(dark)
    names = top["partition_text"].to_list()
    both = pl.concat(
        [
            top.select("partition_text", count=pl.col("files_added"), bytes="bytes_added", way=pl.lit("added")),
            top.select("partition_text", count=-pl.col("files_removed"), bytes="bytes_removed", way=pl.lit("removed")),
        ]
    ).filter(pl.col("count") != 0)
    rows = both.with_columns(figure=texts(both["count"], format_change), size=texts(both["bytes"], format_bytes))
    most = max([1, *(abs(n) for n in both["count"])])
    x = alt.X(
        "count:Q",
        title=None,
        scale=alt.Scale(type="symlog", domain=[-most * 1.8, most * 1.8]),
        axis=alt.Axis(
            grid=True, tickCount=5, labelExpr="datum.value === 0 ? '0' : format(datum.value, '+,d')", domain=False
        ),
    )
    y = lanes("partition_text:N", names, short_label_axis(labelExpr=short_names(top["partition_text"], keys)))
    tooltip = tooltips((("partition_text", "partition"), ("figure", "files"), ("size", "bytes")))
    colour = alt.Color("way:N", scale=alt.Scale(domain=["added", "removed"], range=[p.green, p.orange]))
    base = alt.Chart(rows)
    layers: list[AnyChart] = [
        alt.Chart(pl.DataFrame({"count": [0]})).mark_rule(color=p.axis).encode(x=x),
        base.mark_bar(size=11).encode(x=x, y=y, color=colour, tooltip=tooltip).add_params(picks("partition_text")),
        base.transform_filter("datum.count > 0").mark_text(align="left", dx=5).encode(x=x, y=y, text="figure:N"),
        base.transform_filter("datum.count < 0").mark_text(align="right", dx=-5).encode(x=x, y=y, text="figure:N"),
    ]
    return [finish_chart(layer_charts(*layers), p, height=_ROW * len(names))]


def shift_chart(shift: pl.DataFrame, *, dark: bool = False) -> list[AnyChart]:
    """One dumbbell a column: ring before, dot after, null share in percent; a new column says so.

    A pale bar is the part of files from before the column existed. Of the shares that moved, at most _MOST_COLUMNS,
    largest shift first; [] where none did.
    """
    columns = shift.filter(pl.col("after").is_not_null() | pl.col("before").is_not_null())
    columns = columns.filter(pl.col("change").is_in(["new", "shifted"])).head(_MOST_COLUMNS)
    if columns.is_empty():
        return []
    p = palette(dark)
    rows = columns.select(
        "column",
        "change",
        before=pl.col("before") * 100,
        after=pl.col("after") * 100,
        was=pl.Series(_shares(columns, "before"), dtype=pl.String),
        now=pl.Series(_shares(columns, "after"), dtype=pl.String),
        left=pl.min_horizontal("before", "after") * 100,
        right=pl.max_horizontal("before", "after") * 100,
        absent=pl.col("absent_share") * 100,
        absent_text="absent_text",
        zero=pl.lit(0),
    )
    rows = rows.with_columns(
        label=pl.when(pl.col("change") == "new")
        .then(pl.lit("new, ") + pl.col("now"))
        .otherwise(pl.concat_str("was", "now", separator=f" {_ARROW} "))
    )
    most = max([1.0, *(value for value in rows["right"] if value is not None)])
    scale = alt.Scale(domain=[0, most], padding=6)
    x = alt.X("after:Q", title=None, scale=scale, axis=alt.Axis(grid=False, tickCount=5))
    names = rows["column"].to_list()
    y = lanes("column:N", names, short_label_axis(names, grid=True, domain=False))
    tooltip = tooltips((("column", "column"), ("was", "null before"), ("now", "null now")))
    base = alt.Chart(rows)
    pale = alt.Chart(rows.drop_nulls("absent"))
    absent_tooltip = tooltips((("column", "column"), ("absent_text", "null")))
    layers: list[AnyChart] = [
        pale.mark_bar(color=p.absent, height=5).encode(
            x=alt.X("zero:Q", scale=scale), x2="absent:Q", y=y, tooltip=absent_tooltip
        ),
        base.mark_rule(color=p.quiet, strokeWidth=3).encode(x=x, x2="before:Q", y=y),
        base.mark_point(size=44, color=p.muted, filled=False, strokeWidth=1.4).encode(
            x=alt.X("before:Q", title=None, scale=scale), y=y, tooltip=tooltip
        ),
        base.mark_point(size=48, color=p.blue, filled=True, opacity=1).encode(x=x, y=y, tooltip=tooltip),
    ]
    # where there is room: right of both marks, left of them, or above the line between them; outside the plot it would
    # shrink it
    has_right, has_left = f"datum.right < {most * 0.6}", f"datum.left >= {most * 0.4}"
    for side, gap, lift, test in (
        ("right", 9, 0, has_right),
        ("left", -9, 0, f"!({has_right}) && {has_left}"),
        ("left", 9, -8, f"!({has_right}) && !({has_left})"),
    ):
        at = alt.X(f"{side}:Q", title=None, scale=scale)
        words = base.transform_filter(test).encode(x=at, y=y, text="label:N", color=alt.value(p.text))
        align: Literal["left", "right"] = "left" if gap > 0 else "right"
        # a rim of the page's colour: the pale bar would cross the words out
        layers.append(words.mark_text(align=align, dx=gap, dy=lift, stroke=p.page, strokeWidth=9, strokeJoin="round"))
        layers.append(words.mark_text(align=align, dx=gap, dy=lift))
    return [finish_chart(layer_charts(*layers), p, height=_ROW * rows.height, title=None)]


def _shares(rows: pl.DataFrame, side: str) -> list[str]:
    return [format_share(*pair) for pair in rows.select(side, f"{side}_mark").iter_rows()]


_MOST_ROWS = 60
_GLYPHS = {"added": "+", "dropped": "\N{MINUS SIGN}", "same": "="}
_COLUMNS = (("what", 0.0), ("column", 0.14), ("change", 0.4), ("breaks", 0.7))
"""Where each text begins, as a share of the width."""

_LENGTHS = {"column": 32, "change": 40, "breaks": 44}


def schema_diff_chart(
    diff: pl.DataFrame, *, title: str | None = None, dark: bool = False, width: int = 900
) -> AnyChart:
    """One line a change, at most _MOST_ROWS; a schema without changes says so."""
    p = palette(dark)
    rows = _lines(diff.head(_MOST_ROWS), p)
    y = alt.Y("line:O", axis=None, scale=alt.Scale(domain=list(range(max(rows.height, 1)))))
    layers: list[AnyChart] = [
        alt.Chart(rows)
        .mark_text(align="left", fontWeight="bold" if name == "column" else "normal")
        .encode(
            x=alt.value(share * width),
            y=y,
            text=f"{name}:N",
            color=alt.Color("color:N" if name == "what" else "ink:N", scale=None),
            tooltip=tooltips((("column", "column"), ("whole", "change"))),
        )
        for name, share in _COLUMNS
    ]
    heading = None if title is None else alt.TitleParams(title, dx=0)
    return finish_chart(layer_charts(*layers), p, height=20 * max(rows.height, 1), title=heading, width=width)


def _lines(diff: pl.DataFrame, p: Palette) -> pl.DataFrame:
    colours = {"added": p.green_text, "dropped": p.orange_text, "same": p.gray_text}
    if diff.is_empty():
        diff = pl.DataFrame(
            {"column": ["the schema"], "change": ["same"], "before": [""], "after": [""], "breaks": [""]}
        )
    changes = [change_text(before, after) for before, after in diff.select("before", "after").iter_rows()]
    change = diff["change"]
    breaks = [f"breaks {b}" if b else "" for b in diff["breaks"]]
    # one field of the tooltip, for parts of it are empty for most changes
    whole = [f"{c}: {text}".removesuffix(": ") for c, text in zip(change, changes, strict=True)]
    return pl.DataFrame(
        {
            "line": range(diff.height),
            "whole": ["; ".join(filter(None, each)) for each in zip(whole, breaks, strict=True)],
            "column": [shorten(text, _LENGTHS["column"]) for text in diff["column"]],
            "breaks": [shorten(text, _LENGTHS["breaks"]) for text in breaks],
            "what": [f"{_GLYPHS.get(c, '~')} {c}" for c in change],
            "change": [shorten(text, _LENGTHS["change"]) for text in changes],
            "color": change.replace_strict(colours, default=p.violet_text, return_dtype=pl.String),
            "ink": change.replace_strict({"same": p.muted}, default=p.text, return_dtype=pl.String),
        }
    )


def change_text(before: str | None, after: str | None) -> str:
    """What was before and what is after a change; where both are one or one is not known, that one."""
    if before and after and before != after:
        return f"{before} {_ARROW} {after}"
    return after or before or ""
