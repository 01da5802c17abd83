"""PARTITION_SIZES to bars with their median file and file count; PARTITION_WRITES to when each was written."""

import json
from collections.abc import Sequence
from datetime import datetime

import altair as alt
import polars as pl

from lakeview.charts.marks import as_given, exact_count, lanes, peak, picks, texts, tooltips, whole_axis
from lakeview.charts.palette import Palette, palette
from lakeview.charts.theme import AnyChart, byte_unit, count_unit, finish_chart, layer_charts, time_axis
from lakeview.model.partition_texts import PERCENT, SLASH
from lakeview.model.printable import ELLIPSIS
from lakeview.views.partitions.keys import MOMENT, NO_PARTITION, key_pattern, with_slashes
from lakeview.views.thresholds import MIB, SKEW_TIMES, SMALL_FILE_BYTES, TARGET_HIGH, TARGET_LOW
from lakeview.views.timeline.loads import BAD_LOAD
from lakeview.views.units import format_bytes, format_count, format_moment, format_percent, format_range

_MOST_BARS = 200
_MOST_WRITTEN_FIGURES = 24
_MOST_NAMED = 3
MOST_LINES = 60


def partition_bars(
    sizes: pl.DataFrame,
    *,
    keys: Sequence[str] = (),
    arrivals: pl.DataFrame | None = None,
    selection: str | None = None,
    dark: bool = False,
) -> list[AnyChart]:
    """Rows (bytes where rows are unknown), median file and file count, to be stacked; [] without partitions.

    Of more than _MOST_BARS partitions those with most bytes and the first missing ones are shown, and the title says
    so. What needs attention is orange: late ones (PARTITION_ARRIVALS) with their lag, missing ones (of no files) with a
    cross, and those with many times the files of the others. Labels leave out the names of `keys`. A click picks
    a partition; that of `selection` stands out.
    """
    if sizes.is_empty():
        return []
    p = palette(dark)
    there = sizes.filter(pl.col("files") > 0)
    visible = sizes
    if sizes.height > _MOST_BARS:
        places = sizes.with_row_index("place")
        missing = places.filter(pl.col("files") == 0).head(_MOST_BARS // 2)
        largest = places.filter(pl.col("files") > 0).sort("bytes", descending=True).head(_MOST_BARS - missing.height)
        visible = pl.concat([largest, missing]).sort("place").drop("place")
    rows = _rows(visible, arrivals, p, of=there)
    gaps = visible.height - visible.filter(pl.col("files") > 0).height
    gaps_text = f" and {gaps} missing" if gaps else ""
    more = f"; the {visible.height - gaps} largest{gaps_text} of {sizes.height:,}" if sizes.height > _MOST_BARS else ""
    x, x_with_labels = (_axis(visible["partition_text"], keys, labels=last) for last in (False, True))
    measure = "bytes" if visible["records"].has_nulls() else "records"
    unit = byte_unit if measure == "bytes" else count_unit
    divisor, title = unit(peak(visible[measure]), "Bytes" if measure == "bytes" else "Rows")
    opacity = pl.lit(1.0) if selection is None else pl.when(pl.col("partition") == selection).then(1.0).otherwise(0.45)
    bars = rows.with_columns(value=visible[measure] / divisor, opacity=opacity)
    median = _median(there[measure]) / divisor
    return [
        _size_bars(bars, median, f"{title}; dashed: median{more}", x, p),
        _median_files(rows.with_columns(value=visible["median_size"].clip(1) / MIB).drop_nulls("value"), x, p),
        _file_counts(rows.with_columns(value=visible["files"]), x_with_labels, p),
    ]


def partition_writes(writes: pl.DataFrame, *, keys: Sequence[str] = (), dark: bool = False) -> list[AnyChart]:
    """Which partition was written when: a cell a span of time, stronger is more rows; unknown rows are gray.

    The last MOST_LINES partitions; bad loads are named beside theirs, open ones red. [] without writes. Labels leave
    out the names of `keys`. A click picks `partition`.
    """
    if writes.is_empty():
        return []
    p = palette(dark)
    order = writes["partition_text"].unique(maintain_order=True).tail(MOST_LINES)
    visible = writes.filter(pl.col("partition_text").is_in(order.to_list()))
    ends = (visible["timestamp"].sort().to_list()[0], visible["until"].sort().to_list()[-1])
    names = short_names(order, keys)
    cells = pl.DataFrame(
        {
            "timestamp": visible["timestamp"],
            "until": visible["until"],
            "partition": visible["partition_text"],
            "value": visible["records"],
            "rows": texts(visible["records"], exact_count),
            "files": texts(visible["files"], exact_count),
            "size": texts(visible["bytes"], format_bytes),
            "versions": [format_range(a, b) for a, b in visible.select("first_version", "last_version").iter_rows()],
            "from": texts(visible["timestamp"], format_moment),
        }
    )
    labels = _named_loads(visible, ends, p)
    axis = alt.Axis(labelExpr=names, labelLimit=110, minExtent=72, maxExtent=110)
    y = lanes("partition:N", order.to_list(), axis)
    x = time_axis(ends, labels=True)
    fields = (("partition", "partition"), ("from", "from, UTC"), ("versions", "versions"))
    tooltip = tooltips((*fields, ("rows", "rows"), ("files", "files"), ("size", "bytes")))
    scale = alt.Scale(range=list(p.sequential[2:]), domainMin=0)
    base = alt.Chart(cells)
    layers: list[AnyChart] = [
        base.mark_rect(stroke=p.page, strokeWidth=1, color=p.absent).encode(x=x, x2="until:T", y=y),
        alt.Chart(cells.drop_nulls("value"))
        .mark_rect(stroke=p.page, strokeWidth=1)
        .encode(x=x, x2="until:T", y=y, color=alt.Color("value:Q", scale=scale)),
        *(
            alt.Chart(labels.filter(pl.col("before") == before))
            .mark_text(align="right" if before else "left", dx=-5 if before else 5)
            .encode(x=time_axis(ends, labels=True, field="at"), y=y, text="text:N", **as_given("color"))
            for before in (True, False)
        ),
        base.mark_rect(opacity=0).encode(x=x, x2="until:T", y=y, tooltip=tooltip).add_params(picks("partition")),
    ]
    height = min(19, 1200 // order.len()) * order.len()
    return [finish_chart(layer_charts(*layers), p, height=height)]


def _named_loads(writes: pl.DataFrame, ends: tuple[datetime, datetime], p: Palette) -> pl.DataFrame:
    """`partition, text, color, at, before`: words for bad loads, beside all cells of their partition."""
    newest_first = writes.sort("timestamp", descending=True).group_by("partition_text", maintain_order=True)
    parts = newest_first.agg(
        pl.col("open_loads", "repaired_loads").explode().drop_nulls(),
        first=pl.col("timestamp").min(),
        last=pl.col("until").max(),
    ).filter((pl.col("open_loads").list.len() + pl.col("repaired_loads").list.len()) > 0)
    room = pl.col("first") > ends[0] + (ends[1] - ends[0]) * 0.3
    return parts.select(
        partition="partition_text",
        text=pl.Series(
            [_bad_loads(*each) for each in parts.select("open_loads", "repaired_loads").iter_rows()], dtype=pl.String
        ),
        color=pl.when(pl.col("open_loads").list.len() > 0).then(pl.lit(p.red_text)).otherwise(pl.lit(p.orange_text)),
        at=pl.when(room).then("first").otherwise("last"),
        before=room,
    )


def _bad_loads(open_: list[str], repairs: list[str]) -> str:
    """`bad load v75, v74; repaired v29`, at most three of a kind."""
    kinds = ((BAD_LOAD, open_), ("repaired" if open_ else f"repaired {BAD_LOAD}", repairs))
    parts = [
        f"{word} {', '.join([*loads[:_MOST_NAMED], *([ELLIPSIS] if len(loads) > _MOST_NAMED else [])])}"
        for word, loads in kinds
        if loads
    ]
    return "; ".join(parts)


def _size_bars(rows: pl.DataFrame, median: float, title: str, x: alt.X, p: Palette) -> AnyChart:
    top = max(peak(rows["value"]), 1e-9)
    axis = whole_axis() if (rows["value"] % 1 == 0).all() else alt.Axis()
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, top * 1.14], nice=False), axis=axis)
    middle = alt.Chart(pl.DataFrame({"value": [median]})).mark_rule(color=p.muted, strokeDash=[3, 3])
    base = alt.Chart(rows)
    bars = base.mark_bar().encode(x=x, y=y, **as_given("color", "opacity"))
    words = alt.Chart(rows.filter(pl.col("words") != "")).mark_text(baseline="bottom", dy=-3, color=p.orange_text)
    layers = layer_charts(bars, middle.encode(y=y), words.encode(x=x, y=y, text="words:N"), _columns(rows, x))
    return finish_chart(layers, p, height=96, title=title)


