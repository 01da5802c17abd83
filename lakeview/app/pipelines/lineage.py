"""Lineage on the pipelines page: versions of tables, and which one was made of which."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, dark, frame, more_rows, nothing, stack
from lakeview.app.row_links import pick_link, row_link
from lakeview.app.selection import Selection
from lakeview.app.widget_state import link_widget
from lakeview.inspection import PipelineInspection

NOTE = "from left to right: what was read, and what was made of it; a click opens that version"
_RUN = "all that this run read and made"


def draw(look: PipelineInspection, run_id: str) -> None:
    """Draws the lineage of a run, or of one version that it made with all that went into it."""
    of_run = look.lineage(run_id)
    if of_run.is_empty():
        nothing("No lineage is recorded for this run.", "It made no version of a table.")
        return
    outputs = {
        views.pipelines.version_name(address, version): (address, version)
        for address, version in of_run.select("output", "output_version").unique(maintain_order=True).iter_rows()
    }
    options = [_RUN, *outputs]
    choice = st.selectbox("Lineage of", options, key=link_widget("output", _RUN, options), width=520)
    rows = of_run if choice == _RUN else look.upstream(*outputs[choice])
    nodes = views.pipelines.lineage_nodes(rows)
    picture = charts.pipelines.lineage_chart(nodes, views.pipelines.lineage_edges(rows), run_id, dark=dark())
    by_node = {row["node"]: row for row in nodes.iter_rows(named=True)}
    stack(
        picture,
        key="lineage",
        on_pick=lambda key: pick_link(key, "overview", lambda mark: _parameters(by_node[mark["node"]])),
    )
    _table(nodes, run_id)


def _table(nodes: pl.DataFrame, run_id: str) -> None:
    """The versions as a table, those that this run made marked; a row of a version opens it."""
    rows = nodes.sort("layer", "address", "version", descending=[True, False, True]).head(MAX_ROWS)
    maker = pl.when(pl.col("run_id") == run_id).then(pl.lit("this run")).otherwise("run_id")
    frame(
        rows.with_columns(maker.alias("run_id")),
        {
            "name": columns.text("table"),
            "version": columns.version("version", null="files"),
            "run_id": columns.text("made by", null="another writer"),
            "timestamp": columns.timestamp("committed, UTC", seconds=True),
            "address": columns.text("address"),
        },
        key="lineage-table",
        height=10 * ROW_HEIGHT,
        **row_link("lineage-table", rows, "overview", _parameters),
    )
    more_rows(nodes.height, "table versions", note="")


def _parameters(node: Mapping[str, Any]) -> dict[str, str] | None:
    """Query parameters of a link to a version; None for files without versions."""
    return None if node["version"] is None else Selection(node["address"], node["version"]).parameters()
