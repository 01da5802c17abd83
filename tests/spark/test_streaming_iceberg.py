"""Streams of Iceberg tables: the rows of a snapshot, then what later ones add, and where a stream stops."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
from pyspark.sql.types import LongType, StructField, StructType

import lakeview as lv
from lakeview.model.errors import InvalidRequestError, LakeviewError, VersionNotFoundError
from lakeview.spark.datasource import LakeviewDataSource
from lakeview.spark.stream_reader import LakeviewStreamReader
from lakeview.spark.streams import StreamOptions
from tests.builders.iceberg import IcebergHistory

IDS = StructType([StructField("id", LongType())])
FIELDS = [{"id": 1, "name": "id", "required": False, "type": "long"}]


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number} for number in ids]


@pytest.fixture
def history(tmp_path: Path) -> IcebergHistory:
    """Snapshots 1001 to 1003 of one file each."""
    iceberg_history = IcebergHistory(tmp_path / "table", FIELDS)
    for number in (1, 2, 3):
        iceberg_history.append(f"{number}.parquet", rows(number, 10 * number))
    return iceberg_history


def reader(history: IcebergHistory, **options: str) -> LakeviewStreamReader:
    stream_options = StreamOptions.parse({"path": history.address, **options})
    return LakeviewStreamReader(stream_options, lv.open_table(history.address).latest_version, IDS)


def batches(
    source: LakeviewStreamReader, start: dict[str, Any] | None = None, most: int = 1, column: str = "id"
) -> list[list[int]]:
    """The ids of each batch that is not empty, until nothing is new."""
    batches_read, offset = [], source.initialOffset() if start is None else start
    while (end := source.latestOffset(offset, ReadMaxFiles(most))) != offset:
        arrived = [batch[column].to_pylist() for p in source.partitions(offset, end) for batch in source.read(p)]
        batches_read.append(sorted(chain.from_iterable(arrived)))
        offset = end
    return [batch for batch in batches_read if batch]


def test_all_rows_come_first_and_then_what_each_snapshot_adds(history: IcebergHistory) -> None:
    source = reader(history)
    end = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    assert batches(source) == [[1, 10], [2, 20], [3, 30]]
    assert batches(source, most=2) == [[1, 2, 10, 20], [3, 30]]
    history.append("4.parquet", rows(4))
    history.append("moved.parquet", rows(1, 10), operation="replace")
    source.prepareForTriggerAvailableNow()
    history.append("5.parquet", rows(5))
    assert batches(source, end, most=9) == [[4]], "what comes after a run has begun is left to the next"
    assert batches(reader(history), end) == [[4], [5]]
    assert batches(reader(history), end, most=9) == [[4, 5]]


@pytest.mark.parametrize("options", [{}, {"startingVersion": "latest"}], ids=["all rows", "what comes"])
def test_a_first_batch_that_is_planned_again_begins_where_it_did(
    history: IcebergHistory, options: dict[str, str]
) -> None:
    source = reader(history, **options)
    start = source.initialOffset()
    history.append("4.parquet", rows(4))
    end = source.latestOffset(start, ReadAllAvailable())
    files = [t.path for p in source.partitions(start, end) for t, _ in p.tasks]
    history.append("5.parquet", rows(5))
    again = reader(history, **options)
    assert [t.path for p in again.partitions(again.initialOffset(), end) for t, _ in p.tasks] == files != []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": "1002"}, [[2, 20], [3, 30]]),
        ({"startingVersion": "latest"}, []),
        ({"startingVersion": "1001", "maxBytesPerTrigger": "1"}, [[1, 10], [2, 20], [3, 30]]),
        ({"startingTimestamp": "2023-11-14T22:16:20Z"}, [[3, 30]]),
        ({"startingTimestamp": "2100-01-01T00:00:00Z"}, []),
        ({"startingVersion": "9"}, VersionNotFoundError),
    ],
)
def test_a_stream_begins_where_an_option_says(history: IcebergHistory, options: dict[str, str], expected: Any) -> None:
    if isinstance(expected, list):
        assert batches(reader(history, **options), most=9 if "maxBytesPerTrigger" in options else 1) == expected
    else:
        with pytest.raises(expected):
            reader(history, **options).initialOffset()


REMOVALS: dict[str, Callable[[IcebergHistory], object]] = {
    "a file": lambda h: h.remove(next(iter(h._live))),
    "rows by positions": lambda h: h.delete_positions("deletes.parquet", {next(iter(h._live)): [0]}),
    "an overwrite": lambda h: h.append("other.parquet", rows(9), operation="overwrite"),
}


@pytest.mark.parametrize(
    ("what", "option", "expected"),
    [
        ("a file", "", r"snapshot 1004 of .* takes rows away \(delete\)"),
        ("a file", "ignoreDeletes", []),
        ("rows by positions", "", "takes rows away"),
        ("rows by positions", "skipChangeCommits", []),
        ("an overwrite", "ignoreDeletes", r"takes rows away and adds others \(overwrite\)"),
        ("an overwrite", "ignoreChanges", [9]),
        ("an overwrite", "skipChangeCommits", []),
    ],
)
def test_removed_rows_stop_a_stream_unless_an_option_allows_them(
    history: IcebergHistory, what: str, option: str, expected: str | list[int]
) -> None:
    start = reader(history, startingVersion="latest").initialOffset()
    source = reader(history, **({option: "true"} if option else {}))
    REMOVALS[what](history)
    history.append("7.parquet", rows(7))
    if isinstance(expected, str):
        with pytest.raises(InvalidRequestError, match=expected):
            batches(source, start)
    else:
        assert list(chain.from_iterable(batches(source, start))) == [*expected, 7]


def test_other_columns_another_table_and_lost_snapshots_stop_a_stream(history: IcebergHistory) -> None:
    source = reader(history)
    start = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    history.evolve([*FIELDS, {"id": 2, "name": "name", "required": False, "type": "string"}])
    history.append("4.parquet", [{"id": 4, "name": "four"}])
    with pytest.raises(InvalidRequestError, match=r"snapshot 1004 of .* has other columns than the stream"):
        batches(source, start)
    with pytest.raises(InvalidRequestError, match=r"snapshot 1004 of .* has other columns than the stream"):
        batches(source, source.initialOffset())
    assert batches(reader(history), start) == [[4]], "started again, it goes on with the columns it asks for"
    with pytest.raises(InvalidRequestError, match="is another table"):
        batches(reader(history), start | {"table": "another"})
    with pytest.raises(InvalidRequestError, match="is no offset of a lakeview stream"):
        batches(reader(history), {"table": start["table"], "version": 3, "index": 0, "initial": False})
    snapshots = history.document["snapshots"]
    del snapshots[:3]
    history.append("5.parquet", [{"id": 5, "name": "five"}])
    assert batches(reader(history), start) == [[4], [5]], "the snapshot that was read last may be gone"
    del snapshots[:1]
    history.append("6.parquet", [{"id": 6, "name": "six"}])
    with pytest.raises(VersionNotFoundError, match=r"what followed snapshot 1003 of .* has expired"):
        batches(reader(history), start)
    assert batches(reader(history, failOnDataLoss="false"), start) == [[5], [6]]
    del snapshots[0]["parent-snapshot-id"]  # as pyiceberg expires snapshots
    history._write()
    with pytest.raises(VersionNotFoundError, match="has expired before it was read"):
        batches(reader(history), start | {"snapshot": -1})
    back = {"current-snapshot-id": 1005, "refs": {"main": {"snapshot-id": 1005, "type": "branch"}}}
    history.document |= back
    history._write()
    with pytest.raises(LakeviewError, match="the table was rolled back"):
        batches(reader(history), start | {"snapshot": 1006})


def test_snapshots_that_expired_after_the_last_one_read_are_a_loss_and_no_rollback(history: IcebergHistory) -> None:
    source = reader(history)
    start = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    history.append("4.parquet", rows(4))
    history.append("5.parquet", rows(5))
    del history.document["snapshots"][-2]
    history._write()
    with pytest.raises(VersionNotFoundError, match=r"what followed snapshot 1003 of .* has expired"):
        batches(reader(history), start)
    assert batches(reader(history, failOnDataLoss="false"), start) == [[5]]


def test_the_current_snapshot_has_the_columns_that_the_table_has_now(history: IcebergHistory) -> None:
    history.evolve([{**FIELDS[0], "name": "number"}])
    history._write()
    latest = {"path": history.address, "versionAsOf": "1003"}
    for options, name in (
        ({"path": history.address}, "number"),
        (latest, "id"),
        (latest | {"currentSchema": "true"}, "number"),
    ):
        source = LakeviewDataSource(options)
        assert source.schema().names == [name]
        reading = source.reader(source.schema())
        arrived: list[Any] = [b for p in reading.partitions() for b in reading.read(p)]
        values = [batch[name].to_pylist() for batch in arrived]
        assert sorted(chain.from_iterable(values)) == [1, 2, 3, 10, 20, 30]
    source = LakeviewDataSource({"path": history.address})
    stream = cast("LakeviewStreamReader", source.streamReader(source.schema()))
    assert batches(stream, column="number") == [[1, 10], [2, 20], [3, 30]]


def test_a_batch_that_is_planned_again_ends_where_it_did(history: IcebergHistory) -> None:
    def planned(start: dict[str, Any], end: dict[str, Any], **options: str) -> list[int]:
        source = reader(history, **options)
        arrived = (batch["id"].to_pylist() for p in source.partitions(start, end) for batch in source.read(p))
        return sorted(chain.from_iterable(arrived))

    begin = reader(history, startingVersion="1001").initialOffset()
    first, third = begin | {"index": -1}, begin | {"snapshot": 1003, "index": -1}
    history.document |= {"current-snapshot-id": 1002, "refs": {"main": {"snapshot-id": 1002, "type": "branch"}}}
    history.append("4.parquet", rows(4))
    with pytest.raises(VersionNotFoundError, match=r"snapshot 1003 of .* was rolled back"):
        planned(first, third)
    assert planned(first, first | {"snapshot": 1004}) == [2, 4, 20]
    del history.document["snapshots"][:3]
    history._write()
    for start in (begin, first):
        with pytest.raises(VersionNotFoundError, match="has expired before it was read"):
            planned(start, third)
        assert planned(start, third, failOnDataLoss="false") == [], "snapshot 1004 is of the next batch"
    assert batches(reader(history, failOnDataLoss="false"), begin) == [[4]]


@pytest.mark.spark
def test_a_query_from_table_to_table_repeats_no_batch_that_it_committed(spark: SparkSession, tmp_path: Path) -> None:
    """It starts on an empty table, and is killed after a commit, before its checkpoint says so."""
    history = IcebergHistory(tmp_path / "table", FIELDS)
    copy = IcebergHistory(tmp_path / "copy", FIELDS, location=str(tmp_path / "copy"))
    assert LakeviewDataSource({"path": history.address}).schema() == IDS

    def run() -> list[int]:
        stream = spark.readStream.format("lakeview").load(history.address).writeStream.format("lakeview")
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = stream.trigger(availableNow=True).start(str(copy.root))
        assert query.awaitTermination(120)
        ids: list[int] = sorted(lv.open_table(str(copy.root)).scan().collect()["id"])
        return ids

    assert run() == []
    history.append("1.parquet", rows(1, 2))
    assert run() == [1, 2]
    done = max((tmp_path / "checkpoint/commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (done, done.with_name(f".{done.name}.crc")):
        path.unlink()
    history.append("2.parquet", rows(3))
    assert run() == [1, 2, 3]
