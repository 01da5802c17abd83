"""Changes and differences of versions as Spark sources: the rows that the library gives, read on executors."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.spark.change_reader import ChangeOptions, ChangePartition, change_rows
from lakeview.spark.types import to_spark


@pytest.fixture(scope="module", params=["derived", "feed"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Rows that come, change, go, and get another column; partitioned."""
    rows = pl.DataFrame({"id": [1, 2, 3, 4], "part": ["a", "b", None, "a"]})
    properties = {"delta.enableChangeDataFeed": str(request.param == "feed"), "delta.enableDeletionVectors": "true"}
    address = str(tmp_path_factory.mktemp("changes") / "table")
    new_table = lv.create_table(address, rows.to_arrow().schema, partition_by=["part"], properties=properties)
    new_table.append(rows)
    new_table.update({"id": "id * 10"}, "part = 'a'")
    new_table.delete("id = 2")
    # a column of its own by the name of one of the feed, where there is no feed: beside one it is refused
    name = "note" if request.param == "feed" else "_change_type"
    new_table.add_column(name, PrimitiveType("string"))
    new_table.append(pl.DataFrame({"id": [7], "part": ["c"], name: ["mine"]}))
    return new_table


def frame(spark: SparkSession, table: DeltaTable, **options: str) -> pl.DataFrame:
    rows_frame = spark.read.format("lakeview").options(**options).load(table.address)
    return pl.DataFrame(pl.from_arrow(rows_frame.toArrow()))


def rows(rows_frame: pl.DataFrame) -> list[Any]:
    return sorted(rows_frame.rows(), key=str)


@pytest.mark.spark
def test_changes_are_those_of_the_library(spark: SparkSession, table: DeltaTable) -> None:
    expected = table.changes(1, 3).collect()
    rows_frame = frame(spark, table, readChangeFeed="true", startingVersion="1", endingVersion="3")
    assert (rows_frame.columns, rows(rows_frame)) == (expected.columns, rows(expected))
    late = frame(spark, table, readChangeFeed="true", startingVersion="4")
    assert rows(late) == rows(table.changes(4).collect())


@pytest.mark.spark
def test_a_difference_is_that_of_the_library(spark: SparkSession, table: DeltaTable) -> None:
    expected = table.difference(1).collect()
    rows_frame = frame(spark, table, differenceFrom="1")
    assert (rows_frame.columns, rows(rows_frame)) == (expected.columns, rows(expected))
    assert rows(frame(spark, table, differenceFrom="1", versionAsOf="2")) == rows(table.difference(1, 2).collect())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readChangeFeed": "true"}, "it is not said from where on"),
        ({"readChangeFeed": "true", "startingVersion": "1", "startingTimestamp": "2026-01-01T00:00Z"}, "both given"),
        ({"readChangeFeed": "true", "startingVersion": "1", "differenceFrom": "1"}, "both given"),
        ({"readChangeFeed": "true", "startingVersion": "1", "where": "id = 1"}, "where: no such option"),
        ({"readChangeFeed": "perhaps"}, "is 'perhaps'"),
        ({"readChangeFeed": "true", "startingVersion": "1", "VersionAsOf": "1"}, "versionAsOf means nothing beside"),
        ({"differenceFrom": "1", "endingversion": "2"}, "endingVersion means nothing beside"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, str], message: str) -> None:
    assert ChangeOptions.apply_to(options)
    with pytest.raises(InvalidRequestError, match=message):
        ChangeOptions.parse({"path": "t", **options})


def test_the_tasks_of_an_iceberg_table_are_read_alike(tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=tmp_path.as_uri())
    catalog.create_namespace("n")
    rows = pa.table({"id": [1, 2, 3]})
    iceberg_table = catalog.create_table("n.t", rows.schema)
    iceberg_table.append(rows)
    iceberg_table.append(rows)
    table = lv.open_table(iceberg_table.metadata_location)
    first, last = table.history()["version"].to_list()[::-1]
    schema, tasks = table.change_tasks(last)
    assert schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    rows_read = [
        row for batch in change_rows(ChangePartition(tuple(tasks)), to_spark(schema)) for row in batch.to_pylist()
    ]
    assert [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows_read] == [
        (n, "insert", last) for n in (1, 2, 3)
    ]
    _, tasks = table.difference_tasks(first)
    assert [kind for _, kind in tasks] == ["insert"]
