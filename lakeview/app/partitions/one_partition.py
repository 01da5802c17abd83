"""The history of the partition that is chosen: which one, its size after each commit that changed it, these commits."""

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, downloads, selection, widths
from lakeview.app.cache import cache_values
from lakeview.app.components import MAX_ROWS, dark, frame, heading_row, link, more_rows, nothing, stack, unknown_name
from lakeview.app.row_links import picked_marks, row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import picker
from lakeview.inspection.history import with_partition_bounds
from lakeview.model.partition_texts import unescape_text
from lakeview.views.partitions.keys import NO_PARTITION

_PARTITION = "partition"


def pick(key: str) -> None:
    """A click on a partition of the picture opens its history."""
    for mark in picked_marks(key):
        if mark.get("partition", NO_PARTITION) != NO_PARTITION:
            choose(str(mark["partition"]))


def choose(partition: str) -> None:
    """The partition whose history is shown, from now on."""
    st.query_params[_PARTITION] = partition


def chosen_partition(sizes: pl.DataFrame) -> str | None:
    """The partition that the URL names, if the version has it."""
    name = st.query_params.get(_PARTITION)
    return name if name in views.partitions.layout.names(sizes) else None


def history(now: OpenTable, sizes: pl.DataFrame) -> None:
    """One partition's history: its size after each commit that changed it, and these commits."""
    choice = chosen_partition(sizes)
    partition = views.partitions.layout.most_files(sizes) if choice is None else choice
    _picker(sizes, partition)
    kind = f"partition of {views.units.format_version(now.version)}"
    unknown_name(_PARTITION, views.partitions.layout.names(sizes), kind, f"{partition} is shown")
    _onward(now, partition)
    states = _history(now, partition)
    downloads.offer("history of one partition", states)
    if states.is_empty():
        nothing(
            "Unknown when it was written.",
            "The log no longer has the commits that wrote it, or they are not shared.",
            "timeline",
        )
        return
    stack(charts.partition_maps.partition_course(states, dark=dark()), key="partition-course")
    _history_table(states)


def _picker(sizes: pl.DataFrame, partition: str) -> None:
    options = list(dict.fromkeys([*views.partitions.layout.names(sizes, MAX_ROWS), partition]))
    with heading_row("One partition", "when it was written, and by whom"):
        picker("Partition", options, "pick_partition", partition, choose, width=260, format_func=unescape_text)


def _onward(now: OpenTable, partition: str) -> None:
    """Links to the files of a partition, and to its rows where a condition can name them."""
    with st.container(horizontal=True, gap="small"):
        link("files", "Its files", selection.link(partition=partition))
        where = views.retention.remedies.partition_condition(now.snapshot, partition)
        if where is not None:
            link("data", "Its rows", selection.link(where=where))


def _history_table(states: pl.DataFrame) -> None:
    more_rows(states.height, "commits", first="newest")
    newest = states.reverse().head(MAX_ROWS)
    frame(
        newest.with_columns(
            pl.Series(f"{what}_change", [views.units.gain_and_loss(*row) for row in rows.iter_rows()], dtype=pl.String)
            for what in ("files", "records")
            for rows in [newest.select(f"{what}_added", f"{what}_removed")]
        ),
        {
            "version": columns.version(),
            "committed": columns.date("day, UTC", of="timestamp"),  # the minute would take the room of a writer's name
            "operation": columns.text("operation"),
            "writer": columns.text("writer", least=widths.NAME),
            "files_change": columns.text("files \N{PLUS-MINUS SIGN}", right=True),
            "records_change": columns.text("rows \N{PLUS-MINUS SIGN}", right=True),
            "files": columns.number("files", help="of the partition after the commit"),
            "mark": columns.bound(),
            "records": columns.number("rows", help="of the partition after the commit"),
        },
        key="partition-history",
        **row_link("partition-history", newest, "timeline", lambda row: selection.link(commit=row["version"])),
        unknown="unknown",
        height=12 * 28,
    )


@cache_values(64, of=("version", "latest", "ref"))
def _history(now: OpenTable, partition: str) -> pl.DataFrame:
    states = views.partitions.history.partition_history(
        now.snapshot.files, now.frames.lifetimes, now.look.timeline(), partition
    )
    return with_partition_bounds(states, now.frames, partition)
