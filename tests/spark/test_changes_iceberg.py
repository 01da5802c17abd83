"""Streams of what the snapshots of an Iceberg table change, and where such a stream stops."""

from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxFiles

import lakeview as lv
from lakeview.model.errors import InvalidRequestError, LakeviewError, VersionNotFoundError
from lakeview.spark.datasource import LakeviewDataSource
from lakeview.spark.snapshot_changes import SnapshotChangeReader
from tests.builders.iceberg import IcebergHistory
from tests.spark.test_streaming_iceberg import FIELDS, rows


@pytest.fixture
def history(tmp_path: Path) -> IcebergHistory:
    """Snapshots 1001 and 1002 add a file, 1003 deletes a row of each, 1004 rearranges, 1005 removes the second file."""
    iceberg_history = IcebergHistory(tmp_path / "table", FIELDS)
    files = [iceberg_history.append(f"{n}.parquet", rows(n, 10 * n)) and f"{n}.parquet" for n in (1, 2)]
    paths = [next(path for path in iceberg_history._live if path.endswith(name)) for name in files]
    iceberg_history.delete_positions("deletes.parquet", {path: [0] for path in paths})
    iceberg_history.append("moved.parquet", rows(7), operation="replace")
    iceberg_history.remove(paths[1])
    return iceberg_history


INSERTS = [(1, "insert", 1001), (10, "insert", 1001)], [(2, "insert", 1002), (20, "insert", 1002)]
DELETES = [(1, "delete", 1003), (2, "delete", 1003)], [(20, "delete", 1005)]


def reader(history: IcebergHistory, **options: str) -> SnapshotChangeReader:
    source = LakeviewDataSource({"path": history.address, "readChangeFeed": "true", **options})
    return cast("SnapshotChangeReader", source.streamReader(source.schema()))


def changes(source: SnapshotChangeReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[Any, ...]]:
    arrived = chain.from_iterable(source.read(partition) for partition in source.partitions(start, end))
    columns = ("id", "_change_type", "_commit_version")
    return sorted(tuple(row[c] for c in columns) for batch in arrived for row in batch.to_pylist())


def batches(
    source: SnapshotChangeReader, start: dict[str, Any] | None = None, most: int = 1
) -> list[list[tuple[Any, ...]]]:
    """The changes of each batch that is not empty, until nothing is new."""
    batches_read, offset = [], source.initialOffset() if start is None else start
    while (end := source.latestOffset(offset, ReadMaxFiles(most))) != offset:
        batches_read.append(changes(source, offset, end))
        offset = end
    return [batch for batch in batches_read if batch]


def test_a_stream_has_the_changes_of_each_snapshot(history: IcebergHistory) -> None:
    assert batches(reader(history, startingVersion="1001")) == [*INSERTS, *DELETES]
    assert batches(reader(history, startingVersion="1002"), most=3) == [[*DELETES[0], *INSERTS[1]], DELETES[1]]
    whole = sorted(chain.from_iterable((*INSERTS, *DELETES)))
    assert batches(reader(history, startingTimestamp="2020-01-01T00:00:00Z"), most=9) == [whole]
    assert batches(reader(history, startingTimestamp="2100-01-01T00:00:00Z")) == []
    source = reader(history, startingVersion="latest")
    begin = source.initialOffset()
    history.append("3.parquet", rows(3))
    source.prepareForTriggerAvailableNow()
    history.append("4.parquet", rows(4))
    end = source.latestOffset(begin, source.getDefaultReadLimit())
    assert changes(source, begin, end) == [(3, "insert", 1006)], "what comes after a run has begun is left to the next"
    again = reader(history, startingVersion="latest")
    assert changes(again, again.initialOffset(), end) == [(3, "insert", 1006)], "the end says where the stream began"
    with pytest.raises(VersionNotFoundError, match="no snapshot 9 on its main branch"):
        reader(history, startingVersion="9").initialOffset()


def test_an_empty_table_is_streamed_from_its_first_snapshot(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "table", FIELDS)
    source = reader(history, startingVersion="latest")
    begin = source.initialOffset()
    assert source.latestOffset(begin, ReadMaxFiles(1)) == begin
    history.append("1.parquet", rows(1))
    assert batches(source, begin) == [[(1, "insert", 1001)]]


