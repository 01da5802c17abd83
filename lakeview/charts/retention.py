"""What a cleanup removes by the days it retains: CURVE to step lines; what old versions need: HISTORY_COST to bars."""

import altair as alt
import polars as pl

from lakeview.charts.marks import as_given, exact_count, peak, picks, step_line, texts, tooltips
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, byte_unit, finish_chart, layer_charts
from lakeview.views.sums import total_of
from lakeview.views.units import format_bytes, format_count, format_moment, format_percent, format_version

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
    unit, title = byte_unit(peak(curve["bytes"]), "Bytes freed", least=1)
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
    point = pl.DataFrame({"days": at["days"], "value": at[measure] / unit, "figure": at[f"{measure}_text"]})
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
        scale=alt.Scale(domain=[0, top * _HEADROOM], nice=3),
    )
    tooltip = tooltips((("retention", "retains"), ("figure", measure), ("files", "files")))
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
    return finish_chart(layer_charts(*layers), p, height=104, title=title)


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


_MOST_BARS = 12


def history_cost_bars(cost: pl.DataFrame, *, dark: bool = False) -> AnyChart:
    """The dearest commits, one bar each, maintenance in gray; the others in the last. A click picks `version`."""
    p = palette(dark)
    top = cost.head(_MOST_BARS)
    rest = cost.slice(_MOST_BARS)
    unit, title = byte_unit(peak(top["bytes"]), "Bytes only old versions need", least=1)
    rows = pl.DataFrame(
        {
            "version": top["version"].cast(pl.String),
            "commit": [
                f"{format_version(version)} · {operation or 'unknown'}"
                for version, operation in top.select("version", "operation").iter_rows()
            ],
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
            version=pl.lit(None, pl.String),
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
    fields = ("commit", "committed", "writer", "files")
    more = (("figure", "bytes"), ("share", "of all retained for old versions"))
    tooltip = tooltips((*zip(fields, fields, strict=True), *more))
    bars = alt.Chart(rows)
    layers: list[AnyChart] = [
        bars.mark_bar(height=12).encode(x=x, y=y, tooltip=tooltip, **as_given("color")).add_params(picks("version")),
        bars.mark_text(align="left", dx=5).encode(x=x, y=y, text="figure:N"),
    ]
    heading = alt.TitleParams(title, frame="bounds", dx=0)
    return finish_chart(layer_charts(*layers), p, height=max(22 * rows.height, 30), title=heading)
