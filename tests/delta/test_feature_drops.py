"""Features that are dropped with what the table keeps for them, and with the history that used them: other engines read
what is left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.log.actions import DomainMetadata
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.feature_drop import drop_feature
from lakeview.delta.write.transaction import Transaction
from lakeview.model.clock import system_clock
from lakeview.model.errors import CommitConflictError, InvalidRequestError, UnsupportedTableError
from tests.builders.actions import metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.delta.test_feature_rules import used
from tests.differential.oracles import ORACLES


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def check_rows(table: DeltaTable, *values: int) -> None:
    """Each engine reads these rows."""
    assert sorted(table.scan().collect()["id"]) == list(values)
    for name, rows in ORACLES.items():
        assert sorted(rows(table.address, table.latest_version)["id"].to_pylist()) == list(values), name
    assert "violated" not in table.audit()["verdict"].to_list()


def days_later(days: float) -> Callable[[], datetime]:
    return lambda: system_clock() + timedelta(days=days)


TRACES: dict[str, tuple[dict[str, str], dict[str, Any], list[str], list[str] | None]] = {
    "inCommitTimestamp": ({"delta.enableInCommitTimestamps": "true"}, {}, [], None),
    "rowTracking": (
        {"delta.enableRowTracking": "true"}, {}, ["ROW TRACKING UNBACKFILL"], ["domainMetadata"],
    ),
    "clustering": ({}, {"cluster_by": ["id"]}, ["CLUSTER BY"], ["domainMetadata"]),
    "domainMetadata": ({"delta.feature.domainMetadata": "supported"}, {}, ["DOMAIN METADATA CLEANUP"], None),
}  # fmt: skip
"""Features of writers: the properties and arguments that a table uses them by, the operations that remove what it keeps
for them, and the writer features that stay."""


@pytest.mark.parametrize("feature", TRACES)
def test_a_feature_of_writers_goes_with_what_the_table_keeps_for_it(tmp_path: Path, feature: str) -> None:
    properties, arguments, operations, rest = TRACES[feature]
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=properties, **arguments)
    table.append(numbers(1, 2, 3))
    if feature == "domainMetadata":
        with table.transaction("SET DOMAIN") as txn:
            txn.domains.append(DomainMetadata("mine", "{}"))
            txn.append(numbers())
    table.delete("id = 2")
    table.checkpoint()
    table.append(numbers(4))
    before = table.latest_version
    assert table.drop_feature(feature) == before + len(operations) + 1
    history = table.history(len(operations) + 1)
    assert history["operation"].to_list() == ["DROP FEATURE", *operations]
    state = table.state()
    assert state.protocol.writer_features == rest
    assert not [name for name in state.properties if name.startswith("delta.")]
    assert state.domain_metadata().is_empty()
    check_rows(table, 1, 3, 4)
    assert table.files(columns=["base_row_id"])["base_row_id"].is_null().all()
    table.append(numbers(5))
    check_rows(table, 1, 3, 4, 5)
    if rest is not None:
        table.drop_feature("domainMetadata")
        assert table.state().protocol.writer_features is None
        check_rows(table, 1, 3, 4, 5)


def test_row_tracking_begins_anew_once_it_was_dropped(tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=properties)
    table.append(numbers(1, 2, 3))
    table.delete("id = 2")
    table.drop_feature("rowTracking")
    table.append(numbers(4))
    table.set_properties({"delta.enableRowTracking": "true"})
    table.append(numbers(5))
    ids = table.scan(row_tracking=True).collect()["_row_id"].to_list()
    assert len(set(ids)) == len(ids) == 4
    check_rows(table, 1, 3, 4, 5)


@pytest.mark.parametrize("enabled", [True, False], ids=["enabled", "supported"])
def test_ids_that_a_restore_brings_back_are_not_given_twice(tmp_path: Path, enabled: bool) -> None:
    enable = {"delta.enableRowTracking": "true"}
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=enable if enabled else {})
    if not enabled:
        table.upgrade_protocol(["rowTracking"])
    version = table.append(numbers(1, 2, 3))
    table.drop_feature("rowTracking")
    table.append(numbers(8))
    table.restore(version)
    table.set_properties(enable)
    table.append(numbers(4, 5))
    ids = table.scan(row_tracking=True).collect()["_row_id"].to_list()
    assert len(set(ids)) == len(ids) == 5
    check_rows(table, 1, 2, 3, 4, 5)


def test_a_restore_brings_every_file_the_ids_that_it_had_where_others_were_given_since(tmp_path: Path) -> None:
    enable = {"delta.enableRowTracking": "true"}
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=enable)
    table.append(numbers(1))
    version = table.append(numbers(2))
    before = table.scan(row_tracking=True).collect().sort("id")
    table.delete("id = 1")
    table.drop_feature("rowTracking")
    table.set_properties(enable)
    table.restore(version)
    assert table.scan(row_tracking=True).collect().sort("id").equals(before)
    table.append(numbers(3))
    assert table.scan(row_tracking=True).collect()["_row_id"].n_unique() == 3


@pytest.mark.parametrize("deletion", ["id = 2", "id = 2 OR id = 1"], ids=["file", "vector"])
def test_a_restore_gives_no_file_ids_that_another_one_brings_back(tmp_path: Path, deletion: str) -> None:
    enable = {"delta.enableRowTracking": "true"}
    vectors = {"delta.enableDeletionVectors": "true"}
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=vectors)
    table.append(numbers(1, 4))
    table.set_properties({"delta.feature.rowTracking": "supported"})
    version = table.append(numbers(2, 3))
    table.set_properties(enable)
    table.drop_feature("rowTracking")
    table.delete(f"{deletion} OR id = 3")
    table.set_properties(enable)  # the first file has ids from 0 on, as the second one had
    table.restore(version)
    table.set_properties(enable)
    assert table.scan(row_tracking=True).collect()["_row_id"].n_unique() == 4


def v2_checkpoint(table: DeltaTable) -> None:
    table.set_properties({"delta.checkpointPolicy": "v2"})
    table.checkpoint()


@pytest.mark.parametrize(
    ("feature", "use", "message", "operation", "rest"),
    [
        ("v2Checkpoint", v2_checkpoint, "V2 checkpoint of version 2", "UNSET TBLPROPERTIES", (1, 2, None)),
        ("deletionVectors", used, "version 3, which the log still has, used it", "DELETE", (1, 2, None)),
    ],
)
def test_a_feature_of_readers_goes_with_the_history_that_used_it(
    tmp_path: Path,
    feature: str,
    use: Callable[[DeltaTable], object],
    message: str,
    operation: str,
    rest: tuple[Any, ...],
) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int32())]))
    table.append(pa.table({"id": pa.array([7], pa.int32())}))
    use(table)
    for truncate, later in ((False, 0.0), (False, 3.0), (True, 0.9)):  # too young, or history is not to go
        with pytest.raises(UnsupportedTableError, match=message) as refusal:
            table.drop_feature(feature, truncate_history=truncate, clock=days_later(later))
        assert "truncate_history=True" in str(refusal.value.fix)
        assert table.history(1)["operation"].to_list() == [operation]
        check_rows(table, 7)
    table.append(pa.table({"id": pa.array([8], pa.int32())}))
    assert table.drop_feature(feature, truncate_history=True, clock=days_later(1.1)) == table.latest_version
    protocol_now = table.state().protocol
    assert (protocol_now.min_reader_version, protocol_now.min_writer_version, protocol_now.writer_features) == rest
    assert table.history()["version"].to_list() == [table.latest_version - back for back in range(3)]
    check_rows(DeltaTable(table.storage), 7, 8)


VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.mark.parametrize("partition_by", [(), ("id",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize("more", [{}, {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}])
def test_files_with_deletion_vectors_are_written_again_before_their_feature_goes(
    tmp_path: Path, more: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    columns = {"id": "long", "n": "long"}
    table = lv.create_table(str(tmp_path / "t"), columns, properties=VECTORS | more, partition_by=partition_by)
    for first in (1, 4):
        ids = pa.array([first] * 2 + [first + 1], pa.int64())
        table.append(pa.table({"id": ids, "n": pa.array(range(3), pa.int64())}))
    table.delete("id = 1 AND n = 1")
    rows = table.scan(row_tracking=bool(more)).collect().sort("id", "n")
    files = set(table.files()["path"])
    with pytest.raises(UnsupportedTableError, match="version 0, which the log still has, used it"):
        table.drop_feature("deletionVectors")
    assert table.history(3)["operation"].to_list() == ["REORG", "UNSET TBLPROPERTIES", "DELETE"]
    assert table.state().adds(["vector"])["vector"].is_null().all()
    assert len(files - set(table.files()["path"])) == 1, "files without a vector stay"
    assert table.scan(row_tracking=bool(more)).collect().sort("id", "n").equals(rows)
    check_rows(table, 1, 2, 4, 4, 5)
    table.append(pa.table({"id": pa.array([6], pa.int64()), "n": pa.array([0], pa.int64())}))
    assert table.drop_feature("deletionVectors", truncate_history=True, clock=days_later(1.1)) == table.latest_version
    assert "deletionVectors" not in (table.state().protocol.writer_features or ())
    check_rows(table, 1, 2, 4, 4, 5, 6)


def test_files_are_written_again_after_a_delete_that_collides(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties=VECTORS)
    table.append(numbers(1, 2, 3))
    table.delete("id = 2")
    others = iter([DeltaTable(table.storage)])

    def begin(operation: str, **arguments: Any) -> Transaction:
        txn = table.transaction(operation, **arguments)
        if operation == "REORG":
            for writer in others:
                writer.delete("id = 3")
        return txn

    with pytest.raises(UnsupportedTableError, match="which the log still has, used it"):
        drop_feature(table, begin, "deletionVectors", truncate_history=False, clock=system_clock)
    table.refresh()
    assert table.history(2)["operation"].to_list() == ["DELETE", "UNSET TBLPROPERTIES"], "which left no vector"
    check_rows(table, 1)


def test_no_history_goes_for_a_feature_that_is_in_use(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"id": "long", "at": "timestamp_ntz"})
    table.append(numbers(1))
    table.checkpoint()
    with pytest.raises(InvalidRequestError, match="uses timestampNtz"):
        table.drop_feature("timestampNtz", truncate_history=True, clock=days_later(9))
    assert table.history()["version"].to_list() == [1, 0]


def test_history_goes_for_no_feature_of_writers(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"id": "long"}, properties={"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidRequestError, match="no history has to go"):
        table.drop_feature("rowTracking", truncate_history=True)
    assert table.latest_version == 0


def test_protected_checkpoints_go_before_their_feature(tmp_path: Path) -> None:
    properties: dict[str, str | None] = {"delta.requireCheckpointProtectionBeforeVersion": "2"}
    history = DeltaHistory(tmp_path / "t")
    history.commit(protocol(1, 7, writerFeatures=["checkpointProtection"]), metadata(properties=properties))
    history.commit().commit()
    table = open_delta_table(history.address)
    with pytest.raises(
        UnsupportedTableError, match="it protects the versions before 2, and the log still has version 0"
    ):
        table.drop_feature("checkpointProtection")
    assert table.drop_feature("checkpointProtection", truncate_history=True, clock=days_later(1)) == 3
    assert (table.state().protocol.writer_features, table.state().properties) == (None, {})


def test_a_domain_of_a_feature_that_is_not_known_keeps_domains(tmp_path: Path) -> None:
    table = lv.create_table(
        str(tmp_path / "t"), {"id": "long"}, properties={"delta.feature.domainMetadata": "supported"}
    )
    with table.transaction() as txn:
        txn.append(numbers(1))
        txn.domains += [DomainMetadata("delta.future", "{}"), DomainMetadata("mine", "{}")]
    with pytest.raises(InvalidRequestError, match=r"domain delta\.future is of a feature that is not known here"):
        table.drop_feature("domainMetadata")
    assert table.snapshot().domain_metadata["domain"].to_list() == ["delta.future", "mine"]


def test_a_domain_that_comes_meanwhile_keeps_its_feature(tmp_path: Path) -> None:
    table = lv.create_table(
        str(tmp_path / "t"), {"id": "long"}, properties={"delta.feature.domainMetadata": "supported"}
    )
    txn = table.transaction("DROP FEATURE")
    txn.drop_feature("domainMetadata")
    with DeltaTable(table.storage).transaction("SET DOMAIN") as other:
        other.domains.append(DomainMetadata("mine", "{}"))
        other.append(numbers(1))
    with pytest.raises(CommitConflictError, match="the domain mine"):
        txn.commit()


def test_a_drop_is_done_again_after_a_commit_that_collides_and_takes_what_that_brought(tmp_path: Path) -> None:
    table = lv.create_table(
        str(tmp_path / "t"), {"id": "long"}, properties={"delta.feature.domainMetadata": "supported"}
    )
    others = iter([DeltaTable(table.storage)])

    def begin(operation: str, **arguments: Any) -> Transaction:
        txn = table.transaction(operation, **arguments)
        for writer in others:
            with writer.transaction("SET DOMAIN") as other:
                other.domains.append(DomainMetadata("mine", "{}"))
                other.append(numbers(1))
        return txn

    assert drop_feature(table, begin, "domainMetadata", truncate_history=False, clock=system_clock) == 3
    assert table.history(3)["operation"].to_list() == ["DROP FEATURE", "DOMAIN METADATA CLEANUP", "SET DOMAIN"]
    assert table.state().protocol.writer_features is None
    check_rows(table, 1)