def _median_files(rows: pl.DataFrame, x: alt.X, p: Palette) -> AnyChart:
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(type="log", nice=False, padding=8),
        axis=alt.Axis(format="~g", tickCount=3),
    )
    band = alt.Chart(pl.DataFrame({"low": [TARGET_LOW / MIB], "high": [TARGET_HIGH / MIB]})).mark_rect(color=p.band)
    dots = alt.Chart(rows).mark_point(filled=True, opacity=1, size=40)
    layers = layer_charts(
        band.encode(y=alt.Y("low:Q", title=None), y2="high:Q"),
        dots.encode(x=x, y=y, color=alt.Color("file_color:N", scale=None)),
        _columns(rows, x),
    )
    return finish_chart(layers, p, height=66, title="Median file, MiB, log scale; band is the target")


def _file_counts(rows: pl.DataFrame, x: alt.X, p: Palette) -> AnyChart:
    """The figures themselves while they fit, bars where they do not."""
    if rows.height <= _MOST_WRITTEN_FIGURES:
        axis = alt.Axis(title=None, labelOpacity=0, grid=False, domain=False)
        words: alt.Chart = (
            alt.Chart(rows.with_columns(line=pl.lit(0)))
            .mark_text()
            .encode(
                x=x,
                y=alt.Y("line:Q", axis=axis, scale=alt.Scale(domain=[-1, 1])),
                text="files:N",
                color=alt.Color("word_color:N", scale=None),
            )
        )
        return finish_chart(layer_charts(words, _columns(rows, x)), p, height=18, title="Files")
    y = alt.Y("value:Q", title=None, scale=alt.Scale(type="symlog", domainMin=0), axis=whole_axis(tickCount=2))
    bars: alt.Chart = alt.Chart(rows).mark_bar().encode(x=x, y=y, color=alt.Color("file_color:N", scale=None))
    return finish_chart(layer_charts(bars, _columns(rows, x)), p, height=44, title="Files, log scale")


