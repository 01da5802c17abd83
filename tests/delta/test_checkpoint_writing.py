"""Checkpoints that lakeview writes: complete, the same whoever writes them, and readable by others."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.model.config import Config
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import (
    CorruptTableError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.model.schema import Schema
from lakeview.storage import LocalStorage
from tests.builders.actions import Action, add, metadata, protocol, remove, txn
from tests.builders.history import CHECKPOINT_SHAPE, START, STEP, DeltaHistory, log_name
from tests.builders.opening import open_delta_table
from tests.builders.vectors import relative
from tests.differential.oracles import ORACLES
from tests.doctor.diagnosis import TROUBLE
from tests.golden.conformance import GoldenTable, delta_tables

NUMBERS = Schema((Field("id", PrimitiveType("long")), Field("day", PrimitiveType("date"))))
STRUCTS: dict[str, str | None] = {"delta.checkpoint.writeStatsAsStruct": "true"}
STRUCTS_ONLY = {**STRUCTS, "delta.checkpoint.writeStatsAsJson": "false"}


def state(address: str | Path, *, documents: bool = True) -> dict[str, Any]:
    """All that a table is at its latest version; without `documents`, statistics as values alone."""
    table = open_delta_table(address)
    replay, snapshot = table.state(), table.snapshot()
    columns = ["size", "modified", "partition_values", "tags", "base_row_id", "default_row_commit_version", "vector",
               "clustering_provider", *(["stats"] if documents else [])]  # fmt: skip
    removes = replay.removes(
        ["size", "modified", "data_change", "partition_values", "vector", "extended_file_metadata"]
    )
    return {
        "adds": sorted(map(str, replay.adds(columns).select("path", "deletion_vector", *columns).rows())),
        "removes": sorted(map(str, removes.drop("key").rows())),
        "transactions": sorted(snapshot.transactions.rows()),
        "domains": sorted(snapshot.domain_metadata.rows()),
        "metadata": (snapshot.schema, snapshot.properties, snapshot.protocol, snapshot.id, snapshot.name),
        "statistics": sorted(map(str, table.statistics().rows())),
    }


def without_commits(address: object, version: int) -> None:
    """Delete the commits up to a version, so that its checkpoint is all there is."""
    DeltaHistory(address).without(*range(version + 1))


def checkpoint_rows(address: object, version: int, kind: str) -> list[dict[str, Any]]:
    data = (Path(str(address)) / log_name(version, "checkpoint.parquet")).read_bytes()
    rows = pq.read_table(BytesIO(data), columns=[kind]).column(kind).to_pylist(maps_as_pydicts="strict")
    return [row for row in rows if row is not None]


# -- what a checkpoint holds


VECTOR = relative(uuid.UUID(int=7), b"1234", 3)
WHOLE_ADD = add(
    "p=1/a%20b.parquet", partition={"p": "1"}, stats={"numRecords": 9}, tags={"k": "v", "n": None}, baseRowId=5,
    deletionVector=VECTOR, defaultRowCommitVersion=1, clusteringProvider="liquid",
)  # fmt: skip
WHOLE_REMOVE = remove(
    "p=1/a%20b.parquet", at=1_772_352_000_000, extendedFileMetadata=True, partitionValues={"p": "1"}, size=100,
    baseRowId=5, defaultRowCommitVersion=1, stats='{"numRecords":9}', tags={"k": "v"},
)  # fmt: skip


def whole_history(address: Path) -> DeltaHistory:
    """A table with every kind of action, and every field that an add or a remove may have."""
    features = ["clustering", "deletionVectors", "domainMetadata", "rowTracking"]
    history = DeltaHistory(address).commit(
        protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=features),
        metadata({"id": "long", "p": "long"}, partition_by=("p",), name="n", description="d"),
        {"domainMetadata": {"domain": "a.b", "configuration": "{}", "removed": False}},
        {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": False}},
        txn("app", 3, 1_772_352_000_000),
        txn("other", 1),
        add("p=1/a%20b.parquet", partition={"p": "1"}, stats={"numRecords": 9}, baseRowId=5, defaultRowCommitVersion=1),
        add("p=2/c.parquet", partition={"p": None}),
    )
    domain = {"domainMetadata": {"domain": "gone", "configuration": "", "removed": True}}
    return history.commit(WHOLE_ADD, WHOLE_REMOVE, domain, {"cdc": {"path": "x", "partitionValues": {}, "size": 1}})


def test_every_field_of_every_action_is_in_the_checkpoint(tmp_path: Path) -> None:
    whole_history(tmp_path)
    replayed = state(tmp_path)
    assert write_checkpoint(open_delta_table(tmp_path)) == 1
    (whole,) = [row for row in checkpoint_rows(tmp_path, 1, "add") if row["path"].startswith("p=1")]
    assert whole == {**WHOLE_ADD["add"], "dataChange": False}
    (tombstone,) = checkpoint_rows(tmp_path, 1, "remove")
    body = {k: v for k, v in WHOLE_REMOVE["remove"].items() if k not in ("stats", "tags")}
    assert tombstone == {**body, "deletionVector": None}
    assert checkpoint_rows(tmp_path, 1, "domainMetadata") == [
        {"domain": "a.b", "configuration": "{}", "removed": False}
    ]
    without_commits(tmp_path, 1)
    assert state(tmp_path) == replayed


def test_a_protocol_without_features_has_none_in_the_checkpoint(tmp_path: Path) -> None:
    DeltaHistory(tmp_path).create()
    write_checkpoint(open_delta_table(tmp_path))
    (protocol_action,) = checkpoint_rows(tmp_path, 0, "protocol")
    assert protocol_action == {
        "minReaderVersion": 1,
        "minWriterVersion": 2,
        "readerFeatures": None,
        "writerFeatures": None,
    }


@pytest.mark.parametrize(("age", "remaining"), [(6, ["new", "old", "undated"]), (8, ["new", "undated"])])
def test_transactions_expire_where_the_table_says_so(tmp_path: Path, age: int, remaining: list[str]) -> None:
    at = int((START + STEP).timestamp() * 1000)
    history = DeltaHistory(tmp_path).create(properties={"delta.setTransactionRetentionDuration": "interval 7 days"})
    history.commit(txn("old", 1, at - age * 86_400_000), txn("new", 1, at), txn("undated", 1))
    write_checkpoint(open_delta_table(tmp_path))
    assert sorted(row["appId"] for row in checkpoint_rows(tmp_path, 1, "txn")) == remaining


# -- statistics as structs


TYPES: dict[str, Any] = {
    "n": "long", "small": "byte", "f": "double", "text": "string", "at": "timestamp", "local": "timestamp_ntz",
    "d": "date", "money": "decimal(20,2)", "raw": "binary",
    "s": {"type": "struct", "fields": [{"name": "in.ner", "type": "integer", "nullable": True, "metadata": {}}]},
}  # fmt: skip
LOW = {
    "n": -(2**62) - 1, "small": -3, "f": 0.5, "text": 'a"b', "at": "2026-01-02T03:04:05.678Z",
    "local": "2026-01-02T03:04:05.678", "d": "2026-01-02", "money": 123456789012345678.25, "s": {"in.ner": 1},
}  # fmt: skip
COUNTS = {"n": 1, "raw": 2, "s": {"in.ner": 0}}
DOCUMENT = json.dumps(
    {"numRecords": 4, "tightBounds": False, "minValues": LOW, "maxValues": LOW, "nullCount": COUNTS}
).replace("1.2345678901234568e+17", "123456789012345678.25")
VALUES = {
    "n": -(2**62) - 1, "small": -3, "f": 0.5, "text": 'a"b', "at": datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC),
    "local": datetime(2026, 1, 2, 3, 4, 5, 678_000),  # noqa: DTZ001 (a type without zone)
    "d": date(2026, 1, 2), "money": Decimal("123456789012345678.25"),
    "s": {"in.ner": 1},
}  # fmt: skip


def test_statistics_as_structs_have_the_types_of_the_columns(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create({**TYPES, "p": "date"}, partition_by=("p",), properties=STRUCTS)
    history.commit(add("f", stats=DOCUMENT, partition={"p": "2026-03-01"}), add("g", partition={"p": None}))
    replayed = state(tmp_path)
    write_checkpoint(open_delta_table(tmp_path))
    one, other = checkpoint_rows(tmp_path, 1, "add")
    parsed = one["stats_parsed"]
    assert one["stats"] == DOCUMENT
    assert parsed["minValues"] == parsed["maxValues"] == VALUES
    assert (parsed["numRecords"], parsed["tightBounds"]) == (4, False)
    assert {k: v for k, v in parsed["nullCount"].items() if v is not None} == COUNTS
    assert one["partitionValues_parsed"] == {"p": date(2026, 3, 1)}
    assert (other["stats_parsed"], other["partitionValues_parsed"]) == (None, {"p": None})
    without_commits(tmp_path, 1)
    assert state(tmp_path) == replayed


def test_statistics_survive_checkpoints_without_documents_and_become_documents_again(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create(TYPES, properties=STRUCTS_ONLY).commit(add("f", stats=DOCUMENT))
    replayed = state(tmp_path, documents=False)
    write_checkpoint(open_delta_table(tmp_path))
    assert "stats" not in checkpoint_rows(tmp_path, 1, "add")[0]
    without_commits(tmp_path, 1)
    state_after = state(tmp_path, documents=False)
    # of large decimals in structs a reader cannot tell whether they passed through a double: their bounds are wider
    assert {k: v for k, v in state_after.items() if k != "statistics"} == {
        k: v for k, v in replayed.items() if k != "statistics"
    }
    history.commit(metadata(TYPES), version=2)
    write_checkpoint(open_delta_table(tmp_path))
    (again,) = checkpoint_rows(tmp_path, 2, "add")
    recorded = json.loads(DOCUMENT)
    assert json.loads(again["stats"]) == recorded
    assert "123456789012345678.25" in again["stats"]


FAR_DATES = {"after 9999": ("12000-01-15", "12000-02-25"), "before 1": ("-0044-03-15", "-0044-04-25")}


@pytest.mark.parametrize(("low", "high"), FAR_DATES.values(), ids=list(FAR_DATES))
def test_dates_beyond_the_years_that_have_four_digits_become_no_other_days(tmp_path: Path, low: str, high: str) -> None:
    """Ten characters of their text are a date, of the first of the month."""
    history = DeltaHistory(tmp_path).create({"d": "date"}, properties=STRUCTS)
    history.commit(add("f", stats={"numRecords": 1, "minValues": {"d": low}, "maxValues": {"d": high}}))
    write_checkpoint(open_delta_table(tmp_path))
    (row,) = checkpoint_rows(tmp_path, 1, "add")
    assert row["stats_parsed"]["minValues"] == row["stats_parsed"]["maxValues"] == {"d": None}
    assert json.loads(row["stats"])["maxValues"] == {"d": high}


@pytest.mark.parametrize("day", [3_674_593, -735_525], ids=["the year 12030", "the year -44"])
def test_structs_with_days_that_python_has_not_become_documents_without_them(tmp_path: Path, day: int) -> None:
    """As Spark writes them: its dates go on."""
    history = DeltaHistory(tmp_path).create({"d": "date", "i": "long"}).commit(add("f"), add("g"))
    bounds = pa.struct({"d": pa.date32(), "i": pa.int64()})
    parsed = pa.struct({"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds})
    shape = {**CHECKPOINT_SHAPE, "add": {**CHECKPOINT_SHAPE["add"], "stats_parsed": parsed}}
    values = {"d": day, "i": 7}
    stats = {"numRecords": 2, "minValues": values, "maxValues": values}
    first = {"add": {**history.actions[1][0]["add"], "stats_parsed": stats}}
    history.checkpoint(1, actions=[*history.actions[0], first, history.actions[1][1]], shape=shape).without(0, 1)
    table = open_delta_table(tmp_path)
    assert table.statistics()["d"].struct.field("min").to_list() == [None, None]
    history.commit(remove("g"), version=2)
    table.refresh()
    write_checkpoint(table)
    (again,) = checkpoint_rows(tmp_path, 2, "add")
    assert json.loads(again["stats"]) == {"numRecords": 2, "minValues": {"i": 7}, "maxValues": {"i": 7}}


def mapped(name: str, physical: str, type_: Any) -> dict[str, Any]:
    details = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": type_, "nullable": True, "metadata": details}


def test_structs_name_columns_physically_and_hold_the_indexed_ones(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [mapped("deep", "col-3", "long"), mapped("other", "col-4", "long")]}
    schema = {"type": "struct", "fields": [
        mapped("id", "col-1", "long"), mapped("in", "col-2", inner), mapped("p", "col-5", "long"),
        mapped("by", "col-6", "long"),
    ]}  # fmt: skip
    properties = {**STRUCTS, "delta.columnMapping.mode": "name", "delta.dataSkippingStatsColumns": "in.DEEP"}
    history = DeltaHistory(tmp_path).commit(
        protocol(3, 7, readerFeatures=["columnMapping"], writerFeatures=["columnMapping", "clustering"]),
        metadata(schema=json.dumps(schema), partition_by=("p",), properties=properties),
        {"domainMetadata": {
            "domain": "delta.clustering", "configuration": '{"clusteringColumns":[["col-6"]]}', "removed": False,
        }},
    )  # fmt: skip
    low = {"col-1": 1, "col-2": {"col-3": 2, "col-4": 3}, "col-6": 4}
    history.commit(add("f", partition={"col-5": "7"}, stats={"numRecords": 1, "minValues": low, "maxValues": low}))
    write_checkpoint(open_delta_table(tmp_path))
    (add_file,) = checkpoint_rows(tmp_path, 1, "add")
    assert add_file["stats_parsed"]["minValues"] == {"col-2": {"col-3": 2}, "col-6": 4}
    assert add_file["partitionValues_parsed"] == {"col-5": 7}


# -- in which files


def busy_history(address: Path, commits: int = 8, **more: Any) -> DeltaHistory:
    """Files that come and go, with and without deletion vectors."""
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    history = DeltaHistory(address).commit(
        protocol(3, 7, **{k: [*v, *more.get("features", ())] for k, v in features.items()}),
        metadata({"id": "long"}, properties=more.get("properties")),
    )
    at = int(START.timestamp() * 1000)
    for i in range(1, commits):
        actions = [add(f"f{i}-{k} %", stats={"numRecords": k + 1}) for k in range(4)]
        if i > 1:
            vector = relative(uuid.UUID(int=i), b"1234", 1)
            actions += [remove(f"f{i - 1}-0 %", at=at), remove(f"f{i - 1}-1 %", at=at)]
            actions += [add(f"f{i - 1}-1 %", stats={"numRecords": 2}, deletionVector=vector)]
        if i > 3:  # removed long ago, and back
            actions += [add(f"f{i - 3}-0 %", stats={"numRecords": 1})]
        history.commit(*actions)
    return history


@pytest.mark.parametrize("number", ["offset", "sizeInBytes"])
def test_a_vector_that_no_checkpoint_can_describe_is_named(tmp_path: Path, number: str) -> None:
    vector = relative(uuid.UUID(int=1), b"1234", 1) | {number: 1 << 40}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    DeltaHistory(tmp_path).commit(
        protocol(3, 7, **features), metadata({"id": "long"}), add("f", stats={"numRecords": 5}, deletionVector=vector)
    )
    with pytest.raises(CorruptTableError, match=f"{vector['pathOrInlineDv']} cannot be read: .* more than 32 bits"):
        open_delta_table(tmp_path).checkpoint()
    assert not list((tmp_path / "_delta_log").glob("*checkpoint*"))


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three actions are a row group, nine a sidecar."""
    monkeypatch.setattr("lakeview.delta.write.checkpoint.order.GROUP_ROWS", 3)
    monkeypatch.setattr("lakeview.delta.write.checkpoint.files.SIDECAR_ROWS", 9)
    monkeypatch.setattr("lakeview.delta.write.checkpoint.other_actions.FEW_ROWS", 0)


