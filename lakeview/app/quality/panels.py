"""The quality page's parts: alerts, trends and tables of each column over the whole history, from statistics alone."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, selection, widths
from lakeview.app.commits import open_picked
from lakeview.app.components import (
    card,
    dark,
    escape,
    finding_lines,
    fold,
    frame,
    link,
    more_rows,
    nothing,
    stack,
    unknown_name,
)
from lakeview.app.null_shares import null_columns
from lakeview.app.pages import QUALITY_WHOLE_TABLE
from lakeview.app.row_links import picked_marks, row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import choice, write_parameters
from lakeview.inspection.absent_columns import complete_statistics, first_versions
from lakeview.model.findings import Finding, severity_counts
from lakeview.model.printable import first_few, shorten

TABS = ("Each load", QUALITY_WHOLE_TABLE, "By partition")
LOAD = "load"
"""The parameter of the link with the version of the load that was picked."""
MOST_CELLS, MOST_COLUMNS, MOST_LOADS = 4_800, 40, 240
"""Of the heatmap of null shares: the cells of more loads are narrower than the gaps between them."""
ALERTS_SHOWN = 7
_LONGEST_NAME = 40

TRENDS_NOTE = (
    "one point a load, from statistics alone · band: expected range, median ± 3 MAD of 20 loads · "
    "cross: anomaly, far outside · ring: outside, but not far enough for one"
)
HEATMAP_NOTE = "stronger is more; ✕ anomaly, ≤ a bound, ≈ some files only; outlined where the column did not exist yet"
STATES_NOTE = "the whole table at every version, from statistics alone; ≤ and ≥ are bounds, nothing where unknown"
PARTITIONS_NOTE = "the version shown; ▲ far from the other partitions"


def alerts(findings: list[Finding]) -> None:
    """The first alerts one line each, the others folded."""
    finding_lines(findings, limit=ALERTS_SHOWN, here="quality")
    if rest := findings[ALERTS_SHOWN:]:
        label = f"{views.units.count_text(len(rest), 'more finding')}: {severity_counts(rest)}"
        with fold(label, "all-findings") as expander:
            if expander.open:  # a hundred lines take a second to draw
                finding_lines(rest, limit=100, here="quality")


def picked_column(now: OpenTable, loads: pl.DataFrame, findings: list[Finding], note: str) -> str:
    """The column chosen, recorded in the URL; at first the one that an alert is about."""
    names = loads["column"].unique(maintain_order=True).to_list()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Trends for the whole history** &ensp; :small[:gray[{note}{_partial(now)}]]", width="stretch")
        first = next((f.column for f in findings if f.column in names), names[0])
        column: str = choice("Column", names, "column", first, width=190)
    unknown_name("column", names, "column whose loads are compared", f"{heading_name(column)} is shown")
    return column


def heading_name(column: str) -> str:
    """A column's name in a heading, which has one line."""
    return shorten(column, _LONGEST_NAME)


def _partial(now: OpenTable) -> str:
    names, every = now.look.load_columns()
    return "" if len(names) == every else f" · the first {len(names):,} of {every:,} columns"


def load_trends(now: OpenTable, loads: pl.DataFrame, column: str) -> None:
    """Panels: nulls, rows, the ends of the range, and the delay of the events (or the time between loads)."""
    timeline, name = now.look.timeline(), heading_name(column)
    grid = st.grid("auto", min_column_width=400)
    with grid, card(stretch=True):
        _panel(views.quality.trends.null_trend(loads, column), f"{name}, null share, %", "share", "nulls")
    with grid, card(stretch=True):
        _panel(views.quality.trends.rows_trend(timeline), "Rows per append", "count", "rows")
    for word, trend in views.quality.trends.range_trends(loads, column).items():
        with grid, card(stretch=True):
            if trend.is_empty():
                nothing(
                    f"{name} has no range to compare.",
                    "It is not numeric, or no load has it in its statistics.",
                )
            else:
                _panel(trend, f"{name}, {word}", "number", word)
    with grid, card(stretch=True):
        event = views.quality.trends.event_column(loads)
        if event is None:
            gaps = views.quality.trends.gap_trend(timeline)
            _panel(gaps, "Since the load before", "days", "gaps", why="There is one load, or none has a timestamp.")
        else:
            lateness = views.quality.lateness.data_lateness(loads)
            _lag_panel(views.quality.trends.lag_trend(loads, event), event, lateness)


