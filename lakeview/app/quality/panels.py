"""The quality page's parts: what the loads of the whole history tell of each column, from statistics alone."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, cache
from lakeview.app.components import MAX_ROWS, card, dark, finding_lines, fold, frame, nothing, stack
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.app.widget_state import held
from lakeview.model.findings import Finding
from lakeview.model.schema import leaf_name

WHOLE_TABLE = "Whole table"
TABS = ("Each load", WHOLE_TABLE, "By partition")
MOST_COLUMNS = 40
MOST_VALUES = 4_000_000
"""So many files times columns are looked at by themselves: about six seconds, however they are spread."""

MOST_CELLS = 4_800
ALERTS_SHOWN = 7

TRENDS_NOTE = "one point a load, from statistics alone · band: usual range, median ± 3 MAD of 20 loads · cross: outside"
HEATMAP_NOTE = "deeper is more; ✕ sudden, ≤ a bound, ≈ some files only; blank where the column did not exist"
STATES_NOTE = "the whole table at every version, from statistics alone; ≤ and ≥ are bounds, nothing where unknown"
PARTITIONS_NOTE = "the version shown; ▲ far from the other partitions"


@dataclass(frozen=True, slots=True)
class Told:
    """What was looked at: SUDDEN, and how many of all leaf columns that covers."""

    changes: pl.DataFrame
    columns: int
    all_columns: int


def told(now: Opened) -> Told:
    """The loads of every column, compared with each other; of a huge table those of its first columns."""
    columns, every = _columns(now)
    return Told(_changes(now.address, now.latest, now.ref, columns), len(columns), every)


def _columns(now: Opened) -> tuple[tuple[str, ...], int]:
    newest = now.newest  # lives are told in its types, whichever version is shown
    leaves = [leaf_name(path) for path, _ in newest.schema.leaves() if path[0] not in newest.partition_columns]
    fitting = max(1, MOST_VALUES // max(1, _files(now)))
    return tuple(leaves[: min(MOST_COLUMNS, fitting)]), len(leaves)


def _files(now: Opened) -> int:
    """About how many files the table ever had, those from before its first commit too: as its commits tell, and only
    else counted, which would read all of them once more."""
    added = now.history["files_added"]
    if added.has_nulls():
        return now.lifetimes.height
    told, live = int(added.sum()), now.newest.num_files
    return told if told >= live else told + live


@kept(16)
def _changes(address: str, latest: int, ref: str | None, columns: tuple[str, ...]) -> pl.DataFrame:
    lives = cache.column_lifetimes(address, latest, ref, columns)
    return views.quality.column_loads.sudden_changes(
        views.quality.column_loads.column_loads(lives, answers.timeline_of(address, latest, ref))
    )


def states(now: Opened) -> pl.DataFrame:
    """COLUMN_STATES of every version."""
    return _states(now.address, now.latest, now.ref, _columns(now)[0])


@kept(8)
def _states(address: str, latest: int, ref: str | None, columns: tuple[str, ...]) -> pl.DataFrame:
    lives = cache.column_lifetimes(address, latest, ref, columns)
    return views.quality.column_states.column_states(lives, answers.timeline_of(address, latest, ref))


def findings(now: Opened, found: Told) -> list[Finding]:
    """The table's own rules that are broken, the loads that are not normal, whether new data is on time."""
    rules = views.health.findings.rule_findings(now.look.constraints())
    own = views.quality.anomalies.quality_findings(found.changes, answers.timeline(now))
    return [*rules, *own, *views.quality.anomalies.freshness(answers.present_findings(now))]


def alerts(found: list[Finding]) -> None:
    """The first alerts one line each, the others folded."""
    if not found:
        nothing("Nothing can be judged.", "There are too few loads with statistics to compare.", "timeline")
    finding_lines(found, limit=ALERTS_SHOWN, here="quality")
    if len(found) > ALERTS_SHOWN:
        with fold(views.units.counted(len(found) - ALERTS_SHOWN, "more finding"), "all-findings") as unfolded:
            if unfolded.open:  # a hundred lines take a second to draw
                finding_lines(found[ALERTS_SHOWN:], limit=100, here="quality")


