"""A share read through `format("lakeview")`: the server's rows on Spark's workers, without the token of the profile."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.model.errors import NotATableError, UnsupportedTableError
from lakeview.spark import table
from lakeview.spark.change_stream import ChangeStreamReader
from lakeview.spark.datasource import LakeviewDataSource
from lakeview.spark.options import ReadOptions
from lakeview.spark.reader import LakeviewReader
from lakeview.spark.types import to_spark
from tests.server.conftest import RunningServer, listening
from tests.server.shared_lake import build, configuration

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("shared-to-spark")
    build(folder / "lake")
    with listening(folder, folder / "lake", configuration(folder / "lake")) as server:
        yield server


def address(served: RunningServer, name: str) -> str:
    return f"{served.profile}#lake.default.{name}"


def own(path: Path) -> list[tuple[object, ...]]:
    """The rows as lakeview reads them where they lie."""
    return sorted(lv.open_table(path).scan().collect().rows())


@pytest.mark.parametrize("name", ["months", "fed", "vectors", "mapped", "empty"])
def test_spark_has_the_rows_of_the_table(name: str, spark: SparkSession, served: RunningServer) -> None:
    rows = spark.read.format("lakeview").load(address(served, name))
    assert rows.columns == lv.open_table(served.lake / name).snapshot().schema.names
    assert sorted(tuple(row) for row in rows.collect()) == own(served.lake / name)


def test_versions_columns_and_filters(spark: SparkSession, served: RunningServer) -> None:
    source = spark.read.format("lakeview")
    assert source.option("version", 1).load(address(served, "months")).count() == 6
    rows = table(spark, address(served, "months"), columns=["city"], where="month = 3").collect()
    assert sorted(row.city for row in rows) == ["c6", "c7"]


def test_tables_of_a_share_are_joined_with_others(spark: SparkSession, served: RunningServer) -> None:
    mine = spark.createDataFrame([(3, "March"), (4, "April")], ["month", "name"])
    shared = spark.read.format("lakeview").load(address(served, "months"))
    rows = shared.join(mine, "month").orderBy("id").select("id", "name").collect()
    assert [tuple(row) for row in rows] == [(6, "March"), (7, "March"), (8, "April"), (9, "April")]


def test_no_plan_shows_the_token_or_a_signature(spark: SparkSession, served: RunningServer) -> None:
    rows = spark.read.format("lakeview").load(address(served, "months")).where("month = 3")
    rows.collect()
    plan = rows._jdf.queryExecution().toString()
    assert "lakeview" in plan
    assert served.token not in plan
    assert "sig=" not in plan


def test_tasks_travel_with_signed_urls_and_without_the_token(served: RunningServer) -> None:
    schema = lv.open_table(address(served, "vectors")).snapshot().schema
    reader = LakeviewReader(ReadOptions(address(served, "vectors")), 1, to_spark(schema))
    travelling = pickle.dumps([reader, *reader.partitions()])
    assert served.token.encode() not in travelling
    assert b"sig=" in travelling  # that is what a worker reads with


def test_changes_of_a_share_are_no_stream(served: RunningServer) -> None:
    options = {"path": address(served, "fed"), "readChangeFeed": "true", "startingVersion": "1"}
    source = LakeviewDataSource(options)
    stream = cast("ChangeStreamReader", source.streamReader(source.schema()))
    with pytest.raises(UnsupportedTableError, match=r"the table is sharing, and only.*\n  fix: .* in batches"):
        stream.initialOffset()


def test_a_worker_needs_no_profile(served: RunningServer, tmp_path: Path) -> None:
    """The profile may lie on the driver alone."""
    profile = tmp_path / "driver.share"
    profile.write_text(served.profile.read_text())
    schema = to_spark(lv.open_table(f"{profile}#lake.default.vectors").snapshot().schema)
    reader = LakeviewReader(ReadOptions(f"{profile}#lake.default.vectors"), 1, schema)
    partitions = pickle.dumps((reader, reader.partitions()))
    profile.unlink()
    there, planned = pickle.loads(partitions)
    rows = [row for p in planned for batch in there.read(p) for row in batch.to_pylist()]
    assert sorted(row["id"] for row in rows) == [0, 2, 4]


def test_what_is_not_shared_is_told(spark: SparkSession, served: RunningServer) -> None:
    with pytest.raises(AnalysisException, match="does not exist, please contact your share provider") as caught:
        spark.read.format("lakeview").load(address(served, "nothing")).count()
    assert served.token not in str(caught.value)
    with pytest.raises(NotATableError):
        table(spark, address(served, "nothing"))