def _columns(rows: pl.DataFrame, x: alt.X) -> alt.Chart:
    """The whole column of a partition answers to the pointer, however low its bar is: its tooltip, and a click."""
    whole: alt.Chart = alt.Chart(rows).mark_rect(opacity=0).encode(x=x, tooltip=_tooltip())
    return whole.add_params(picks("partition"))


def _tooltip() -> list[alt.Tooltip]:
    fields = (("title", "partition"), ("rows", "rows"), ("size", "bytes"), ("share", "of all bytes"))
    more = (("files", "files"), ("median", "median file"))
    return tooltips((*fields, *more))


def _rows(sizes: pl.DataFrame, arrivals: pl.DataFrame | None, p: Palette, *, of: pl.DataFrame) -> pl.DataFrame:
    late = pl.DataFrame(schema={"partition_text": pl.String(), "note": pl.String()})
    if arrivals is not None:
        late = arrivals.filter("late").select("partition_text", "note")
    words = sizes.select("partition_text").join(late, on="partition_text", how="left", maintain_order="left")["note"]
    is_missing = sizes["files"] == 0
    # a field of its own would be empty for most partitions
    partition = sizes["partition_text"].fill_null(NO_PARTITION)
    note = words.set(is_missing, "missing")
    titles = pl.select(pl.concat_str(partition, note, separator="; ", ignore_nulls=True)).to_series()
    words = words.set(is_missing, "✕")
    many = sizes["files"] >= SKEW_TIMES * max(_median(of["files"]), 1.0)
    attention = many & (sizes["median_size"] < SMALL_FILE_BYTES)
    return pl.DataFrame(
        {
            "partition": sizes["partition_text"].fill_null(NO_PARTITION),
            "title": titles,
            "words": words.fill_null(""),
            "rows": texts(sizes["records"], exact_count),
            "size": texts(sizes["bytes"], format_bytes),
            "share": texts(sizes["share"], format_percent),
            "files": texts(sizes["files"], format_count),
            "median": texts(sizes["median_size"], format_bytes),
            "color": _choose(words.is_not_null(), p.orange, p.quiet),
            "file_color": _choose(attention, p.orange, p.blue),
            "word_color": _choose(attention, p.orange_text, p.text),
        }
    )


def _axis(partitions: pl.Series, keys: Sequence[str], *, labels: bool) -> alt.X:
    domain = partitions.fill_null(NO_PARTITION).to_list()
    axis = alt.Axis(
        title=None,
        labels=labels,
        domain=labels,
        labelExpr=short_names(partitions, keys),
        labelOverlap="greedy",
        labelSeparation=8,
        labelBound=True,  # beyond the end it would make this panel narrower than those above it
        labelAngle=0,
    )
    return alt.X("partition:N", sort=None, axis=axis, scale=alt.Scale(type="band", domain=domain, paddingInner=0.25))


def _median(values: pl.Series) -> float:
    median = values.median()
    return median if isinstance(median, float) else 0.0


def _choose(where: pl.Series, yes: str, no: str) -> pl.Series:
    return pl.select(pl.when(where).then(pl.lit(yes)).otherwise(pl.lit(no))).to_series()


def short_names(partitions: pl.Series, keys: Sequence[str]) -> str:
    """An expression for axis labels: the values without their `keys`, `3` for `month=3`, `3/EWR` for
    `month=3/origin=EWR`, `a/b` for `path=a%2Fb`, `2026-01-01 21:00` for `at=2026-01-01T21:00:00.000000Z`. Two
    partitions that would look alike keep their keys."""
    texts = partitions.drop_nulls().unique()
    pattern = key_pattern(keys)
    values = with_slashes(texts.str.replace_all(pattern, "$1").str.replace_all(MOMENT, " $1$2"))
    if values.n_unique() < texts.len() or (values == "").any():
        return "datum.label"
    replacements = [(pattern, "$1"), (MOMENT, " $1$2")]
    if texts.str.contains("%", literal=True).any():
        replacements += [(SLASH, "/"), (PERCENT, "%$1")]
    label = "datum.label"
    for part, by in replacements:
        label = f"replace({label}, regexp({json.dumps(part)}, 'g'), '{by}')"
    return label
