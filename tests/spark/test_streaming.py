"""Streams: what a query reads of a table that grows, where it stops, and that a batch is written once."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
from pyspark.sql.types import LongType, StructField, StructType

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import DataFileMissingError, InvalidRequestError, LakeviewError, VersionNotFoundError
from lakeview.spark.stream_reader import LakeviewStreamReader
from lakeview.spark.stream_writer import LakeviewStreamWriter
from lakeview.spark.streams import StreamOptions

IDS = StructType([StructField("id", LongType())])


def rows(*ids: int) -> pl.DataFrame:
    return pl.DataFrame({"id": ids}, schema={"id": pl.Int64})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Two files of version 1, one each of versions 2 and 3."""
    new_table = lv.create_table(str(tmp_path / "table"), rows().to_arrow().schema)
    with new_table.transaction() as txn:
        txn.append(rows(1, 2))
        txn.append(rows(3))
    new_table.append(rows(4))
    new_table.append(rows(5))
    return new_table


def reader(table: DeltaTable, **options: str) -> LakeviewStreamReader:
    return LakeviewStreamReader(StreamOptions.parse({"path": table.address, **options}), table.latest_version, IDS)


def batches(source: LakeviewStreamReader, start: dict[str, Any] | None = None, most: int = 1) -> list[list[int]]:
    """The ids of each batch, until nothing is new."""
    batches_read, offset = [], source.initialOffset() if start is None else start
    while (end := source.latestOffset(offset, ReadMaxFiles(most))) != offset:
        arrived = [batch["id"].to_pylist() for p in source.partitions(offset, end) for batch in source.read(p)]
        batches_read.append(sorted(chain.from_iterable(arrived)))
        offset = end
    return batches_read


def test_all_rows_come_first_and_then_what_each_commit_adds(table: DeltaTable) -> None:
    source = reader(table)
    start = source.initialOffset()
    assert sorted(chain.from_iterable(batches(source))) == [1, 2, 3, 4, 5]
    assert [len(b) for b in batches(source, most=3)] in ([3, 2], [4, 1])
    end = source.latestOffset(start, ReadAllAvailable())
    table.append(rows(6))
    assert batches(source, end) == [[6]]
    assert batches(source, end, most=100) == [[6]]


def test_a_file_that_is_vacuumed_between_two_batches_stops_a_stream_unless_it_is_told(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    start = reader(table).latestOffset(reader(table).initialOffset(), ReadAllAvailable())
    table.append(rows(6))
    table.optimize()
    table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    table.append(rows(7))
    with pytest.raises(DataFileMissingError, match=r"before the stream has read it\n  fix: .* failOnDataLoss to false"):
        batches(reader(table), start)
    assert batches(reader(table, failOnDataLoss="false"), start, most=9) == [[7]]
    (warning,) = caplog.messages
    assert re.match(r"passed over, .*: data file part-\S+ of .* was deleted before the stream has read it$", warning)


def test_a_deletion_vector_that_is_vacuumed_between_two_batches_is_what_is_missing(tmp_path: Path) -> None:
    schema, properties = rows().to_arrow().schema, {"delta.enableDeletionVectors": "true"}
    table = lv.create_table(str(tmp_path / "table"), schema, properties=properties)
    table.append(rows(*range(1000)))
    table.delete("id < 9")
    skipping = {"skipChangeCommits": "true"}
    start = reader(table).initialOffset()
    table.delete("id = 9")
    table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    with pytest.raises(DataFileMissingError, match=r"^deletion_vector_\S+ with the deletes of data file part-\S+ of "):
        batches(reader(table, **skipping), start)
    assert batches(reader(table, failOnDataLoss="false", **skipping), start) == [[]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": "2"}, [[4], [5]]),
        ({"startingVersion": "latest"}, []),
        ({"startingVersion": "1", "maxBytesPerTrigger": "1"}, [[1, 2], [3], [4], [5]]),
        ({"startingTimestamp": "2000-01-01T00:00Z", "maxBytesPerTrigger": "all"}, InvalidRequestError),
        ({"startingVersion": "9"}, VersionNotFoundError),
        ({"startingVersion": "1", "startingTimestamp": "2000-01-01T00:00Z"}, InvalidRequestError),
        ({"versionAsOf": "1"}, InvalidRequestError),
    ],
)
def test_a_stream_begins_where_it_is_told(table: DeltaTable, options: dict[str, str], expected: Any) -> None:
    most = 100 if "maxBytesPerTrigger" in options else 1
    if isinstance(expected, list):
        batches_read = batches(reader(table, **options), most=most)
        assert sorted(batches_read) == expected
    else:
        with pytest.raises(expected):
            batches(reader(table, **options), most=most)


