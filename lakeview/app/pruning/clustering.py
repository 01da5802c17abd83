"""The pruning page's columns: how well each tells the files apart, along its values and over the versions."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, cache, downloads
from lakeview.app.components import MAX_ROWS, dark, escape, fold, frame, nothing, stack
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.app.widget_state import held

NOTE = "files that a filter for one value opens: blue by their range, orange because they tell none"
COLUMN = "column"


def columns(now: Opened) -> pl.DataFrame:
    """CLUSTERING of the version shown, the columns that spare most first."""
    return answers.told_by_statistics(now).clustering


def examples(now: Opened) -> list[str]:
    """A few filters worth trying at the version shown."""
    return list(answers.told_by_statistics(now).examples)


def picked_column(found: pl.DataFrame) -> str | None:
    """The column looked at, kept in the URL; a click on a bar picks one too."""
    names = found.filter(pl.col("reads").is_not_null())["column"].to_list()
    if not names:
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**One column** &ensp; :small[:gray[or click a bar]]", width="content")
        st.space("stretch")
        chosen: str | None = st.selectbox(
            "Column", names, key=held(COLUMN, names[0], names), label_visibility="collapsed", width=220
        )
    return chosen


def pick_column(key: str) -> None:
    """A click on a bar of the chart chooses its column."""
    for picked in st.session_state[key].get("selection", {}).values():
        for row in picked if isinstance(picked, list) else ():
            if isinstance(row, Mapping) and "column" in row:
                st.session_state[COLUMN] = row["column"]


def coverage_note(found: pl.DataFrame) -> str:
    """How many columns tell their ranges everywhere, somewhere, nowhere."""
    everywhere = int((found["unknown"] == 0).sum())
    nowhere = int(found["reads"].is_null().sum())
    some = found.height - everywhere - nowhere
    told = f"{everywhere:,} told by every file, {some:,} by some, {nowhere:,} by none"
    return f"of {views.units.counted(found.height, 'column')}: {told}"


def column_table(found: pl.DataFrame) -> None:
    """The twin of the bars: one row a column."""
    kinds = st.column_config
    rows = found.head(MAX_ROWS).select(
        "column",
        "type",
        "reads",
        "depth",
        "most",
        "unknown",
        share=pl.col("reads_share") * 100,
        ranges=pl.col("coverage") * 100,
        nulls=pl.col("null_coverage") * 100,
        exact=pl.when("exact").then(pl.lit("exact")).when(~pl.col("exact")).then(pl.lit("bound")),
    )
    frame(
        rows,
        {
            "column": kinds.TextColumn("column", width=124),
            "type": kinds.TextColumn("type", width=90),
            "reads": kinds.NumberColumn("files for one value", format="%.1f", width=110),
            "share": kinds.ProgressColumn("share of files, %", format="%.1f", min_value=0, max_value=100, width=120),
            "depth": kinds.NumberColumn("depth, mean", format="%.1f", width=86, help="ranges that hold a value"),
            "most": kinds.NumberColumn("most", format="localized", width=66),
            "ranges": kinds.NumberColumn("files with min/max, %", format="%.1f", width=130),
            "nulls": kinds.NumberColumn("with null counts, %", format="%.1f", width=120),
            "unknown": kinds.NumberColumn("files that tell none", format="localized", width=116),
            "exact": kinds.TextColumn("ranges are", width=80, help="bound: ranges may be wider than the values"),
        },
        key="clustering",
        unknown="unknown",
        height=12 * 28,
    )


def depth_picture(now: Opened, column: str) -> None:
    """How many files a filter opens, along the column's values, and the same as a table."""
    known = answers.told_by_statistics(now)
    first = column == next(iter(known.clustering["column"]))
    told = known.depths if first else _profile(now.address, now.version, column)
    downloads.offer(f"depth of {column}", told)
    stack(charts.pruning.depth_chart(told, now.snapshot.num_files, column=column, dark=dark()), key="depth")
    kinds = st.column_config
    with fold("The same as a table", "depth-table"):
        frame(
            told,
            {
                "value_text": kinds.TextColumn("value", width=200),
                "reads": kinds.NumberColumn("files opened", format="localized", width=100),
                "depth": kinds.NumberColumn("ranges that hold it", format="localized", width=120),
            },
            key="depth-table",
        )


@kept(32)
def _profile(address: str, version: int, column: str) -> pl.DataFrame:
    statistics = cache.statistics(address, version, (column,))
    return views.pruning.clustering.depth_profile(statistics, cache.snapshot(address, version).files, column)


def course(now: Opened, column: str) -> None:
    """How well the column told the files apart, version by version; of very many files once it is asked for."""
    if answers.few_files(now):
        _course_picture(now, column)
        return
    with fold(f"How {escape(column)} was clustered before: reads the ranges of every file", "course-fold") as unfolded:
        if unfolded.open:
            _course_picture(now, column)


def _course_picture(now: Opened, column: str) -> None:
    """The course and the same as a table."""
    told = _course(now.address, now.latest, now.ref, column)
    downloads.offer(f"clustering of {column}", told)
    drawn = charts.pruning.clustering_course_chart(told, dark=dark())
    if not drawn:
        nothing(f"How {column} was clustered before is unknown.", "The log does not tell it of earlier versions.")
        return
    stack(drawn, key="course")
    kinds = st.column_config
    with fold("The same as a table", "course-table"):
        rows = told.reverse().select(
            "files",
            "reads",
            version=views.units.version_label("version"),
            committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
            share=pl.col("reads_share") * 100,
            ranges=pl.col("coverage") * 100,
        )
        frame(
            rows,
            {
                "version": kinds.TextColumn("version", width=90),
                "committed": kinds.TextColumn("committed, UTC", width=120),
                "files": kinds.NumberColumn("files", format="localized", width=80),
                "reads": kinds.NumberColumn("files for one value", format="%.1f", width=120),
                "share": kinds.NumberColumn("share, %", format="%.1f", width=70),
                "ranges": kinds.NumberColumn("with min/max, %", format="%.1f", width=100),
            },
            key="course-table",
            unknown="unknown",
        )


@kept(16)
def _course(address: str, latest: int, ref: str | None, column: str) -> pl.DataFrame:
    line = answers.timeline_of(address, latest, ref).filter(pl.col("lane") != "aside")
    return views.pruning.clustering.clustering_course(
        cache.column_lifetimes(address, latest, ref, (column,)), line, column
    )
