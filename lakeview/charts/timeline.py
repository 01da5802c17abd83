"""TIMELINE to panels on one time axis: the state, what was added and removed, who did what, what can still be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import altair as alt
import polars as pl

from lakeview.charts.commit_marks import SHAPES, TOOLTIP, opacities, style_marks, tooltip_rows
from lakeview.charts.event_labels import event_colours, event_labels
from lakeview.charts.marks import as_given, lanes, peak, tooltips, whole_axis
from lakeview.charts.palette import Palette, palette
from lakeview.charts.ribbon import ribbon_chart
from lakeview.charts.theme import (
    BRUSHED,
    SELECTION,
    AnyChart,
    byte_unit,
    count_unit,
    finish_chart,
    layer_charts,
    time_axis,
    time_domain,
)
from lakeview.model.frames import UTC_MILLIS
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.downsampling import flow_sums, lane_marks, monotonic, state_points

_MEASURES = {"rows": "records", "bytes": "bytes", "files": "files"}
_CHECKPOINT = "checkpt."
_MOST_CHECKPOINTS = 200


def timeline_charts(
    timeline: pl.DataFrame,
    events: pl.DataFrame | None = None,
    ribbon: pl.DataFrame | None = None,
    *,
    dark: bool = False,
    measure: str | None = "rows",
    small: bool = False,
    version: int | None = None,
    key: bool = False,
    pick: bool = True,
    brush: bool = False,
    checkpoints: pl.DataFrame | None = None,
    matching: pl.Series | None = None,
    span: tuple[datetime, datetime] | None = None,
) -> list[AnyChart]:
    """Panels to be stacked without a gap, the last with the time axis: event labels, states, flows, commits, ribbon.

    `measure`: rows, bytes or files leads (None as rows, without flows); `small`: states and ribbon only. `version` is
    marked in every panel. `key` writes the ribbon's key into the picture. With `pick` a click selects `picked` with
    `version` (text, for ids do not fit a browser's numbers); with `brush` a drag over the first panel selects the span
    of time `brushed` (milliseconds under `timestamp`). `checkpoints`: the `version` of each, in a lane of their own.
    `matching`: the versions that pass filters; marks and rules of the others are pale, nothing else depends on it.
    `span`: a band of time behind the panels. At most 5,000 marks in all; [] without commits.
    """
    if timeline["timestamp"].drop_nulls().is_empty():
        return []
    p = palette(dark)
    domain = time_domain(timeline["timestamp"])
    if matching is not None:
        timeline = timeline.with_columns(matches=pl.col("version").is_in(matching.implode()))
    context = _PanelContext(p, domain, _marks(timeline, events, version, domain, p), pick, _band(span, domain))
    inner, last = (time_axis(domain, labels=has_labels) for has_labels in (False, ribbon is None))
    lead = _MEASURES.get(measure or "rows", "records")
    labels = None if events is None else event_labels(events, domain, p)
    panels = [] if labels is None else [labels]
    panels.append(_state(timeline, lead, 66 if lead == "records" else 52, inner, context, brush=brush))
    if small:
        panels.append(_state(timeline, "files", 52, last, context))
    else:
        panels += [*_details(timeline, lead, inner, context, measure), _commits(timeline, checkpoints, last, context)]
    if ribbon is not None and not ribbon.is_empty():
        panels.append(ribbon_chart(ribbon, dark=dark, domain=domain, key=key, pick=pick))
    return panels


@dataclass(frozen=True, slots=True)
class _PanelContext:
    """What all panels of one picture have in common: `marks` are rules through every panel, `band` (`timestamp, until`)
    lies behind them."""

    p: Palette
    domain: tuple[datetime, datetime]
    marks: pl.DataFrame
    pick: bool
    band: pl.DataFrame


def _details(
    timeline: pl.DataFrame, lead: str, x: alt.X, context: _PanelContext, measure: str | None
) -> list[AnyChart]:
    """The second state, and what was added and removed where a measure is chosen."""
    if measure is None:
        return [_state(timeline, "files", 52, x, context)]
    second = "bytes" if lead != "bytes" else "records"
    return [_state(timeline, second, 52, x, context), _flows(timeline, lead, x, context)]


def _state(
    timeline: pl.DataFrame, measure: str, height: int, x: alt.X, context: _PanelContext, *, brush: bool = False
) -> AnyChart:
    points, p = state_points(on_branch(timeline), measure), context.p
    # where rows are unknown, what the log proves is drawn pale
    least = points["least_records"] if measure == "records" else points[measure].clear(points.height)
    most = max(peak(points[measure]), peak(least))
    divisor, title = _unit(measure, most, {"records": "Rows", "bytes": "Live bytes", "files": "Files"})
    rows = tooltip_rows(points).with_columns(
        monotonic(points["timestamp"]).alias("timestamp"), value=points[measure] / divisor, least=least / divisor
    )
    scale = alt.Scale(domainMin=0, domainMax=max(peak(rows["value"]), peak(rows["least"])) or 1.0, nice=3)
    y = alt.Y("value:Q", title=None, axis=_axis(divisor), scale=scale)
    base = alt.Chart(rows)
    layers: list[AnyChart] = []
    if rows["value"].has_nulls() and rows["least"].drop_nulls().len():
        least_line = base.mark_line(
            interpolate="step-after", color=p.blue, strokeWidth=1, strokeDash=[2, 2], opacity=0.6
        )
        layers.append(least_line.encode(x=x, y=alt.Y("least:Q", title=None)))
    end = alt.Chart(rows.drop_nulls("value").tail(1)).mark_point(filled=True, opacity=1, size=26, color=p.blue)
    end = end.encode(x=x, y=y)
    layers += [
        # Vega-Lite stacks areas at one time, if it is not told otherwise
        base.mark_area(interpolate="step-after", color=p.blue, opacity=0.1).encode(x=x, y=y.stack(None)),
        base.mark_line(interpolate="step-after", color=p.blue, strokeWidth=1.6).encode(x=x, y=y),
        # a mark with a selection takes clicks: one on the area would pick the first version
        end.add_params(alt.selection_interval(name=BRUSHED, encodings=["x"])) if brush else end,
    ]
    return _panel(rows, layers, x, context, height=height, title=title)


def _flows(timeline: pl.DataFrame, measure: str, x: alt.X, context: _PanelContext) -> AnyChart:
    sums, p = flow_sums(on_branch(timeline)), context.p
    gain, loss = sums[f"{measure}_added"], sums[f"{measure}_removed"]
    most = max(peak(gain), peak(loss))
    names = {"records": "Rows", "bytes": "Bytes", "files": "Files"}
    divisor, title = _unit(measure, most, {name: f"{what} added and removed" for name, what in names.items()})
    tooltip_texts = tooltip_rows(sums).with_columns(opacities(sums), maintenance=sums["lane"] == "maintenance")
    if measure == "records":  # maintenance writes rows again, it adds and removes none
        gain, loss = (values.set(tooltip_texts["maintenance"], None) for values in (gain, loss))

    def way(values: pl.Series, colour: str) -> pl.DataFrame:
        gray = pl.when("maintenance").then(pl.lit(p.gray)).otherwise(pl.lit(colour))
        return tooltip_texts.with_columns(value=values / divisor, color=gray)

    rows = pl.concat([way(gain, p.green), way(-loss, p.orange)]).filter(pl.col("value") != 0)
    # a scale from zero to zero has no steps, and names it to six places
    scale = alt.Scale(nice=3) if peak(rows["value"].abs()) else alt.Scale(domain=[0, 1])
    y = alt.Y("value:Q", title=None, axis=_axis(divisor), scale=scale)
    zero = alt.Chart(pl.DataFrame({"value": [0.0]})).mark_rule(color=p.axis).encode(y=y)
    bars = alt.Chart(rows).mark_rule(strokeWidth=4 if sums.height <= 150 else 2 if sums.height <= 600 else 1)
    layers = [zero, bars.encode(x=x, y=y, y2=alt.datum(0), **as_given("color", "opacity"))]
    return _panel(rows, layers, x, context, height=62, title=title)


def _commits(timeline: pl.DataFrame, checkpoints: pl.DataFrame | None, x: alt.X, context: _PanelContext) -> AnyChart:
    marks, p = lane_marks(timeline), context.p
    # the pale marks first: the others lie above them
    rows = (
        style_marks(marks, tooltip_rows(marks), p).with_columns(opacities(marks)).sort("opacity", maintain_order=True)
    )
    if checkpoints is not None:
        commits = checkpoints.select("version").join(timeline, on="version", how="inner", maintain_order="left")
        places = lane_marks(commits, _MOST_CHECKPOINTS)
        squares = tooltip_rows(places).with_columns(
            lane=pl.lit(_CHECKPOINT), color=pl.lit(p.axis), shape=pl.lit("square"), size=pl.lit(26, pl.Int64),
            operation=pl.lit("checkpoint"), taken_back=pl.lit(value=False), opacity=pl.lit(1.0),
        )  # fmt: skip
        rows = pl.concat([rows, squares.select(rows.columns)])
    there = set(rows["lane"].to_list())
    names = [
        name for name in (*SHAPES, _CHECKPOINT) if name in there or name in ("append", "change", "schema", "maint.")
    ]
    y = lanes("lane:O", names, alt.Axis(grid=True, tickBand="center"))
    points = alt.Chart(rows).mark_point(filled=True).encode(x=x, y=y, **as_given("opacity", "color", "shape", "size"))
    return _panel(rows, [points], x, context, height=14 * len(names), title="Commits")


def _panel(
    rows: pl.DataFrame, layers: Sequence[AnyChart], x: alt.X, context: _PanelContext, *, height: int, title: str
) -> AnyChart:
    """A panel: the band, rules, these layers, and over them what answers to the pointer, a rule a row's version."""
    band = alt.Chart(context.band).mark_rect(color=context.p.band).encode(x=x, x2="until:T")
    behind = [] if context.band.is_empty() else [band]
    chart = layer_charts(*behind, _rules(context, x), *layers, _hover(rows, x, context))
    return finish_chart(chart, context.p, height=height, title=title)


def _axis(divisor: float) -> alt.Axis:
    """An axis of figures; of whole ones without a label between two."""
    return whole_axis() if divisor == 1 else alt.Axis()


def _band(span: tuple[datetime, datetime] | None, domain: tuple[datetime, datetime]) -> pl.DataFrame:
    """`timestamp, until`: the span as far as it lies inside the time shown; empty without one."""
    first, last = (None, None) if span is None else (max(span[0], domain[0]), min(span[1], domain[1]))
    ends = pl.DataFrame({"timestamp": [first], "until": [last]}, schema={"timestamp": UTC_MILLIS, "until": UTC_MILLIS})
    return ends.filter(pl.col("timestamp") < pl.col("until"))


def _rules(context: _PanelContext, x: alt.X) -> AnyChart:
    """Dashed rules of the events, and a solid one of the version shown."""
    chart: alt.Chart = (
        alt.Chart(context.marks)
        .mark_rule()
        .encode(
            x=x,
            **as_given("color"),
            strokeDash=alt.StrokeDash("dash:N", scale=alt.Scale(domain=["event", "version"], range=[[2, 3], [1, 0]])),
        )
    )
    return chart


def _hover(rows: pl.DataFrame, x: alt.X, context: _PanelContext) -> AnyChart:
    """An invisible rule a version: it carries the tooltip and the click, and shows what was picked."""
    chart: alt.Chart = (
        alt.Chart(rows.unique("version", maintain_order=True))
        .mark_rule(strokeWidth=7, color=context.p.blue, opacity=0)
        .encode(x=x, tooltip=tooltips(TOOLTIP))
    )
    if not context.pick:
        return chart
    click = alt.selection_point(name=SELECTION, fields=["version"], on="click", clear="dblclick", empty=False)
    clickable: alt.Chart = chart.encode(opacity=alt.when(click).then(alt.value(0.25)).otherwise(alt.value(0)))
    return clickable.add_params(click)


def _marks(
    timeline: pl.DataFrame,
    events: pl.DataFrame | None,
    version: int | None,
    domain: tuple[datetime, datetime],
    p: Palette,
) -> pl.DataFrame:
    """`timestamp, color, dash`: the events inside the time shown, and the version to be marked."""
    here = timeline.clear() if version is None else timeline.filter(pl.col("version") == version)
    mark = here.select("timestamp", color=pl.lit(p.blue), dash=pl.lit("version"))
    if events is None:
        return mark
    event_marks = events.with_columns(color=event_colours(events, p)).filter(pl.col("timestamp").is_between(*domain))
    return pl.concat([event_marks.select("timestamp", "color", dash=pl.lit("event")), mark])


def _unit(measure: str, most: float, names: dict[str, str]) -> tuple[float, str]:
    return (byte_unit if measure == "bytes" else count_unit)(most, names[measure])
