"""Changes and differences of versions as Spark sources: the rows that the library gives, read on executors."""

from pathlib import Path
from shutil import copytree
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import (
    DataFileMissingError,
    InvalidRequestError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.model.schema import Schema
from lakeview.model.table import Table
from lakeview.spark.change_stream import ChangeStreamReader
from lakeview.spark.datasource import LakeviewDataSource
from lakeview.spark.reader import ChangeOptions, FilePartition, partition_rows
from lakeview.spark.types import to_spark
from lakeview.storage import open_storage
from tests.breadth import with_breadth
from tests.builders.actions import add, metadata, protocol
from tests.builders.history import DeltaHistory


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


@pytest.mark.parametrize("what", [{"readChangeFeed": "true", "startingVersion": "0"}, {"differenceFrom": "0"}])
def test_changes_up_to_the_latest_version_of_a_table_of_a_catalog_are_refused(
    tmp_path: Path, what: dict[str, str]
) -> None:
    features = ["catalogManaged"]
    history = DeltaHistory(tmp_path)
    history.commit(protocol(3, 7, readerFeatures=features, writerFeatures=features), metadata()).commit(add("f"))
    with pytest.raises(UnsupportedTableError, match="is managed by a catalog"):
        LakeviewDataSource({"path": history.address, **what})
    end = "versionAsOf" if "differenceFrom" in what else "endingVersion"
    assert LakeviewDataSource({"path": history.address, **what, end: "1"}).schema().fieldNames()[0] == "id"


@pytest.mark.spark
def test_a_difference_is_that_of_the_library(spark: SparkSession, table: DeltaTable) -> None:
    expected = table.difference(1).collect()
    rows_frame = frame(spark, table, differenceFrom="1")
    assert (rows_frame.columns, rows(rows_frame)) == (expected.columns, rows(expected))
    assert rows(frame(spark, table, differenceFrom="1", versionAsOf="2")) == rows(table.difference(1, 2).collect())


def stream_of(table: Table, **options: str) -> ChangeStreamReader:
    """The reader that Spark asks for, without Spark between."""
    source = LakeviewDataSource({"path": table.address, "readChangeFeed": "true", **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, ChangeStreamReader)
    return reader


def batches_of(
    reader: ChangeStreamReader, start: dict[str, Any] | None = None, most: int = 1
) -> tuple[list[list[Any]], dict[str, Any]]:
    """The changes of each batch, until nothing is new, and the offset behind them."""
    batches, offset = [], reader.initialOffset() if start is None else start
    while (end := reader.latestOffset(offset, ReadMaxFiles(most))) != offset:
        partitions = reader.partitions(offset, end)
        read = [pl.DataFrame(batch) for partition in partitions for batch in reader.read(partition)]
        batches.append(rows(pl.concat(read)) if read else [])
        offset = end
    return batches, offset


def test_a_stream_has_the_changes_of_each_commit(table: DeltaTable, tmp_path: Path) -> None:
    """In the columns of the latest version, also of commits that are older than one of them; then what comes."""
    table = DeltaTable(open_storage(str(copytree(table.address, tmp_path / "copy"))))
    reader = stream_of(table, startingVersion="1")
    expected = table.changes(1).collect()
    version = expected.columns[-2]
    by_commit = [rows(part) for _, part in sorted(expected.group_by(version), key=lambda pair: pair[0])]
    batches, end = batches_of(reader)
    assert [batch for batch in batches if batch] == by_commit
    assert batches_of(stream_of(table, startingVersion="1"), most=1000)[0] == [rows(expected)]
    assert batches_of(stream_of(table, startingTimestamp="2000-01-01T00:00:00Z"), most=1000)[0] == [rows(expected)]
    reader.prepareForTriggerAvailableNow()
    table.delete("id = 7")
    assert batches_of(reader, end) == ([], end)
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == end
    (late,), end = batches_of(stream_of(table, startingVersion="1"), end)
    assert late == rows(table.changes(table.latest_version).collect())


def test_a_stream_of_changes_stops_where_columns_or_the_table_are_others(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    table.append(pl.DataFrame({"id": [1]}))
    reader = stream_of(table, startingVersion="0")
    _, end = batches_of(reader)
    table.add_column("note", PrimitiveType("string"))
    with pytest.raises(InvalidRequestError, match=r"version 2 of .* has other columns than the stream"):
        batches_of(reader, end)
    for wrong, message in (({**end, "table": "another"}, "is another table"), ({"version": 1}, "is no offset")):
        with pytest.raises(InvalidRequestError, match=message):
            reader.latestOffset(wrong, ReadMaxFiles(1))
    with pytest.raises(VersionNotFoundError, match="the stream has read version 9"):
        reader.latestOffset({**end, "changes": 9}, ReadMaxFiles(1))


def test_a_stream_of_changes_goes_on_after_a_cleanup_of_the_log(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    table.append(pl.DataFrame({"id": [1]}))
    running = stream_of(table, startingVersion="0")
    _, end = batches_of(running)
    table.checkpoint()
    for version in range(2):
        (tmp_path / f"t/_delta_log/{version:020}.json").unlink()
    DeltaTable(table.storage).append(pl.DataFrame({"id": [2]}))
    for reader in (running, stream_of(table, startingVersion="0")):  # and one that a restart makes
        ((change,),), _ = batches_of(reader, end)
        assert change[:3] == (2, "insert", 2)
    with pytest.raises(VersionNotFoundError, match=r"commit 0 of .* is gone .*\n.*at version 2 or later"):
        batches_of(stream_of(table, startingVersion="0"))


def test_a_stream_of_changes_goes_on_where_columns_stay(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    columns = (Field("id", PrimitiveType("long"), metadata=identity), Field("v", PrimitiveType("long")))
    table = lv.create_table(str(tmp_path / "t"), Schema(columns))
    reader = stream_of(table, startingVersion="1")  # the version that comes
    table.append(pl.DataFrame({"v": [5]}))
    table.set_comment("v", "a value")
    table.append(pl.DataFrame({"v": [6]}))
    batches, _ = batches_of(reader)
    assert [row[:3] for batch in batches for row in batch] == [(1, 5, "insert"), (2, 6, "insert")]
    with pytest.raises(VersionNotFoundError, match=r"no version 5: it is at 3\n  fix: start at a version up to 4"):
        stream_of(table, startingVersion="5").initialOffset()


def test_a_stream_of_changes_passes_over_what_is_gone_where_it_may(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    for number in (1, 2):
        table.append(pl.DataFrame({"id": [number]}))
    table.checkpoint()
    for number in (3, 4, 5):
        table.append(pl.DataFrame({"id": [number]}))
    for version in (0, 1):
        (tmp_path / f"t/_delta_log/{version:020}.json").unlink()
    missing = table.commit(4)["path"].drop_nulls().item()
    (tmp_path / "t" / missing).unlink()
    table = DeltaTable(table.storage)
    stops, goes_on = (stream_of(table, startingVersion="1", failOnDataLoss=flag) for flag in ("true", "false"))
    with pytest.raises(VersionNotFoundError, match=r"commit 1 of .* is gone .*\n.*version 2 or later, or set failOn"):
        batches_of(stops)
    with pytest.raises(DataFileMissingError, match="was deleted before the stream has read it"):
        batches_of(stops, {**stops.initialOffset(), "changes": 1})
    batches, end = batches_of(goes_on)
    assert [[row[0] for row in batch] for batch in batches] == [[2], [3], [], [5]]
    assert goes_on.latestOffset({**end, "changes": 9}, ReadMaxFiles(1)) == {**end, "changes": 9}
    warnings = [text for text in caplog.messages if text.startswith("passed over, as failOnDataLoss is false")]
    assert len(warnings) == 3
    for text, part in zip(warnings, ("commit 1 of", "was deleted", "commits were taken back"), strict=True):
        assert part in text


def test_a_batch_of_changes_that_is_planned_again_is_without_commits_that_were_taken_back(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), pl.DataFrame({"a": [1]}).to_arrow().schema)
    for number in (1, 2):
        table.append(pl.DataFrame({"a": [number]}))
    reader = stream_of(table, startingVersion="1")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    listings = reader.table.storage.requests["list"]
    assert reader.partitions(start, end)
    assert reader.table.storage.requests["list"] == listings, "the log is listed once a batch"
    (tmp_path / "t/_delta_log/00000000000000000002.json").unlink()
    again = lv.open_table(table.address)
    with pytest.raises(VersionNotFoundError, match="commits were taken back"):
        stream_of(again, startingVersion="1").partitions(start, end)
    goes_on = stream_of(again, startingVersion="1", failOnDataLoss="false")
    tasks = [task for part in goes_on.partitions(start, end) for task, _ in part.tasks]
    assert [task.constants["_commit_version"] for task in tasks] == [1]


def test_a_stream_of_changes_begins_with_what_comes_from_now_on(tmp_path: Path) -> None:
    """Also where its first batch is planned again after a restart, when the table has grown."""
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    table.append(pl.DataFrame({"id": [1]}))
    reader = stream_of(table, startingVersion="Latest")
    start = reader.initialOffset()
    table.append(pl.DataFrame({"id": [2]}))
    (((change, *_),),), end = batches_of(reader, start)
    assert change == 2
    again = stream_of(table, startingVersion="latest")
    (partition,) = again.partitions(again.initialOffset(), end)
    assert [batch["id"].to_pylist() for batch in again.read(partition)] == [[2]]
    assert batches_of(again, {"changes": 1, "table": end["table"]})[1] == {"changes": 2, "table": end["table"]}


@pytest.mark.spark
@pytest.mark.parametrize("table", with_breadth(["derived"], ["feed"]), indirect=True)
def test_spark_streams_changes(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    options = {"readChangeFeed": "true", "startingVersion": "1", "maxFilesPerTrigger": "1"}
    changes = spark.readStream.format("lakeview").options(**options).load(table.address)
    writer = changes.writeStream.format("memory").queryName(f"changes_{tmp_path.name}")
    writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    read = pl.DataFrame(pl.from_arrow(spark.table(f"changes_{tmp_path.name}").toArrow()))
    assert rows(read) == rows(table.changes(1).collect())


def test_options_of_streams_and_changes_are_known_by_what_delta_calls_them(table: DeltaTable) -> None:
    for misspelt, meant in (("maxFilePerTrigger", "maxFilesPerTrigger"), ("readChangesFeed", "readChangeFeed")):
        source = LakeviewDataSource({"path": table.address, misspelt: "1"})  # Spark asks for the schema first
        with pytest.raises(InvalidRequestError) as caught:
            source.schema()
        assert caught.value.fix is not None
        assert f"did you mean {meant}?" in caught.value.fix
    first_name = LakeviewDataSource({"path": table.address, "readChangeData": "true", "startingVersion": "1"})
    now = LakeviewDataSource({"path": table.address, "readChangeFeed": "true", "startingVersion": "1"})
    assert first_name.schema() == now.schema()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endingVersion": "2"}, "a stream of changes has no end"),
        ({"differenceFrom": "1", "readChangeFeed": "false"}, "a stream of changes has no end"),
    ],
)
def test_a_stream_of_changes_has_no_end(table: DeltaTable, options: dict[str, str], message: str) -> None:
    start = {} if "differenceFrom" in options else {"startingVersion": "1"}
    source = LakeviewDataSource({"path": table.address, "readChangeFeed": "true", **start, **options})
    with pytest.raises(InvalidRequestError, match=message):
        source.streamReader(source.schema())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxFilesPerTrigger": "1"}, "maxFilesPerTrigger says how much a batch of a stream takes"),
        ({"failOnDataLoss": "false"}, "failOnDataLoss says what a stream does"),
        ({"startingVersion": "latest"}, "startingVersion latest says that a stream begins"),
    ],
)
def test_a_batch_of_changes_has_no_option_of_a_stream(table: DeltaTable, options: dict[str, str], message: str) -> None:
    batch = LakeviewDataSource({"path": table.address, "readChangeFeed": "true", "startingVersion": "1", **options})
    with pytest.raises(InvalidRequestError, match=f"{message}.*, and this is none"):
        batch.reader(batch.schema())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readChangeFeed": "true"}, "it is not said from where on"),
        ({"readChangeFeed": "true", "startingVersion": "1", "startingTimestamp": "2026-01-01T00:00Z"}, "both given"),
        (
            {"readChangeFeed": "true", "startingVersion": "latest", "startingTimestamp": "2026-01-01T00:00Z"},
            "both given",
        ),
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
        row for batch in partition_rows(FilePartition(tuple(tasks)), to_spark(schema)) for row in batch.to_pylist()
    ]
    assert [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows_read] == [
        (n, "insert", last) for n in (1, 2, 3)
    ]
    _, tasks = table.difference_tasks(first)
    assert [kind for _, kind in tasks] == ["insert"]
