"""The files page's parts: figures, and the listing by page with one column's statistics."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import cache, columns
from lakeview.app.components import escape, frame, grid, tile
from lakeview.app.file_layout import layout_of
from lakeview.app.memo import cached
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import linked
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
            "Ideal file count",
            views.units.format_count(facts.ideal_files, exact=True),
            f"now {facts.files:,}",
            help="How many files of up to 256 MiB would hold each partition's bytes.",
        )
        tile(
            "Rows counted",
            views.units.format_percent(facts.with_records_share),
            "of files" if not facts.files_without_records else f"{facts.files_without_records:,} files without",
            help="Share of files with a row count in the log.",
            attention=bool(facts.files_without_records),
        )
        tile(
            "Files with deletes",
            facts.files_with_deletes_text,
            "rows unknown" if facts.deleted_records is None else f"{facts.deleted_records:,} rows",
            help="Files with rows marked as deleted, by deletion vectors or delete files.",
        )


def picked_bin(layout: views.files.sizes.FileLayout) -> str | None:
    """The bin of sizes that the listing is narrowed to: by the widget, the URL, or a click on a bar."""
    picked = st.session_state.get("sizes", st.query_params.get("sizes"))
    return picked if picked in layout.labels else None


def pick_bin(key: str) -> None:
    """A click on a bar of the histogram narrows the listing to its bin; another on the same widens it again."""
    for picked in st.session_state[key].get("selection", {}).values():
        for row in picked if isinstance(picked, list) else ():
            if isinstance(row, Mapping) and "label" in row:
                st.session_state["sizes"] = row["label"]


def listing(now: OpenTable, layout: views.files.sizes.FileLayout) -> pl.DataFrame:
    """Filters, pages and the table of files; returns the rows shown. All of it is kept in the URL."""
    partitions = list(layout.partitions)
    names = [leaf_name(path) for path, _ in now.snapshot.schema.leaves()]
    heading = st.container()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        partition, label, order, column = _filters(now, partitions, layout.labels, names)
    whole = now.address, now.version, now.branch
    count = _filtered(*whole, partition, label).height
    heading.markdown(
        f"**Files** &ensp; :small[:gray[{count:,} in {views.units.format_version(now.version)} · {order} · "
        "choose a row to inspect the file]]"
    )
    pages = max(1, -(-count // PAGE))
    number = st.pagination(pages, key=linked("files_page", 1, range(1, pages + 1))) if pages > 1 else 1
    rows = _page(*whole, now.latest, now.ref, partition, label, order, column, min(number, pages))
    _table(rows, column, layout)
    return rows


def _filtered(address: str, version: int, branch: str | None, partition: str | None, label: str | None) -> pl.DataFrame:
    """The files of a partition and a bin of sizes."""
    live = cache.snapshot(address, version, branch).files
    return views.files.sizes.files_of(live, layout_of(address, version, branch).bins, partition, label)


@cached(64)
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
        _filtered(address, version, branch, partition, label),
        sort,
        descending,
        (number - 1) * PAGE,
        PAGE,
        lifetimes=cache.lifetimes(address, latest, ref),
        statistics=None if column is None else cache.statistics(address, version, (column,)),
        column=column,
    )


def _filters(
    now: OpenTable, partitions: list[str], labels: list[str], names: list[str]
) -> tuple[str | None, str | None, str, str | None]:
    """Partition, bin of sizes, order, and the column whose range is shown."""
    partition = None
    if partitions:
        picked = st.selectbox(
            "Partition",
            [ALL_PARTITIONS, *partitions],
            key=linked("partition", ALL_PARTITIONS, [ALL_PARTITIONS, *partitions]),
            label_visibility="collapsed",
            width=170,
        )
        partition = None if picked == ALL_PARTITIONS else picked
    label = st.selectbox(
        "Sizes",
        [ALL_SIZES, *labels],
        key=linked("sizes", ALL_SIZES, [ALL_SIZES, *labels]),
        label_visibility="collapsed",
        width=140,
        help="A click on a bar of the chart chooses its sizes.",
    )
    order = st.selectbox(
        "Order", list(SORTS), key=linked("order", next(iter(SORTS)), SORTS), label_visibility="collapsed", width=150
    )
    choices = [NO_COLUMN, *names]
    column = st.selectbox(
        "Statistics of",
        choices,
        format_func=lambda name: "no statistics" if name == NO_COLUMN else f"range of {name}",
        key=linked("statistics-of", choices[_default_column(now, names)], choices),
        label_visibility="collapsed",
        width=190,
        help="Shows this column's min, max and nulls in each file.",
    )
    return partition, None if label == ALL_SIZES else label, order, None if column == NO_COLUMN else column


def _table(rows: pl.DataFrame, name: str | None, layout: views.files.sizes.FileLayout) -> None:
    below = f"below {escape(layout.folder)}" if layout.folder else None
    shown = {
        "file": columns.path("file", 300, layout.folder, of="path", help=below),
        "partition": columns.text("partition", _wide_enough(rows["partition_text"]), of="partition_text"),
        "size": columns.size("size", 80),
        "rows": columns.number("rows", 70, of="records"),
        "deleted": columns.number("deleted", 60, of="deleted_records"),
        "minimum": columns.text(f"{name} min", 100, of="min_text"),
        "maximum": columns.text("max", 90, of="max_text"),
        "nulls": columns.number("nulls", 54, of="null_count"),
        "added": columns.version("added by", null="unknown"),
    }
    hidden = ([] if layout.partitions else ["partition"]) + ([] if name else ["minimum", "maximum", "nulls"])
    frame(
        rows,
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
    """Makes this the file that is inspected, in the URL; None for no file."""
    if path is not None:
        st.query_params[FILE] = path
    elif FILE in st.query_params:
        del st.query_params[FILE]


def _default_column(now: OpenTable, names: list[str]) -> int:
    """The first column that is no partition column: those have no statistics. None of very many files: their statistics
    are read on demand."""
    if not now.look.is_small:
        return 0
    keys = set(now.snapshot.partition_columns)
    return next((i for i, name in enumerate(names, start=1) if name not in keys), 0)
