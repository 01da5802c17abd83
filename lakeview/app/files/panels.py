"""The files page's parts: figures, and the listing by page with one column's statistics."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import columns, downloads
from lakeview.app.answers import file_layout
from lakeview.app.cache import cache_values
from lakeview.app.components import escape, frame, grid, heading_row, tile, unknown_name
from lakeview.app.row_links import row_pick
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import choice, link_widget, page_number
from lakeview.inspection.absent_columns import complete_statistics
from lakeview.model.partition_texts import unescape_text
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
            f"{views.units.count_text(facts.files_without_records, 'file')} without"
            if facts.files_without_records
            else "of files",
            help="Share of files with a row count in the log.",
            attention=bool(facts.files_without_records),
        )
        tile(
            "Files with deletes",
            facts.files_with_deletes_text,
            facts.deleted_records_text,
            help="Files with rows marked as deleted, by deletion vectors or delete files.",
        )


@dataclass(frozen=True, slots=True)
class Filters:
    """The choices above the picture; None is any."""

    partition: str | None
    path: str
    sizes: str | None

    @property
    def is_any(self) -> bool:
        """True if all files pass."""
        return self.partition is None and not self.path and self.sizes is None


def filters(now: OpenTable, layout: views.files.sizes.FileLayout) -> Filters:
    """Partition, part of a path, and bin of sizes, from one line of widgets; all in the link."""
    partition, partitions = ALL_PARTITIONS, _partitions(now, layout)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="file-filters"):
        if partitions:
            partition = choice(
                "Partition", [ALL_PARTITIONS, *partitions], "partition", width=190, format_func=unescape_text
            )
        path = st.text_input(
            "Path contains",
            key=link_widget("path"),
            placeholder="path contains",
            label_visibility="collapsed",
            width=220,
        )
        tip = "A click on a bar of the chart chooses its sizes."
        sizes = choice("Sizes", [ALL_SIZES, *layout.labels], "sizes", width=140, help=tip)
    unknown_name("partition", partitions, "partition of this version", "files of all partitions are shown")
    return Filters(None if partition == ALL_PARTITIONS else partition, path, None if sizes == ALL_SIZES else sizes)


def _partitions(now: OpenTable, layout: views.files.sizes.FileLayout) -> list[str]:
    """The partitions to choose from: the first ones, and that of the link."""
    name = st.query_params.get("partition", "")
    if not name or name in layout.partitions or not (now.snapshot.files["partition_text"] == name).any():
        return list(layout.partitions)
    return [*layout.partitions, name]


def passing_files(now: OpenTable, choice: Filters) -> pl.DataFrame:
    """FILES that pass the filters."""
    return now.snapshot.files if choice.is_any else _passing_files(now, choice)


@cache_values(32, of=("version", "branch"))
def _passing_files(now: OpenTable, choice: Filters) -> pl.DataFrame:
    files, bins = now.snapshot.files, file_layout(now).bins
    return views.files.sizes.files_of(files, bins, choice.partition, choice.sizes, choice.path)


def bins(now: OpenTable, layout: views.files.sizes.FileLayout, choice: Filters) -> pl.DataFrame:
    """FILE_SIZES of the files that pass the other filters, of any size."""
    of_any_size = replace(choice, sizes=None)
    return layout.bins if of_any_size.is_any else views.files.sizes.file_sizes(passing_files(now, of_any_size))


def listing(now: OpenTable, layout: views.files.sizes.FileLayout, choice: Filters, files: pl.DataFrame) -> pl.DataFrame:
    """Order, pages and the table of the files that pass the filters, and all of them as CSV; returns the rows shown.
    What is chosen is in the URL."""
    count = files.height
    names = [leaf_name(path) for path, _ in now.snapshot.schema.leaves()]
    note = f"{count:,} in {views.units.format_version(now.version)} · tick a row to inspect the file"
    with heading_row("Files", note):
        downloads.csv_button("files", files)
        order, column = _order(now, names)
    number = page_number(count, PAGE, "files_page")
    rows = _page(now, choice, order, column, number)
    _table(rows, column, layout, views.partitions.keys.partition_names(now.snapshot))
    return rows


@cache_values(64, of=("version", "latest", "ref"))
def _page(now: OpenTable, choice: Filters, order: str, column: str | None, number: int) -> pl.DataFrame:
    sort, descending = SORTS[order]
    return views.files.sizes.file_page(
        passing_files(now, choice),
        sort,
        descending,
        (number - 1) * PAGE,
        PAGE,
        lifetimes=now.frames.lifetimes,
        statistics=None if column is None else complete_statistics(now.frames, now.version, [column]),
        column=column,
    )


def _order(now: OpenTable, names: list[str]) -> tuple[str, str | None]:
    """The order, and the column whose range is shown."""
    order = choice("Order", list(SORTS), "order", width=150)
    choices = [NO_COLUMN, *names]
    column = choice(
        "Statistics of",
        choices,
        "statistics-of",
        choices[_default_column(now, names)],
        format_func=lambda name: "no statistics" if name == NO_COLUMN else f"range of {name}",
        width=190,
        help="Shows this column's min, max and nulls in each file.",
    )
    return order, None if column == NO_COLUMN else column


def _table(
    rows: pl.DataFrame, name: str | None, layout: views.files.sizes.FileLayout, partition_keys: Sequence[str]
) -> None:
    below = f"below {escape(layout.folder)}" if layout.folder else ""
    if layout.partitions:
        below = f"{below}, and below its partition's folder".removeprefix(", and ")
    table_columns = {
        "file": columns.data_file("file", help=below or None),
        "partition": columns.partition(partition_keys, layout.partitions),
        "size": columns.size("size"),
        "rows": columns.number("rows", of="records"),
        "deleted": columns.number("deleted", of="deleted_records"),
        "minimum": columns.text("min", of="min_text", help=f"of {escape(name or '')}"),
        "maximum": columns.text("max", of="max_text"),
        "nulls": columns.number("nulls", of="null_count"),
        "added": columns.version("added by", null="unknown"),
    }
    hidden = ([] if layout.partitions else ["partition"]) + ([] if name else ["minimum", "maximum", "nulls"])
    if layout.facts.files_with_deletes == 0:
        hidden.append("deleted")
    frame(
        views.files.names.with_short_paths(rows, layout.folder),
        {name: kind for name, kind in table_columns.items() if name not in hidden},
        key="files",
        height=460,
        **row_pick("files", rows["path"].to_list(), choose),
    )


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