def _lag_panel(lags: pl.DataFrame, event: str, lateness: str) -> None:
    baseline, title = views.quality.trends.usual_of_history(lags), f"From newest {heading_name(event)} to commit"
    if baseline is None:
        _panel(lags, f"{title} (the newest: {lateness})" if lateness else title, "days", "lag")
    else:
        _panel(
            views.quality.trends.beyond(lags, baseline),
            f"Beyond the baseline of {baseline:,.0f} days from newest {heading_name(event)} to commit",
            "days",
            "lag",
        )


def _panel(
    trend: pl.DataFrame,
    title: str,
    kind: charts.quality.TrendKind,
    key: str,
    *,
    why: str = "No load has it in its statistics.",
) -> None:
    pictures = charts.quality.load_trend_chart(trend, title, kind, dark=dark())
    if pictures:
        stack(pictures, key=f"trend-{key}", on_pick=open_picked)
    else:
        nothing(f"{title}: unknown.", why)


def heatmap(now: OpenTable, loads: pl.DataFrame, column: str) -> None:
    """Null share by column and load: at most MOST_CELLS of them, of MOST_LOADS loads. A click chooses the column and
    the load."""
    odd_first = loads.select("column", odd=pl.col("sudden")).sort("odd", descending=True, maintain_order=True)
    every = odd_first["column"].unique(maintain_order=True)
    names = every.head(MOST_COLUMNS)
    few = loads.filter(pl.col("column").is_in(names.implode()))
    first = first_versions(now.look.frames, now.look.newest)
    order = now.look.timeline()["version"]
    most = min(MOST_CELLS // max(1, names.len()), MOST_LOADS)
    shares = views.quality.sudden_changes.null_shares_by_load(few, most, first, order)
    if shares["null_share"].is_null().all():
        nothing("No null share is known.", "The writers left statistics out.", "files")
    else:
        total, count = few["version"].n_unique(), shares["version"].n_unique()
        parts = (
            [f"{names.len()} of {every.len():,} columns, those with anomalies first"]
            if every.len() > names.len()
            else []
        )
        parts += [f"{count:,} of {total:,} loads, the newest anomalies among them"] if total > most else []
        keys = [heading_name(name) for name in now.snapshot.partition_columns if name in now.snapshot.schema.names]
        parts += [f"without partition columns: {escape(first_few(keys))}"] if keys else []
        if parts:
            st.markdown(f":small[:gray[{'; '.join(parts)}]]")
        load = _picked_load(shares, column)
        repairs = few.drop_nulls("taken_back_by")["version"].unique().to_list()
        pictures = charts.columns.null_heatmap(shares, selection=load, first=first, repaired_loads=repairs, dark=dark())
        stack(pictures, key="load-nulls", on_pick=_pick_cell)


def _picked_load(shares: pl.DataFrame, column: str) -> tuple[str, int] | None:
    """The cell that was clicked, as column and version: its null share, and where to go on."""
    load = st.query_params.get(LOAD, "")
    cell = shares.filter(pl.col("column") == column, pl.col("version").cast(pl.String) == load)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="picked-load"):
        if cell.is_empty():
            st.markdown(":small[:gray[click a cell for its commit and rows]]")
            return None
        row = cell.row(0, named=True)
        share = views.units.format_share(row["null_share"], row["mark"])
        usual = views.units.format_percent(row["usual"])
        of = f"**{escape(heading_name(column))}** in {views.units.format_version(row['version'])}"
        st.markdown(f"{of} &ensp; null {share}, expected {usual}", width="content")
        link("timeline", "Its commit", selection.link(commit=load))
        link("data", "Its rows", selection.link(version=row["version"], base=None, tab="Changes"))
    return column, row["version"]


