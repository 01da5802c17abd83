"""What a pipeline recorded to its runs, steps, expectations and lineage; read from tables that the library wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview import charts, views
from lakeview.charts.palette import LIGHT
from lakeview.inspection import inspect_pipelines
from lakeview.model.pipelines import EXPECTATIONS, FOLDER, LINEAGE, RUNS
from lakeview.views.pipelines.lineage import LINEAGE_EDGES, LINEAGE_NODES
from lakeview.views.pipelines.results import EXPECTATION_RESULTS, RUN_RESULTS, STEP_RESULTS
from tests.charts.drawing import check_drawn

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def seconds(count: float) -> datetime:
    return NOON + timedelta(seconds=count)


def event(run: str, step: str, status: str, first: float, last: float | None, **more: Any) -> dict[str, Any]:
    ended = None if last is None else seconds(last)
    return {
        "pipeline": "p",
        "run_id": run,
        "step": step,
        "status": status,
        "started": seconds(first),
        "ended": ended,
    } | more


def expectation(run: str, name: str, checked: int, failed: int) -> dict[str, Any]:
    return {
        "pipeline": "p", "run_id": run, "dataset": "orders", "expectation": name, "action": "drop",
        "condition": "price > 0", "rows_checked": checked, "rows_failed": failed, "timestamp": NOON,
    }  # fmt: skip


def read(
    run: str, step: str, source: str, first: int | None, last: int | None, target: str, version: int
) -> dict[str, Any]:
    return {
        "pipeline": "p", "run_id": run, "dataset": target, "step": step, "input": source, "input_from": first,
        "input_version": last, "output": target, "output_version": version, "timestamp": seconds(version),
    }  # fmt: skip


EVENTS = pl.DataFrame(
    [
        event("r1", "run", "started", 0, None),
        event("r1", "check", "succeeded", 0, 2),
        event("r1", "publish", "succeeded", 3, 5, dataset="orders", rows_in=10, rows_out=8, rows_dropped=2,
              rows_quarantined=0, output="lake/orders", version=1),
        event("r1", "run", "succeeded", 0, 6),
        event("r2", "run", "started", 10, None),
        event("r2", "run", "interrupted", 10, 20),
        event("r3", "run", "started", 20, None),
        event("r3", "publish", "failed", 21, 22, dataset="orders", rows_in=4, rows_out=0, error="price > 0 failed"),
        event("r3", "run", "failed", 20, 23, error="orders was not published"),
        event("r4", "run", "started", 30, None),
    ],
    schema=RUNS,
)  # fmt: skip

CHECKS = pl.DataFrame([expectation("r1", "named", 10, 0), expectation("r1", "priced", 10, 2)], schema=EXPECTATIONS)

READS = pl.DataFrame(
    [
        read("r1", "flow", "raw", 1, 2, "staging", 1),
        read("r1", "flow", "raw", 3, 3, "staging", 2),
        read("r1", "publish", "staging", 1, 2, "orders", 1),
        read("r2", "flow", "raw", 4, 4, "staging", 3),
        read("r2", "publish", "staging", 3, 3, "orders", 2),
        read("r2", "publish", "customers", None, 7, "orders", 2),
        read("r2", "publish", "files/new", None, None, "orders", 2),
    ],
    schema=LINEAGE,
)


def test_a_run_has_one_row_with_what_became_of_it() -> None:
    rows = views.pipelines.run_results(EVENTS, CHECKS)
    assert rows.schema == RUN_RESULTS
    assert rows.select("run_id", "status", "duration_ms", "datasets").rows() == [
        ("r4", "running", None, 0),
        ("r3", "failed", 3000, 0),
        ("r2", "interrupted", 10_000, 0),
        ("r1", "succeeded", 6000, 1),
    ]
    assert rows.row(3, named=True) == rows.row(3, named=True) | {
        "rows_in": 10, "rows_out": 8, "rows_dropped": 2, "expectations_failed": 1, "rows_failed": 2, "error": None,
    }  # fmt: skip
    assert rows["error"][1] == "orders was not published"


def test_steps_of_a_run_stand_in_the_order_in_which_they_began() -> None:
    rows = views.pipelines.step_results(EVENTS, "r1")
    assert rows.schema == STEP_RESULTS
    assert rows["step"].to_list() == ["check", "publish"]
    assert views.pipelines.step_results(EVENTS, "r9").is_empty()
    at_once = pl.DataFrame([event("r", "flow", "succeeded", 1, 1), event("r", "publish", "succeeded", 1, 1.35)], RUNS)
    assert views.pipelines.step_results(at_once, "r")["duration_ms"].to_list() == [None, 350]


def test_expectations_with_failed_rows_come_first_and_nothing_checked_has_no_share() -> None:
    rows = views.pipelines.expectation_results(
        CHECKS.vstack(pl.DataFrame([expectation("r2", "idle", 0, 0)], EXPECTATIONS))
    )
    assert rows.schema == EXPECTATION_RESULTS
    assert rows.select("expectation", "failed_share").rows() == [("idle", None), ("priced", 0.2), ("named", 0.0)]
    assert views.pipelines.expectation_results(CHECKS, "r2").is_empty()


def test_a_version_is_followed_to_all_that_it_was_made_of() -> None:
    rows = views.pipelines.upstream(READS, "orders", 2)
    assert rows.schema == LINEAGE
    assert set(rows.select("input", "input_version").rows()) == {
        ("staging", 3), ("customers", 7), ("files/new", None), ("raw", 4),
    }  # fmt: skip
    assert set(views.pipelines.upstream(READS, "orders", 1)["input_version"]) == {2, 3}
    assert views.pipelines.upstream(READS, "orders", 3).is_empty()


def test_lineage_is_drawn_in_layers_from_what_is_only_read_to_what_is_published() -> None:
    nodes, edges = views.pipelines.lineage_nodes(READS), views.pipelines.lineage_edges(READS)
    assert nodes.schema == LINEAGE_NODES
    assert edges.schema == LINEAGE_EDGES
    assert dict(nodes.select("name", "layer").rows()) == {
        "raw": 0, "customers": 0, "new": 0, "staging": 1, "orders": 2,
    }  # fmt: skip
    assert nodes.filter(layer=1)["position"].to_list() == [0, 1, 2]
    assert nodes.filter(node="files/new")["version"].to_list() == [None]
    assert set(edges["source"]) | set(edges["target"]) == set(nodes["node"])
    assert edges.height == READS.height
    assert nodes.filter(node="raw@4")["run_id"].to_list() == [None]
    assert nodes.filter(node="orders@2")["run_id"].to_list() == ["r2"]


def test_tables_of_one_name_are_told_apart_by_their_folders_and_others_by_their_name() -> None:
    rows = [read("r", "publish", "/lake/staging/orders/", None, 1, "/lake/orders", 1),
            read("r", "publish", "s3://raw/days", None, 1, "/lake/days", 1)]  # fmt: skip
    nodes = views.pipelines.lineage_nodes(pl.DataFrame(rows, schema=LINEAGE))
    assert dict(nodes.select("address", "name").rows()) == {
        "/lake/staging/orders/": "staging/orders", "/lake/orders": "orders", "s3://raw/days": "raw/days",
        "/lake/days": "lake/days",
    }  # fmt: skip


def test_a_table_among_its_own_inputs_has_a_layer() -> None:
    itself = pl.DataFrame([read("r", "publish", "a", None, 1, "b", 1), read("r", "publish", "b", None, 1, "a", 2),
                           read("r", "publish", "a", None, 2, "a", 3)], schema=LINEAGE)  # fmt: skip
    assert set(views.pipelines.lineage_nodes(itself)["layer"]) <= {1, 2}
    assert views.pipelines.upstream(itself, "a", 3).height == 3


@pytest.mark.parametrize("name", ["runs", "expectations", "lineage"])
def test_frames_of_tables_that_are_not_there_are_empty(tmp_path: Path, name: str) -> None:
    look = inspect_pipelines(str(tmp_path), lv.open_table)
    assert not look.has_runs()
    assert look.frame(name).is_empty()
    assert look.runs().schema == RUN_RESULTS
    assert views.pipelines.lineage_nodes(look.lineage()).schema == LINEAGE_NODES


def test_an_inspection_reads_the_three_tables_below_a_root(tmp_path: Path) -> None:
    for name, rows in (("runs", EVENTS), ("expectations", CHECKS), ("lineage", READS)):
        stored = rows.drop("error") if name == "runs" else rows.with_columns(later=1)  # an older and a newer layout
        table: Any = lv.create_table(str(tmp_path / FOLDER / name), stored.to_arrow().schema)
        table.append(stored)
    look = inspect_pipelines(f"{tmp_path}/", lv.open_table)
    assert look.has_runs()
    assert look.runs()["status"].to_list() == ["running", "failed", "interrupted", "succeeded"]
    assert look.runs()["error"].null_count() == 4
    assert look.steps("r3")["error"].to_list() == [None]  # an older layout has no such column
    assert look.expectations("r1").height == 2
    assert look.lineage("r1").equals(READS.filter(run_id="r1").sort("timestamp", "output"))
    assert look.upstream("orders", 2).height == 4


def test_the_newest_run_of_a_pipeline_is_one_sentence() -> None:
    now, runs = seconds(3606), views.pipelines.run_results(EVENTS, CHECKS)
    assert views.pipelines.run_outcomes(runs).to_list() == ["running", "failed", "interrupted", "rows failed"]
    sentences = [views.pipelines.run_sentences(runs[n:], now)["sentence"].item() for n in range(runs.height)]
    none, success = ": 0 rows of 0 tables published", "; the last one that succeeded began 1 h ago"
    assert sentences == [
        f"p: a run began 59 min 36 s ago and has no recorded end: it goes on, or its process was killed{none}{success}",
        f"p: the last run failed 59 min 43 s ago (orders was not published){none}{success}",
        f"p: the last run, begun 59 min 56 s ago, was interrupted{none}{success}",
        "p: the last run succeeded 1 h ago: 8 rows of 1 table published; 2 rows failed 1 expectation",
    ]
    assert views.pipelines.run_sentences(runs[1:2], now)["sentence"].item().endswith("no run has succeeded yet")


def test_each_pipeline_has_a_sentence() -> None:
    other = EVENTS.filter(run_id="r1").with_columns(pipeline=pl.lit("q"), run_id=pl.lit("r0"))
    sentences = views.pipelines.run_sentences(views.pipelines.run_results(EVENTS.vstack(other), CHECKS), seconds(60))
    assert sentences.select("pipeline", "outcome").rows() == [("p", "running"), ("q", "succeeded")]


@pytest.mark.parametrize(
    ("sample", "rows"),
    [
        ('[{"a": 1, "b": "x"}, {"b": null, "c": [1]}]', [("1", "x", None), (None, None, "[1]")]),
        ('[{"a": "\\ud800"}]', [("?",)]),
        ("[]", []),
        (None, []),
        ("[{", None),
        ('{"a": 1}', None),
        ("[1]", None),
        ("[" * 100_000, None),
    ],
)
def test_a_sample_is_rows_of_text_or_not_a_list_of_rows(sample: str | None, rows: list[tuple[Any, ...]] | None) -> None:
    rows_read = views.pipelines.failed_rows(sample)
    assert (None if rows_read is None else rows_read.rows()) == rows


def test_each_version_of_a_range_that_was_read_leads_to_its_output() -> None:
    nodes, edges = views.pipelines.lineage_nodes(READS), views.pipelines.lineage_edges(READS)
    links = views.pipelines.range_edges(nodes, edges)
    assert links.schema == LINEAGE_EDGES
    assert links.select("source", "target").rows() == [("staging@1", "orders@1")]


def test_many_versions_are_cut_to_the_newest_of_a_table_and_a_layer() -> None:
    many = pl.DataFrame([read("r", "publish", "raw", None, n, "orders", n) for n in range(20)], schema=LINEAGE)
    nodes = views.pipelines.lineage_nodes(many)
    rows = views.pipelines.newest_nodes(nodes, 8, 5)
    assert rows.schema == LINEAGE_NODES
    assert rows["version"].to_list() == [12, 13, 14, 15, 16] * 2
    assert rows["position"].to_list() == [0, 1, 2, 3, 4] * 2


def test_bars_have_the_shape_of_the_outcome_and_the_colour_of_the_selection() -> None:
    runs = views.pipelines.run_results(EVENTS, CHECKS)
    (chart,) = charts.pipelines.run_bars(runs, "r3")
    check_drawn(chart.to_dict())
    (rows,) = chart.to_dict()["datasets"].values()
    assert [row["shape"] for row in rows] == ["stroke", "cross", "triangle-up", "diamond"]
    assert [row["color"] for row in rows] == [LIGHT.gray, LIGHT.red, LIGHT.orange, LIGHT.orange]
    assert [row["bar"] == LIGHT.blue for row in rows] == [False, True, False, False]
    assert [row["value"] for row in rows] == [0, 3, 0, 6]  # nobody knows how long the interrupted one took
    assert charts.pipelines.run_bars(runs.clear()) == []


def test_lineage_is_a_line_for_each_version_that_was_read() -> None:
    nodes, edges = views.pipelines.lineage_nodes(READS), views.pipelines.lineage_edges(READS)
    (chart,) = charts.pipelines.lineage_chart(nodes, edges, "r2")
    spec = chart.to_dict()
    check_drawn(spec)
    lines = spec["datasets"][spec["layer"][0]["data"]["name"]]
    dots = spec["datasets"][spec["layer"][1]["data"]["name"]]
    assert len(lines) == edges.height + 1
    assert {line["reads"] for line in lines} >= {
        f"what {views.units.format_range(1, 2)} added",
        "all rows of v7",
        "files without versions",
    }
    assert {dot["label"] for dot in dots if dot["color"] == LIGHT.blue} == {"staging v3", "orders v2"}
    assert [dot["label"] for dot in dots if dot["shape"] == "square"] == ["new"]
    assert charts.pipelines.lineage_chart(nodes.clear(), edges.clear()) == []
