"""A standalone cluster, and a Connect server on it: each does what the local session does."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark import cluster_program
from tests.spark.cluster import Cluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PROGRAM = Path(cluster_program.__file__)
EXPECTED: dict[str, Any] = {
    "written": [100, 4950, 99],
    "table": [[33, 1617, 33], [33, 1617, 33]],
    "version": 2,
    "changed": [110, 5995, 90, 20],
    "error": "DataFileMissingError",
}
"""What the program gives on every kind of cluster, as it does in a local session."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def package(cluster: Cluster) -> Path:
    """lakeview as one file for `--py-files`, made as docs/spark.md says."""
    path = cluster.folder / "lakeview.zip"
    with zipfile.PyZipFile(str(path), "w") as archive:
        for name in ("lakeview", "pyspark_lakeview"):
            archive.writepy(str(ROOT / name))
    return path


@pytest.fixture(scope="module")
def report(cluster: Cluster, package: Path) -> dict[str, Any]:
    """What the program gave under spark-submit, and as a client of the Connect server in its driver."""
    document: dict[str, Any] = json.loads(
        cluster.submit(PROGRAM, str(cluster.folder), packages=package).splitlines()[-1]
    )
    return document


def test_a_program_that_is_submitted_runs_on_both_workers(
    cluster: Cluster, package: Path, report: dict[str, Any]
) -> None:
    assert report["results"] == EXPECTED
    assert len(report["executors"]) == 2, "each worker has a folder of its own"
    for folder, imported in report["executors"]:
        assert Path(folder).is_relative_to(cluster.folder / "work")
        assert imported == f"./{package.name}/lakeview/__init__.pyc"
    # tasks of executors that were killed ran again on new ones, and left no files but two that the optimize replaced
    copied, packed = [100, 4950, 99, 1, 0], [100, 4950, 99, 2, 2]
    assert report["killed"] == {"copy": copied, "stream": copied, "optimize": packed, "marks": [3]}


def test_a_connect_server_gives_the_same(report: dict[str, Any]) -> None:
    assert report["connect"]["results"] == EXPECTED
    assert len(report["connect"]["executors"]) == 2