def picked_column(found: Told, alerts_found: list[Finding], note: str) -> str:
    """The column looked at, kept in the URL; at first the one that an alert is about."""
    names = found.changes["column"].unique(maintain_order=True).to_list()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Trends for the whole history** &ensp; :small[:gray[{note}{_partial(found)}]]", width="stretch")
        default = next((i for f in alerts_found for i, name in enumerate(names) if f" {name} " in f"{f.claim} "), 0)
        chosen = st.selectbox(
            "Column",
            names,
            key=held("column", names[default], names),
            label_visibility="collapsed",
            width=190,
        )
    return str(chosen or names[0])


def _partial(found: Told) -> str:
    if found.columns == found.all_columns:
        return ""
    return f" · the first {found.columns:,} of {found.all_columns:,} columns"


def load_trends(now: Opened, found: Told, column: str) -> None:
    """Four panels: nulls, rows, the greatest value, and how late the events (or the loads) came."""
    timeline = answers.timeline(now)
    changes = found.changes
    grid = st.grid("auto", min_column_width=400)
    with grid, card(stretch=True):
        _panel(views.quality.trends.null_trend(changes, column), f"{column}, null share, %", "share", "nulls")
    with grid, card(stretch=True):
        _panel(views.quality.trends.rows_trend(timeline), "Rows per load", "count", "rows")
    with grid, card(stretch=True):
        ranged = views.quality.trends.range_trend(changes, column)
        if ranged.is_empty():
            nothing(f"{column} has no numbers.", "Its values are compared by their nulls alone.")
        else:
            _panel(ranged, f"{column}, maximum", "number", "most")
    with grid, card(stretch=True):
        event = views.quality.trends.event_column(changes)
        if event is None:
            _panel(views.quality.trends.gap_trend(timeline), "Since the load before", "days", "gaps")
        else:
            _lag_panel(views.quality.trends.lag_trend(changes, event), event)


def _lag_panel(lags: pl.DataFrame, event: str) -> None:
    usual, title = views.quality.trends.usual_of_history(lags), f"From newest {event} to commit"
    if usual is None:
        _panel(lags, title, "days", "lag")
    else:
        _panel(
            views.quality.trends.beyond(lags, usual),
            f"Beyond the usual {usual:,.0f} days from newest {event} to commit",
            "days",
            "lag",
        )


def _panel(trend: pl.DataFrame, title: str, kind: charts.quality.TrendKind, key: str) -> None:
    drawn = charts.quality.load_trend_chart(trend, title, kind, dark=dark())
    if drawn:
        stack(drawn, key=f"trend-{key}")
    else:
        nothing(f"{title}: unknown.", "No load tells it in its statistics.")


