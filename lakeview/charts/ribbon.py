"""RIBBON to one strip: a cell a version, whose height and colour tell whether it can still be read."""

from datetime import datetime

import altair as alt
import polars as pl

from lakeview.charts.marks import picks, texts, tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts, no_axis, time_axis, time_domain
from lakeview.views.timeline.readability import readability_runs, runs_text
from lakeview.views.units import format_moment, format_range

_HEIGHTS = {"gone": 0.22, "at risk": 0.55, "kept": 1.0, "broken": 1.0}
_GLYPHS = {
    "gone": "\N{LOWER ONE QUARTER BLOCK}",
    "at risk": "\N{LOWER FIVE EIGHTHS BLOCK}",
    "kept": "\N{FULL BLOCK}",
    "broken": "\N{MULTIPLICATION X}",
}
_MOST_CELLS = 400
_NARROW = 0.005
"""A cell of less than this share of the width has no gap beside it."""
_NARROWEST = 0.003
"""A cell has this share of the width at least: of commits milliseconds apart, some two pixels."""


def ribbon_chart(
    ribbon: pl.DataFrame,
    *,
    dark: bool = False,
    domain: tuple[datetime, datetime] | None = None,
    key: bool = False,
    pick: bool = True,
) -> AnyChart:
    """One strip with a time axis; `key` writes what the heights mean into its title (a page does that in text). With
    `pick` a click on a cell picks its first `version`."""
    p = palette(dark)
    ends = domain or time_domain(ribbon["timestamp"])
    cells = _cells(ribbon, ends, p)
    rects = (
        alt.Chart(cells)
        .mark_rect(stroke=p.page)
        .encode(
            x=time_axis(ends, labels=True),
            x2="until:T",
            y=alt.Y("height:Q", axis=no_axis(), scale=alt.Scale(domain=[0, 1])),
            y2=alt.datum(0),
            color=alt.Color("color:N", scale=None),
            strokeWidth=alt.StrokeWidth("gap:Q", scale=None),
            tooltip=tooltips(_TOOLTIP),
        )
    )
    if pick:
        rects = rects.add_params(picks("version"))
    crosses = (
        alt.Chart(cells.filter(pl.col("state") == "broken"))
        .mark_text(text="\N{MULTIPLICATION X}", fontSize=10, color=p.page)
        .encode(x=time_axis(ends, labels=True, field="middle"), y=alt.datum(0.5))
    )
    chart = layer_charts(rects, crosses)
    return finish_chart(chart, p, height=22, title=_key(ribbon) if key else None)


_TOOLTIP = (("versions", "version"), ("committed", "committed, UTC"), ("word", "readable"))

_WORDS = {"gone": "no longer", "at risk": "until the next cleanup", "kept": "yes", "broken": "no, broken"}


def _cells(ribbon: pl.DataFrame, domain: tuple[datetime, datetime], p: Palette) -> pl.DataFrame:
    colours = {"gone": p.absent, "at risk": p.orange, "kept": p.quiet, "broken": p.red}
    first, last = (pl.lit(moment).cast(ribbon.schema["timestamp"]) for moment in domain)
    narrow = (pl.col("until") - pl.col("timestamp")) <= (domain[1] - domain[0]) * _NARROW
    cells = ribbon.with_columns(pl.col("until").fill_null(last)).with_row_index("row")
    # more versions than pixels: one cell for neighbours of the same state
    together = pl.lit(value=True) if cells.height > _MOST_CELLS else narrow
    alike = pl.struct("state", together.alias("together")).rle_id().cast(pl.Int64)
    firsts, lasts = pl.col("version", "timestamp", "state", "reason").first(), pl.col("until", "version").last()
    run = pl.when(together).then(alike).otherwise(-1 - pl.col("row").cast(pl.Int64)).alias("run")
    cells = (
        cells.group_by(run, maintain_order=True).agg(firsts, lasts.name.suffix("_last")).rename({"until_last": "until"})
    )
    cells = cells.filter((pl.col("until") > first) & (pl.col("timestamp") < last)).tail(_MOST_CELLS)
    least = pl.lit((domain[1] - domain[0]) * _NARROWEST).cast(pl.Duration("ms"))
    cells = cells.with_columns(pl.max_horizontal("until", pl.col("timestamp") + least))
    is_wide = pl.col("until") - pl.col("timestamp") > least  # narrow ones lie on top, and broken ones of them on others
    cells = cells.sort(is_wide, pl.col("state").ne_missing("broken"), descending=True, maintain_order=True)
    rows = cells.with_columns(pl.col("timestamp").clip(first, last - least), pl.col("until").clip(first, last))
    return pl.DataFrame(
        {
            "timestamp": rows["timestamp"],
            "until": rows["until"],
            "middle": rows["timestamp"] + (rows["until"] - rows["timestamp"]) / 2,
            "state": rows["state"],
            "height": rows["state"].replace_strict(_HEIGHTS, default=1.0, return_dtype=pl.Float64),
            "color": rows["state"].replace_strict(colours, default=p.gray, return_dtype=pl.String),
            # a cell of a few pixels is all gap if it has one
            "gap": (rows["until"] - rows["timestamp"] > (domain[1] - domain[0]) * _NARROW).cast(pl.Int8),
            "word": rows.select(
                pl.concat_str(
                    pl.col("state").replace_strict(_WORDS, default="unknown", return_dtype=pl.String),
                    "reason",
                    separator=": ",
                    ignore_nulls=True,
                )
            ).to_series(),
            "version": cells["version"].cast(pl.String),
            "versions": [format_range(a, b) for a, b in cells.select("version", "version_last").iter_rows()],
            "committed": texts(cells["timestamp"], format_moment),
        }
    )


def _key(ribbon: pl.DataFrame) -> str:
    runs = readability_runs(ribbon)
    texts = [(state, runs_text(runs, state)) for state in _HEIGHTS]
    summary = "   ".join(f"{_GLYPHS[state]} {state} {text}" for state, text in texts if text is not None)
    return f"Can it still be read?   {summary}"
