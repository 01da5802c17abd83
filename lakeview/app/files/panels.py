"""The files page's parts: figures, and the listing by page with one column's statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, cache
from lakeview.app.components import MAX_ROWS, byte_unit, escape, frame, grid, tile
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.app.widget_state import held
from lakeview.model.schema import leaf_name

PAGE = 100
ALL_PARTITIONS = "all partitions"
ALL_SIZES = "all sizes"
NO_COLUMN = "no column"
FILE = "file"
SORTS = {
    "smallest first": ("size", False),
    "largest first": ("size", True),
    "most rows first": ("records", True),
    "newest first": ("modified", True),
    "by path": ("path", False),
}


def sizes_note(bins: pl.DataFrame) -> str:
    """What the histogram is meant to show."""
    small = bins.filter("small").select(pl.col("files", "bytes").sum()).row(0)
    whole = bins.select(pl.col("files", "bytes").sum()).row(0)
    if not small[0]:
        return "count above bytes: no file is small"
    return (
        f"files under 1 MiB: {views.units.format_percent(small[0] / whole[0])} of the count, "
        f"{views.units.format_percent(small[1] / whole[1] if whole[1] else None)} of the bytes"
    )


def tiles(facts: views.files.sizes.FileFacts) -> None:
    """Five figures of the live files."""
    with grid(165, 5):
        tile(
            "Median size",
            views.units.format_bytes(facts.median_size),
            f"p95 {views.units.format_bytes(facts.p95_size)}",
        )
        tile(
            "Rows per file, median",
            views.units.format_count(facts.median_records),
            f"p95 {views.units.format_count(facts.p95_records)}",
            help="Physical rows, as the log records them.",
        )
        tile(
            "Files that would do",
            views.units.format_count(facts.ideal_files, exact=True),
            f"now {facts.files:,}",
            help="How many files of up to 256 MiB would hold each partition's bytes.",
        )
        tile(
            "Rows counted",
            views.units.format_percent(facts.with_records_share),
            "of files" if not facts.files_without_records else f"{facts.files_without_records:,} files do not tell",
            help="Share of files for which the log says how many rows they hold.",
            attention=bool(facts.files_without_records),
        )
        perhaps = facts.files_perhaps_with_deletes
        most = facts.files_with_deletes + perhaps
        tile(
            "Files with deletes",
            f"{facts.files_with_deletes:,}" if not perhaps else f"\N{LESS-THAN OR EQUAL TO} {most:,}",
            "rows unknown" if facts.deleted_records is None else f"{facts.deleted_records:,} rows",
            help="Files of which some rows are deleted without the file being rewritten.",
        )


def picked_bin(bins: pl.DataFrame) -> str | None:
    """The bin of sizes that the listing is narrowed to: by the widget, the URL, or a click on a bar."""
    picked = st.session_state.get("sizes", st.query_params.get("sizes"))
    return picked if picked in _labels(bins) else None


def pick_bin(key: str) -> None:
    """A click on a bar of the histogram narrows the listing to its bin; another on the same widens it again."""
    for picked in st.session_state[key].get("selection", {}).values():
        for row in picked if isinstance(picked, list) else ():
            if isinstance(row, Mapping) and "label" in row:
                st.session_state["sizes"] = row["label"]


def _labels(bins: pl.DataFrame) -> list[str]:
    return bins.filter(pl.col("files") > 0)["label"].to_list()


@dataclass(frozen=True, slots=True)
class Layout:
    """FILE_SIZES and figures of the live files of a version, the first MAX_ROWS partitions they lie in, and the folder
    that all their paths begin with, "" for none."""

    bins: pl.DataFrame
    facts: views.files.sizes.FileFacts
    partitions: tuple[str, ...]
    folder: str


def layout(now: Opened) -> Layout:
    """How the files of the version shown lie."""
    return _layout(now.address, now.version, now.branch)


@kept(32)
def _layout(address: str, version: int, branch: str | None) -> Layout:
    live = cache.snapshot(address, version, branch).files
    partitions = live["partition_text"].drop_nulls().unique().sort().head(MAX_ROWS)
    return Layout(
        views.files.sizes.file_sizes(live),
        views.files.sizes.file_facts(live),
        tuple(partitions),
        views.files.sizes.common_folder(live["path"]),
    )


def listing(now: Opened, found: Layout) -> pl.DataFrame:
    """Filters, pages and the table of files; returns the rows shown. All of it is kept in the URL."""
    partitions = list(found.partitions)
    columns = [leaf_name(path) for path, _ in now.snapshot.schema.leaves()]
    heading = st.container()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        partition, label, order, column = _filters(now, partitions, _labels(found.bins), columns)
    whole = now.address, now.version, now.branch
    count = _chosen(*whole, partition, label).height
    heading.markdown(
        f"**Files** &ensp; :small[:gray[{count:,} in {views.units.format_version(now.version)} · {order} · "
        "choose a row to look into the file]]"
    )
    pages = max(1, -(-count // PAGE))
    number = st.pagination(pages, key=held("files_page", 1, range(1, pages + 1))) if pages > 1 else 1
    rows = _page(*whole, now.latest, now.ref, partition, label, order, column, min(number, pages))
    _table(rows, column, found)
    return rows


def _chosen(address: str, version: int, branch: str | None, partition: str | None, label: str | None) -> pl.DataFrame:
    """The files of a partition and a bin of sizes."""
    live = cache.snapshot(address, version, branch).files
    chosen = live if partition is None else live.filter(pl.col("partition_text") == partition)
    return (
        chosen
        if label is None
        else views.files.sizes.files_in_bin(chosen, _layout(address, version, branch).bins, label)
    )


@kept(64)
def _page(
    address: str,
    version: int,
    branch: str | None,
    latest: int,
    ref: str | None,
    partition: str | None,
    label: str | None,
    order: str,
    column: str | None,
    number: int,
) -> pl.DataFrame:
    sort, descending = SORTS[order]
    return views.files.sizes.file_page(
        _chosen(address, version, branch, partition, label),
        sort,
        descending,
        (number - 1) * PAGE,
        PAGE,
        lifetimes=cache.lifetimes(address, latest, ref),
        statistics=None if column is None else cache.statistics(address, version, (column,)),
        column=column,
    )


def _filters(
    now: Opened, partitions: list[str], labels: list[str], columns: list[str]
) -> tuple[str | None, str | None, str, str | None]:
    """Partition, bin of sizes, order, and the column whose range is shown."""
    partition = None
    if partitions:
        picked = st.selectbox(
            "Partition",
            [ALL_PARTITIONS, *partitions],
            key=held("partition", ALL_PARTITIONS, [ALL_PARTITIONS, *partitions]),
            label_visibility="collapsed",
            width=170,
        )
        partition = None if picked == ALL_PARTITIONS else picked
    label = st.selectbox(
        "Sizes",
        [ALL_SIZES, *labels],
        key=held("sizes", ALL_SIZES, [ALL_SIZES, *labels]),
        label_visibility="collapsed",
        width=140,
        help="A click on a bar of the picture chooses its sizes.",
    )
    order = st.selectbox(
        "Order", list(SORTS), key=held("order", next(iter(SORTS)), SORTS), label_visibility="collapsed", width=150
    )
    told = [NO_COLUMN, *columns]
    column = st.selectbox(
        "Statistics of",
        told,
        format_func=lambda name: "no statistics" if name == NO_COLUMN else f"range of {name}",
        key=held("statistics-of", told[_first_told(now, columns)], told),
        label_visibility="collapsed",
        width=190,
        help="Shows this column's min, max and nulls in each file.",
    )
    return partition, None if label == ALL_SIZES else label, order, None if column == NO_COLUMN else column


def _table(rows: pl.DataFrame, told: str | None, found: Layout) -> None:
    column = st.column_config
    unit, scale = byte_unit(rows["size"])
    table = rows.select(
        file=pl.col("path").str.strip_prefix(found.folder),
        partition="partition_text",
        size=pl.col("size") / scale,
        rows="records",
        deleted="deleted_records",
        nulls="null_count",
        minimum="min_text",
        maximum="max_text",
        added=views.units.version_label("added").fill_null("unknown"),
    )
    shown = {
        "file": column.TextColumn("file", width=300, help=f"below {escape(found.folder)}" if found.folder else None),
        "partition": column.TextColumn("partition", width=_wide_enough(rows["partition_text"])),
        "size": column.NumberColumn(f"size, {unit}", format="%.1f", width=80),
        "rows": column.NumberColumn("rows", format="localized", width=70),
        "deleted": column.NumberColumn("deleted", format="localized", width=60),
        "minimum": column.TextColumn(f"{told} min", width=100),
        "maximum": column.TextColumn("max", width=90),
        "nulls": column.NumberColumn("nulls", format="localized", width=54),
        "added": column.TextColumn("added by", width=90),
    }
    hidden = ([] if found.partitions else ["partition"]) + ([] if told else ["minimum", "maximum", "nulls"])
    frame(
        table,
        {name: kind for name, kind in shown.items() if name not in hidden},
        key="files",
        height=460,
        selection_mode="single-row",
        on_select=lambda: _pick_row(rows["path"].to_list()),
    )


def _wide_enough(texts: pl.Series) -> int:
    """Pixels that hold the longest of the texts, within bounds."""
    longest = texts.str.len_chars().max()
    return min(max(90, 6 * longest + 16), 190) if isinstance(longest, int) else 90


def _pick_row(paths: list[str]) -> None:
    picked = st.session_state["files"]["selection"]["rows"]
    if picked and picked[0] < len(paths):
        choose(paths[picked[0]])


def choose(path: str | None) -> None:
    """Makes this the file that is looked into, in the URL; None for no file."""
    if path is not None:
        st.query_params[FILE] = path
    elif FILE in st.query_params:
        del st.query_params[FILE]


def _first_told(now: Opened, columns: list[str]) -> int:
    """The first column that is no partition key: those have no range of their own. None of very many files: their
    statistics are read once they are asked for."""
    if not answers.few_files(now):
        return 0
    keys = set(now.snapshot.partition_columns)
    return next((i for i, name in enumerate(columns, start=1) if name not in keys), 0)
