"""Replay by Spark: the files, and what they add up to, are those of the replay on one machine."""

import pickle
import shutil
from pathlib import Path

import deltalake
import polars as pl
import pytest
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.delta.log.file_actions import not_replaced
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import LakeviewError
from lakeview.spark import replay
from lakeview.spark.checkpoint import checkpoint
from lakeview.spark.replay import ManifestReader, pack_manifests
from lakeview.storage import open_storage
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_delta_table
from tests.golden.conformance import GoldenTable, delta_tables
from tests.golden.iceberg_conformance import GoldenIceberg, iceberg_tables
from tests.golden.iceberg_reader import open_golden_table

FILES = ["path", "size", "records", "deleted_records", "modified"]
IDENTITY = ["path", "deletion_vector", "size", "records", "deleted_records"]
V2 = {"delta.checkpointPolicy": "v2"}
KINDS = {
    "no checkpoint": ({}, None),
    "one file": ({}, "one"),
    "parts": ({}, "parts"),
    "sidecars": (V2, "one"),
    "structs": ({"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}, "one"),
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_the_files_are_those_of_the_library(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    properties, checkpoint = KINDS[kind]
    rows = pl.DataFrame({"id": range(6), "part": ["a", None, "b c", "a", "%", "b c"]})
    table = lv.create_table(
        str(tmp_path / "table"),
        rows.to_arrow().schema,
        partition_by=["part"],
        properties={"delta.enableDeletionVectors": "true", **properties},
    )
    assert isinstance(table, DeltaTable)
    table.append(rows)
    table.append(rows)
    table.delete("id = 2")
    if checkpoint is not None:
        table.checkpoint(parts=3 if checkpoint == "parts" else None)
    table.delete("id < 2 OR id = 5")
    table.append(rows[:2])
    files = replay.files(spark, table.address)
    ours = sorted((r.path, r.size, r.records, r.deleted_records, r.modified is None) for r in files.collect())
    adds = table.state().adds(["size", "records"])
    expected = adds.select("path", "size", "records", "deleted_records", pl.lit(value=False)).rows()
    assert ours == sorted(expected)
    parts = replay.roll_up(spark, table.address).collect()
    assert sum(p.files for p in parts) == adds.height
    assert {p.partition_values["part"] for p in parts} == {"a", None, "%"}
    assert sum(p.records - p.deleted_records for p in parts) == table.snapshot().num_records


@pytest.mark.spark
@pytest.mark.parametrize("properties", [{}, V2], ids=["parts", "sidecars"])
def test_spark_writes_the_checkpoint_that_the_library_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    monkeypatch.setattr("lakeview.spark.checkpoint.PART_BYTES", 4_000)
    rows = pl.DataFrame({"id": range(6), "part": ["a", None, "b c", "a", "%", "b c"]})
    table = lv.create_table(str(tmp_path / "a"), rows.to_arrow().schema, partition_by=["part"], properties=properties)
    assert isinstance(table, DeltaTable)
    table.append(rows)
    table.checkpoint()
    table.delete("id < 3")
    shutil.copytree(table.address, tmp_path / "b")
    assert checkpoint(spark, table.address) == 2
    log = Path(table.address) / "_delta_log"
    names = sorted(path.name for path in log.glob("*2.checkpoint*"))
    if properties:
        assert len(list((log / "_sidecars").iterdir())) > 2
    else:
        DeltaTable(open_storage(tmp_path / "b")).checkpoint(parts=len(names))
        assert len(names) > 1
        for name in names:
            assert (log / name).read_bytes() == (tmp_path / "b" / "_delta_log" / name).read_bytes()
    for commit in log.glob("*.json"):
        commit.unlink()
    assert sorted(lv.open_table(table.address).scan().collect()["id"]) == [3, 4, 5]
    if not properties:  # which deltalake opens without commits
        assert sorted(deltalake.DeltaTable(table.address).to_pyarrow_table()["id"].to_pylist()) == [3, 4, 5]


TABLES = delta_tables()


@pytest.mark.golden
@pytest.mark.skipif(not TABLES, reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder")
@pytest.mark.parametrize("golden", TABLES, ids=[t.name for t in TABLES])
def test_the_two_phases_add_up_to_the_replay(golden: GoldenTable) -> None:
    """Of every conformance table that can be opened, without Spark between."""
    try:
        table = open_delta_table(golden.path)
        state = table.state()
        expected = state.adds(["size", "records"])
    except LakeviewError:
        return  # the same call reports what cannot be read
    pieces, tail = state.pieces(["size", "records"])
    frames = [
        not_replaced(frame, tail.select("key", "deletion_vector"))
        for piece in pieces
        for frame in pickle.loads(pickle.dumps(piece)).each_action(table.storage, "add", ["size", "records"])
    ]
    rows_found = [row for frame in (*frames, tail.filter("added")) for row in frame.select(IDENTITY).rows()]
    assert sorted(rows_found, key=str) == sorted(expected.select(IDENTITY).rows(), key=str)


ICEBERG = iceberg_tables()


@pytest.mark.golden
@pytest.mark.skipif(not ICEBERG, reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder")
@pytest.mark.parametrize("golden", ICEBERG, ids=[t.name for t in ICEBERG])
def test_manifests_read_in_tasks_have_the_files_of_the_table(
    golden: GoldenIceberg, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every conformance table that can be opened, without Spark between."""
    monkeypatch.setattr("lakeview.spark.replay.TASK_BYTES", 20_000)
    try:
        table = open_golden_table(golden.path, golden)
        expected = table.files(columns=FILES)
    except LakeviewError:
        return  # the same call reports what cannot be read
    reader = pickle.loads(pickle.dumps(ManifestReader.of(table, None)))
    tasks = pack_manifests(table.manifests()) if expected.height else []
    rows_found = [row for frame in reader.files(tasks) for row in frame.select(FILES).rows()]
    assert sorted(rows_found, key=str) == sorted(expected.rows(), key=str)


@pytest.mark.spark
def test_files_of_an_iceberg_table_by_partition(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeview.spark.replay.TASK_BYTES", 1)
    fields = [{"id": 1, "name": "part", "required": False, "type": "string"}]
    history = IcebergHistory(tmp_path / "t", fields, [(1, "identity", "part")], location=str(tmp_path / "t"))
    for name, part in (("a", "x"), ("b", "x"), ("c", None)):
        history.append(name, [{"part": part}] * 3)
    history.append("a", [{"part": "x"}] * 3)  # in a second manifest
    assert lv.open_table(history.address).files().height == 3
    parts = replay.roll_up(spark, history.address).collect()
    rows_found = {(p.partition_values["part"], p.files, p.records, p.deleted_records) for p in parts}
    assert rows_found == {("x", 2, 6, 0), (None, 1, 3, 0)}
