"""TIMELINE to panels on one time axis: the state, what was added and removed, who did what, what can still be read."""

from __future__ import annotations

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
from lakeview.views.timeline.commits import on_branch
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
    plots = _panels(timeline, measure, checkpoints, p, small=small)
    panels: list[AnyChart] = []
    labels = None if events is None else event_labels(events, domain, p)
    if labels is not None:
        panels.append(labels)
    for i, plot in enumerate(plots):
        panels.append(_panel(plot, context, last=ribbon is None and i == len(plots) - 1, brush=brush and i == 0))
    if ribbon is not None and not ribbon.is_empty():
        panels.append(ribbon_chart(ribbon, dark=dark, domain=domain, key=key, pick=pick))
    return panels


def _panels(
    timeline: pl.DataFrame, measure: str | None, checkpoints: pl.DataFrame | None, p: Palette, *, small: bool
) -> list[_Panel]:
    lead = _MEASURES.get(measure or "rows", "records")
    second = "files" if small or measure is None else "bytes" if lead != "bytes" else "records"
    states = [_state(timeline, lead, 66 if lead == "records" else 52), _state(timeline, second, 52)]
    if small:
        return states
    flows = [] if measure is None else [_flows(timeline, lead, p)]
    return [*states, *flows, _commits(timeline, checkpoints, p)]


@dataclass(frozen=True, slots=True)
class _PanelContext:
    """What all panels of one picture have in common: `marks` are rules through every panel, `band` (`timestamp, until`)
    lies behind them."""

    p: Palette
    domain: tuple[datetime, datetime]
    marks: pl.DataFrame
    pick: bool
    band: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _Panel:
    """One panel before it is drawn: rows with `timestamp`, what is laid over them, and its axis, which has no label
    between two numbers where the values are whole."""

    kind: str
    title: str
    height: int
    rows: pl.DataFrame
    lanes: Sequence[str] = ()
    thickness: int = 4
    is_whole: bool = False


def _state(timeline: pl.DataFrame, measure: str, height: int) -> _Panel:
    points = state_points(on_branch(timeline), measure)
    # where rows are unknown, what the log proves is drawn pale
    least = points["least_records"] if measure == "records" else points[measure].clear(points.height)
    most = max(peak(points[measure]), peak(least))
    divisor, title = _unit(measure, most, {"records": "Rows", "bytes": "Live bytes", "files": "Files"})
    rows = tooltip_rows(points).with_columns(
        monotonic(points["timestamp"]).alias("timestamp"), value=points[measure] / divisor, least=least / divisor
    )
    return _Panel("state", title, height, rows, is_whole=divisor == 1)


def _flows(timeline: pl.DataFrame, measure: str, p: Palette) -> _Panel:
    sums = flow_sums(on_branch(timeline))
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
    thickness = 4 if sums.height <= 150 else 2 if sums.height <= 600 else 1
    return _Panel("flows", title, 62, rows, thickness=thickness, is_whole=divisor == 1)


def _commits(timeline: pl.DataFrame, checkpoints: pl.DataFrame | None, p: Palette) -> _Panel:
    marks = lane_marks(timeline)
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
    lanes = [
        name for name in (*SHAPES, _CHECKPOINT) if name in there or name in ("append", "change", "schema", "maint.")
    ]
    return _Panel("commits", "Commits", 14 * len(lanes), rows, lanes)


def _panel(plot: _Panel, context: _PanelContext, *, last: bool, brush: bool) -> AnyChart:
    p, x = context.p, time_axis(context.domain, labels=last)
    axis = whole_axis() if plot.is_whole else alt.Axis()
    base = alt.Chart(plot.rows)
    layers: list[AnyChart] = []
    if not context.band.is_empty():
        layers.append(alt.Chart(context.band).mark_rect(color=p.band).encode(x=x, x2="until:T"))
    layers.append(_rules(context, x))
    if plot.kind == "state":
        y = alt.Y(
            "value:Q",
            title=None,
            axis=axis,
            scale=alt.Scale(
                domainMin=0, domainMax=max(peak(plot.rows["value"]), peak(plot.rows["least"])) or 1.0, nice=3
            ),
        )
        # Vega-Lite stacks areas at one time, if it is not told otherwise
        area = base.mark_area(interpolate="step-after", color=p.blue, opacity=0.1).encode(x=x, y=y.stack(None))
        last_row = alt.Chart(plot.rows.drop_nulls("value").tail(1))
        end = last_row.mark_point(filled=True, opacity=1, size=26, color=p.blue).encode(x=x, y=y)
        if plot.rows["value"].has_nulls() and plot.rows["least"].drop_nulls().len():
            y_least = alt.Y("least:Q", title=None)
            layers.append(
                base.mark_line(
                    interpolate="step-after", color=p.blue, strokeWidth=1, strokeDash=[2, 2], opacity=0.6
                ).encode(x=x, y=y_least)
            )
        layers += [
            area,
            base.mark_line(interpolate="step-after", color=p.blue, strokeWidth=1.6).encode(x=x, y=y),
            # a mark with a selection takes clicks: one on the area would pick the first version
            end.add_params(alt.selection_interval(name=BRUSHED, encodings=["x"])) if brush else end,
        ]
    elif plot.kind == "flows":
        # a scale from zero to zero has no steps, and names it to six places
        nothing = not peak(plot.rows["value"].abs())
        scale = alt.Scale(domain=[0, 1]) if nothing else alt.Scale(nice=3)
        y = alt.Y("value:Q", title=None, axis=axis, scale=scale)
        zero = alt.Chart(pl.DataFrame({"value": [0.0]})).mark_rule(color=p.axis).encode(y=y)
        bars = base.mark_rule(strokeWidth=plot.thickness)
        layers += [zero, bars.encode(x=x, y=y, y2=alt.datum(0), **as_given("color", "opacity"))]
    else:
        y = lanes("lane:O", plot.lanes, alt.Axis(grid=True, tickBand="center"))
        points = base.mark_point(filled=True)
        layers.append(points.encode(x=x, y=y, **as_given("opacity", "color", "shape", "size")))
    layers.append(_hover(plot.rows, x, context))
    chart = layer_charts(*layers)
    return finish_chart(chart, p, height=plot.height, title=plot.title)


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
