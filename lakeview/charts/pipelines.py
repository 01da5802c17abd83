"""Runs of pipelines to bars of their durations, and lineage to a picture of table versions from left to right."""

import altair as alt
import polars as pl

from lakeview.charts.marks import as_given, exact_count, from_zero, peak, picks, texts, tooltips
from lakeview.charts.palette import palette
from lakeview.charts.theme import AnyChart, finish_chart, layer_charts, span_unit, time_axis, time_domain
from lakeview.model.printable import shorten
from lakeview.views.pipelines import RunOutcome, newest_nodes, range_edges, run_outcomes, version_name
from lakeview.views.units import format_duration, format_moment, format_range, format_version

_MARKS = {
    RunOutcome.FAILED: ("\N{MULTIPLICATION X}", "cross", "red"),
    RunOutcome.INTERRUPTED: ("\N{BLACK UP-POINTING TRIANGLE}", "triangle-up", "orange"),
    RunOutcome.RUNNING: ("\N{MIDDLE DOT}", "stroke", "gray"),
    RunOutcome.ROWS_FAILED: ("\N{BLACK DIAMOND}", "diamond", "orange"),
    RunOutcome.SUCCEEDED: ("\N{CHECK MARK}", "circle", "blue"),
}
"""The sign of a run's outcome in tables, its shape and colour in the picture."""
SIGNS = {outcome: sign for outcome, (sign, _, _) in _MARKS.items()}
_UNKNOWN = _MARKS[RunOutcome.RUNNING]
"""Of an outcome that a later version records."""
_DAY_MS = 86_400_000
_RUNS_HEIGHT, _BAR = 96, 5
_MOST_OF_A_TABLE, _MOST_OF_A_LAYER = 8, 16
_ROW, _LABEL, _MOST_CHARACTERS = 40, 150, 300


def run_bars(runs: pl.DataFrame, run_id: str | None = None, *, dark: bool = False) -> list[AnyChart]:
    """One chart of RUN_RESULTS: duration over time, a shape and colour by RunOutcome, `run_id` in the colour of the
    selection. A click picks `run_id`. [] without a run whose start is recorded."""
    runs = runs.drop_nulls("started")
    if runs.is_empty():
        return []
    p = palette(dark)
    # a run that was cut off ended when the next one noticed, however long after
    took = runs.select(pl.when(pl.col("status") != "interrupted").then("duration_ms"))["duration_ms"]
    days = took / _DAY_MS
    size, unit = span_unit(peak(days))
    outcomes = run_outcomes(runs)
    marks = [_MARKS.get(outcome, _UNKNOWN) for outcome in outcomes]
    rows = pl.DataFrame(
        {
            "run_id": runs["run_id"],
            "started": runs["started"],
            "value": (days / size).fill_null(0.0),
            "zero": pl.repeat(0.0, runs.height, eager=True),
            "shape": texts(marks, lambda mark: mark[1]),
            "color": texts(marks, lambda mark: getattr(p, mark[2])),
            "bar": pl.Series([p.blue if run == run_id else p.quiet for run in runs["run_id"]], dtype=pl.String),
            "pipeline": texts(runs["pipeline"], str),
            "outcome": outcomes,
            "began": texts(runs["started"], lambda moment: format_moment(moment, seconds=True)),
            "took": texts(took, _duration),
            "rows": texts(runs["rows_out"], exact_count),
            "failed": texts(runs["rows_failed"], exact_count),
        }
    )
    x = time_axis(time_domain(rows["started"]), labels=True, field="started")
    y = alt.Y("value:Q", axis=alt.Axis(title=None), scale=from_zero())
    tooltip = tooltips(
        (("pipeline", "pipeline"), ("outcome", "outcome"), ("began", "started, UTC"), ("took", "duration"),
         ("rows", "rows published"), ("failed", "rows failed"))
    )  # fmt: skip
    layers: list[AnyChart] = [
        alt.Chart(rows)
        .mark_rule(strokeWidth=_BAR)
        .encode(x=x, y=y, y2="zero:Q", color=alt.Color("bar:N", scale=None), tooltip=tooltip),
        alt.Chart(rows)
        .mark_point(size=70, filled=True, opacity=1)
        .encode(x=x, y=y, tooltip=tooltip, **as_given("color", "shape"))
        .add_params(picks("run_id")),
    ]
    return [finish_chart(layer_charts(*layers), p, height=_RUNS_HEIGHT, title=f"Duration of runs, {unit}")]