def test_a_moment_names_the_first_commit_from_then_on(table: DeltaTable) -> None:
    times = table.versions(look=False).sort("version")["timestamp"]
    source = reader(table, startingTimestamp=times[2].isoformat())
    assert source.initialOffset()["version"] <= 2
    assert batches(source)[-1] == [5]


def test_a_batch_that_is_planned_again_has_the_same_rows(table: DeltaTable) -> None:
    source = reader(table, startingVersion="1")
    start = source.initialOffset()
    middle = source.latestOffset(start, ReadMaxFiles(1))
    end = source.latestOffset(middle, ReadMaxFiles(2))
    ids = [t.path for p in source.partitions(middle, end) for t, _ in p.tasks]
    table.append(rows(6))
    table.optimize()
    again = reader(table, startingVersion="1")
    assert [t.path for p in again.partitions(middle, end) for t, _ in p.tasks] == ids
    assert len(ids) == 2


@pytest.mark.parametrize("options", [{}, {"startingVersion": "latest"}], ids=["all rows", "what comes"])
def test_a_first_batch_that_is_planned_again_begins_where_it_did(table: DeltaTable, options: dict[str, str]) -> None:
    """Spark records its end alone, and a source that begins with the latest version would begin later."""
    source = reader(table, **options)
    start = source.initialOffset()
    table.append(rows(6))
    end = source.latestOffset(start, ReadAllAvailable())
    files = [t.path for p in source.partitions(start, end) for t, _ in p.tasks]
    table.append(rows(7))
    table.optimize()
    again = reader(table, **options)
    assert [t.path for p in again.partitions(again.initialOffset(), end) for t, _ in p.tasks] == files != []
    older = {name: value for name, value in end.items() if name != "first"}  # of a checkpoint of an older release
    assert batches(again, older, most=100) == [[7]]


REMOVALS: dict[str, Callable[[DeltaTable], object]] = {
    "delete of all": lambda t: t.delete(),
    "delete of some": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"id": "id + 100"}, "id = 1"),
    "optimize": lambda t: t.optimize(),
    "property": lambda t: t.set_properties({"delta.logRetentionDuration": "interval 9 days"}),
}


@pytest.mark.parametrize(
    ("what", "option", "expected"),
    [
        ("delete of all", "", "takes rows away"),
        ("delete of all", "ignoreDeletes", []),
        ("delete of some", "ignoreDeletes", "takes rows away and adds others"),
        ("delete of some", "ignoreChanges", [2]),
        ("update", "", "takes rows away and adds others"),
        ("update", "ignoreChanges", [2, 101]),
        ("update", "skipChangeCommits", []),
        ("optimize", "", []),
        ("property", "", []),
    ],
)
def test_rows_that_go_stop_a_stream_unless_it_is_told(
    table: DeltaTable, what: str, option: str, expected: str | list[int]
) -> None:
    start = reader(table, startingVersion="latest").initialOffset()
    source = reader(table, **({option: "true"} if option else {}))
    REMOVALS[what](table)
    if isinstance(expected, str):
        with pytest.raises(InvalidRequestError, match=expected):
            batches(source, start)
        return
    table.append(rows(7))
    assert list(chain.from_iterable(batches(source, start))) == [*expected, 7]


def test_other_columns_another_table_and_lost_commits_stop_a_stream(table: DeltaTable, tmp_path: Path) -> None:
    source = reader(table)
    start = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    table.add_column("name", PrimitiveType("string"))
    table.append(pl.DataFrame({"id": [6], "name": ["six"]}))
    with pytest.raises(InvalidRequestError, match=r"version 4 of .* has other columns than the stream"):
        batches(source, start)
    assert batches(reader(table), start) == [[6]], "started again, it goes on with the columns it asks for"
    other = lv.create_table(str(tmp_path / "other"), rows().to_arrow().schema)
    with pytest.raises(InvalidRequestError, match="is another table"):
        batches(reader(other), start)
    with pytest.raises(LakeviewError, match=r"is at version 5, and the stream has read version 8"):
        batches(reader(table), start | {"version": 9})
    assert batches(reader(table, failOnDataLoss="false"), start | {"version": 9}) == []
    with pytest.raises(InvalidRequestError, match="is no offset of a lakeview stream"):
        batches(source, {"reservoirVersion": 3})
    (Path(table.address) / "_delta_log" / f"{2:020}.json").rename(tmp_path / "gone")
    table.checkpoint()
    begin = {**start, "version": 2}
    with pytest.raises(LakeviewError, match=r"commit 2 of .* is gone from the log"):
        batches(reader(DeltaTable(table.storage)), begin)
    assert batches(reader(DeltaTable(table.storage), failOnDataLoss="false"), begin) == [[5], [6]]


