"""FILE_SIZES to two histograms on the same doubling bins, and COLUMN_CHUNKS to the bytes of a file by column."""

import json

import altair as alt
import polars as pl

from lakeview.charts.marks import as_given, exact_count, label_axis, lanes, peak, picks, texts, tooltips, whole_axis
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, byte_unit, count_unit, finish_chart, layer_charts
from lakeview.views.thresholds import TARGET_HIGH, TARGET_LOW
from lakeview.views.units import format_bytes, format_count, format_percent

_NAMED_SHARE = 0.02
"""Bars of at least this share of the longest carry their figure; small files always do."""

_HEADROOM = 1.2


def size_histogram(
    bins: pl.DataFrame,
    *,
    selection: str | None = None,
    is_finding: bool = True,
    dark: bool = False,
) -> list[AnyChart]:
    """Count above bytes, to be stacked: small files orange where they are a finding, the target sizes a band behind; []
    without bins.

    A click picks a bin by its label; the one in `selection` stands out.
    """
    if bins.is_empty():
        return []
    p = palette(dark)
    files_unit = count_unit(peak(bins["files"]), "Files")
    bytes_unit = byte_unit(peak(bins["bytes"]), "Bytes")
    rows = _rows(bins, p.orange if is_finding else p.blue, p, selection)
    counts = rows.with_columns(value=bins["files"] / files_unit[0], figure=texts(bins["files"], format_count))
    sizes = rows.with_columns(
        value=bins["bytes"] / bytes_unit[0],
        figure=pl.Series([_figure(n / bytes_unit[0]) for n in bins["bytes"].fill_null(0)], dtype=pl.String),
    )
    return [
        _bars(counts, files_unit[1], p, bins, last=False, is_whole=files_unit[0] == 1),
        _bars(sizes, bytes_unit[1], p, bins, last=True),
    ]


def _bars(
    rows: pl.DataFrame, title: str, p: Palette, bins: pl.DataFrame, *, last: bool, is_whole: bool = False
) -> AnyChart:
    axis = alt.Axis(
        title=None, labels=last, domain=last, labelAngle=0, labelExpr=_short_labels(bins), labelOverlap=True
    )
    x = alt.X("label:N", sort=None, axis=axis, scale=alt.Scale(domain=bins["label"].to_list()))
    top = peak(rows["value"]) or 1.0
    y_axis = whole_axis() if is_whole else alt.Axis(title=None)
    y = alt.Y("value:Q", axis=y_axis, scale=alt.Scale(domain=[0, top * _HEADROOM], nice=False))
    tooltip = tooltips(_TOOLTIP)
    base = alt.Chart(rows)
    click = picks("label")
    labels = rows.filter((pl.col("value") > 0) & ((pl.col("value") >= _NAMED_SHARE * top) | pl.col("small")))
    band = alt.Chart(rows.filter("target"))
    layers: list[AnyChart] = [
        band.mark_rect(color=p.band).encode(x=x),
        base.mark_bar().encode(x=x, y=y, tooltip=tooltip, **as_given("color", "opacity")),
        alt.Chart(labels).mark_text(baseline="bottom", dy=-2).encode(x=x, y=y, text="figure:N"),
        # the whole column answers to the pointer, however low its bar is
        base.mark_rect(opacity=0).encode(x=x, tooltip=tooltip).add_params(click),
    ]
    if not last:
        text = f"target {format_bytes(TARGET_LOW).split('.')[0]}\N{EN DASH}{format_bytes(TARGET_HIGH)}"
        layers.append(
            # at the right edge of the plot: words that left it would make this panel narrower than the one below
            alt.Chart(rows.filter("target").head(1)).mark_text(
                text=text, align="right", baseline="bottom", y=-4, x="width"
            )
        )
    return finish_chart(layer_charts(*layers), p, height=96, title=title)


_TOOLTIP = (("label", "size"), ("files_text", "files"), ("bytes_text", "bytes"), ("share", "of all bytes"))


def _rows(bins: pl.DataFrame, small: str, p: Palette, selection: str | None) -> pl.DataFrame:
    whole = int(bins["bytes"].sum())
    return pl.DataFrame(
        {
            "label": bins["label"],
            "small": bins["small"],
            "opacity": [1.0 if selection in (None, label) else 0.45 for label in bins["label"]],
            "target": bins["target"],
            "color": bins.select(pl.when("small").then(pl.lit(small)).otherwise(pl.lit(p.blue))).to_series(),
            "files_text": texts(bins["files"], exact_count),
            "bytes_text": texts(bins["bytes"], format_bytes),
            "share": [format_percent(n / whole if whole and n is not None else None) for n in bins["bytes"]],
        }
    )


def _short_labels(bins: pl.DataFrame) -> str:
    """Where a bin begins; the unit is written once, where it begins."""
    short: dict[str, str] = {}
    before = ""
    for label, low, high in bins.select("label", "bin_low", "bin_high").iter_rows():
        number, unit = format_bytes(low or high).split(" ")
        whole = number.split(".")[0]
        short[label] = f"<{whole}" if low == 0 else whole if unit == before else f"{whole} {unit}"
        before = unit if low else ""
    return f"{json.dumps(short, ensure_ascii=False)}[datum.value]"


def _figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


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
    names = columns["column"].to_list()
    y = lanes("column:N", names, label_axis(_LABEL_WIDTH, names))
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
        finish_chart(
            layer_charts(*layers),
            p,
            height=_ROW_HEIGHT * columns.height,
            title=f"{title}; pale: before compression{more}",
        )
    ]
