"""The table's own constraints as the quality page tells them: kept, broken by which files and commits, unknown."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, selection
from lakeview.app.components import MAX_ROWS, escape, frame, link
from lakeview.app.session import Opened

BROKEN_NOTE = "newest commit first; a null breaks a rule, as whoever writes has to see it"
MOST_LINKS = 6
LONGEST_FILTER = 1_000
_WORDS = {
    views.quality.constraints.Verdict.BROKEN.value: "\N{MULTIPLICATION X} broken",
    views.quality.constraints.Verdict.UNKNOWN.value: "? unknown",
    views.quality.constraints.Verdict.KEPT.value: "\N{CHECK MARK} kept",
}


def told(now: Opened) -> views.quality.constraints.KeptRules:
    """What the statistics of the version shown prove of its constraints."""
    return now.look.constraints()


def note(now: Opened, found: views.quality.constraints.KeptRules) -> str:
    """Where the verdicts come from."""
    more = f" of {found.rules.height + found.left_out:,}" if found.left_out else ""
    constraints = views.units.counted(found.rules.height, "constraint")
    version = views.units.format_version(now.version)
    return f"{constraints}{more}, {version}: proved by the statistics of its files or left open; no data is read"


def table(rules: pl.DataFrame) -> None:
    """One row a constraint, what is broken first."""
    column = st.column_config
    at_least = pl.when(pl.col("certainty") == "bound").then(pl.lit("≥")).otherwise(pl.lit(""))
    frame(
        rules.select(
            "kind",
            "name",
            "rule",
            "certainty",
            verdict=pl.col("verdict").replace_strict(_WORDS, return_dtype=pl.String),
            files_mark=at_least,
            files_broken="files_broken",
            rows_mark=pl.when(pl.col("records_broken").is_not_null()).then(pl.lit("≥")).otherwise(pl.lit("")),
            records_broken="records_broken",
            why=pl.col("why").fill_null(""),
        ),
        {
            "verdict": column.TextColumn("proved", width=92),
            "kind": column.TextColumn("kind", width=80),
            "name": column.TextColumn("constraint", width=150),
            "rule": column.TextColumn("true of every row", width=260),
            "files_mark": column.TextColumn("", width=26, help="≥: other files may break it too; empty: exact"),
            "files_broken": column.NumberColumn("files break it", format="localized", width=100),
            "rows_mark": column.TextColumn("", width=26, help="≥: at least so many rows"),
            "records_broken": column.NumberColumn("rows break it", format="localized", width=100),
            "certainty": column.TextColumn("figures are", width=84),
            "why": column.TextColumn("why it is not known", width=330),
        },
        key="kept-rules",
        unknown="",
    )


def find_links(rules: pl.DataFrame) -> None:
    """Links to the rows that break a rule, for those not proved to be kept; what reading costs is said there."""
    open_ = rules.filter(pl.col("verdict") != views.quality.constraints.Verdict.KEPT.value).drop_nulls("breaking")
    with st.container(horizontal=True, gap="small"):
        for name, where in open_.select("name", "breaking").head(MOST_LINKS).iter_rows():
            if len(where) <= LONGEST_FILTER:
                link("data", f"Rows that break {escape(name)}", selection.link(where=where))


def broken(now: Opened, found: views.quality.constraints.KeptRules) -> pl.DataFrame:
    """BROKEN_SINCE: the files that break a constraint, and the commits that wrote them."""
    return views.quality.constraints.broken_since(found, now.lifetimes, answers.timeline(now))


def broken_table(rows: pl.DataFrame) -> None:
    """One row a constraint and file, with the commit and the writer to blame."""
    column = st.column_config
    if rows.height > MAX_ROWS:
        st.markdown(f":small[:gray[the first {MAX_ROWS:,} of {rows.height:,} files; the download has all]]")
    frame(
        rows.head(MAX_ROWS).with_columns(
            views.units.version_label("version"),
            pl.col("path").str.strip_prefix(views.files.sizes.common_folder(rows["path"])),
            committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
            mark=pl.lit("≥"),
        ),
        {
            "name": column.TextColumn("constraint", width=150),
            "version": column.TextColumn("written in", width=90),
            "committed": column.TextColumn("committed, UTC", width=120),
            "writer": column.TextColumn("writer", width=140),
            "operation": column.TextColumn("operation", width=110),
            "partition_text": column.TextColumn("partition", width=140),
            "mark": column.TextColumn("", width=26, help="≥: at least so many rows"),
            "records_broken": column.NumberColumn("rows break it", format="localized", width=100),
            "path": column.TextColumn("file", width=330),
        },
        key="broken-files",
        unknown="unknown",
    )