@pytest.mark.usefixtures("small_groups")
def test_a_checkpoint_is_the_same_bytes_whatever_the_log_was_replayed_from(tmp_path: Path) -> None:
    busy_history(tmp_path)
    file = tmp_path / log_name(7, "checkpoint.parquet")
    contents = set()
    for base in (None, 2, 5):
        if base is not None:
            write_checkpoint(open_delta_table(tmp_path), base)
        write_checkpoint(open_delta_table(tmp_path), 7)
        contents.add(file.read_bytes())
        file.unlink()
    assert len(contents) == 1
    (whole,) = contents
    assert pq.ParquetFile(BytesIO(whole)).num_row_groups > 5


@pytest.mark.parametrize("structs", ["false", "true"])
def test_few_actions_that_are_read_at_once_give_the_bytes_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, structs: str
) -> None:
    busy_history(tmp_path, properties={"delta.checkpoint.writeStatsAsStruct": structs})
    write_checkpoint(open_delta_table(tmp_path), 5)
    file = tmp_path / log_name(7, "checkpoint.parquet")
    contents = []
    for are_read_at_once in (True, False):
        if not are_read_at_once:
            monkeypatch.setattr("lakeview.delta.write.checkpoint.order._few_actions", lambda *_: None)
        write_checkpoint(open_delta_table(tmp_path), 7)
        contents.append(file.read_bytes())
        file.unlink()
    assert contents[0] == contents[1]


