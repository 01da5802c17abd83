"""Whole runs of the project that `lakeview pipeline init` writes, and of a table in S3 that it reads as a stream, by
Spark Declarative Pipelines: one that is killed, and the next."""

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
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.pipelines.project import FILE, write_project
from lakeview.storage.access import StoreAccess
from tests.builders.s3 import Bucket, new_bucket, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A process below a classic driver, whose master it inherits."""
    command = [sys.executable, "-m", *words]
    environment = {**os.environ, "MASTER": "local[2]"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], env=environment
    )


def test_a_run_that_is_killed_after_a_publication_is_finished_by_the_next(
    connect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All on one Connect server, by processes of their own; the last is the command with --remote, to its end."""
    shop = tmp_path / "shop"
    write_project(shop)
    (shop / FILE).write_text((shop / FILE).read_text().replace("tables:\n", STREAMED))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    with s3_server() as endpoint:
        bucket = new_bucket(endpoint)
        raw = f"s3://{bucket.name}/raw"
        options = as_spark_options(StoreAccess(bucket.options))
        stream = STREAM.format(raw=raw, sink=f"s3://{bucket.name}/readings", options=options)
        (shop / "transformations" / "readings.py").write_text(stream)
        source: Any = lv.create_table(raw, pa.schema([("id", pa.int64())]), storage_options=bucket.options)
        runs_of(shop, source, connect_url)
        look = inspect_pipelines(str(shop / "lake"), lv.open_table)
        assert look.runs()["status"].to_list() == ["succeeded", "interrupted"]
        the_orders_are_those_of_the_input(shop, look)
        new_rows_of_the_stream_were_published(shop, raw, bucket, look)


def runs_of(shop: Path, source: Any, connect_url: str) -> None:
    """Two: the first is killed when a publication is committed and not recorded."""
    source.append(pl.DataFrame({"id": [1, 2]}))
    killed = run("tests.spark.pipeline_kills", str(shop), "published readings", connect_url)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for new in (3, -5):
        source.append(pl.DataFrame({"id": [new]}))
    done = run("lakeview", "pipeline", "run", str(shop), "--remote", connect_url)
    assert done.returncode == 0, done.stderr


def the_orders_are_those_of_the_input(shop: Path, look: PipelineInspection) -> None:
    """Published by the second run, from flows of the first."""
    staged = lv.open_table(str(shop / "staging/orders"))
    assert staged.snapshot().num_records == 5
    orders = lv.open_table(str(shop / "lake/orders")).scan().collect().sort("id")
    assert orders.select("id", "customer", "price").rows() == [(1, "ann", 12.5), (2, "bob", 7.25), (5, "cy", 20_000.0)]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/orders")).scan().collect()["id"].to_list() == [4]
    revenue = lv.open_table(str(shop / "lake/revenue")).scan().collect().sort("customer", nulls_last=True)
    assert revenue.rows() == [("ann", 12.5), ("bob", 7.25), ("cy", 20_000.0), (None, 3.0)]
    steps = look.frame("runs").filter(dataset="orders").sort("started", "ended").select("step", "status", "rows_out")
    assert steps.rows() == [
        ("flow", "succeeded", 5), ("publish", "succeeded", 3), ("maintain", "succeeded", None),
    ]  # fmt: skip
    published = look.upstream(str(shop / "lake/orders"), 1)
    assert set(published.select("step", "input", "input_version").rows()) == {
        ("publish", staged.address, staged.latest_version), ("flow", str(shop / "input/orders"), None),
    }  # fmt: skip


def new_rows_of_the_stream_were_published(shop: Path, raw: str, bucket: Bucket, look: PipelineInspection) -> None:
    """Each run read and published what had been added to the lakeview table."""
    readings = lv.open_table(str(shop / "lake/readings"))
    assert readings.scan().collect()["id"].sort().to_list() == [1, 2, 3]
    assert lv.open_table(str(shop / "lake/_lakeview/quarantine/readings")).scan().collect()["id"].to_list() == [-5]
    steps = look.frame("runs").filter(step="publish", status="succeeded", dataset="readings").sort("started")
    assert steps["rows_in"].to_list() == [2, 2]
    last = look.runs()["run_id"][0]
    inputs = look.upstream(readings.address, readings.latest_version).filter(run_id=last)
    staged = lv.open_table(f"s3://{bucket.name}/readings", storage_options=bucket.options)
    assert set(inputs.select("step", "input", "input_from", "input_version").rows()) == {
        ("flow", raw, 2, 3), ("publish", staged.address, staged.latest_version, staged.latest_version),
    }  # fmt: skip


STREAM = """
from pyspark import pipelines as dp

ACCESS = {options!r}
dp.create_sink("readings", format="lakeview", options={{"path": {sink!r}, **ACCESS}})


@dp.append_flow(target="readings")
def new_readings():
    return spark.readStream.format("lakeview").options(**ACCESS).load({raw!r})
"""
STREAMED = """tables:
  readings:
    sink: readings
    expectations: [{name: positive, condition: id > 0, action: quarantine}]

"""
