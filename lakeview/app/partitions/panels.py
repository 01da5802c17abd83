"""The partitions page's parts: figures of skew and cadence, the picture by number of keys, the table of sizes."""

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import cache, columns, tables
from lakeview.app.cache import cache_values
from lakeview.app.components import MAX_ROWS, dark, escape, frame, grid, stack, tile
from lakeview.app.partitions.one_partition import choose, chosen_partition, pick
from lakeview.app.row_links import row_pick
from lakeview.app.session import OpenTable
from lakeview.model.snapshot import Snapshot


def short_name(now: OpenTable) -> str:
    """The table's name for a sentence."""
    return tables.label(now.name).rpartition(" / ")[2]


def tiles(now: OpenTable, sizes: pl.DataFrame, skew: views.partitions.sizes.Skew) -> None:
    """How many, how even, and which comes next."""
    names = views.partitions.keys.partition_names(now.snapshot)
    with grid(220):
        half = views.partitions.layout.half_of_the_bytes(sizes.drop_nulls("partition_text"))
        tile(
            "Partitions",
            f"{skew.partitions:,}",
            views.units.count_text(now.snapshot.num_files, "file"),
            note=f"half of the bytes in {half:,}" if half else None,
        )
        tile("Median", views.units.format_bytes(skew.median_bytes), views.units.count_text(skew.median_files, "file"))
        tile(
            "Largest",
            views.units.format_bytes(skew.largest_bytes),
            _times(skew.bytes_ratio),
            note=skew.largest and views.partitions.keys.short_name(skew.largest, names),
            help=f"The partition with the most bytes, against the median: {escape(skew.largest or 'unknown')}.",
        )
        tile(
            "Most files",
            f"{skew.most_files_count:,}",
            _times(skew.files_ratio),
            note=skew.most_files and views.partitions.keys.short_name(skew.most_files, names),
            help=f"The partition with the most files, against the median: {escape(skew.most_files or 'unknown')}.",
        )
        if _gets_partitions(now):
            arrivals, time = now.look.arrivals(), cache.now()
            _next_tile(views.partitions.layout.expected_partition(now.snapshot, sizes, arrivals, time))


def _gets_partitions(now: OpenTable) -> bool:
    """Whether rows still come to what is shown: neither to an earlier version nor to a tag."""
    kinds = dict(now.frames.refs.select("name", "kind").iter_rows())
    return now.version == now.latest and kinds.get(now.ref) != "tag"


def _next_tile(next_partition: views.partitions.layout.ExpectedPartition | None) -> None:
    """Which partition comes next, and whether it is overdue; nothing where no cadence is known."""
    if next_partition is None:
        return
    overdue = next_partition.overdue
    tile(
        "Next partition",
        next_partition.partition.partition("=")[2],
        f"due {views.units.format_moment(next_partition.due)}"
        if overdue is None
        else f"{views.units.format_age(overdue)} overdue",
        help="By the median interval between the first writes of partitions.",
        attention=overdue is not None,
    )


def picture(now: OpenTable, sizes: pl.DataFrame) -> None:
    """The partitions by how many keys they have; those of Iceberg specs that share none apart."""
    parts = _by_keys(now, sizes)
    for place, (keys, part) in enumerate(parts):
        if len(parts) > 1:
            st.markdown(f":small[:gray[by {escape(', '.join(keys))}]]")
        _picture(now, keys, part, f"-{place}" if place else "")


def _by_keys(now: OpenTable, sizes: pl.DataFrame) -> list[tuple[list[str], pl.DataFrame]]:
    return views.partitions.layout.by_keys(views.partitions.keys.partition_names(now.snapshot), sizes)


