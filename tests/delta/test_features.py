"""Every table feature there is, in a table that declares it and uses it: what the reader makes of it.

Names as the Delta protocol and its proposals spell them (Table Features; Valid Feature Names), older names included.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.features import READER_FEATURES
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import UnsupportedTableError
from tests.builders.actions import Action, info, metadata, protocol
from tests.builders.history import START, DeltaHistory, log_name
from tests.builders.mapped import field, mapped, stored_field
from tests.builders.variants import BINARIES, spark_variant
from tests.builders.vectors import inline, portable

LONG = {"id": "long"}
Build = Callable[[DeltaHistory, Action], DeltaHistory]
Rows = list[tuple[Any, ...]]


def needing(*reader: str, writer: tuple[str, ...] = ()) -> Action:
    """protocol 3, 7 with these features; every reader feature is a writer feature too."""
    return protocol(3, 7, readerFeatures=list(reader), writerFeatures=[*reader, *writer])


def column(name: str, type_: Any, **metadata_of_column: Any) -> dict[str, Any]:
    """A field of the schemaString with metadata."""
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata_of_column}


def schema(*fields: dict[str, Any]) -> str:
    """A schemaString of these fields."""
    return json.dumps({"type": "struct", "fields": list(fields)})


def plain(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    """One column, one row, the feature declared and no more."""
    return history.commit(protocol_action, metadata(LONG)).commit(history.data("f", {"id": [1]}, records=1))


# -- what readers must understand


def mapped_by(mode: str) -> Build:
    def build(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
        of_file = pa.table(
            [pa.array([7])], schema=pa.schema([stored_field(pa.int64(), 3, None if mode == "name" else "any")])
        )
        declared = mapped(mode, field("id", "long", 3))[1]
        return history.commit(protocol_action, declared).commit(history.data("f", of_file, records=1))

    return build


def masked(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    """70,000 rows of which 69,999 are deleted: full blocks, which are bitmap containers."""
    deleted_ids = [n for n in range(70_000) if n != 65_600]
    add = history.data(
        "f", {"id": list(range(70_000))}, records=70_000, deletionVector=inline(portable(deleted_ids), len(deleted_ids))
    )
    return history.commit(protocol_action, metadata(LONG), add)


def zoneless(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    of_file = pa.table({"id": pa.array([1], pa.timestamp("us"))})
    return history.commit(protocol_action, metadata({"id": "timestamp_ntz"})).commit(history.data("f", of_file))


def v2_checkpoint(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    history.commit(protocol_action, metadata(LONG)).commit(history.data("f", {"id": [1]}, records=1))
    lines = [{"checkpointMetadata": {"version": 1}}, *history.reconciled(1)]
    name = log_name(1, "checkpoint.0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f.json")
    return history.write(name, "\n".join(json.dumps(line) for line in lines).encode()).without(0)


def widened(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    change = {"fromType": "integer", "toType": "long", "tableVersion": 1}
    wide = metadata(schema=schema(column("id", "long", **{"delta.typeChanges": [change]})))
    narrow = history.data("f", {"id": pa.array([1], pa.int32())}, records=1)
    return history.commit(protocol_action, metadata({"id": "integer"}), narrow).commit(wide)


def variant(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    value, names = spark_variant({"a": [1, None]})
    of_file = pa.table({"id": pa.array([{"metadata": names, "value": value}], BINARIES)})
    return history.commit(protocol_action, metadata({"id": "variant"})).commit(history.data("f", of_file, records=1))


def shredded(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    of_file = pa.table({"id": pa.array([{"metadata": spark_variant(1)[1], "value": None, "typed_value": 34}], kind)})
    return history.commit(protocol_action, metadata({"id": "variant"})).commit(history.data("f", of_file, records=1))


def a_point(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
    of_file = pa.table({"id": pa.array([b"\x01\x01"])})
    return history.commit(protocol_action, metadata({"id": "geometry(OGC:CRS84)"})).commit(
        history.data("f", of_file, records=1)
    )


READ: dict[str, tuple[Build, object]] = {
    "columnMapping": (mapped_by("name"), 7),
    "deletionVectors": (masked, 65_600),
    "timestampNtz": (zoneless, pl.select(pl.datetime(1970, 1, 1, microsecond=1)).item()),
    "v2Checkpoint": (v2_checkpoint, 1),
    "vacuumProtocolCheck": (plain, 1),
    "typeWidening": (widened, 1),
    "typeWidening-preview": (widened, 1),
    "variantType": (variant, '{"a":[1,null]}'),
    "variantType-preview": (variant, '{"a":[1,null]}'),
    "variantShredding": (shredded, "34"),
    "variantShredding-preview": (shredded, "34"),
    "geospatial": (a_point, b"\x01\x01"),
}
"""Reader features that are understood: a table that uses one, and the value of its only row."""


@pytest.mark.parametrize("feature", READ)
def test_a_reader_feature_is_read(history: DeltaHistory, feature: str) -> None:
    build, value = READ[feature]
    table = lv.open_table(build(history, needing(feature)).address)
    rows = table.scan().collect()
    assert rows.rows() == [(value,)]
    assert rows.columns == ["id"]
    assert table.snapshot().num_files == 1
    assert table.snapshot().protocol.reader_features == (feature,)
    assert table.versions().filter("readable")["version"].max() == table.snapshot().version
    assert isinstance(table, DeltaTable)
    assert table.changes(table.snapshot().version).collect().columns[0] == "id"


def test_every_reader_feature_that_is_implemented_has_its_table() -> None:
    assert READ.keys() == READER_FEATURES


def test_columns_by_field_id_need_no_more_than_the_same_feature(history: DeltaHistory) -> None:
    table = lv.open_table(mapped_by("id")(history, needing("columnMapping")).address)
    assert table.scan().collect().rows() == [(7,)]


def test_all_reader_features_at_once(history: DeltaHistory) -> None:
    history.commit(needing(*READ), mapped("id", field("id", "long", 3), field("v", "variant", 4))[1])
    value, names = spark_variant("x")
    of_file = pa.table(
        [pa.array([1, 2, 3], pa.int32()), pa.array([{"metadata": names, "value": value}] * 3, BINARIES)],
        schema=pa.schema([stored_field(pa.int32(), 3), stored_field(BINARIES, 4)]),
    )
    add = history.data("f", of_file, records=3, deletionVector=inline(portable([1]), 1))
    table = lv.open_table(history.commit(add).address)
    assert table.scan().collect().rows() == [(1, '"x"'), (3, '"x"')]
    assert table.snapshot().protocol.reader_features == tuple(READ)


# -- what no reader of ours understands

REFUSED = {
    "timestampNanos": "unsupported-reader-feature",
    "materializedVoidType": "unsupported-reader-feature",
    "intervals": "unsupported-reader-feature",
    "redirectReaderWriter-preview": "unsupported-reader-feature",
    "adaptiveMetadata-preview": "unsupported-reader-feature",
    "a feature of tomorrow": "unsupported-reader-feature",
    "catalogManaged": "catalog-managed",
    "catalogOwned-preview": "catalog-managed",
}


@pytest.mark.parametrize("feature", REFUSED)
def test_a_reader_feature_is_refused_by_name_and_the_log_shown(history: DeltaHistory, feature: str) -> None:
    history.commit(info(operation="CREATE"), protocol(), metadata(LONG))
    history.commit(info(operation="WRITE"), history.data("f", {"id": [1]}, records=1))
    history.commit(info(operation="UPGRADE"), needing("timestampNtz", feature))
    table = lv.open_table(history.address)
    for use in (table.snapshot, table.files, table.scan):
        with pytest.raises(UnsupportedTableError) as caught:
            use()
        assert caught.value.kind == REFUSED[feature]
        assert feature in caught.value.message
        assert caught.value.fix
    assert table.history()["operation"].to_list() == ["UPGRADE", "WRITE", "CREATE"]
    assert table.schemas().height == 1
    assert table.scan(1).collect().rows() == [(1,)]
    by_number = REFUSED[feature] == "catalog-managed"  # what is published is certain; only the latest is not
    assert table.versions()["readable"].to_list() == [by_number, True, True]
    assert isinstance(table, DeltaTable)
    assert table.check()


# -- what only writers must understand


def of_metadata(*fields: dict[str, Any], **properties: str | None) -> Build:
    """A table with these fields and properties."""

    def build(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
        delta_properties = {name.replace("_", "."): value for name, value in properties.items()}
        of_schema = schema(*(fields or (column("id", "long"),)))
        history.commit(
            info(operation="CREATE", inCommitTimestamp=_ICT),
            protocol_action,
            metadata(schema=of_schema, properties=delta_properties),
        )
        return history.commit(info(inCommitTimestamp=_ICT + 5), history.data("f", {"id": [1]}, records=1))

    return build


def with_domain(domain: str, configuration: str) -> Build:
    """A table that something is kept beside."""

    def build(history: DeltaHistory, protocol_action: Action) -> DeltaHistory:
        domain_action = {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": False}}
        return plain(history, protocol_action).commit(domain_action)

    return build


_ICT = int(START.timestamp() * 1000) + 86_400_000
_CLUSTERED = ("delta.clustering", '{"clusteringColumns":[["id"]]}')
_IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
_INVARIANT = json.dumps({"expression": {"expression": "id > 0"}})

WRITERS: dict[str, Build] = {
    "appendOnly": of_metadata(delta_appendOnly="true"),
    "invariants": of_metadata(column("id", "long", **{"delta.invariants": _INVARIANT})),
    "checkConstraints": of_metadata(delta_constraints_positive="id > 0"),
    "generatedColumns": of_metadata(column("id", "long", **{"delta.generationExpression": "1"})),
    "allowColumnDefaults": of_metadata(column("id", "long", CURRENT_DEFAULT="0")),
    "identityColumns": of_metadata(column("id", "long", **_IDENTITY)),
    "changeDataFeed": of_metadata(delta_enableChangeDataFeed="true"),
    "inCommitTimestamp": of_metadata(delta_enableInCommitTimestamps="true"),
    "domainMetadata": with_domain("theirs", "anything"),
    "rowTracking": with_domain("delta.rowTracking", '{"rowIdHighWaterMark":0}'),
    "clustering": with_domain(*_CLUSTERED),
    "liquid": with_domain(*_CLUSTERED),
    "icebergCompatV1": of_metadata(delta_enableIcebergCompatV1="true"),
    "icebergCompatV2": of_metadata(delta_enableIcebergCompatV2="true"),
    "icebergCompatV3": of_metadata(delta_enableIcebergCompatV3="true"),
    "icebergWriterCompatV1": of_metadata(delta_enableIcebergWriterCompatV1="true"),
    "materializePartitionColumns": plain,
    "collations": of_metadata(column("id", "long"), column("c", "string", __COLLATIONS={"c": "ICU.de_CI"})),
    "collations-preview": of_metadata(column("id", "long"), column("c", "string", __COLLATIONS={"c": "ICU.de_CI"})),
    "checkpointProtection": of_metadata(delta_requireCheckpointProtectionBeforeVersion="1"),
    "a feature of tomorrow": plain,
}
"""Features that ask nothing of a reader: a table that uses each."""

RULES = {
    "invariants": ("id", "invariant", None, "id > 0"),
    "checkConstraints": (None, "check", "positive", "id > 0"),
    "generatedColumns": ("id", "generated", None, "1"),
    "allowColumnDefaults": ("id", "default", None, "0"),
    "identityColumns": ("id", "identity", None, "from 1, by 1"),
    "clustering": ("id", "clustering", None, "1 of 1"),
    "liquid": ("id", "clustering", None, "1 of 1"),
}
"""What of them is shown among the table's rules."""


@pytest.mark.parametrize("feature", WRITERS)
def test_a_writer_feature_stops_no_reader(history: DeltaHistory, feature: str) -> None:
    table = lv.open_table(WRITERS[feature](history, protocol(1, 7, writerFeatures=[feature])).address)
    assert table.scan().select("id").collect().rows() == [(1,)]
    assert table.snapshot().num_records == 1
    assert table.versions()["readable"].all()
    rules = table.snapshot().rules.rows()
    assert (RULES[feature] in rules) if feature in RULES else not [rule for rule in rules if rule[1] != "collation"]


def test_in_commit_timestamps_are_the_times_of_versions(history: DeltaHistory) -> None:
    WRITERS["inCommitTimestamp"](history, protocol(1, 7, writerFeatures=["inCommitTimestamp"]))
    told_times = lv.open_table(history.address).history()["timestamp"].dt.epoch("ms").to_list()
    assert told_times == [_ICT + 5, _ICT]
