"""One file: its facts from the log, and from its footer, which is read once the file is chosen."""

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, display_rows, downloads, errors, widths
from lakeview.app.answers import file_layout
from lakeview.app.cache import cache_values
from lakeview.app.components import ROW_HEIGHT, card, dark, facts, fold, frame, grid, heading_row, stack
from lakeview.app.files import panels
from lakeview.app.query import budget, runner
from lakeview.app.query.request import Request
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import picker
from lakeview.model.physical_file import PhysicalFile

_NONE = "no file"
_ROWS = 50


def detail(now: OpenTable, page: pl.DataFrame) -> None:
    """A card with the file that the URL names, and the choice of one of those on the page of the listing."""
    path = st.query_params.get(panels.FILE)
    with card(key="file-card"):
        _picker(page["path"].to_list(), path, file_layout(now).folder)
        if path is None:
            st.markdown(
                ":gray[Tick a row above, or choose a file here: its footer describes row groups and column chunks, "
                "and its first rows are read.]"
            )
            return
        with errors.messages(here="files"):
            file = _physical(now, path)
            _draw(now, file)
            with errors.messages(here="files"):
                _first_rows(now, path, file.size)


def _picker(paths: list[str], current: str | None, folder: str) -> None:
    options = [_NONE, *dict.fromkeys([*([] if current is None else [current]), *paths])]

    def choose(path: str) -> None:
        panels.choose(None if path == _NONE else path)

    with heading_row("One file", "from its footer"):
        choice = _NONE if current is None else current
        picker(
            "File", options, "pick_file", choice, choose, width=420, format_func=lambda path: path.removeprefix(folder)
        )


@cache_values(32, of=("version",))
def _physical(now: OpenTable, path: str) -> PhysicalFile:
    return now.table.physical(path, now.version)


def _draw(now: OpenTable, file: PhysicalFile) -> None:
    chunks = views.files.layout.column_chunks(file)
    downloads.offer("columns of this file", chunks)
    downloads.offer("column chunks of this file", file.chunks)
    halves = grid(400)
    with halves, st.container():
        facts(_facts(now, file, chunks))
    with halves, st.container():
        stack(charts.files.column_bars(chunks, dark=dark()), key="column-bytes")
    _columns_table(chunks)
    _groups(file)


def _first_rows(now: OpenTable, path: str, size: int) -> None:
    """The first live rows of the file, at once where it is small."""
    request = Request(now.address, now.version, _ROWS, runner.MEMORY, paths=(path,))
    cost = budget.Cost(1, size, 1)
    limits = budget.Budget(size, budget.SECONDS["30 s"])  # the first rows lie at its beginning
    if budget.button("Read its first rows", request, cost, limits, key="read-file", on_arrival=True):
        answer = budget.answer(request, limits)
        downloads.offer("first rows of this file", answer.rows)
        st.markdown(f"**Its rows** &ensp; :small[:gray[{budget.amount(answer, _ROWS)}]]")
        display_rows.table(answer.rows, key="file-rows", height=9 * ROW_HEIGHT)


def _facts(now: OpenTable, file: PhysicalFile, chunks: pl.DataFrame) -> dict[str, str | None]:
    """The file as a whole, from the log and from its footer."""
    return {
        "file": file.path,
        **views.files.layout.logged_facts(now.snapshot, now.frames.lifetimes, file.path),
        "rows, by its footer": f"{file.records:,}",
        "row groups": f"{file.row_groups:,}",
        "footer": views.units.format_bytes(file.footer_size),
        "compressed with": views.files.layout.codecs(chunks),
        "written by": file.created_by,
        "Parquet version": file.parquet_version,
    }


def _columns_table(chunks: pl.DataFrame) -> None:
    table_columns = {
        "column": columns.text("column"),
        "stored_as": columns.text("stored as"),
        "type": columns.text("type"),
        "size": columns.size("size", of="compressed"),
        "share": columns.percent("share, %"),
        "ratio": columns.number("ratio", decimals=1, help="times smaller than before compression"),
        "per_value": columns.number("bytes a value", decimals=2),
        "null_count": columns.number("nulls"),
        "codec": columns.text("codec"),
        "encodings": columns.text("encodings", least=widths.NAME),
        "has": columns.text("has", of="structures"),
    }
    if chunks["column"].equals(chunks["stored_as"]):
        del table_columns["stored_as"]
    if (chunks["structures"] == "").all():
        del table_columns["has"]
    if chunks["codec"].n_unique() == 1:
        del table_columns["codec"]  # among the facts of the file
    frame(chunks, table_columns, key="file-columns", unknown="unknown", height=12 * 28)


def _groups(file: PhysicalFile) -> None:
    choice = st.session_state.get("statistics-of", panels.NO_COLUMN)
    name = None if choice == panels.NO_COLUMN else str(choice)
    rows = views.files.layout.row_groups(file, name)
    table_columns = {
        "row_group": columns.text("row group"),
        "records": columns.number("rows"),
        "size": columns.size("size", of="compressed"),
        "before": columns.size("uncompressed", of="uncompressed"),
        "min_text": columns.text(f"{name} min"),
        "max_text": columns.text("max"),
    }
    if name is None or rows["min_text"].null_count() == rows.height:
        del table_columns["min_text"], table_columns["max_text"]
    with fold(views.units.count_text(rows.height, "row group"), "row-groups", is_open=1 < rows.height <= 12):
        frame(rows, table_columns, key="file-groups", height=10 * 28)
