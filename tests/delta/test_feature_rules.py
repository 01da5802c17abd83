"""What the protocol asks of writers that take a feature into use: features that go together, and those that do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.data.type_widening import widens_in_iceberg
from lakeview.delta.features import READER_FEATURES
from lakeview.delta.log.actions import Protocol
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType
from lakeview.model.errors import (
    CommitConflictError,
    ConstraintViolationError,
    CorruptTableError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
)
from lakeview.model.schema import Schema
from tests.builders.actions import Action, metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table


def open_table_with(history: DeltaHistory, protocol_action: Action, **properties: str) -> DeltaTable:
    """A table of one int column and these properties, `delta.` left out."""
    delta_properties = {f"delta.{name}": text for name, text in properties.items()}
    history.commit(protocol_action, metadata({"id": "integer"}, properties={**delta_properties}))
    return open_delta_table(history.address)


def recorded(table: DeltaTable, kind: str) -> dict[str, Any]:
    """The only action of a kind in the newest commit."""
    (action,) = table.commit(table.snapshot().version).filter(kind=kind)["action"]
    document: dict[str, Any] = json.loads(action)
    return document


def test_writer_version_7_without_its_features_is_not_written(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol(1, 7))
    assert table.scan().collect().is_empty()
    with pytest.raises(CorruptTableError, match="writer version 7 without writerFeatures"):
        table.set_properties({"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("feature", "dependency"),
    [
        ("variantShredding", "variantType"),
        ("variantShredding-preview", "variantType-preview"),
        ("clustering", "domainMetadata"),
        ("rowTracking", "domainMetadata"),
    ],
)
def test_a_feature_brings_those_that_it_depends_on(history: DeltaHistory, feature: str, dependency: str) -> None:
    table = open_table_with(history, protocol())
    table.upgrade_protocol([feature])
    assert {feature, dependency} <= set(recorded(table, "protocol")["writerFeatures"])


def test_a_feature_of_readers_alone_becomes_one_of_writers_too(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=[]))
    table.upgrade_protocol(["v2Checkpoint"])
    upgraded = recorded(table, "protocol")
    assert upgraded["readerFeatures"] == upgraded["writerFeatures"] == ["deletionVectors", "v2Checkpoint"]


def test_a_table_is_not_clustered_and_partitioned(history: DeltaHistory) -> None:
    history.create(partition_by=("city",))
    table = open_delta_table(history.address)
    supported = {"delta.feature.clustering": "supported"}
    schema = Schema((Field("a", PrimitiveType("long")), Field("b", PrimitiveType("long"))))
    for define in (
        lambda: table.upgrade_protocol(["clustering"]),
        lambda: table.set_properties(supported),
        lambda: lv.create_table(f"{history.address}/new", schema, partition_by=["b"], properties=supported),
    ):
        with pytest.raises(InvalidRequestError, match=r"is partitioned by .*, and a table is not clustered as well"):
            define()


def test_types_widen_only_where_readers_are_told(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol(1, 7, writerFeatures=[]), enableTypeWidening="true")
    with pytest.raises(InvalidRequestError, match="or its feature not supported"):
        table.widen_column("id", "long")
    table.set_properties({"delta.enableTypeWidening": "true"})
    table.widen_column("id", "long")
    assert table.snapshot().protocol.reader_features == ("typeWidening",)


@pytest.mark.parametrize("by_property", [True, False], ids=["set again", "supported later"])
@pytest.mark.parametrize(
    ("feature", "name", "text", "keys"),
    [
        ("columnMapping", "columnMapping.mode", "name", ["delta.columnMapping.maxColumnId"]),
        ("rowTracking", "enableRowTracking", "true", list(MATERIALIZED.values())),
    ],
)
def test_a_property_without_its_feature_begins_to_count_as_one_that_is_new(
    history: DeltaHistory, by_property: bool, feature: str, name: str, text: str, keys: list[str]
) -> None:
    table = open_table_with(history, protocol(1, 7, writerFeatures=[]), **{name: text})
    history.commit(history.data("f", {"id": pa.array([7], pa.int32())}, records=1))
    if by_property:
        table.set_properties({f"delta.{name}": text})
    else:
        table.upgrade_protocol([feature])
    assert set(keys) <= recorded(table, "metaData")["configuration"].keys()
    assert table.scan().collect().rows() == [(7,)]
    if feature == "rowTracking":
        assert table.scan(row_tracking=True).collect().rows() == [(7, 0, 2)]


@pytest.mark.parametrize(
    ("name", "text"), [("columnMapping.mode", "id"), ("columnMapping.mode", "name"), ("enableRowTracking", "true")]
)
def test_a_property_without_its_feature_stays_without_force_beside_others(
    history: DeltaHistory, name: str, text: str
) -> None:
    table = open_table_with(history, protocol(1, 2), **{name: text})
    table.set_properties({"owner": "us"})
    metadata_action = recorded(table, "metaData")
    assert metadata_action["configuration"] == {f"delta.{name}": text, "owner": "us"}
    assert "physicalName" not in metadata_action["schemaString"]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.upgrade_protocol(["checkConstraints"]),
        lambda table: table.set_properties({"delta.feature.checkConstraints": "supported"}),
        lambda table: table.add_constraint("d", "id > 0"),
    ],
    ids=["by name", "by property", "by another constraint"],
)
def test_a_constraint_whose_feature_comes_later_is_checked_against_the_rows_there(
    history: DeltaHistory, change: Callable[[DeltaTable], object]
) -> None:
    table = open_table_with(history, protocol(1, 7, writerFeatures=[]), **{"constraints.c": "id > 5"})
    history.commit(history.data("f", {"id": pa.array([7, 3], pa.int32())}, records=2))
    with pytest.raises(ConstraintViolationError, match="1 row"):
        change(table)


@pytest.mark.parametrize("version", [3, 7], ids=["implied", "named"])
def test_a_constraint_in_force_is_not_checked_against_the_rows_again(history: DeltaHistory, version: int) -> None:
    features = {"writerFeatures": ["checkConstraints"]} if version == 7 else {}
    table = open_table_with(history, protocol(1, version, **features), **{"constraints.c": "id > 5"})
    with table.transaction("WRITE") as txn:
        txn.append(pa.table({"id": pa.array([7], pa.int32())}))
        txn.upgrade_protocol(["checkConstraints", "v2Checkpoint"])
    assert "v2Checkpoint" in recorded(table, "protocol")["writerFeatures"]


def test_tables_for_iceberg_widen_as_iceberg_does(history: DeltaHistory) -> None:
    features = ["columnMapping", "typeWidening"]
    protocol_action = protocol(3, 7, readerFeatures=features, writerFeatures=[*features, "icebergCompatV2"])
    table = open_table_with(history, protocol_action, enableTypeWidening="true")
    with pytest.raises(InvalidRequestError, match="does not widen to double, and the table supports icebergCompatV2"):
        table.widen_column("id", "double")
    assert table.widen_column("id", "long") == 1


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        (PrimitiveType("byte"), PrimitiveType("long"), True),
        (PrimitiveType("float"), PrimitiveType("double"), True),
        (PrimitiveType("date"), PrimitiveType("timestamp_ntz"), False),
        (PrimitiveType("long"), DecimalType(20, 0), False),
        (DecimalType(5, 2), DecimalType(9, 2), True),
        (DecimalType(5, 2), DecimalType(9, 3), False),
    ],
)
def test_what_iceberg_widens(before: DataType, after: DataType, allowed: bool) -> None:
    assert widens_in_iceberg(before, after) is allowed


def test_a_new_column_has_no_default(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol())
    column = Field("c", PrimitiveType("long"), metadata={"CURRENT_DEFAULT": "5"})
    with pytest.raises(InvalidRequestError, match="column c is new and has a default"):
        table.evolve(Schema((*table.snapshot().schema.fields, column)))


@pytest.mark.parametrize(
    ("type_", "field_metadata", "words"),
    [
        ("variant", {"delta.generationExpression": "parse_json(s)"}, "neither generated nor has a default"),
        ("variant", {"CURRENT_DEFAULT": "parse_json('1')"}, "neither generated nor has a default"),
        ("long", {"delta.identity.start": 1, "delta.identity.step": 0}, "a step of 0"),
    ],
)
def test_no_column_has_a_rule_that_its_type_does_not_take(
    history: DeltaHistory, type_: str, field_metadata: dict[str, Any], words: str
) -> None:
    table = open_table_with(history, protocol())
    columns = Schema((*table.snapshot().schema.fields, Field("v", PrimitiveType(type_), metadata=field_metadata)))
    with pytest.raises(InvalidRequestError, match=words):
        lv.create_table(f"{history.address}/new", columns)


def test_in_commit_times_count_from_the_commit_whose_feature_gives_the_property_its_force(
    history: DeltaHistory,
) -> None:
    table = open_table_with(history, protocol(), enableInCommitTimestamps="true")
    table.upgrade_protocol(["inCommitTimestamp"])
    time = recorded(table, "commitInfo")["inCommitTimestamp"]
    assert recorded(table, "metaData")["configuration"] == {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
        "delta.inCommitTimestampEnablementTimestamp": str(time),
    }


def test_a_clustered_file_stays_one_when_rows_of_it_are_deleted(history: DeltaHistory) -> None:
    writer = ["deletionVectors", "clustering", "domainMetadata"]
    protocol_action = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=writer)
    table = open_table_with(history, protocol_action, enableDeletionVectors="true")
    rows = {"id": pa.array([1, 2, 3], pa.int32())}
    history.commit(history.data("f", rows, records=3, clusteringProvider="liquid"))
    table.delete("id = 2")
    added = recorded(table, "add")
    assert (added["clusteringProvider"], added["deletionVector"]["cardinality"]) == ("liquid", 1)


def test_a_curve_orders_no_files_that_another_implementation_clustered(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol(1, 7, writerFeatures=["clustering", "domainMetadata"]))
    files = {name: {"id": pa.array(ids, pa.int32())} for name, ids in (("mine", [1]), ("b", [3]), ("a", [2]))}
    providers = {"mine": {"clusteringProvider": "liquid"}, "a": {}, "b": {}}
    history.commit(*(history.data(name, rows, records=1, **providers[name]) for name, rows in files.items()))
    table.optimize(z_order_by="id")
    assert "mine" in table.files()["path"].to_list()
    assert table.files()["records"].sort().to_list() == [1, 2]


def test_a_commit_with_domains_brings_their_feature(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol(1, 7, writerFeatures=["rowTracking"]))
    table.append(pl.DataFrame({"id": [1]}, schema={"id": pl.Int32}))
    assert recorded(table, "protocol")["writerFeatures"] == ["domainMetadata", "rowTracking"]


@pytest.mark.parametrize(
    ("versions", "features", "feature", "after"),
    [
        ((1, 3), [], "checkConstraints", (1, 2, None, None)),
        ((1, 2), [], "appendOnly", (1, 7, None, ["invariants"])),
        ((2, 5), [], "columnMapping", (1, 4, None, None)),
        ((3, 7), ["deletionVectors"], "deletionVectors", (1, 1, None, None)),
        (
            (3, 7), ["invariants", "timestampNtz", "vacuumProtocolCheck"], "vacuumProtocolCheck",
            (3, 7, ["timestampNtz"], ["invariants", "timestampNtz"]),
        ),
        ((3, 7), ["columnMapping", "invariants"], "columnMapping", (1, 7, None, ["invariants"])),
    ],
)  # fmt: skip
def test_a_feature_that_no_version_used_leaves_the_lowest_protocol(
    history: DeltaHistory, versions: tuple[int, int], features: list[str], feature: str, after: tuple[Any, ...]
) -> None:
    readers = [name for name in features if name in READER_FEATURES]
    named = protocol(*versions, readerFeatures=readers, writerFeatures=features)
    table = open_table_with(history, named if features else protocol(*versions))
    assert table.drop_feature(feature) == 1
    now = table.state().protocol
    assert (now.min_reader_version, now.min_writer_version, now.reader_features, now.writer_features) == after
    assert recorded(table, "commitInfo")["operation"] == "DROP FEATURE"
    table.append(pa.table({"id": pa.array([1], pa.int32())}))


def used(table: DeltaTable) -> None:
    """Deletes a row by a deletion vector, and everything that says so but the history."""
    table.append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    table.unset_properties(["delta.enableDeletionVectors"])
    table.delete("id = 2")


def cleaned(table: DeltaTable) -> None:
    """Deletes the commits that are not needed to read the table, which uses a deletion vector."""
    table.append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    table.unset_properties(["delta.enableDeletionVectors"])
    table.checkpoint()
    table.delete("id = 2")
    for version in range(4):
        (Path(table.address) / f"_delta_log/{version:020}.json").unlink()


@pytest.mark.parametrize(
    ("change", "feature", "kind", "message"),
    [
        (lambda t: t.add_constraint("few", "id < 9"), "checkConstraints", InvalidRequestError, "uses checkConstraints"),
        (DeltaTable.refresh, "timeMachine", InvalidRequestError, "has no feature timeMachine"),
        (used, "deletionVectors", UnsupportedTableError, "version 2, which the log still has, used it"),
        (cleaned, "deletionVectors", UnsupportedTableError, "version 4, with which the log begins, uses it"),
        (
            lambda t: t.set_properties({"delta.enableRowTracking": "true"}),
            "domainMetadata", UnsupportedTableError, "rowTracking needs it",
        ),
    ],
)  # fmt: skip
def test_a_feature_that_may_be_used_stays(
    tmp_path: Path, change: Callable[[DeltaTable], object], feature: str, kind: type[LakeviewError], message: str
) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int32())]))
    change(table)
    table = DeltaTable(table.storage)
    version = table.latest_version
    with pytest.raises(kind, match=message):
        table.drop_feature(feature)
    assert not table.refresh()
    assert table.latest_version == version


def test_a_feature_that_is_taken_into_use_meanwhile_stays(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int32())]))
    table.upgrade_protocol(["deletionVectors"])
    txn = table.transaction("DROP FEATURE")
    txn.drop_feature("deletionVectors")
    DeltaTable(table.storage).set_properties({"delta.enableDeletionVectors": "true"})
    with pytest.raises(CommitConflictError, match="it changed the table's metadata"):
        txn.commit()


def test_a_feature_that_a_legacy_version_implied_is_not_taken_into_use_once_dropped(history: DeltaHistory) -> None:
    table = open_table_with(history, protocol(1, 4))
    txn = table.transaction("SET TBLPROPERTIES")
    txn.set_properties({"delta.enableChangeDataFeed": "true"})
    DeltaTable(table.storage).drop_feature("changeDataFeed")
    with pytest.raises(CommitConflictError, match="it dropped the feature changeDataFeed"):
        txn.commit()


def test_features_are_dropped_from_what_the_transaction_leaves(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int32())]))
    table.upgrade_protocol(["vacuumProtocolCheck", "deletionVectors", "changeDataFeed"])
    with table.transaction("DROP FEATURE") as txn:
        txn.drop_feature("vacuumProtocolCheck")
        txn.drop_feature("deletionVectors")
        txn.set_properties({"delta.enableChangeDataFeed": "true"})
        with pytest.raises(InvalidRequestError, match="uses changeDataFeed"):
            txn.drop_feature("changeDataFeed")
    assert table.state().protocol == Protocol(1, 7, None, ["appendOnly", "changeDataFeed", "invariants"])


@pytest.mark.parametrize(
    ("properties", "mode"),
    [
        ({"delta.feature.materializePartitionColumns": "supported"}, "none"),
        ({"delta.enableMaterializePartitionColumnsFeature": "true"}, "name"),
        ({"delta.writePartitionColumnsToParquet": "true"}, "none"),
        (
            {"delta.feature.materializePartitionColumns": "supported", "delta.writePartitionColumnsToParquet": "false"},
            "id",
        ),
    ],
)
def test_files_hold_partition_columns_where_the_table_asks_for_them(
    tmp_path: Path, properties: dict[str, str], mode: str
) -> None:
    features = {**properties, "delta.columnMapping.mode": mode}
    schema = {"part": "string", "id": "long", "day": "date"}
    table = lv.create_table(
        tmp_path / "t",
        schema,
        partition_by=["part", "day"],
        properties={**features, "delta.enableChangeDataFeed": "true"},
    )
    assert isinstance(table, DeltaTable)
    days = [date(2020, 1, 1), None]
    table.append(pl.DataFrame({"part": ["", "é/%"], "id": [1, 2], "day": days}))
    table.update({"id": "id + 5"}, "id = 2")
    table.optimize()
    names = [field.stored_name for field in (table.snapshot().schema[n] for n in ("id", "part", "day"))]
    paths = [path for path in (tmp_path / "t").rglob("*.parquet") if "_delta_log" not in path.parts]
    assert len(paths) > 2
    for path in paths:
        columns = pq.ParquetFile(path).schema_arrow.names
        assert [name for name in columns if name != "_change_type"] == names
        assert columns[-2:] == names[1:]
    rows = [(None, 1, days[0]), ("é/%", 7, None)]
    assert sorted(table.scan().collect().rows(), key=str) == sorted(rows, key=str)
    stored = pl.concat(pl.read_parquet(tmp_path / "t" / p, hive_partitioning=False) for p in table.files()["path"])
    assert sorted(stored.select(names[1], names[0], names[2]).rows(), key=str) == sorted(rows, key=str)
    for action in table.commit(1).filter(kind="add")["action"]:
        assert set(json.loads(json.loads(action)["stats"])["nullCount"]) == {names[0]}
