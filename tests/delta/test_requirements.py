"""Plain requirements of the Delta protocol that no other test of the Delta reader and writer shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CommitConflictError, CorruptTableError, InvalidRequestError, UnsupportedTableError
from tests.builders.actions import Action, add, info, metadata, protocol, txn
from tests.builders.history import DeltaHistory, log_name
from tests.builders.opening import open_delta_table

ROW = pl.DataFrame({"id": [1]})


def recorded(table: DeltaTable, kind: str) -> list[dict[str, Any]]:
    """The actions of a kind in the newest commit."""
    return [json.loads(text) for text in table.commit(table.snapshot().version).filter(kind=kind)["action"]]


def writer_features(*names: str, **properties: str) -> tuple[Action, Action]:
    properties_of_delta = {f"delta.{name}": text for name, text in properties.items()}
    return protocol(1, 7, writerFeatures=[*names]), metadata({"id": "long"}, properties={**properties_of_delta})


@pytest.mark.parametrize("missing", ["minReaderVersion", "minWriterVersion"])
def test_a_protocol_has_both_versions(history: DeltaHistory, missing: str) -> None:
    versions = {"minReaderVersion": 1, "minWriterVersion": 2}
    del versions[missing]
    history.commit({"protocol": versions}, metadata())
    with pytest.raises(CorruptTableError, match=missing):
        lv.open_table(history.address).snapshot()


def test_a_sidecar_in_a_commit_does_not_count(history: DeltaHistory) -> None:
    sidecar = {"sidecar": {"path": "x.parquet", "sizeInBytes": 9, "modificationTime": 0}}
    history.create().commit(sidecar, {"checkpointMetadata": {"version": 7}}, add("f"))
    assert lv.open_table(history.address).files()["path"].to_list() == ["f"]


def test_a_commit_has_one_version_of_an_application(history: DeltaHistory) -> None:
    table = open_delta_table(history.create())
    with table.transaction() as transaction:
        transaction.append(ROW)
        transaction.set_transaction("app", 1)
        transaction.set_transaction("app", 2)
    assert [action["version"] for action in recorded(table, "txn")] == [2]


def test_a_restore_leaves_domains_of_features_that_it_does_not_know(history: DeltaHistory) -> None:
    def domain(name: str, text: str) -> Action:
        return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}

    history.commit(*writer_features("domainMetadata"), domain("delta.old", "1"), domain("user", "1"))
    history.commit(domain("delta.old", "2"), domain("delta.new", "1"), domain("user", "2"), domain("user.new", "1"))
    table = open_delta_table(history)
    table.restore(0)
    assert dict(table.snapshot().domain_metadata.iter_rows()) == {"delta.old": "2", "delta.new": "1", "user": "1"}


def test_a_restore_brings_the_features_of_the_domains_that_come_back(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, {"id": "long"}, cluster_by=["id"])
    assert isinstance(table, DeltaTable)
    for feature in ("clustering", "domainMetadata"):
        table.drop_feature(feature)
    table.restore(0)
    features = table.snapshot().protocol.writer_features
    assert features is not None
    assert {"clustering", "domainMetadata"} <= set(features)


def test_domains_of_a_protocol_without_them_are_neither_restored_nor_cloned(history: DeltaHistory) -> None:
    def domain(text: str) -> Action:
        return {"domainMetadata": {"domain": "d", "configuration": text, "removed": False}}

    table = open_delta_table(history.create().commit(domain("1")).commit(domain("2"), add("a")))
    assert table.restore(1) == 3
    assert recorded(table, "domainMetadata") == []
    table.clone(f"{history.address}-clone")
    assert recorded(open_delta_table(f"{history.address}-clone"), "domainMetadata") == []


def test_a_restore_does_not_make_a_table_clustered_and_partitioned(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, {"id": "long", "p": "long"}, partition_by=["p"])
    table.replace_table({"id": "long"}, cluster_by=["id"])
    with pytest.raises(InvalidRequestError, match="a table is not clustered as well"):
        table.restore(0)


def test_two_commits_do_not_change_one_domain(history: DeltaHistory) -> None:
    def domain(text: str) -> Action:
        return {"domainMetadata": {"domain": "d", "configuration": text, "removed": False}}

    first = writer_features("domainMetadata")
    table = open_delta_table(history.commit(*first, domain("1")).commit(domain("2")))
    transaction = table.transaction()
    transaction.restore(0)
    history.commit(domain("3"))
    with pytest.raises(CommitConflictError, match="both change the domain d") as caught, transaction:
        pass
    assert caught.value.kind == "concurrent-domain"


def test_a_restore_keeps_features_and_the_largest_column_id(history: DeltaHistory) -> None:
    table = open_delta_table(history.create())
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.add_column("more", "long")
    features, largest = table.snapshot().protocol.reader_features, "delta.columnMapping.maxColumnId"
    highest = table.snapshot().properties[largest]
    table.restore(0)
    assert features == ("columnMapping",)
    assert (table.snapshot().protocol.reader_features, table.snapshot().properties[largest]) == (features, highest)


COMPATIBILITY = ["icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1"]
WRITES: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: table.append(ROW),
    "vacuum": lambda table: table.vacuum(),
    "checkpoint": lambda table: table.checkpoint(),
    "log cleanup": lambda table: table.clean_log(),
    "log compaction": lambda table: table.compact_log(0, 1),
    "checksum": lambda table: table.write_checksum(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("feature", COMPATIBILITY)
def test_a_table_of_iceberg_readers_is_not_written(
    history: DeltaHistory, feature: str, write: Callable[[DeltaTable], object]
) -> None:
    enabled = {f"enable{feature[0].upper()}{feature[1:]}": "true"}
    history.commit(*writer_features(feature, "columnMapping", **enabled)).commit(add("a", records=1))
    with pytest.raises(UnsupportedTableError, match=feature):
        write(open_delta_table(history))


PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


@pytest.mark.parametrize(
    "change",
    [lambda table: table.restore(0), lambda table: table.replace_table({"a": pl.Int64})],
    ids=["restore", "replacement"],
)
def test_protected_checkpoints_stay_protected(history: DeltaHistory, change: Callable[[DeltaTable], object]) -> None:
    history.commit(*writer_features("checkpointProtection"))
    history.commit(*writer_features("checkpointProtection", requireCheckpointProtectionBeforeVersion="1"))
    table = open_delta_table(history)
    change(table)
    assert table.snapshot().properties[PROTECTED] == "1"


def test_checkpoints_of_a_clone_are_not_protected(history: DeltaHistory, tmp_path: Path) -> None:
    history.commit(*writer_features("checkpointProtection", requireCheckpointProtectionBeforeVersion="1"))
    open_delta_table(history).clone(str(tmp_path / "clone"))
    assert PROTECTED not in open_delta_table(tmp_path / "clone").snapshot().properties


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.compact_log(0, 1),
        lambda table: table.compact_log(1, 2),
        lambda table: table.write_checksum(1),
        lambda table: table.restore(1),
    ],
    ids=["compaction with it", "compaction after it", "checksum", "restore"],
)
def test_versions_of_a_feature_that_is_not_known_are_not_written_again(
    history: DeltaHistory, write: Callable[[DeltaTable], object]
) -> None:
    history.create({"id": "long"}).commit(*writer_features("timeMachine")).commit(add("a", records=1))
    history.commit(*writer_features())
    with pytest.raises(UnsupportedTableError, match="timeMachine"):
        write(open_delta_table(history))


def test_no_row_ids_are_given_while_row_tracking_is_suspended(history: DeltaHistory) -> None:
    table = open_delta_table(
        history.commit(*writer_features("rowTracking", "domainMetadata", rowTrackingSuspended="true"))
    )
    table.append(ROW)
    assert "baseRowId" not in recorded(table, "add")[0]
    table.set_properties({"delta.rowTrackingSuspended": "false"})
    table.append(ROW)
    assert recorded(table, "add")[0]["baseRowId"] == 0


def test_a_clustering_column_has_statistics_and_stays(history: DeltaHistory) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.feature.clustering": "supported"}
    columns = {"id": "long", "x": "long"}
    table = lv.create_table(history.address, columns, properties=properties | {"delta.dataSkippingStatsColumns": "x"})
    physical = table.snapshot().schema["id"].physical_name
    clustering = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": [[physical]]})}
    history.commit({"domainMetadata": {**clustering, "removed": False}}, version=1)
    table = open_delta_table(history)
    table.append(pl.DataFrame({"id": [1], "x": [2]}))
    assert json.loads(recorded(table, "add")[0]["stats"])["minValues"][physical] == 1
    with pytest.raises(InvalidRequestError, match="clustered by it"):
        table.drop_column("id")


def test_the_first_time_inside_a_commit_is_above_that_of_the_file_before(history: DeltaHistory) -> None:
    late = datetime(2100, 1, 1, tzinfo=UTC)
    table = open_delta_table(history.create().dated(0, late))
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    assert recorded(table, "commitInfo")[0]["inCommitTimestamp"] == late.timestamp() * 1000 + 1


def test_times_inside_commits_may_go_and_come_again(history: DeltaHistory) -> None:
    table = open_delta_table(history.create())
    for text in ("true", "false", "true"):
        table.set_properties({"delta.enableInCommitTimestamps": text})
    assert table.snapshot().properties["delta.inCommitTimestampEnablementVersion"] == "3"
    table = open_delta_table(history)
    assert table.history().sort("version")["timestamp_source"].to_list() == ["file", "file", "file", "in-commit"]


@pytest.mark.parametrize("actions", [[], [info(inCommitTimestamp=5)]], ids=["none", "one without the feature"])
def test_a_checksum_has_no_time_inside_the_commit_where_there_is_none(
    history: DeltaHistory, actions: list[Action]
) -> None:
    table = open_delta_table(history.create().commit(*actions, txn("app", 1)))
    assert table.write_checksum()
    name = log_name(1, "crc")
    assert "inCommitTimestampOpt" not in json.loads(table.storage.read(name))
