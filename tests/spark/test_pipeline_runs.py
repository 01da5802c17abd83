"""Whole runs of the project that `lakeview pipeline init` writes, and of a table that it reads as a stream, by Spark
Declarative Pipelines; the first is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.inspection import PipelineInspection, inspect_pipelines
from lakeview.spark.pipelines.config import FILE
from lakeview.spark.pipelines.project import write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A process below a classic driver, whose master it inherits."""
    command = [sys.executable, "-m", *words]
    environment = {**os.environ, "MASTER": "local[2]"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], env=environment
    )


def test_a_run_that_is_killed_between_two_publications_is_finished_by_the_next(
    connect_url: str, tmp_path: Path
) -> None:
    """Both on one Connect server, by processes of their own; the last is the command with --remote, to its end."""
    raw, shop = tmp_path / "raw", tmp_path / "shop"
    write_project(shop)
    (shop / "transformations" / "readings.py").write_text(STREAM.format(raw=str(raw)))
    (shop / FILE).write_text((shop / FILE).read_text().replace("tables:\n", STREAMED))
    source: Any = lv.create_table(str(raw), pa.schema([("id", pa.int64())]))
    source.append(pl.DataFrame({"id": [1, 2]}))
    killed = run("tests.spark.pipeline_kills", str(shop), "published readings", connect_url)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for new in (3, -5):
        source.append(pl.DataFrame({"id": [new]}))
    done = run("lakeview", "pipeline", "run", str(shop), "--remote", connect_url)
    assert done.returncode == 0, done.stderr

    look = inspect_pipelines(str(shop / "lake"), lv.open_table)
    assert look.runs()["status"].to_list() == ["succeeded", "interrupted"]
    the_orders_are_those_of_the_input(shop, look)
    new_rows_of_the_stream_were_published(shop, raw, look)


def the_orders_are_those_of_the_input(shop: Path, look: PipelineInspection) -> None:
    """Published by the last run, from flows of the one that was killed."""
    staged = lv.open_table(str(shop / "staging/orders"))
    assert staged.snapshot().num_records == 5
    orders = lv.open_table(str(shop / "lake/orders")).scan().collect().sort("id")
    assert orders.select("id", "customer", "price").rows() == [(1, "ann", 12.5), (2, "bob", 7.25), (5, "cy", 20_000.0)]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/orders")).scan().collect()["id"].to_list() == [4]
    revenue = lv.open_table(str(shop / "lake/revenue")).scan().collect().sort("customer", nulls_last=True)
    assert revenue.rows() == [("ann", 12.5), ("bob", 7.25), ("cy", 20_000.0), (None, 3.0)]
    published = look.upstream(str(shop / "lake/orders"), 1)
    assert set(published.select("step", "input", "input_version").rows()) == {
        ("publish", staged.address, staged.latest_version), ("flow", str(shop / "input/orders"), None),
    }  # fmt: skip


def new_rows_of_the_stream_were_published(shop: Path, raw: Path, look: PipelineInspection) -> None:
    """Each run read and published what had been added to the lakeview table."""
    readings = lv.open_table(str(shop / "lake/readings"))
    assert readings.scan().collect()["id"].sort().to_list() == [1, 2, 3]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/readings")).scan().collect()["id"].to_list() == [-5]
    steps = look.frame("runs").filter(step="publish", dataset="readings").sort("started")
    assert steps["rows_in"].to_list() == [2, 2]
    last = look.runs()["run_id"][0]
    made = look.upstream(readings.address, readings.latest_version).filter(run_id=last)
    staged = lv.open_table(str(shop / "staging/readings"))
    assert set(made.select("step", "input", "input_from", "input_version").rows()) == {
        ("flow", str(raw), 2, 3), ("publish", staged.address, staged.latest_version, staged.latest_version),
    }  # fmt: skip


STREAM = """
from pyspark import pipelines as dp

dp.create_sink("readings", format="lakeview", options={{"path": "staging/readings"}})


@dp.append_flow(target="readings")
def new_readings():
    return spark.readStream.format("lakeview").load({raw!r})
"""
STREAMED = """tables:
  readings:
    sink: readings
    expectations: [{name: positive, condition: id > 0, action: quarantine}]

"""
