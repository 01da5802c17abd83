"""One file looked into: what the log says of it, and what its footer does, read when somebody chose it."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import cache, downloads, errors
from lakeview.app.components import MAX_ROWS, byte_unit, card, dark, facts, fold, frame, grid, stack
from lakeview.app.files import panels
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.model.table import PhysicalFile

_NONE = "no file"


def detail(now: Opened, page: pl.DataFrame) -> None:
    """A card with the file that the URL names, and the choice of one of those on the page of the listing."""
    chosen = st.query_params.get(panels.FILE)
    with card(key="file-card"):
        _picker(page["path"].to_list(), chosen, panels.layout(now).folder)
        if chosen is None:
            st.markdown(
                ":gray[Choose a row above, or a file here: its footer says how it is laid out inside. "
                "That costs one small request, and no row is read.]"
            )
            return
        with errors.shown(here="files"):
            found = _physical(now.address, now.version, chosen)
            _shown(now, found)


def _picker(paths: list[str], chosen: str | None, folder: str) -> None:
    options = [_NONE, *dict.fromkeys([*([] if chosen is None else [chosen]), *paths])]
    st.session_state["pick_file"] = _NONE if chosen is None else chosen
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**One file** &ensp; :small[:gray[from its footer]]", width="content")
        st.space("stretch")
        st.selectbox(
            "File",
            options,
            format_func=lambda path: path.removeprefix(folder),
            key="pick_file",
            on_change=lambda: _choose(st.session_state["pick_file"]),
            label_visibility="collapsed",
            width=420,
        )


def _choose(path: str) -> None:
    panels.choose(None if path == _NONE else path)


@kept(32)
def _physical(address: str, version: int, path: str) -> PhysicalFile:
    return cache.table(address).physical(path, version)


def _shown(now: Opened, found: PhysicalFile) -> None:
    chunks = views.files.layout.column_chunks(found)
    downloads.offer("columns of this file", chunks)
    downloads.offer("column chunks of this file", found.chunks)
    halves = grid(400)
    with halves, st.container():
        facts(_facts(now, found, chunks))
    with halves, st.container():
        stack(charts.file_layout.column_bars(chunks, dark=dark()), key="column-bytes")
    _columns_table(chunks)
    _groups(found)


def _facts(now: Opened, found: PhysicalFile, chunks: pl.DataFrame) -> dict[str, str | None]:
    """What is known of the file as a whole, the log's and the footer's."""
    logged = views.files.layout.logged_facts(now.snapshot, now.lifetimes, found.path)
    codecs = ", ".join(
        chunks["codec"].str.split(", ").explode(empty_as_null=True, keep_nulls=True).unique().drop_nulls().sort()
    )
    return {
        "file": found.path,
        **logged,
        "rows, by its footer": f"{found.records:,}",
        "row groups": f"{found.row_groups:,}",
        "footer": views.units.format_bytes(found.footer_size),
        "compressed with": codecs or None,
        "written by": found.created_by,
        "Parquet version": found.parquet_version,
    }


def _columns_table(chunks: pl.DataFrame) -> None:
    kinds = st.column_config
    unit, scale = byte_unit(chunks["compressed"])
    renamed = chunks.filter(pl.col("column") != pl.col("stored_as")).height > 0
    rows = chunks.head(MAX_ROWS).select(
        "column",
        "stored_as",
        "type",
        "encodings",
        "codec",
        "ratio",
        "null_count",
        "per_value",
        size=pl.col("compressed") / scale,
        share=pl.col("share") * 100,
        has=pl.concat_str(
            pl.when("dictionary").then(pl.lit("dictionary")),
            pl.when("page_index").then(pl.lit("page index")),
            pl.when("bloom_filter").then(pl.lit("bloom filter")),
            separator=", ",
            ignore_nulls=True,
        ),
    )
    shown = {
        "column": kinds.TextColumn("column", width=130),
        "stored_as": kinds.TextColumn("stored as", width=150),
        "type": kinds.TextColumn("type", width=125),
        "size": kinds.NumberColumn(f"size, {unit}", format="%.1f", width=80),
        "share": kinds.ProgressColumn("share, %", format="%.1f", min_value=0, max_value=100, width=110),
        "ratio": kinds.NumberColumn("compressed by", format="%.1f", width=100, help="times smaller than before"),
        "per_value": kinds.NumberColumn("bytes a value", format="%.2f", width=90),
        "null_count": kinds.NumberColumn("nulls", format="localized", width=70),
        "codec": kinds.TextColumn("codec", width=60),
        "encodings": kinds.TextColumn("encodings", width=160),
        "has": kinds.TextColumn("has", width=130),
    }
    if not renamed:
        del shown["stored_as"]
    frame(rows, shown, key="file-columns", unknown="unknown", height=12 * 28)


def _groups(found: PhysicalFile) -> None:
    column = st.session_state.get("statistics-of", panels.NO_COLUMN)
    told = None if column == panels.NO_COLUMN else str(column)
    rows = views.files.layout.row_groups(found, told)
    kinds = st.column_config
    unit, scale = byte_unit(rows["compressed"])
    shown = {
        "row_group": kinds.NumberColumn("row group", width=80),
        "records": kinds.NumberColumn("rows", format="localized", width=90),
        "size": kinds.NumberColumn(f"size, {unit}", format="%.1f", width=100),
        "before": kinds.NumberColumn(f"before compression, {unit}", format="%.1f", width=160),
        "min_text": kinds.TextColumn(f"{told} min", width=140),
        "max_text": kinds.TextColumn("max", width=140),
    }
    if told is None or rows["min_text"].null_count() == rows.height:
        del shown["min_text"], shown["max_text"]
    with fold(views.units.counted(rows.height, "row group"), "row-groups", opened=1 < rows.height <= 12):
        frame(
            rows.with_columns(size=pl.col("compressed") / scale, before=pl.col("uncompressed") / scale),
            shown,
            key="file-groups",
            height=10 * 28,
        )