@pytest.mark.usefixtures("small_groups")
def test_a_checkpoint_in_parts_repeats_itself_and_equals_the_replay(tmp_path: Path) -> None:
    busy_history(tmp_path)
    replayed = state(tmp_path)
    write_checkpoint(open_delta_table(tmp_path), 7, parts=3)
    files = sorted((tmp_path / "_delta_log").glob("*.checkpoint.*.parquet"))
    assert [f.name for f in files] == [f"{7:020d}.checkpoint.{k:010d}.{3:010d}.parquet" for k in (1, 2, 3)]
    first = [f.read_bytes() for f in files]
    assert all(pq.read_metadata(f).num_rows > 4 for f in files), "a hash spreads the files"
    hint = json.loads((tmp_path / "_delta_log/_last_checkpoint").read_bytes())
    rows = [pq.read_metadata(f).num_rows for f in files]
    assert (hint["parts"], hint["size"], hint["sizeInBytes"]) == (3, sum(rows), sum(map(len, first)))
    files[1].unlink()
    files[2].write_bytes(b"another writer's")
    write_checkpoint(open_delta_table(tmp_path), 7, parts=3)
    assert [f.read_bytes() for f in files] == first
    without_commits(tmp_path, 7)
    assert state(tmp_path) == replayed


@pytest.mark.parametrize("kind", ["few actions", "one file", "two parts", "sidecars"])
def test_progress_is_told_by_row_group(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    if kind != "few actions":
        request.getfixturevalue("small_groups")
    busy_history(tmp_path, **(V2 if kind == "sidecars" else {}))
    reports: list[tuple[int, int]] = []
    table = open_delta_table(tmp_path)
    table.checkpoint(parts=2 if kind == "two parts" else None, progress=lambda *done: reports.append(done))
    tables = [pq.read_table(path) for path in (tmp_path / "_delta_log").rglob("*.parquet")]
    columns = [table[name] for table in tables for name in ("add", "remove") if name in table.column_names]
    total = sum(len(column) - column.null_count for column in columns)
    assert reports == sorted(set(reports))
    assert reports[-1] == (total, total)
    assert len(reports) > 5 or kind == "few actions"


@pytest.mark.parametrize("parts", [None, 2], ids=["one file", "two parts"])
def test_a_whole_checkpoint_of_another_writer_stays(tmp_path: Path, parts: int | None) -> None:
    busy_history(tmp_path).checkpoint(4, parts=parts)
    files = sorted((tmp_path / "_delta_log").glob("*.parquet"))
    theirs = [f.read_bytes() for f in files]
    write_checkpoint(open_delta_table(tmp_path), 4, parts=parts)
    assert [f.read_bytes() for f in files] == theirs, "readers may be at it"


IN_PARTS = [f"checkpoint.{part:010d}.{3:010d}.parquet" for part in (1, 2, 3)]


@pytest.mark.parametrize(
    ("requested", "names"),
    [((3, 2), IN_PARTS), ((3, None), IN_PARTS), ((None, 3), ["checkpoint.parquet"]), ((1,), ["checkpoint.parquet"])],
)
def test_a_version_has_one_checkpoint_that_the_kernel_reads(
    tmp_path: Path, requested: Sequence[int | None], names: list[str]
) -> None:
    busy_history(tmp_path)
    for parts in requested:
        write_checkpoint(open_delta_table(tmp_path), 4, parts=parts)
    names_found = sorted(path.name for path in (tmp_path / "_delta_log").glob("*.checkpoint.*"))
    assert names_found == [f"{4:020d}.{name}" for name in names]


@pytest.mark.parametrize("parts", [0, -1, 10_001, 10**9])
def test_a_number_of_parts_that_cannot_be_is_refused(tmp_path: Path, parts: int) -> None:
    DeltaHistory(tmp_path).create()
    with pytest.raises(InvalidRequestError, match="cannot be in") as caught:
        write_checkpoint(open_delta_table(tmp_path), parts=parts)
    assert (caught.value.kind, caught.value.fix) == ("checkpoint-parts", "ask for 1 to 10,000")


@pytest.mark.parametrize("action", [protocol(1, 7, writerFeatures=["timeMachine"]), protocol(1, 8)], ids=["7", "8"])
def test_a_checkpoint_that_would_lose_what_a_feature_records_is_not_written(tmp_path: Path, action: Action) -> None:
    DeltaHistory(tmp_path).commit(action, metadata({"id": "long"}))
    with pytest.raises(UnsupportedTableError, match="Delta writer"):
        write_checkpoint(open_delta_table(tmp_path))
    assert not list((tmp_path / "_delta_log").glob("*checkpoint*"))


V2: dict[str, Any] = {"properties": {"delta.checkpointPolicy": "v2"}, "features": ["v2Checkpoint"]}


@pytest.mark.usefixtures("small_groups")
def test_a_v2_checkpoint_has_sidecars_and_equals_the_replay(tmp_path: Path) -> None:
    busy_history(tmp_path, **V2)
    replayed = state(tmp_path)
    write_checkpoint(open_delta_table(tmp_path))
    (top,) = (tmp_path / "_delta_log").glob("*.checkpoint.*.parquet")
    assert uuid.UUID(top.name.split(".")[2]).version == 4
    rows = pq.read_table(top).to_pylist()
    assert [r["checkpointMetadata"]["version"] for r in rows if r["checkpointMetadata"]] == [7]
    assert not {"add", "remove"} & set(pq.read_schema(top).names)
    sidecars = {r["sidecar"]["path"]: r["sidecar"]["sizeInBytes"] for r in rows if r["sidecar"]}
    on_disk = {p.name: p.stat().st_size for p in (tmp_path / "_delta_log/_sidecars").iterdir()}
    assert sidecars == on_disk
    assert len(sidecars) > 2
    hint = json.loads((tmp_path / "_delta_log/_last_checkpoint").read_bytes())
    assert hint["sizeInBytes"] == top.stat().st_size + sum(on_disk.values())
    without_commits(tmp_path, 7)
    assert state(tmp_path) == replayed


def test_a_table_with_the_v2_feature_has_no_checkpoint_in_parts(tmp_path: Path) -> None:
    busy_history(tmp_path, 2, features=["v2Checkpoint"])
    with pytest.raises(InvalidRequestError, match="must not have checkpoints in parts") as caught:
        write_checkpoint(open_delta_table(tmp_path), parts=2)
    assert caught.value.kind == "checkpoint-parts"
    write_checkpoint(open_delta_table(tmp_path))
    assert (tmp_path / log_name(1, "checkpoint.parquet")).exists(), "its policy is classic"


def test_the_hint_stays_at_the_newest_checkpoint(tmp_path: Path) -> None:
    busy_history(tmp_path, 5)
    write_checkpoint(open_delta_table(tmp_path), 4)
    newest = (tmp_path / "_delta_log/_last_checkpoint").read_bytes()
    write_checkpoint(open_delta_table(tmp_path), 2)
    assert (tmp_path / "_delta_log/_last_checkpoint").read_bytes() == newest


# -- others read it


OTHERS: dict[str, dict[str, str]] = {
    "one file": {}, "structs": {"delta.checkpoint.writeStatsAsStruct": "true"},
    "structs alone": {k: str(v) for k, v in STRUCTS_ONLY.items()}, "sidecars": {"delta.checkpointPolicy": "v2"},
}  # fmt: skip


@pytest.mark.parametrize("properties", OTHERS.values(), ids=OTHERS)
def test_others_read_a_table_from_its_checkpoint_alone(tmp_path: Path, properties: dict[str, str]) -> None:
    table = lv.create_table(str(tmp_path), NUMBERS, partition_by=["day"], properties=properties)
    assert isinstance(table, DeltaTable)
    for i in range(3):
        table.append(pl.DataFrame({"id": [i, i + 10], "day": [date(2026, 1, 1 + i), None]}))
    table.overwrite(pl.DataFrame({"id": [7], "day": [date(2026, 1, 1)]}), where=pl.col("day") == date(2026, 1, 1))
    write_checkpoint(table, 4)
    assert [f.claim for f in open_delta_table(tmp_path).check() if f.severity in TROUBLE] == []
    without_commits(tmp_path, 3)
    expected = [1, 2, 7, 10, 11, 12]
    assert sorted(open_delta_table(tmp_path).scan().collect()["id"]) == expected
    if "delta.checkpointPolicy" not in properties:  # polars' own reader refuses the feature
        rows = pl.scan_delta(str(tmp_path)).collect()  # noqa: TID251 (another reader, as an oracle)
        assert sorted(rows["id"]) == expected
    for oracle in ORACLES.values():
        assert sorted(oracle(str(tmp_path), 4)["id"].to_pylist()) == expected


def test_others_read_a_checkpoint_in_parts(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), NUMBERS)
    assert isinstance(table, DeltaTable)
    for i in range(5):
        table.append(pl.DataFrame({"id": [i], "day": [None]}, schema={"id": pl.Int64, "day": pl.Date}))
    write_checkpoint(table, 5, parts=2)
    without_commits(tmp_path, 4)
    for oracle in ORACLES.values():
        assert sorted(oracle(str(tmp_path), 5)["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_the_hint_is_not_written_through_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_history(tmp_path, 5)
    table = open_delta_table(tmp_path)
    sync = os.fsync
    synced: list[str] = []

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_checkpoint(table, 4)
    assert len(synced) == 2, "the checkpoint and its name"
    assert (tmp_path / "_delta_log/_last_checkpoint").exists()
    assert not [path for path in synced if "_last_checkpoint" in path]


@pytest.mark.parametrize("share", [0, 0.5, 1], ids=["empty", "half", "zeros"])
def test_others_read_a_table_whose_hint_a_power_cut_left_so(tmp_path: Path, share: float) -> None:
    table = lv.create_table(str(tmp_path), {"id": "long"})
    for i in range(3):
        table.append(pl.DataFrame({"id": [i]}))
    table.checkpoint(2)
    hint = tmp_path / "_delta_log/_last_checkpoint"
    data = hint.read_bytes()
    hint.write_bytes(bytes(len(data)) if share == 1 else data[: int(share * len(data))])
    assert sorted(open_delta_table(tmp_path).scan().collect()["id"]) == [0, 1, 2]
    for name, oracle in ORACLES.items():
        assert sorted(oracle(str(tmp_path), 3)["id"].to_pylist()) == [0, 1, 2], name


# -- crashes


class CrashingStorage(LocalStorage):
    """A folder whose process dies at its n-th change: before it, or after it where `after`."""

    def __init__(self, root: object, at: int, *, after: bool) -> None:
        super().__init__(str(root), Config())
        self.left = at
        self.after = after

    def put(self, path: str, data: bytes) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise StoreUnavailableError("the process died", place=path)
        super().put(path, data)
        if self.left == 0:
            raise StoreUnavailableError("the process died", place=path)

    def put_hint(self, path: str, data: bytes) -> None:
        self.put(path, data)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["one file", "parts", "sidecars"])
def test_a_crash_at_any_step_leaves_a_table_that_opens_as_it_was(tmp_path: Path, kind: str, after: bool) -> None:
    parts = 3 if kind == "parts" else None
    busy_history(tmp_path / "whole", 5, **(V2 if kind == "sidecars" else {}))
    for step in range(1, 50):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / str(step))
        replayed = state(folder)
        try:
            write_checkpoint(DeltaTable(CrashingStorage(folder, step, after=after)), parts=parts)
        except LakeviewError:
            assert state(folder) == replayed
        else:
            break
        write_checkpoint(open_delta_table(folder), parts=parts)
        without_commits(folder, 4)
        assert state(folder) == replayed
    assert step == {"one file": 3, "parts": 5, "sidecars": 6}[kind]


