"""Refs and commits to a graph: a lane for each line of versions, a link from each commit to the one before it."""

from __future__ import annotations

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.timeline.branches import line

BRANCH_GRAPH = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "place": pl.Int64(),
        "lane": pl.String(),
        "parent_place": pl.Int64(),
        "parent_lane": pl.String(),
        "refs": pl.String(),
    }
)
"""One row a commit, oldest first. `place`: its position among them; `lane`: the first ref that has the commit, the
default branch before others, "" where none has it. `parent_...`: those of the commit before, null where it is not known
or not among them. `refs`: the branches and tags that end there, null for none."""

MOST_COMMITS = 400


def branch_graph(commits: pl.DataFrame, refs: pl.DataFrame) -> pl.DataFrame:
    """BRANCH_GRAPH from COMMITS and REFS: the newest MOST_COMMITS commits, and the heads of refs among older ones."""
    lanes: dict[int, str] = {}
    branches_first = refs.sort(~pl.col("default"), pl.col("kind") != "branch", maintain_order=True)
    for name, head in branches_first.select("name", "version").iter_rows():
        for version in line(commits, head):
            lanes.setdefault(version, name)
    heads = refs.group_by("version", maintain_order=True).agg(refs=pl.col("name").sort().str.join(", "))
    own = commits.select("version", "timestamp", "operation", "position", "parent").sort("position")
    recent = own.with_columns(recent=pl.int_range(pl.len()).cast(pl.Int64) >= pl.len().cast(pl.Int64) - MOST_COMMITS)
    nodes = recent.join(heads, on="version", how="left", maintain_order="left")
    nodes = nodes.filter(pl.col("recent") | pl.col("refs").is_not_null()).with_row_index("place")
    lane = pl.col("version").replace_strict(lanes, default="", return_dtype=pl.String)
    lane_nodes = nodes.with_columns(place=pl.col("place").cast(pl.Int64), lane=lane)
    parents = lane_nodes.select(parent="version", parent_place="place", parent_lane="lane")
    return lane_nodes.join(parents, on="parent", how="left", maintain_order="left").select(BRANCH_GRAPH.names())