def test_other_columns_and_another_table_stop_a_stream(history: IcebergHistory) -> None:
    source = reader(history, startingVersion="1005")
    start = source.initialOffset()
    history.evolve([*FIELDS, {"id": 2, "name": "name", "required": False, "type": "string"}])
    history.append("3.parquet", [{"id": 3, "name": "three"}])
    with pytest.raises(InvalidRequestError, match=r"snapshot 1006 of .* has other columns than the stream"):
        batches(source, start)
    assert batches(reader(history, startingVersion="1005"), start) == [DELETES[1], [(3, "insert", 1006)]]
    with pytest.raises(InvalidRequestError, match="is another table"):
        batches(source, start | {"table": "another"})
    with pytest.raises(InvalidRequestError, match="is no offset of a lakeview stream"):
        batches(source, {"table": start["table"], "snapshot": 1001})


def test_snapshots_that_are_gone_stop_a_stream(history: IcebergHistory, caplog: pytest.LogCaptureFixture) -> None:
    begin = reader(history, startingVersion="1001").initialOffset()
    read = begin | {"changes": 1001}
    snapshots = history.document["snapshots"]
    del snapshots[:1]
    history._write()
    with pytest.raises(VersionNotFoundError, match=r"the snapshot before 1002 of .* has expired, so that what"):
        batches(reader(history, startingVersion="latest"), read)
    allowed = reader(history, startingVersion="latest", failOnDataLoss="false")
    assert batches(allowed, read) == list(DELETES)
    assert "the snapshot before 1002" in caplog.text
    del snapshots[:1]
    history._write()
    with pytest.raises(VersionNotFoundError, match=r"what followed snapshot 1001 of .* has expired"):
        batches(reader(history, startingVersion="latest"), read)
    with pytest.raises(VersionNotFoundError, match=r"snapshot 1002 of .* has expired before it was read"):
        changes(reader(history, startingVersion="latest"), read, read | {"changes": 1002})
    assert batches(reader(history, startingVersion="latest", failOnDataLoss="false"), read) == [DELETES[1]]
    history.document |= {"current-snapshot-id": 1004, "refs": {"main": {"snapshot-id": 1004, "type": "branch"}}}
    history._write()
    with pytest.raises(LakeviewError, match="the table was rolled back"):
        batches(reader(history, startingVersion="latest", failOnDataLoss="false"), read | {"changes": 1005})


def test_a_stream_begins_at_no_snapshot_whose_changes_are_unknown(history: IcebergHistory) -> None:
    """The parent's id went with the parent, as where pyiceberg expires snapshots; its files are still there."""
    del history.document["snapshots"][:2]
    del history.document["snapshots"][0]["parent-snapshot-id"]
    history._write()
    with pytest.raises(VersionNotFoundError, match=r"the first snapshot of .* has expired before it was read"):
        batches(reader(history, startingVersion="1003"))


def test_a_snapshot_that_expired_after_a_rollback_brings_no_rows_again(history: IcebergHistory) -> None:
    """The branch still has its first snapshot: what followed the stream's one cannot have expired."""
    read = reader(history, startingVersion="1005").initialOffset() | {"changes": 1005}
    del history.document["snapshots"][-1]
    history.document |= {"current-snapshot-id": 1004, "refs": {"main": {"snapshot-id": 1004, "type": "branch"}}}
    history._write()
    with pytest.raises(VersionNotFoundError, match="the table was rolled back"):
        batches(reader(history, startingVersion="latest", failOnDataLoss="false"), read)


@pytest.mark.spark
def test_a_query_of_changes_brings_each_of_them_once(spark: SparkSession, history: IcebergHistory) -> None:
    """It is killed after a commit, before its checkpoint says so."""
    copy, checkpoint = history.root.parent / "copy", history.root.parent / "checkpoint"

    def run() -> list[tuple[Any, ...]]:
        stream = spark.readStream.format("lakeview").option("readChangeFeed", "true").option("startingVersion", "1002")
        renamed = stream.load(history.address).drop("_commit_timestamp").withColumnRenamed("_change_type", "kind")
        writing = renamed.withColumnRenamed("_commit_version", "at").writeStream.format("lakeview")
        query = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(str(copy))
        assert query.awaitTermination(120)
        return sorted(lv.open_table(str(copy)).scan().collect().select("id", "kind", "at").rows())

    assert run() == sorted(chain.from_iterable((INSERTS[1], *DELETES)))
    done = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (done, done.with_name(f".{done.name}.crc")):
        path.unlink()
    history.append("3.parquet", rows(3))
    assert run() == sorted(chain.from_iterable((INSERTS[1], *DELETES, [(3, "insert", 1006)])))
