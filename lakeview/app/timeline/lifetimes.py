"""The timeline's tabs of writers and of files' lives: the tiles, pictures and tables of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, cache, downloads
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, byte_unit, card, dark, frame, grid, nothing, stack, tile
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.app.widget_state import held

_LIVES_NOTE = "one band for what came and went together; blue lives, gray was rewritten, orange removed"


@dataclass(frozen=True, slots=True)
class Lives:
    """What is told of the lives of files: COHORTS, their figures, and LIVES_BY_COMMIT."""

    cohorts: pl.DataFrame
    facts: views.timeline.lifetimes.LifeFacts
    commits: pl.DataFrame


def writers(now: Opened, timeline: pl.DataFrame) -> None:
    """Who writes what, how often and with which engine: a lane and a row for each writer."""
    told = views.timeline.writers.writers(timeline, now.history)
    downloads.offer("writers", told)
    with card("Who writes when", "one lane a writer, colours and shapes as on the timeline", key="writer-lanes"):
        stack(charts.writers.writer_lanes(views.timeline.writers.writer_marks(timeline), dark=dark()), key="writers")
    with card("Writers", f"{views.units.counted(told.height, 'writer')} · as the commits name them"):
        _writer_table(told)


def _writer_table(told: pl.DataFrame) -> None:
    column = st.column_config
    unit, scale = byte_unit(told["bytes_added"].drop_nulls())
    rows = told.head(MAX_ROWS).select(
        pl.col("writer").fill_null("not recorded"),
        "engines",
        "commits",
        "append",
        "change",
        "maintenance",
        rows=_at_least(told.head(MAX_ROWS)),
        schema_changes="schema",
        unusual="suspicious",
        bytes_added=pl.col("bytes_added") / scale,
        usual=_ages(told["usual_gap_ms"].head(MAX_ROWS)),
        last=pl.col("last").dt.strftime("%Y-%m-%d %H:%M"),
    )
    shown = {
        "writer": column.TextColumn("writer", width=110),
        "engines": column.TextColumn("engine", width=200),
        "commits": column.NumberColumn("commits", format="localized", width=66),
        "usual": column.TextColumn("usually every", width=86, help="the median time between two of its commits"),
        "append": column.NumberColumn("append", format="localized", width=57),
        "change": column.NumberColumn("change", format="localized", width=57),
        "schema_changes": column.NumberColumn("schema", format="localized", width=57),
        "maintenance": column.NumberColumn("maint.", format="localized", width=57),
        "unusual": column.NumberColumn("unusual", format="localized", width=64, help="loads that stand out"),
        "rows": column.TextColumn("rows +", width=86, alignment="right", help="≥: some commits do not tell"),
        "bytes_added": column.NumberColumn(f"written, {unit}", format="%.1f", width=86),
        "last": column.TextColumn("last, UTC", width=112),
    }
    frame(rows, shown, key="writers-table", unknown="unknown", height=20 * ROW_HEIGHT)


def _at_least(told: pl.DataFrame) -> pl.Series:
    """The rows each writer added as text, a lower bound marked."""
    texts = [
        None if records is None else f"{records:,}" if exact else f"\N{GREATER-THAN OR EQUAL TO} {records:,}"
        for records, exact in told.select("records_added", "records_exact").iter_rows()
    ]
    return pl.Series(texts, dtype=pl.String)


def lives(now: Opened, timeline: pl.DataFrame) -> None:
    """How long what each commit wrote stayed: tiles, a picture of bands, and one row a commit."""
    told = _lives(now.address, now.latest, now.ref)
    downloads.offer("file lives by commit", told.commits)
    if told.cohorts.is_empty():
        with card():
            nothing("No file was ever part of this table.", "Nothing was written to it so far.", "overview")
        return
    _life_tiles(told.facts, views.retention.cost.write_amplification(timeline.filter(pl.col("lane") != "aside")))
    last = timeline["timestamp"].drop_nulls().max()
    with card("Lives of files", _LIVES_NOTE, key="file-lives"):
        stack(charts.lifetimes.life_bands(told.cohorts, last, dark=dark()), key="lives")  # type: ignore[arg-type]  # a moment
    with card("What lives of each commit", f"{views.units.counted(told.commits.height, 'commit')} that wrote files"):
        _life_table(told.commits)


@kept(16)
def _lives(address: str, latest: int, ref: str | None) -> Lives:
    timeline = answers.timeline_of(address, latest, ref)
    each = views.timeline.lifetimes.file_lives(cache.lifetimes(address, latest, ref), timeline)
    return Lives(
        views.timeline.lifetimes.life_cohorts(each),
        views.timeline.lifetimes.life_facts(each),
        views.timeline.lifetimes.lives_by_commit(each, timeline),
    )


def _life_tiles(facts: views.timeline.lifetimes.LifeFacts, written: views.retention.cost.WriteAmplification) -> None:
    with grid(165, 5):
        tile("Files ever", f"{facts.files:,}", f"{facts.live_files:,} live")
        tile("Bytes ever", views.units.format_bytes(facts.bytes), f"{views.units.format_bytes(facts.live_bytes)} live")
        tile(
            "Churn",
            views.units.format_percent(facts.churn),
            help="The share of all bytes ever written that is no longer part of the table.",
        )
        tile(
            "Median life",
            "nothing removed" if facts.median_life is None else views.units.format_age(facts.median_life),
            help="Of the files that were removed, from the commit that added them to the one that removed them.",
        )
        tile(
            "Write amplification",
            views.units.UNKNOWN if written.ratio is None else f"{written.ratio:.2f}",
            None if written.maintenance is None else f"{views.units.format_bytes(written.maintenance)} by maintenance",
            help="Bytes written by all commits for each byte of new data.",
        )


def _life_table(commits: pl.DataFrame) -> None:
    column = st.column_config
    pages = max(1, -(-commits.height // MAX_ROWS))
    page = st.pagination(pages, key=held("lives-page", 1, range(1, pages + 1))) if pages > 1 else 1
    part = commits.slice((page - 1) * MAX_ROWS, MAX_ROWS)
    unit, scale = byte_unit(part["bytes"])
    rows = part.select(
        "operation",
        "writer",
        "files",
        "live_files",
        version=views.units.version_label("version"),
        committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
        size=pl.col("bytes") / scale,
        live=pl.when(pl.col("bytes") > 0).then(pl.col("live_bytes") / pl.col("bytes") * 100),
        life=_ages(part["median_life_ms"]),
        ended=views.units.version_label("ended_in"),
    )
    shown = {
        "version": column.TextColumn("version", width=96),
        "committed": column.TextColumn("committed, UTC", width=120),
        "operation": column.TextColumn("operation", width=120),
        "writer": column.TextColumn("writer", width=130),
        "files": column.NumberColumn("files", format="localized", width=70),
        "size": column.NumberColumn(f"bytes, {unit}", format="%.1f", width=86),
        "live_files": column.NumberColumn("live files", format="localized", width=70),
        "live": column.ProgressColumn("live bytes, %", format="%.0f", min_value=0, max_value=100, width=110),
        "life": column.TextColumn("median life", width=100, help="of its files that were removed"),
        "ended": column.TextColumn("most went in", width=96),
    }
    frame(rows, shown, key="lives-table", height=14 * ROW_HEIGHT)


def _ages(milliseconds: pl.Series) -> pl.Series:
    texts = [None if ms is None else views.units.format_age(timedelta(milliseconds=ms)) for ms in milliseconds]
    return pl.Series(texts, dtype=pl.String)
