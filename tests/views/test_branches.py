"""Branches and tags against the default one, commits beside a line, and labels of versions that are random numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl

from lakeview import charts, views
from lakeview.model import version_names
from lakeview.model.frames import COMMITS, LIFETIMES, REFS

BIG = 2_749_959_925_262_627_766
"""An id of no table of another test: names are those of the process."""


def commits(*rows: tuple[int, int | None]) -> pl.DataFrame:
    """COMMITS of (version, parent), oldest first, an hour apart."""
    commit_rows = [
        {"version": v, "parent": p, "position": i, "timestamp": datetime(2024, 1, 1, i, tzinfo=UTC),
         "operation": "append", "files_added": 1, "files_removed": 0, "data_change": True, "schema_changed": False}
        for i, (v, p) in enumerate(rows)
    ]  # fmt: skip
    return (
        pl.concat([pl.DataFrame(schema=COMMITS), pl.DataFrame(commit_rows)], how="diagonal_relaxed")
        .cast(COMMITS)
        .reverse()
    )


def refs(*rows: tuple[str, int], **keeps: Any) -> pl.DataFrame:
    ref_rows = [
        {"name": n, "kind": "branch", "version": v, "default": i == 0, **keeps} for i, (n, v) in enumerate(rows)
    ]
    return pl.concat([pl.DataFrame(schema=REFS), pl.DataFrame(ref_rows)], how="diagonal_relaxed").cast(REFS)


FORKED = commits((1, None), (2, 1), (3, 2), (4, 1), (5, 4), (6, 2))
"""main: 1, 2, 6; audit: 1, 4, 5; 3 is on neither."""


def test_a_branch_is_told_by_what_it_has_and_lacks() -> None:
    branches_found = views.timeline.branches.branches(refs(("main", 6), ("audit", 5), ("old", 99)), FORKED)
    assert branches_found.schema == views.timeline.branches.BRANCHES
    assert branches_found.select("name", "commits", "ahead", "behind").rows() == [
        ("main", 3, 0, 0),
        ("audit", 3, 2, 2),
        ("old", None, None, None),
    ]


def test_retention_is_told_in_words() -> None:
    policy = {"min_versions_kept": 3, "max_version_age_ms": 86_400_000, "max_ref_age_ms": 2**62}
    texts = views.timeline.branches.branches(refs(("main", 6), **policy), FORKED)["keeps"].to_list()
    assert texts == ["at least 3 versions, versions for 1 day, goes after ever"]


def test_commits_beside_the_line_say_where_they_are() -> None:
    off_branch_rows = views.timeline.branches.off_branch(FORKED, refs(("main", 6), ("audit", 5)), 6)
    assert dict(off_branch_rows.iter_rows()) == {
        3: "on no branch: rolled back, replaced or never published",
        4: "on audit",
        5: "on audit",
    }
    assert set(views.timeline.branches.off_branch(FORKED, refs(("main", 6), ("audit", 5)), 5)["version"]) == {2, 3, 6}


def test_a_table_without_refs_has_no_asides() -> None:
    assert views.timeline.branches.off_branch(FORKED, pl.DataFrame(schema=REFS), 6).is_empty()


def test_a_circle_of_parents_ends() -> None:
    assert views.timeline.branches.line(commits((1, 2), (2, 1)), 1) == [1, 2]


def test_asides_stand_in_the_timeline_and_change_nothing_of_it() -> None:
    lives = pl.DataFrame(
        {
            "path": ["a", "b", "c"],
            "deletion_vector": None,
            "added": [1, 2, 6],
            "removed": None,
            "size": 1,
            "records": 5,
        },
        schema=LIFETIMES,
    )
    off_branch = views.timeline.branches.off_branch(FORKED, refs(("main", 6), ("audit", 5)), 6)
    timeline_rows = views.timeline.commits.timeline(FORKED, lives, off_branch=off_branch)
    assert timeline_rows.schema == views.timeline.commits.TIMELINE
    assert timeline_rows["version"].to_list() == [1, 2, 3, 4, 5, 6]
    assert timeline_rows["lane"].to_list() == ["append", "append", "off-branch", "off-branch", "off-branch", "append"]
    assert timeline_rows["files"].to_list() == [1, 2, None, None, None, 3]
    assert timeline_rows["note"].to_list()[3] == "on audit"
    # of two branches no commits lead from one to the other
    assert [
        views.compare.versions.commits_between(timeline_rows, *ends).height for ends in ((1, 6), (6, 1), (5, 6), (6, 5))
    ] == [
        2,
        2,
        0,
        0,
    ]


def test_no_commit_of_another_branch_is_offered_to_compare_with() -> None:
    off_branch = views.timeline.branches.off_branch(FORKED, refs(("main", 6), ("audit", 5)), 6)
    timeline_rows = views.timeline.commits.timeline(FORKED, off_branch=off_branch)
    for marked in ("schema_changed", "suspicious"):
        for version in (5, 6):
            marks = timeline_rows.with_columns((pl.col("version") == version).alias(marked))
            assert list(views.compare.versions.base_choices(marks, 6)) == [2]


def test_versions_that_are_random_numbers_are_told_by_both_ends() -> None:
    assert views.units.format_version(BIG) == "27499\N{HORIZONTAL ELLIPSIS}27766"
    assert views.units.format_version(-BIG) == "-2749\N{HORIZONTAL ELLIPSIS}27766"
    assert views.units.format_version(-1) == "no version"
    frame = pl.DataFrame({"v": [BIG, -BIG, 63, -1, None]}, schema={"v": pl.Int64()})
    labels = frame.select(views.units.version_label("v"))["v"].to_list()
    assert labels == [None if v is None else views.units.format_version(v) for v in frame["v"]]


def test_the_graph_has_a_lane_a_branch_and_a_link_to_the_commit_before() -> None:
    graph = views.timeline.branches.branch_graph(FORKED, refs(("main", 6), ("audit", 5)))
    assert graph.schema == views.timeline.branches.BRANCH_GRAPH
    assert graph.select("version", "place", "lane", "parent_place", "parent_lane", "refs").rows() == [
        (1, 0, "main", None, None, None),
        (2, 1, "main", 0, "main", None),
        (3, 2, "", 1, "main", None),
        (4, 3, "audit", 0, "main", None),
        (5, 4, "audit", 3, "audit", "audit"),
        (6, 5, "main", 1, "main", "main"),
    ]
    (chart,) = charts.lanes.branch_graph_chart(graph)
    lanes = chart.to_dict()["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert lanes == ["main", "no branch", "audit"]
    assert charts.lanes.branch_graph_chart(graph.clear()) == []


def test_random_versions_are_named_by_their_sequence_number_unless_two_tables_disagree() -> None:
    first, second = BIG + 1, BIG + 2
    frame = pl.DataFrame({"v": [first, 7, second, None, -1]})
    label = views.units.version_label("v")
    version_names.register({first: 14, second: 3, 7: 2, BIG: 0})
    assert frame.select(label)["v"].to_list() == ["s14", "v7", "s3", None, "no version"]
    assert views.units.format_range(second, first) == "s3\N{EN DASH}s14"
    assert views.units.format_version(BIG) == "27499…27766"  # version 1 of Iceberg has no sequence numbers
    version_names.register({second: 4})
    assert views.units.format_version(second) == f"27499…{str(second)[-5:]}"
    version_names.register({BIG + 3: 5, BIG + 4: 5, BIG + 5: 6})
    names = [version_names.name_of(BIG + n) for n in (3, 4, 5)]
    assert names == [None, None, "s6"], "one number of two snapshots names neither"