@pytest.mark.parametrize("options", [{}, {"startingVersion": "latest"}], ids=["all rows", "what comes"])
def test_columns_that_changed_after_a_stream_was_loaded_stop_it(table: DeltaTable, options: dict[str, str]) -> None:
    source = reader(table, **options)
    table.add_column("name", PrimitiveType("string"))
    start = source.initialOffset()
    table.append(pl.DataFrame({"id": [6], "name": ["six"]}))
    with pytest.raises(InvalidRequestError, match="has other columns than the stream"):
        batches(source, start)
    assert batches(reader(table, **options), start, most=9)[-1][-1] == 6


def checkpoint(folder: Path, query: str) -> str:
    folder.mkdir()
    (folder / "metadata").write_text(json.dumps({"id": query}))
    return str(folder)


def test_a_batch_is_written_once(tmp_path: Path) -> None:
    address = str(tmp_path / "table")
    place = checkpoint(tmp_path / "checkpoint", "q1")

    def write(batch: int, *ids: int, overwrite: bool = False, **options: str) -> None:
        options_given = {"path": address, "checkpointlocation": place, **options}
        sink = LakeviewStreamWriter(options_given, IDS, overwrite=overwrite)
        sink.commit([sink.write(iter(rows(*ids).to_arrow().to_batches()))], batch)

    for batch, ids in ((0, [1, 2]), (0, [1, 2]), (1, [3]), (1, [3]), (0, [1, 2])):
        write(batch, *ids)
    table = lv.open_table(address)
    assert sorted(table.scan().collect()["id"]) == [1, 2, 3]
    commit = table.history(1).row(0, named=True)
    assert (commit["operation"], json.loads(commit["parameters"])) == (
        "STREAMING UPDATE",
        {"outputMode": "Append", "queryId": "q1", "epochId": "1"},
    )
    write(2, 9, overwrite=True)
    assert lv.open_table(address).scan().collect()["id"].to_list() == [9]
    write(0, 5, txnAppId="another")
    assert sorted(lv.open_table(address).scan().collect()["id"]) == [5, 9]
    assert len(list(Path(address).glob("*.parquet"))) == 4, "files of batches that were there stay behind"
    with pytest.raises(InvalidRequestError, match="the query has no checkpointLocation"):
        LakeviewStreamWriter({"path": address}, IDS, overwrite=False)
    with pytest.raises(InvalidRequestError, match="names no query"):
        LakeviewStreamWriter({"path": address, "checkpointLocation": str(tmp_path)}, IDS, overwrite=False)


def test_the_files_of_a_new_table_lie_beside_its_log_where_the_address_is_a_url_with_escapes(tmp_path: Path) -> None:
    options = {"path": f"{tmp_path.as_uri()}/a%20b", "checkpointlocation": checkpoint(tmp_path / "checkpoint", "q1")}
    sink = LakeviewStreamWriter(options, IDS, overwrite=False)
    sink.commit([sink.write(iter(rows(1).to_arrow().to_batches()))], 0)
    assert lv.open_table(str(tmp_path / "a b")).scan().collect()["id"].to_list() == [1]


@pytest.mark.spark
def test_a_query_of_spark_goes_on_from_its_checkpoint(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    target = tmp_path / "copy"

    def run() -> list[int]:
        stream = spark.readStream.format("lakeview").load(table.address)
        query = (
            stream.selectExpr("id", "id % 2 AS part")
            .writeStream.format("lakeview")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("partitionBy", "part")
            .trigger(availableNow=True)
            .start(str(target))
        )
        query.awaitTermination()
        return sorted(lv.open_table(str(target)).scan().collect()["id"])

    assert run() == [1, 2, 3, 4, 5]
    table.append(rows(6))
    assert run() == [1, 2, 3, 4, 5, 6]
    copy = lv.open_table(str(target))
    assert copy.snapshot().partition_columns == ["part"]
    assert copy.history(1)["operation"][0] == "STREAMING UPDATE"