def heatmap(found: Told) -> None:
    """Null share by column and load: at most MOST_CELLS of them."""
    columns = min(40, max(1, found.changes["column"].n_unique()))
    shares = views.quality.column_loads.null_shares_by_load(found.changes, MOST_CELLS // columns)
    if shares["null_share"].is_null().all():
        nothing("No null share is known.", "The writers left statistics out.", "files")
    else:
        stack(charts.columns.null_heatmap(shares, dark=dark()), key="load-nulls")


def load_table(found: Told, column: str) -> None:
    """The twin of the pictures: one row a load of the column, newest first."""
    kinds = st.column_config
    rows = found.changes.filter(pl.col("column") == column).reverse()
    if rows.height > MAX_ROWS:
        st.markdown(f":small[:gray[the newest {MAX_ROWS:,} of {rows.height:,} loads; the download has all]]")
    shown = rows.head(MAX_ROWS).select(
        odd=pl.when(pl.col("sudden") | pl.col("sudden_range")).then(pl.lit("✕")).otherwise(pl.lit("")),
        load=views.units.version_label("version"),
        committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
        writer="writer",
        records="records",
        null=pl.col("null_share") * 100,
        mark=pl.col("mark").fill_null(""),
        usual=pl.col("usual") * 100,
        min_text="min_text",
        max_text="max_text",
        back=views.units.version_label("taken_back_by"),
    )
    frame(
        shown,
        {
            "odd": kinds.TextColumn("", width=24, help="✕: suddenly far from the loads around"),
            "load": kinds.TextColumn("load", width=90),
            "committed": kinds.TextColumn("committed, UTC", width=120),
            "writer": kinds.TextColumn("writer", width=120),
            "records": kinds.NumberColumn("rows", format="localized", width=80),
            "mark": kinds.TextColumn("", width=26, help="≤: a bound; ≈: some files only; empty: exact"),
            "null": kinds.NumberColumn("null, %", format="%.1f", width=64),
            "usual": kinds.NumberColumn("usually, %", format="%.1f", width=74),
            "min_text": kinds.TextColumn("min", width=150),
            "max_text": kinds.TextColumn("max", width=150),
            "back": kinds.TextColumn("repaired by", width=84),
        },
        key="loads",
    )


def state_panels(column: str, every: pl.DataFrame) -> None:
    """What the whole table held in a column at every version: nulls, least and greatest value."""
    grid = st.grid("auto", min_column_width=400)
    with grid, card(stretch=True):
        _panel(
            views.quality.trends.state_trend(every, column, "null_share"),
            f"{column}, null share, %",
            "share",
            "state-nulls",
        )
    for measure, word in (("low", "minimum"), ("high", "maximum")):
        trend = views.quality.trends.state_trend(every, column, measure)
        if trend["value"].null_count() < trend.height:
            with grid, card(stretch=True):
                _panel(trend, f"{column}, {word}", "number", f"state-{measure}")


def state_table(every: pl.DataFrame, column: str) -> None:
    """One row a version, newest first."""
    kinds = st.column_config
    rows = every.filter(pl.col("column") == column).reverse().head(MAX_ROWS)
    frame(
        rows.select(
            version=views.units.version_label("version"),
            committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
            records="records",
            null=pl.col("null_share") * 100,
            mark=pl.col("mark").fill_null(""),
            min_text="min_text",
            max_text="max_text",
            range_is="range_is",
        ),
        {
            "version": kinds.TextColumn("version", width=90),
            "committed": kinds.TextColumn("committed, UTC", width=120),
            "records": kinds.NumberColumn("rows", format="localized", width=100),
            "mark": kinds.TextColumn("", width=26, help="≤: a bound; empty: exact"),
            "null": kinds.NumberColumn("null, %", format="%.2f", width=70),
            "min_text": kinds.TextColumn("min", width=170),
            "max_text": kinds.TextColumn("max", width=170),
            "range_is": kinds.TextColumn("range is", width=70),
        },
        key="states",
        unknown="unknown",
    )


def by_partition(now: Opened, column: str) -> pl.DataFrame:
    """PARTITION_COLUMN of the version shown."""
    return views.partitions.columns.partition_column(now.snapshot, now.statistics_of([column]), column)


def partition_table(rows: pl.DataFrame) -> None:
    """One row a partition."""
    kinds = st.column_config
    frame(
        rows.with_columns(
            null=pl.col("null_share") * 100,
            mark=pl.col("mark").fill_null(""),
            odd=pl.when("unusual").then(pl.lit("▲")).otherwise(pl.lit("")),
        ),
        {
            "odd": kinds.TextColumn("", width=24),
            "partition_text": kinds.TextColumn("partition", width=180),
            "files": kinds.NumberColumn("files", format="localized", width=70),
            "records": kinds.NumberColumn("rows", format="localized", width=100),
            "mark": kinds.TextColumn("", width=26, help="≥ or ≤: a bound; ≈: some files do not count; empty: exact"),
            "null": kinds.ProgressColumn("null, %", format="%.1f", min_value=0, max_value=100, width=160),
            "min_text": kinds.TextColumn("min", width=150),
            "max_text": kinds.TextColumn("max", width=150),
            "range_is": kinds.TextColumn("range is", width=70),
        },
        key="column-partitions",
    )