def _picture(now: OpenTable, keys: list[str], sizes: pl.DataFrame, suffix: str) -> None:
    """A calendar, a heatmap, a treemap, or bars with gaps; `suffix` of the chart's key."""
    layout, maps = views.partitions.layout, charts.partition_maps
    choice, kind = chosen_partition(sizes), layout.picture_kind(keys, sizes)
    in_time = layout.time_partitions(keys, sizes)
    if kind == "calendar" and in_time is not None:
        pictures = maps.partition_calendar(in_time[1], selection=choice, dark=dark())
    elif kind == "heatmap":
        cells, (across, down) = layout.partition_cells(keys, sizes), layout.axes(keys, sizes)
        pictures = maps.partition_heatmap(
            views.partitions.sizes.with_row_bounds(cells, now.snapshot),
            (across, down),
            axes=(layout.axis_texts(cells["x"], across, sizes), layout.axis_texts(cells["y"], down, sizes)),
            selection=choice,
            dark=dark(),
        )
    elif kind == "treemap":
        rects = views.partitions.rectangles.partition_rects(keys, sizes)
        pictures = maps.partition_treemap(rects, selection=choice, dark=dark())
    else:
        rows, arrivals = layout.with_missing(keys, sizes), now.look.arrivals()
        pictures = charts.partitions.partition_bars(rows, keys=keys, arrivals=arrivals, selection=choice, dark=dark())
    stack(pictures, key=f"partition-{'sizes' if kind == 'bars' else 'map'}{suffix}", on_pick=pick)


def map_note(now: OpenTable, sizes: pl.DataFrame) -> str:
    """What the picture counts, and what a click does."""
    missing = len(views.partitions.sizes.missing_partitions(now.snapshot))
    gaps = f"{missing:,} missing in between; " if missing else ""
    if any(views.partitions.layout.picture_kind(*part) == "bars" for part in _by_keys(now, sizes)):
        return f"{gaps}{views.partitions.layout.sizes_note(sizes)}; a click opens the partition's history below"
    return f"{gaps}bytes, from the log; a click opens the partition's history below"


def writes_note(writes: pl.DataFrame, sizes: pl.DataFrame) -> str:
    """What a cell means, and how many of the partitions have a line."""
    most = charts.partitions.MOST_LINES
    last = f"the last {most} of {sizes.height:,}; " if writes["partition_text"].n_unique() > most else ""
    gaps = ", gray unknown" if writes["records"].has_nulls() else ""
    return f"{last}stronger is more rows{gaps}; on time lies on the diagonal; a click opens the partition below"


@cache_values(32, of=("version", "latest", "ref"))
def writes(now: OpenTable) -> pl.DataFrame:
    """PARTITION_WRITES: when each partition was written, in spans that fit the table's age."""
    order = views.partitions.layout.names(views.partitions.sizes.partition_sizes(now.snapshot))
    return views.partitions.writes.partition_writes(
        now.snapshot.files, now.frames.lifetimes, now.look.timeline(), partitions=order
    )


def table_note(sizes: pl.DataFrame) -> str:
    """How many rows the table has, and how many are shown."""
    if sizes.height > MAX_ROWS:
        return f"the {MAX_ROWS:,} largest of {sizes.height:,}"
    return f"{sizes.height:,}, in order"


def size_table(sizes: pl.DataFrame, snapshot: Snapshot) -> None:
    """The twin of the picture: one row a partition, the largest ones of very many; a click on a row picks it."""
    rows = views.partitions.sizes.with_row_bounds(views.partitions.layout.largest(sizes, MAX_ROWS), snapshot)
    frame(
        rows,
        {
            "partition": columns.partition(views.partitions.keys.partition_names(snapshot)),
            "mark": columns.bound(),
            "rows": columns.number("rows", of="records"),
            "files": columns.number("files"),
            "size": columns.size("size", of="bytes"),
            "median": columns.size("median file", of="median_size"),
            "share": columns.percent("share of bytes, %", bar=True),
        },
        key="partitions",
        unknown="unknown",
        **row_pick("partitions", rows["partition_text"].to_list(), lambda name: None if name is None else choose(name)),
    )


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1f} \N{MULTIPLICATION SIGN} median"