def lineage_chart(
    nodes: pl.DataFrame,
    edges: pl.DataFrame,
    run_id: str | None = None,
    *,
    dark: bool = False,
) -> list[AnyChart]:
    """One chart of LINEAGE_NODES and LINEAGE_EDGES, layers from left to right; the versions that `run_id` made are in
    the colour of the state. A click picks `address` and `version`. [] without nodes."""
    if nodes.is_empty():
        return []
    p = palette(dark)
    few = newest_nodes(nodes, _MOST_OF_A_TABLE, _MOST_OF_A_LAYER)
    height = int(peak(few["position"])) + 1
    middle = (pl.col("position").max().over("layer") + 1) / 2
    places = few.with_columns(y=pl.col("position") + height / 2 - middle)
    dots = pl.DataFrame(
        {
            "node": places["node"],
            "address": places["address"],
            "version": places["version"].cast(pl.String),
            "x": places["layer"],
            "y": places["y"],
            "label": pl.Series([version_name(*row) for row in places.select("name", "version").iter_rows()]),
            "shape": texts(places["version"], lambda version: "square" if version is None else "circle"),
            "color": texts(places["run_id"], lambda run: p.blue if run is not None and run == run_id else p.gray),
            "where": texts(places["address"], lambda address: shorten(address, _MOST_CHARACTERS)),
            "run": texts(places["run_id"], lambda run: "not made by a pipeline" if run is None else run),
            "committed": texts(places["timestamp"], format_moment),
        }
    )
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.5, peak(places["layer"]) + 0.5]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height - 0.4, -0.7]))
    about = tooltips((("label", "version"), ("where", "address"), ("run", "run"), ("committed", "committed, UTC")))
    lines = _lines(dots, edges, few)
    layers: list[AnyChart] = [
        alt.Chart(lines)
        .mark_rule(color=p.axis, strokeWidth=1.6)
        .encode(x=x, y=y, x2="x2:Q", y2="y2:Q", tooltip=tooltips((("reads", "reads"), ("step", "step")))),
        alt.Chart(dots)
        .mark_point(size=90, filled=True, opacity=1)
        .encode(x=x, y=y, tooltip=about, **as_given("color", "shape"))
        .add_params(picks("node")),
        alt.Chart(dots).mark_text(dy=-12, limit=_LABEL, color=p.text).encode(x=x, y=y, text="label:N"),
    ]
    more = f"the newest {few.height:,} of {nodes.height:,} table versions" if few.height < nodes.height else None
    return [finish_chart(layer_charts(*layers), p, height=_ROW * height + 20, title=more)]


def _lines(dots: pl.DataFrame, edges: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """A line an edge between nodes that are drawn."""
    place = dots.select("node", "x", "y")
    lines = (
        pl.concat([edges, range_edges(nodes, edges)])
        .join(place.rename({"node": "source"}), on="source", how="inner")
        .join(place.rename({"node": "target", "x": "x2", "y": "y2"}), on="target", how="inner")
    )
    reads = [_reads(*row) for row in lines.select("input_from", "input_version").iter_rows()]
    return lines.select("x", "y", "x2", "y2", "step").with_columns(pl.Series("reads", reads, dtype=pl.String))


def _reads(first: int | None, last: int | None) -> str:
    if last is None:
        return "files without versions"
    return f"all rows of {format_version(last)}" if first is None else f"what {format_range(first, last)} added"


def _duration(milliseconds: int | None) -> str:
    return "no end recorded" if milliseconds is None else format_duration(milliseconds)