# -- tables of other writers


GOLDEN = {
    "basic-dv-no-checkpoint", "canonicalized-paths-special-a--delta", "delta-0.8.0-special-partition",
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol", "partitioned-table-with-dv-large",
    "table_with_partitioning_mapping", "type-widening",
    "v1-multi-part-partitioned-struct-stats-only", "v2-checkpoints-json-without-sidecars",
    "v2-checkpoints-parquet-with-sidecars", "variant-stats-nested-no-checkpoint",
}  # fmt: skip
"""Tables with something of each that a checkpoint has to carry on."""
TABLES = [table for table in delta_tables() if table.name in GOLDEN]


@pytest.mark.golden
@pytest.mark.skipif(not TABLES, reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder")
@pytest.mark.parametrize("golden", TABLES, ids=[t.name for t in TABLES])
def test_a_checkpoint_of_a_golden_table_equals_its_replay(tmp_path: Path, golden: GoldenTable) -> None:
    shutil.copytree(Path(golden.path) / "_delta_log", tmp_path / "_delta_log")
    before = set((tmp_path / "_delta_log").iterdir())
    try:
        latest = open_delta_table(tmp_path).snapshot().version
    except LakeviewError as error:
        with pytest.raises(type(error)):
            write_checkpoint(open_delta_table(tmp_path))
        return
    assert latest is not None
    replayed = state(tmp_path)
    theirs = [file for file in before if re.match(rf"{latest:020d}\.checkpoint\.(\d+\.\d+\.)?parquet$", file.name)]
    for file in theirs:
        file.unlink()
    write_checkpoint(open_delta_table(tmp_path), latest)
    for file in before.difference(theirs):
        if re.match(r"\d{20}\.", file.name):
            file.unlink()
    state_after = state(tmp_path)
    assert set(state_after["removes"]) <= set(replayed["removes"]), "expired ones are dropped"
    documents = open_delta_table(tmp_path).state().properties.get("delta.checkpoint.writeStatsAsJson") != "false"
    uncompared = {"removes"} if documents else {"removes", "adds"}
    assert {k: state_after[k] for k in state_after.keys() - uncompared} == {
        k: replayed[k] for k in replayed.keys() - uncompared
    }
