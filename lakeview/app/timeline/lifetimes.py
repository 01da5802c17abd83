"""The timeline's tabs of writers and of file lifetimes: the tiles, charts and tables of each."""

from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from lakeview import charts, views
from lakeview.app import columns, downloads, selection, widths
from lakeview.app.cache import cache_values
from lakeview.app.commits import open_picked
from lakeview.app.components import BROKEN_LINES, MAX_ROWS, ROW_HEIGHT, card, dark, frame, grid, nothing, stack, tile
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import page_number
from lakeview.views.thresholds import BASELINE_MIN

_LIVES_NOTE = (
    "one band for files added and removed together; blue is live, gray was rewritten, orange removed; "
    "a click opens the commit"
)
_ONE_LINE, _AROUND_WORDS = 40, 10
"""Letters of engines that a line of their column has room for at 900 pixels; pixels around a word of broken lines."""


@dataclass(frozen=True, slots=True)
class FileLifetimes:
    """COHORTS of files, their figures, and LIVES_BY_COMMIT."""

    cohorts: pl.DataFrame
    facts: views.timeline.lifetimes.LifeFacts
    commits: pl.DataFrame


def writers(now: OpenTable, timeline: pl.DataFrame) -> None:
    """Who writes what, how often and with which engine: a lane and a row for each writer."""
    rows = views.timeline.writers.writers(timeline, now.frames.history)
    downloads.offer("writers", rows)
    with card(
        "Commits by writer",
        "one lane a writer, colours and shapes as on the timeline; a click opens the commit",
        key="writer-lanes",
    ):
        stack(
            charts.lanes.writer_lanes(views.timeline.writers.writer_marks(timeline), dark=dark()),
            key="writers",
            on_pick=open_picked,
        )
    with card("Writers", f"{views.units.count_text(rows.height, 'writer')} · as named in the commits"):
        _writer_table(rows)


def _writer_table(writers: pl.DataFrame) -> None:
    """Who they are and how often they commit, and what they commit."""
    is_long = bool((writers["engines"].str.len_chars() > _ONE_LINE).any())
    name = columns.text("writer", null="not recorded")
    if is_long:  # where lines are broken a word needs more room than it takes
        widest = max(map(widths.heading_width, widths.longest(writers["writer"], None)), default=0)
        name = replace(name, pixels=min(widest + _AROUND_WORDS, widths.NAME))
    rhythm = {
        "writer": name,
        "engines": columns.text("engine"),
        "commits": columns.number("commits"),
        "interval": columns.age(
            "interval",
            of="median_gap_ms",
            null=f"under {BASELINE_MIN} commits",
            help=f"the median time between two of its commits, from {BASELINE_MIN} of them on",
        ),
        "last": columns.date("last", of="last"),
    }
    work = {
        "writer": columns.text("writer", null="not recorded"),
        "append": columns.number("append"),
        "change": columns.number("change"),
        "schema_changes": columns.number("schema", of="schema"),
        "maintenance": columns.number("maint.", help="maintenance"),
        "anomalies": columns.number("bad", of="suspicious", help="bad loads"),
        "rows": columns.text("rows +", of="records_text", right=True, help="≥: some commits do not record rows"),
        "bytes_added": columns.size("written"),
    }
    for key, table_columns in (("writers-table", rhythm), ("writers-work", work)):
        frame(
            writers,
            table_columns,
            key=key,
            **row_link(key, writers, "timeline", lambda row: selection.link(writer=row["writer"])),
            unknown="unknown",
            height=20 * ROW_HEIGHT,
            row_height=BROKEN_LINES if is_long and table_columns is rhythm else ROW_HEIGHT,
        )


def file_lifetimes(now: OpenTable, timeline: pl.DataFrame) -> None:
    """How long the files of each commit were live: tiles, a chart of bands, and one row a commit."""
    lifetimes = _file_lifetimes(now)
    downloads.offer("file lifetimes by commit", lifetimes.commits)
    if lifetimes.cohorts.is_empty():
        with card():
            nothing("This table never had a file.", "No commit added any.", "overview")
        return
    _tiles(lifetimes.facts, views.retention.cost.write_amplification(timeline))
    last = timeline["timestamp"].max()
    if isinstance(last, datetime):
        with card("File lifetimes", _LIVES_NOTE, key="file-lives"):
            stack(charts.lifetimes.life_bands(lifetimes.cohorts, last, dark=dark()), key="lives", on_pick=open_picked)
    commits = views.units.count_text(lifetimes.commits.height, "commit")
    with card("Live files by commit", f"{commits} that wrote files"):
        _table(lifetimes.commits)


@cache_values(16, of=("latest", "ref"))
def _file_lifetimes(now: OpenTable) -> FileLifetimes:
    timeline = now.look.timeline()
    files = views.timeline.lifetimes.file_lives(now.frames.lifetimes, timeline)
    return FileLifetimes(
        views.timeline.lifetimes.life_cohorts(files),
        views.timeline.lifetimes.life_facts(files),
        views.timeline.lifetimes.lives_by_commit(files, timeline),
    )


def _tiles(facts: views.timeline.lifetimes.LifeFacts, amplification: views.retention.cost.WriteAmplification) -> None:
    with grid(165, 5):
        tile("Files ever added", f"{facts.files:,}", f"{facts.live_files:,} live")
        tile(
            "Bytes ever added",
            views.units.format_bytes(facts.bytes),
            f"{views.units.format_bytes(facts.live_bytes)} live",
        )
        tile(
            "Churn",
            views.units.format_percent(facts.churn),
            help="The share of all bytes ever written that is no longer part of the table.",
        )
        tile(
            "Median lifetime",
            "nothing removed" if facts.median_life is None else views.units.format_age(facts.median_life),
            help="Of the files that were removed, from the commit that added them to the one that removed them.",
        )
        tile(
            "Write amplification",
            views.units.UNKNOWN if amplification.ratio is None else f"{amplification.ratio:.2f}",
            None
            if amplification.maintenance_bytes is None
            else f"{views.units.format_bytes(amplification.maintenance_bytes)} by maintenance",
            help="Bytes written by all commits for each byte of new data.",
        )


def _table(commits: pl.DataFrame) -> None:
    page = page_number(commits.height, MAX_ROWS, "lives-page")
    frame(
        commits.slice((page - 1) * MAX_ROWS, MAX_ROWS),
        {
            "version": columns.version(),
            "committed": columns.date("committed", of="timestamp"),
            "operation": columns.text("operation"),
            "writer": columns.text("writer", least=widths.NAME),
            "files": columns.number("files"),
            "size": columns.size("bytes", of="bytes"),
            "live": columns.percent(
                "live, %", of="live_share", decimals=0, help="of its bytes, those that the latest version has"
            ),
            "lifetime": columns.age("lifetime", of="median_life_ms", help="the median of its files that were removed"),
            "ended": columns.version("removed", of="ended_in", help="the commit that removed most of them"),
        },
        key="lives-table",
        height=14 * ROW_HEIGHT,
    )
