"""Whole runs of the project that `lakeview pipeline init` writes, by Spark Declarative Pipelines; one is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lakeview as lv
from lakeview.inspection import inspect_pipelines
from lakeview.spark.pipelines.project import write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])


def test_a_run_that_is_killed_after_its_flows_is_finished_by_the_next(connect_url: str, tmp_path: Path) -> None:
    """The first runs on a Connect server, the second in a session of its own."""
    shop = tmp_path / "shop"
    write_project(shop)
    killed = run("tests.spark.pipeline_kills", str(shop), "flows ran", connect_url)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = run("lakeview", "pipeline", "run", str(shop))
    assert done.returncode == 0, done.stderr

    staged = lv.open_table(str(shop / "staging/orders"))
    assert staged.snapshot().num_records == 5
    orders = lv.open_table(str(shop / "lake/orders")).scan().collect().sort("id")
    assert orders.select("id", "customer", "price").rows() == [(1, "ann", 12.5), (2, "bob", 7.25), (5, "cy", 20_000.0)]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/orders")).scan().collect()["id"].to_list() == [4]
    revenue = lv.open_table(str(shop / "lake/revenue")).scan().collect().sort("customer", nulls_last=True)
    assert revenue.rows() == [("ann", 12.5), ("bob", 7.25), ("cy", 20_000.0), (None, 3.0)]

    look = inspect_pipelines(str(shop / "lake"), lv.open_table)
    assert look.runs()["status"].to_list() == ["succeeded", "interrupted"]
    published = look.upstream(str(shop / "lake/orders"), 1)
    assert set(published.select("step", "input", "input_version").rows()) == {
        ("publish", staged.address, staged.latest_version), ("flow", str(shop / "input/orders"), None),
    }  # fmt: skip
