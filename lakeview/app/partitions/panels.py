"""The partitions page's parts: figures of skew and cadence, the picture by number of keys, one partition's life."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, cache, downloads, tables
from lakeview.app.components import MAX_ROWS, byte_unit, dark, frame, grid, nothing, stack, tile
from lakeview.app.memo import kept
from lakeview.app.session import Opened

PARTITION = "partition"
MOST_DAY_BARS = 45
"""More days than this are a calendar."""


def short_name(now: Opened) -> str:
    """The table's name for a sentence."""
    return tables.label(now.name).rpartition(" / ")[2]


def tiles(now: Opened, sizes: pl.DataFrame, skew: views.partitions.sizes.Skew) -> None:
    """How many, how even, and what comes next: figures against their siblings."""
    with grid(220):
        half = views.partitions.layout.half_of_the_bytes(sizes)
        tile(
            "Partitions",
            f"{skew.partitions:,}",
            f"{int(sizes['files'].sum()):,} files",
            beside=f"{half:,} hold half of the bytes" if half else None,
        )
        tile("Median", views.units.format_bytes(skew.median_bytes), views.units.counted(skew.median_files, "file"))
        tile(
            "Largest",
            views.units.format_bytes(skew.largest_bytes),
            _times(skew.bytes_ratio),
            beside=skew.largest,
            help="The partition with the most bytes, against the median.",
        )
        tile(
            "Most files",
            f"{skew.most_files_count:,}",
            _times(skew.files_ratio),
            beside=skew.most_files,
            help="The partition with the most files, against the median.",
        )
        _next_tile(views.partitions.layout.expected_partition(now.snapshot, sizes, answers.arrivals(now), cache.now()))


def _next_tile(expected: views.partitions.layout.Expected | None) -> None:
    """Which partition comes next, and whether it is overdue; nothing where no cadence is known."""
    if expected is None:
        return
    overdue = expected.overdue
    tile(
        "Next partition",
        expected.partition.partition("=")[2],
        f"due {views.units.format_moment(expected.due)}"
        if overdue is None
        else f"{views.units.format_age(overdue)} overdue",
        help="By the usual step between the first writes of partitions.",
        attention=overdue is not None,
    )


def picture(now: Opened, sizes: pl.DataFrame) -> None:
    """The partitions by how many keys they have: a calendar, bars with gaps, a heatmap or a treemap."""
    snapshot = now.snapshot
    in_time = views.partitions.layout.time_partitions(snapshot, sizes)
    kind = views.partitions.keys.partition_kind(snapshot)
    arrivals = answers.arrivals(now)
    if in_time is not None:
        steps = in_time[1]
        if _is_map(now, sizes):
            stack(charts.partition_maps.partition_calendar(steps, dark=dark()), key="partition-map", on_pick=pick)
            return
        bars = charts.partitions.partition_bars(
            views.partitions.layout.with_gaps(sizes, steps), arrivals=arrivals, dark=dark()
        )
        stack(bars, key="partition-sizes")
    elif kind == "pair":
        cells = views.partitions.layout.partition_cells(snapshot, sizes)
        if cells.is_empty():
            stack(charts.partitions.partition_bars(sizes, arrivals=arrivals, dark=dark()), key="partition-sizes")
            return
        keys = views.partitions.keys.partition_keys(sizes["partition_text"], snapshot.partition_columns)
        first, second = snapshot.partition_columns
        across = (first, second) if keys["key_0"].n_unique() >= keys["key_1"].n_unique() else (second, first)
        stack(charts.partition_maps.partition_heatmap(cells, across, dark=dark()), key="partition-map", on_pick=pick)
    elif kind == "many":
        rects = views.partitions.layout.partition_rects(snapshot, sizes)
        stack(charts.partition_maps.partition_treemap(rects, dark=dark()), key="partition-map", on_pick=pick)
    else:
        numbered = views.partitions.layout.number_steps(snapshot, sizes)
        shown = sizes if numbered is None else views.partitions.layout.with_gaps(sizes, numbered)
        stack(charts.partitions.partition_bars(shown, arrivals=arrivals, dark=dark()), key="partition-sizes")


def pick(key: str) -> None:
    """A click on a partition of the picture opens its history."""
    for picked in st.session_state[key].get("selection", {}).values():
        for row in picked if isinstance(picked, list) else ():
            if isinstance(row, Mapping) and "partition" in row:
                _choose(str(row["partition"]))


def _choose(partition: str) -> None:
    st.query_params[PARTITION] = partition


def map_note(now: Opened, sizes: pl.DataFrame) -> str:
    """What the picture counts, and what a click does."""
    missing = len(views.partitions.sizes.missing_partitions(now.snapshot))
    gaps = f"{missing:,} missing in between; " if missing else ""
    if not _is_map(now, sizes):
        return f"{gaps}{sizes_note(sizes)}"
    return f"{gaps}bytes, from the log; a click opens the partition's history below"


def _is_map(now: Opened, sizes: pl.DataFrame) -> bool:
    """Whether the picture is a calendar, a heatmap or a treemap, and no row of bars."""
    kind = views.partitions.keys.partition_kind(now.snapshot)
    in_time = views.partitions.layout.time_partitions(now.snapshot, sizes)
    if in_time is not None:
        return in_time[0] == "day" and in_time[1].height > MOST_DAY_BARS
    return kind == "many" or (
        kind == "pair" and not views.partitions.layout.partition_cells(now.snapshot, sizes).is_empty()
    )


