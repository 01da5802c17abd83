"""CURVE to two step lines: the bytes and the versions that a cleanup removes, by the days it retains."""

from __future__ import annotations

import altair as alt
import polars as pl

from lakeview.charts.marks import exact_count, peak, step_line, texts
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, byte_unit, finished, layered
from lakeview.views.units import format_bytes, format_count

_HEADROOM = 1.25


def retention_curves(
    curve: pl.DataFrame,
    days: float,
    *,
    longest: float,
    lists_all_files: bool = False,
    dark: bool = False,
) -> list[AnyChart]:
    """Bytes in blue and versions in orange, to stand side by side; a dot at the retention chosen. `longest`: where the
    axis ends, in days; `lists_all_files`: of a Retention."""
    p = palette(dark)
    unit, title = byte_unit(peak(curve["bytes"]), "Bytes freed")
    current = curve.filter(pl.col("days") <= days).tail(1).with_columns(days=pl.lit(days))
    steps, at = (_with_texts(part, lists_all_files) for part in (_steps(curve, longest), current))
    return [
        _curve(steps, at, "bytes", unit, f"{title}, by days retained", (p.blue, p.blue_text), p),
        _curve(steps, at, "versions", 1.0, "Versions lost, by days retained", (p.orange, p.orange_text), p),
    ]


def _curve(
    steps: pl.DataFrame,
    at: pl.DataFrame,
    measure: str,
    unit: float,
    title: str,
    colours: tuple[str, str],
    p: Palette,
) -> AnyChart:
    colour, words = colours
    rows = pl.DataFrame(
        {
            "days": steps["days"],
            "value": steps[measure] / unit,
            "retention": [_age(d) for d in steps["days"]],
            "figure": steps[f"{measure}_text"],
            "files": steps["files_text"],
        }
    )
    point = pl.DataFrame(
        {
            "days": at["days"],
            "value": at[measure] / unit,
            "figure": at[f"{measure}_text"],
        }
    )
    longest = peak(rows["days"]) or 1.0
    x = alt.X(
        "days:Q",
        axis=alt.Axis(title=None, tickCount=6, labelFlush=False),
        scale=alt.Scale(domain=[0, longest], nice=False),
    )
    top = peak(rows["value"]) or 1.0
    y = alt.Y(
        "value:Q",
        axis=alt.Axis(title=None, tickMinStep=1 if measure == "versions" else 0),
        scale=alt.Scale(domain=[0, top * _HEADROOM], nice=False),
    )
    tooltip = [
        alt.Tooltip("retention:N", title="retains"),
        alt.Tooltip("figure:N", title=measure),
        alt.Tooltip("files:N"),
    ]
    line = alt.Chart(rows)
    dot = alt.Chart(point)
    right = bool(point.height and point["days"][0] > longest / 2)
    layers: list[AnyChart] = [
        *step_line(line, x, y, colour),
        line.mark_rule(strokeWidth=7, opacity=0).encode(x=x, tooltip=tooltip),
        dot.mark_rule(color=p.muted, strokeDash=[2, 2]).encode(x=x, y=y, y2=alt.datum(0)),
        dot.mark_point(color=colour, filled=True, size=48, opacity=1).encode(x=x, y=y),
        dot.mark_text(
            align="right" if right else "left", dx=-7 if right else 7, dy=-8, fontWeight=600, color=words
        ).encode(x=x, y=y, text="figure:N"),
    ]
    return finished(layered(*layers), p, height=104, title=title)


def _steps(curve: pl.DataFrame, longest: float) -> pl.DataFrame:
    """The steps up to the end of the axis, the last of them drawn on to it."""
    inside = curve.filter(pl.col("days") <= longest)
    return pl.concat([inside, inside.tail(1).with_columns(days=pl.lit(longest, pl.Float64))])


def _age(days: float) -> str:
    return f"{days:,.0f} days" if days >= 10 else f"{days:.1f} days"


def _with_texts(curve: pl.DataFrame, lists_all_files: bool) -> pl.DataFrame:
    """CURVE with texts: bytes and files of lost versions whose files the log does not list are unknown, not 0."""
    frees_nothing = (pl.col("bytes") == 0) & ~((pl.col("files") == 0) & pl.lit(lists_all_files))
    figures = curve.with_columns(pl.when(~((pl.col("versions") > 0) & frees_nothing)).then(pl.col("bytes", "files")))
    return curve.with_columns(
        bytes_text=texts(figures["bytes"], format_bytes),
        files_text=texts(figures["files"], exact_count),
        versions_text=texts(curve["versions"], format_count),
    )