def _pick_cell(chart: str) -> None:
    for cell in picked_marks(chart):
        if {"column", "commit"} <= cell.keys():
            write_parameters({"column": str(cell["column"]), LOAD: str(cell["commit"])})


def load_table(loads: pl.DataFrame, column: str) -> None:
    """The twin of the charts: one row a load of the column, newest first."""
    rows = views.quality.sudden_changes.newest_first(loads, column)
    more_rows(rows.height, "loads", first="newest")
    table_columns = {
        "anomaly": columns.mark({True: "✕"}, label="bad", help="✕: anomaly, far from the loads around it"),
        "load": columns.version("load", of="version"),
        "committed": columns.timestamp(),
        "writer": columns.text("writer", least=widths.NAME),
        "records": columns.number("rows"),
        "mark": columns.bound(help="≤: a bound; ≈: some files only; empty: exact"),
        "null": columns.percent("null, %", of="null_share"),
        "baseline": columns.percent("baseline", of="usual", help="the expected null share, %"),
        "min_text": columns.text("min"),
        "max_text": columns.text("max"),
        "back": columns.version("repair", of="taken_back_by", help="the version that removed its rows"),
    }
    if rows["taken_back_by"].null_count() == rows.height:
        del table_columns["back"]
    frame(
        rows,
        table_columns,
        key="loads",
        **row_link("loads", rows, "timeline", lambda row: selection.link(commit=row["version"])),
    )


def state_panels(column: str, every: pl.DataFrame) -> None:
    """A column of the whole table at every version: null share, min and max."""
    grid, name = st.grid("auto", min_column_width=400), heading_name(column)
    with grid, card(stretch=True):
        _panel(
            views.quality.trends.state_trend(every, column, "null_share"),
            f"{name}, null share, %",
            "share",
            "state-nulls",
        )
    for measure, word in (("low", "minimum"), ("high", "maximum")):
        trend = views.quality.trends.state_trend(every, column, measure)
        if trend["value"].null_count() < trend.height:
            with grid, card(stretch=True):
                _panel(trend, f"{name}, {word}", "number", f"state-{measure}")


def state_table(states: pl.DataFrame, column: str) -> None:
    """One row a version, newest first."""
    frame(
        views.quality.column_states.newest_first(states, column),
        {
            "version": columns.version(),
            "committed": columns.timestamp(),
            "records_mark": columns.bound(of="records_mark", help="≥: at least so many rows; empty: exact"),
            "records": columns.number("rows"),
            "mark": columns.bound(help="≤ or ≥: a bound; empty: exact"),
            "null": columns.percent("null, %", of="null_share"),
            "min_text": columns.text("min"),
            "max_text": columns.text("max"),
            "range_is": columns.range_kind(),
        },
        key="states",
        unknown="unknown",
    )


def by_partition(now: OpenTable, column: str) -> pl.DataFrame:
    """PARTITION_COLUMN of the version shown."""
    frames = now.look.frames
    return views.partitions.columns.partition_column(
        now.snapshot,
        complete_statistics(now.frames, now.version, [column]),
        column,
        recorded_statistics=frames.recorded_statistics(now.version, [column]),
        first=first_versions(frames, now.snapshot),
    )


def _partition_of(row: Mapping[str, Any]) -> dict[str, str]:
    return selection.link(partition=row["partition_text"])


def partition_table(now: OpenTable, rows: pl.DataFrame) -> None:
    """One row a partition."""
    frame(
        rows,
        {
            "unusual": columns.mark({True: "▲"}),
            "partition_text": columns.partition(views.partitions.keys.partition_names(now.snapshot)),
            "files": columns.number("files"),
            "records": columns.number("rows"),
            "mark": columns.bound(),
            **null_columns(rows, widths.BAR),
            "min_text": columns.text("min"),
            "max_text": columns.text("max"),
            "range_is": columns.range_kind(),
        },
        key="column-partitions",
        **row_link("column-partitions", rows, "partitions", _partition_of),
    )