def history(now: Opened, sizes: pl.DataFrame) -> None:
    """One partition's life: what it held after each commit that touched it, and these commits."""
    names = sizes["partition_text"].drop_nulls().to_list()
    chosen = st.query_params.get(PARTITION)
    shown = _most_files(sizes) if chosen is None or chosen not in names else chosen
    _picker(sizes, shown)
    if chosen is not None and chosen not in names:
        nothing(f"{chosen} is no partition of {views.units.format_version(now.version)}.", "Another one is shown.")
    told = _history(now.address, now.version, now.latest, now.ref, shown)
    downloads.offer("history of one partition", told)
    if told.is_empty():
        nothing(
            "The log no longer tells when it was written.", "The commits that wrote it were cleaned up.", "timeline"
        )
        return
    stack(charts.partition_maps.partition_course(told, dark=dark()), key="partition-course")
    _history_table(told)


def _most_files(sizes: pl.DataFrame) -> str:
    return str(sizes.drop_nulls("partition_text").sort("files", descending=True)["partition_text"][0])


def _picker(sizes: pl.DataFrame, shown: str) -> None:
    largest = sizes.drop_nulls("partition_text")
    if largest.height > MAX_ROWS:
        largest = largest.sort("bytes", descending=True).head(MAX_ROWS)
    options = list(dict.fromkeys([*largest["partition_text"].to_list(), shown]))
    st.session_state["pick_partition"] = shown
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**One partition** &ensp; :small[:gray[when it was written, and by whom]]", width="content")
        st.space("stretch")
        st.selectbox(
            "Partition",
            options,
            key="pick_partition",
            on_change=lambda: _choose(st.session_state["pick_partition"]),
            label_visibility="collapsed",
            width=260,
        )


def _history_table(told: pl.DataFrame) -> None:
    kinds = st.column_config
    unit, scale = byte_unit(told["bytes"])
    rows = told.reverse().select(
        "operation",
        "writer",
        "files_added",
        "files_removed",
        "records_added",
        "records_removed",
        "files",
        "records",
        version=views.units.version_label("version"),
        committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
        size=pl.col("bytes") / scale,
    )
    if rows.height > MAX_ROWS:
        st.markdown(f":small[:gray[the newest {MAX_ROWS:,} of {rows.height:,} commits; the download has all]]")
    frame(
        rows,
        {
            "version": kinds.TextColumn("version", width=90),
            "committed": kinds.TextColumn("committed, UTC", width=120),
            "operation": kinds.TextColumn("operation", width=100),
            "writer": kinds.TextColumn("writer", width=120),
            "files_added": kinds.NumberColumn("files +", format="localized", width=60),
            "files_removed": kinds.NumberColumn("files \N{MINUS SIGN}", format="localized", width=60),
            "records_added": kinds.NumberColumn("rows +", format="localized", width=90),
            "records_removed": kinds.NumberColumn("rows \N{MINUS SIGN}", format="localized", width=90),
            "files": kinds.NumberColumn("files then", format="localized", width=80),
            "records": kinds.NumberColumn("rows then", format="localized", width=100),
            "size": kinds.NumberColumn(f"size then, {unit}", format="%.1f", width=100),
        },
        key="partition-history",
        unknown="unknown",
        height=12 * 28,
    )


def sizes_note(sizes: pl.DataFrame) -> str:
    """What the bars count."""
    if sizes["records"].has_nulls():
        return "rows unknown where a file does not tell; dashed line: median"
    return "rows, from the log; dashed line: median"


def writes(now: Opened) -> pl.DataFrame:
    """PARTITION_WRITES: when each partition was written, in spans that fit the table's age."""
    return _writes(now.address, now.version, now.latest, now.ref)


@kept(32)
def _writes(address: str, version: int, latest: int, ref: str | None) -> pl.DataFrame:
    snapshot = cache.snapshot(address, version)
    order = views.partitions.sizes.partition_sizes(snapshot)["partition_text"].drop_nulls().to_list()
    line = answers.timeline_of(address, latest, ref)
    return views.partitions.sizes.partition_writes(
        snapshot.files, cache.lifetimes(address, latest, ref), line, partitions=order
    )


@kept(64)
def _history(address: str, version: int, latest: int, ref: str | None, partition: str) -> pl.DataFrame:
    line = answers.timeline_of(address, latest, ref)
    lifetimes = cache.lifetimes(address, latest, ref)
    return views.partitions.sizes.partition_history(cache.snapshot(address, version).files, lifetimes, line, partition)


def table_note(sizes: pl.DataFrame) -> str:
    """How many rows the table has, and how many are shown."""
    if sizes.height > MAX_ROWS:
        return f"the {MAX_ROWS:,} largest of {sizes.height:,}"
    return f"{sizes.height:,}, in order"


def size_table(sizes: pl.DataFrame) -> None:
    """The twin of the bars: one row a partition."""
    column = st.column_config
    shown = sizes if sizes.height <= MAX_ROWS else sizes.sort("bytes", descending=True)
    unit, scale = byte_unit(shown["bytes"])
    median_unit, median_scale = byte_unit(shown["median_size"])
    rows = shown.select(
        partition=pl.col("partition_text").fill_null("unknown"),
        rows="records",
        files="files",
        size=pl.col("bytes") / scale,
        median=pl.col("median_size") / median_scale,
        share=pl.col("share") * 100,
    )
    frame(
        rows,
        {
            "partition": column.TextColumn("partition", width=220),
            "rows": column.NumberColumn("rows", format="localized", width=100),
            "files": column.NumberColumn("files", format="localized", width=80),
            "size": column.NumberColumn(f"size, {unit}", format="%.1f", width=110),
            "median": column.NumberColumn(f"median file, {median_unit}", format="%.1f", width=120),
            "share": column.ProgressColumn("share of bytes, %", format="%.1f", min_value=0, max_value=100, width=160),
        },
        key="partitions",
        unknown="unknown",
    )


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1f} times the median"
