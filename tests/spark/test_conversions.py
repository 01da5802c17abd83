"""Folders that become tables, clones, and protocols of tables, by Delta's own calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

import lakeview as lv
from lakeview import delta
from lakeview.model.errors import CommitConflictError, InvalidRequestError, UnsupportedTableError
from lakeview.spark import DeltaTable
from tests.differential.oracles import ORACLES, compare_version

NO_SESSION = cast("SparkSession", None)
"""What is done by the log alone asks no session."""

ROWS = pl.DataFrame({"id": [1, 2, 3]})


def library_table(address: Path) -> delta.table.DeltaTable:
    table = lv.open_table(str(address))
    assert isinstance(table, delta.table.DeltaTable)
    return table


def new_table(address: Path, **options: Any) -> tuple[DeltaTable, delta.table.DeltaTable]:
    lv.create_table(str(address), {"id": pl.Int64}, **options).append(ROWS)
    return DeltaTable.forPath(NO_SESSION, str(address)), library_table(address)


def check_with_others(target: delta.table.DeltaTable, names: Sequence[str] = ("deltalake", "DuckDB")) -> None:
    compare_version(target, target.address, target.latest_version, {name: ORACLES[name] for name in names})


def test_a_folder_of_parquet_files_becomes_a_table(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"a b/day={day}"
        folder.mkdir(parents=True)
        ROWS.write_parquet(folder / "rows.parquet")
    partitions = spark_types.StructType([spark_types.StructField("day", spark_types.IntegerType())])
    identifier = f"parquet.`{tmp_path}/a b`"
    DeltaTable.convertToDelta(NO_SESSION, identifier, partitions, True)
    table = library_table(tmp_path / "a b")
    assert (table.snapshot().partition_columns, table.snapshot().num_records) == (["day"], 6)
    assert sorted(table.scan().collect().rows()) == [(n, day) for n in (1, 2, 3) for day in (1, 2)]
    check_with_others(table)
    DeltaTable.convertToDelta(NO_SESSION, identifier)
    assert table.refresh() is False, "it is a table already"
    with pytest.raises(InvalidRequestError, match="orders is no folder"):
        DeltaTable.convertToDelta(NO_SESSION, "orders")


@pytest.mark.spark
def test_partitions_may_be_given_as_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "day=2026-03-01").mkdir()
    ROWS.write_parquet(tmp_path / "day=2026-03-01/rows.parquet")
    for text in ("day", "date", "day dat"):
        with pytest.raises(InvalidRequestError, match="is no list of columns"):
            DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}`", text)
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}`", "day DATE")
    assert [(row.id, str(row.day)) for row in converted.toDF().collect()] == [(n, "2026-03-01") for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("properties", "versions", "protocol"),
    [
        ({}, (1, 4), (1, 4, None, None)),
        ({}, (2, 5), (2, 5, None, None)),
        ({}, (1, 7), (1, 7, None, ["appendOnly", "invariants"])),
        ({}, (3, 7), (3, 7, [], ["appendOnly", "invariants"])),
        ({"delta.enableChangeDataFeed": "true"}, (3, 7), (3, 7, [], ["changeDataFeed"])),
    ],
)
def test_versions_of_a_protocol_go_up(
    tmp_path: Path, properties: dict[str, str], versions: tuple[int, int], protocol: tuple[Any, ...]
) -> None:
    ours, table = new_table(tmp_path, properties=properties)
    ours.upgradeTableProtocol(*versions)
    ours.upgradeTableProtocol(*versions)
    table.refresh()
    now = table.state().protocol
    assert (now.min_reader_version, now.min_writer_version, now.reader_features, now.writer_features) == protocol
    assert table.history(1)["operation"].to_list() == ["UPGRADE PROTOCOL"]
    assert table.latest_version == 2, "the second call changes nothing"
    table.append(ROWS)
    check_with_others(table)


def test_mapped_columns_stay_mapped_where_the_protocol_names_features(tmp_path: Path) -> None:
    ours, table = new_table(tmp_path)
    ours.upgradeTableProtocol(2, 5)
    ours.upgradeTableProtocol(3, 7)
    ours.addFeatureSupport("deletionvectors")
    table.refresh()
    protocol = table.state().protocol
    assert protocol.reader_features == ["columnMapping", "deletionVectors"]
    assert protocol.writer_features == [
        "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
        "invariants",
    ]  # fmt: skip
    check_with_others(table)


@pytest.mark.parametrize("versions", [(0, 2), (1, 8), (4, 7), (3, 6), (2, 4)])
def test_versions_that_no_protocol_has_are_refused(tmp_path: Path, versions: tuple[int, int]) -> None:
    ours, table = new_table(tmp_path)
    with pytest.raises(InvalidRequestError, match="there is no protocol of reader version"):
        ours.upgradeTableProtocol(*versions)
    assert table.refresh() is False


def test_protocols_do_not_go_down_and_features_stay(tmp_path: Path) -> None:
    ours, _ = new_table(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    with pytest.raises(InvalidRequestError, match="reader version 3 and writer version 7, which never go down"):
        ours.upgradeTableProtocol(1, 2)
    for truncate in (None, True):
        with pytest.raises(
            UnsupportedTableError, match=r"deletionVectors .*: version 0, which the log still has, used it"
        ):
            ours.dropFeatureSupport("DeletionVectors", truncate)
    with pytest.raises(UnsupportedTableError, match="timeMachine"):
        ours.addFeatureSupport("timeMachine")


def test_a_feature_that_is_not_used_is_dropped(tmp_path: Path) -> None:
    ours, table = new_table(tmp_path)
    table.upgrade_protocol(["deletionVectors"])
    ours.dropFeatureSupport("deletionvectors", True)
    assert lv.open_table(table.address).snapshot().protocol.min_reader_version == 1
    check_with_others(table)


def test_manifests_are_generated_by_their_name(tmp_path: Path) -> None:
    ours, _ = new_table(tmp_path)
    ours.generate("Symlink_Format_Manifest")
    assert (tmp_path / "_symlink_format_manifest/manifest").exists()
    with pytest.raises(InvalidRequestError, match="'uniform' is no manifest"):
        ours.generate("uniform")


def test_a_clone_has_the_files_of_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(tmp_path))
    ours, table = new_table(tmp_path / "source")
    table.append(ROWS)
    (moment,) = table.versions(look=False).filter(version=1)["timestamp"]
    clones: dict[str, Callable[[str], DeltaTable]] = {
        "now": lambda target: ours.clone(target, True, properties={"mine": "yes"}),
        "version": lambda target: ours.cloneAtVersion(1, target, True),
        "moment": lambda target: ours.cloneAtTimestamp(moment, f"delta.`{target}`", True),
    }
    for name, clone in clones.items():
        clone(str(tmp_path / name))
        copy = library_table(tmp_path / name)
        assert copy.scan().collect().height == (6 if name == "now" else 3), name
        check_with_others(copy, ["deltalake"])  # DuckDB's extension reads no absolute paths
    assert library_table(tmp_path / "now").snapshot().properties == {"mine": "yes"}
    with pytest.raises(CommitConflictError, match="holds a table already"):
        ours.clone(str(tmp_path / "now"), True)
    with pytest.raises(UnsupportedTableError, match="clones to an address without a table"):
        ours.clone(str(tmp_path / "other"), True, True)


def test_the_files_of_a_deep_clone_are_copied_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "source"), ROWS.to_arrow().schema)
    table.append(ROWS)
    deep = DeltaTable.forPath(spark, str(tmp_path / "source")).clone(str(tmp_path / "deep"), False)
    files = list((tmp_path / "source").glob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".gone"))
    copy = library_table(tmp_path / "deep")
    assert sorted(copy.scan().collect()["id"]) == [1, 2, 3]
    assert [len(list((tmp_path / "deep").glob("*.parquet"))), deep.detail().collect()[0]["numFiles"]] == [
        len(files)
    ] * 2
