"""SCHEMA_DIFF to a picture of words: glyph and colour of each change, the column, before and after, what it breaks."""

import altair as alt
import polars as pl

from lakeview.charts.marks import tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts
from lakeview.model.printable import shorten

_MOST_ROWS = 60
_ARROW = "\N{RIGHTWARDS ARROW}"
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
