"""Refs and commits to branches: what each has that the default one has not, which commits are off-branch,
and the graph of all."""

from collections.abc import Iterable

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.units import count_text, format_age_ms

BRANCHES = pl.Schema(
    {
        "name": pl.String(),
        "kind": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "default": pl.Boolean(),
        "commits": pl.Int64(),
        "ahead": pl.Int64(),
        "behind": pl.Int64(),
        "keeps": pl.String(),
    }
)
"""One row a ref, as REFS order them. `commits` up to it that are still known; `ahead`: those that the default branch
has not; `behind`: those of the default branch that it has not; null where its version is gone. `keeps`: its retention
in words, null where the table's own holds."""

OFF_BRANCH = pl.Schema({"version": pl.Int64(), "note": pl.String()})
"""One row a commit that is not on the line looked at; `note`: the refs that have it (`on audit`), or that none has."""

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


def line(commits: pl.DataFrame, head: int) -> list[int]:
    """The versions of COMMITS from `head` back to the first that is known, by their parents; [] if it is not there."""
    parents = dict(commits.select("version", "parent").iter_rows())
    versions: dict[int, None] = {}
    at: int | None = head
    while at is not None and at in parents and at not in versions:
        versions[at] = None
        at = parents[at]
    return list(versions)


def branches(refs: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """BRANCHES from REFS and COMMITS."""
    lines = {name: set(line(commits, version)) for name, version in refs.select("name", "version").iter_rows()}
    main = next((lines[name] for name in refs.filter("default")["name"]), set())
    rows = []
    for ref in refs.iter_rows(named=True):
        own = lines[ref["name"]]
        ahead, behind = (len(own - main), len(main - own)) if own and main else (None, None)
        head = (ref["name"], ref["kind"], ref["version"], ref["timestamp"], ref["default"])
        keeps = _keeps(ref["min_versions_kept"], ref["max_version_age_ms"], ref["max_ref_age_ms"])
        rows.append((*head, len(own) or None, ahead, behind, keeps))
    return pl.DataFrame(rows, schema=BRANCHES, orient="row")


def _keeps(versions: int | None, version_age: int | None, ref_age: int | None) -> str | None:
    parts = [
        None if versions is None else f"at least {count_text(versions, 'version')}",
        None if version_age is None else f"versions for {format_age_ms(version_age)}",
        None if ref_age is None else f"goes after {format_age_ms(ref_age)}",
    ]
    return ", ".join(p for p in parts if p) or None


def off_branch(commits: pl.DataFrame, refs: pl.DataFrame, head: int) -> pl.DataFrame:
    """OFF_BRANCH of the line that ends at `head`; empty for a table without refs: its commits are of one line."""
    if refs.is_empty():
        return pl.DataFrame(schema=OFF_BRANCH)
    on_line = set(line(commits, head))
    holders: dict[int, list[str]] = {}
    for name, version in refs.select("name", "version").iter_rows():
        for ancestor in line(commits, version):
            holders.setdefault(ancestor, []).append(name)
    others = [v for v in commits["version"] if v not in on_line]
    return pl.DataFrame([(v, _note(holders.get(v, ()))) for v in others], schema=OFF_BRANCH, orient="row")


def _note(names: Iterable[str]) -> str:
    branches = ", ".join(names)
    return f"on {branches}" if branches else "on no branch: rolled back, replaced or never published"


def on_branch(timeline: pl.DataFrame) -> pl.DataFrame:
    """The commits of TIMELINE that are on the branch shown."""
    return timeline.filter(pl.col("lane") != "off-branch")


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
