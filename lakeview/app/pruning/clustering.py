"""The pruning page's columns: how well files are clustered by each, along its values and over the versions."""

import polars as pl

from lakeview import charts, views
from lakeview.app import columns, downloads
from lakeview.app.cache import cache_values
from lakeview.app.components import dark, escape, fold, frame, heading_row, nothing, stack, unknown_name
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import choice
from lakeview.app.widths import HALF, NAME
from lakeview.inspection.absent_columns import complete_statistics

NOTE = "files that a filter for one value opens: blue by their range, orange for lack of min and max"
COLUMN = "column"


def sample_note(now: OpenTable) -> str:
    """By how many files the columns are ranked, where it is not by all."""
    return views.pruning.clustering.sample_note(now.look.clustering().sample_size, now.snapshot.num_files)


def picked_column(clustering: pl.DataFrame) -> str | None:
    """The column chosen, recorded in the URL; a click on a bar picks one too. None if no column has statistics."""
    names = views.pruning.clustering.with_ranges(clustering)
    if not names:
        return None
    with heading_row("One column", "or click a bar"):
        column: str = choice("Column", names, COLUMN, width=220)
    unknown_name(COLUMN, names, "column with min and max in files", f"{column} is shown")
    return column


def column_table(clustering: pl.DataFrame) -> None:
    """The twin of the bars: one row a column."""
    frame(
        clustering,
        {
            "column": columns.text("column", least=NAME),
            "reads": columns.number("files read", decimals=1, help="for one value of the column, on average"),
            "share": columns.percent("of all, %", of="reads_share", bar=True),
            "depth": columns.number("depth", decimals=1, help="overlapping ranges at one value, on average"),
            "most": columns.number("max depth"),
            "ranges": columns.percent("min/max, %", of="coverage", help="files with min and max in their statistics"),
            "nulls": columns.percent("nulls, %", of="null_coverage", help="files with null counts in their statistics"),
            "exact": columns.text(
                "ranges",
                words={"true": "exact", "false": "bound"},
                help="bound: ranges may be wider than the values",
            ),
        },
        key="clustering",
        unknown="unknown",
        height=12 * 28,
    )


def depth_picture(now: OpenTable, column: str) -> None:
    """How many files a filter opens, along the column's values, and the same as a table."""
    by_column = now.look.clustering()
    is_first = column == next(iter(by_column.columns["column"]))
    depths = by_column.depths if is_first else _profile(now, column)
    downloads.offer(f"depth of {column}", depths)
    stack(charts.pruning.depth_chart(depths, now.snapshot.num_files, column=column, dark=dark()), key="depth")
    with fold("As a table", "depth-table"):
        frame(
            depths,
            {
                "value_text": columns.text("value"),
                "reads": columns.number("files opened"),
                "depth": columns.number("overlapping ranges"),
            },
            key="depth-table",
            place=HALF,
        )


@cache_values(32, of=("version", "latest", "ref"))
def _profile(now: OpenTable, column: str) -> pl.DataFrame:
    statistics = complete_statistics(now.frames, now.version, [column])
    return views.pruning.clustering.depth_profile(statistics, now.snapshot.files, column)


def history(now: OpenTable, column: str) -> None:
    """How well the files were clustered by the column at each version; of very many files on demand."""
    if now.look.is_small:
        _history_picture(now, column)
        return
    label = f"Clustering of {escape(column)} at earlier versions: reads the statistics of every file"
    with fold(label, "course-fold") as expander:
        if expander.open:
            _history_picture(now, column)


def _history_picture(now: OpenTable, column: str) -> None:
    states = _history(now, column)
    downloads.offer(f"clustering of {column}", states)
    pictures = charts.pruning.clustering_course_chart(states, dark=dark())
    if not pictures:
        nothing(f"Earlier clustering of {column} is unknown.", "The log has no statistics of earlier versions.")
        return
    stack(pictures, key="course")
    with fold("As a table", "course-table"):
        frame(
            states.reverse(),
            {
                "version": columns.version(),
                "committed": columns.timestamp(),
                "files": columns.number("files"),
                "reads": columns.number("files for one value", decimals=1),
                "share": columns.percent("share, %", of="reads_share"),
                "ranges": columns.percent("with min/max, %", of="coverage"),
            },
            key="course-table",
            place=HALF,
            unknown="unknown",
        )


@cache_values(16, of=("latest", "ref"))
def _history(now: OpenTable, column: str) -> pl.DataFrame:
    branch = views.timeline.branches.on_branch(now.look.timeline())
    return views.pruning.clustering.clustering_course(now.frames.column_lifetimes((column,)), branch, column)
