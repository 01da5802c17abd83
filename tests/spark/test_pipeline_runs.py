"""Whole runs of the project that `lakeview pipeline init` writes, by Spark Declarative Pipelines; two are killed."""

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
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.inspection import inspect_pipelines
from lakeview.model.clock import system_clock
from lakeview.spark.pipelines.config import FILE
from lakeview.spark.pipelines.project import write_files, write_project
from lakeview.spark.pipelines.run import run_pipeline
from lakeview.spark.pipelines.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A process below a classic driver, whose master it inherits."""
    command = [sys.executable, "-m", *words]
    environment = {**os.environ, "MASTER": "local[2]"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], env=environment
    )


def test_runs_that_are_killed_after_flows_and_after_a_publication_are_finished_by_the_next(
    connect_url: str, tmp_path: Path
) -> None:
    """All on one Connect server, by processes of their own; the last is the command with --remote, to its end."""
    shop = tmp_path / "shop"
    write_project(shop)
    for step in ("flows ran", "published orders"):
        killed = run("tests.spark.pipeline_kills", str(shop), step, connect_url)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = run("lakeview", "pipeline", "run", str(shop), "--remote", connect_url)
    assert done.returncode == 0, done.stderr

    staged = lv.open_table(str(shop / "staging/orders"))
    assert staged.snapshot().num_records == 5
    orders = lv.open_table(str(shop / "lake/orders")).scan().collect().sort("id")
    assert orders.select("id", "customer", "price").rows() == [(1, "ann", 12.5), (2, "bob", 7.25), (5, "cy", 20_000.0)]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/orders")).scan().collect()["id"].to_list() == [4]
    revenue = lv.open_table(str(shop / "lake/revenue")).scan().collect().sort("customer", nulls_last=True)
    assert revenue.rows() == [("ann", 12.5), ("bob", 7.25), ("cy", 20_000.0), (None, 3.0)]

    look = inspect_pipelines(str(shop / "lake"), lv.open_table)
    assert look.runs()["status"].to_list() == ["succeeded", "interrupted", "interrupted"]
    published = look.upstream(str(shop / "lake/orders"), 1)
    assert set(published.select("step", "input", "input_version").rows()) == {
        ("publish", staged.address, staged.latest_version), ("flow", str(shop / "input/orders"), None),
    }  # fmt: skip


def test_a_lakeview_table_is_read_as_a_stream_and_its_new_rows_are_published(
    spark: SparkSession, connect_url: str, tmp_path: Path
) -> None:
    raw, shop = tmp_path / "raw", tmp_path / "shop"
    source: Any = lv.create_table(str(raw), pa.schema([("id", pa.int64())]))
    source.append(pl.DataFrame({"id": [1, 2]}))
    write_files(shop, {"transformations/orders.py": STREAM.format(raw=str(raw)), FILE: STREAMED}, "shop")
    server = Server(spark, connect_url)
    first = run_pipeline(shop, server, clock=system_clock, say=print)
    source.append(pl.DataFrame({"id": [3]}))
    source.append(pl.DataFrame({"id": [-4]}))
    second = run_pipeline(shop, server, clock=system_clock, say=print)

    orders = lv.open_table(str(shop / "lake/orders"))
    assert orders.scan().collect()["id"].sort().to_list() == [1, 2, 3]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/orders")).scan().collect()["id"].to_list() == [-4]
    look = inspect_pipelines(str(shop / "lake"), lv.open_table)
    assert look.runs().select("run_id", "status", "rows_in").rows() == [
        (second, "succeeded", 2),
        (first, "succeeded", 2),
    ]
    made = look.upstream(orders.address, orders.latest_version).filter(run_id=second)
    staged = lv.open_table(str(shop / "staging/orders"))
    assert set(made.select("step", "input", "input_from", "input_version").rows()) == {
        ("flow", str(raw), 2, 3), ("publish", staged.address, staged.latest_version, staged.latest_version),
    }  # fmt: skip


STREAM = """
from pyspark import pipelines as dp

dp.create_sink("staged", format="lakeview", options={{"path": "staging/orders"}})


@dp.append_flow(target="staged")
def new_orders():
    return spark.readStream.format("lakeview").load({raw!r})
"""
STREAMED = """
output: lake
tables:
  orders:
    sink: staged
    expectations: [{name: positive, condition: id > 0, action: quarantine}]
"""
