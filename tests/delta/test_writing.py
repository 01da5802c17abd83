"""Transactions: what they write, what they refuse, and that what fails leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.log_segment import checksum
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.transaction import Transaction
from lakeview.model.data_types import DecimalType, Field, PrimitiveType
from lakeview.model.errors import (
    CommitConflictError,
    ConstraintViolationError,
    CorruptTableError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
)
from lakeview.model.schema import Schema
from lakeview.storage import LocalStorage
from tests.builders.actions import add, metadata, protocol
from tests.builders.history import START, DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.stores import FarStorage

ORDERS = Schema((Field("id", PrimitiveType("long"), nullable=False), Field("city", PrimitiveType("string"))))


def rows(*ids: int, city: str | None = "Rome") -> pl.DataFrame:
    return pl.DataFrame({"id": list(ids), "city": [city] * len(ids)}, schema={"id": pl.Int64, "city": pl.String})


def orders(address: object, **more: Any) -> DeltaTable:
    table = lv.create_table(str(address), ORDERS, **more)
    assert isinstance(table, DeltaTable)
    return table


def ids(table: lv.Table) -> list[int]:
    return sorted(lv.open_table(table.address).scan().collect()["id"].to_list())


def files_on_disk(address: object) -> list[str]:
    root = Path(str(address))
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def last_commit(table: lv.Table) -> dict[str, Any]:
    latest = lv.open_table(table.address)
    return {k: json.loads(a) for k, a in latest.commit(latest.latest_version).select("kind", "action").iter_rows()}


def ticking(start: datetime = START, step: timedelta = timedelta(seconds=1)) -> Callable[[], datetime]:
    moments = iter(start + i * step for i in range(10**6))
    return lambda: next(moments)


# -- creating


def test_a_new_table_is_empty_and_whole(address: str) -> None:
    table = orders(address, name="orders", description="what was sold", partition_by=["city"], properties={"a": "b"})
    snapshot = table.snapshot()
    assert (snapshot.version, snapshot.num_files, snapshot.num_records) == (0, 0, 0)
    assert (snapshot.name, snapshot.description, snapshot.properties) == ("orders", "what was sold", {"a": "b"})
    assert snapshot.partition_columns == ["city"]
    assert snapshot.schema == ORDERS
    assert len(str(snapshot.id)) == 36
    assert snapshot.protocol.label == "reader 1 · writer 2"
    assert table.scan().collect().height == 0
    assert table.history()["operation"].to_list() == ["CREATE TABLE"]


NTZ = Schema((Field("t", PrimitiveType("timestamp_ntz")),))
ICT = {"delta.enableInCommitTimestamps": "true"}
PROTOCOLS: dict[str, tuple[Schema, dict[str, str], tuple[int, int], list[str] | None, list[str] | None]] = {
    "nothing special": (ORDERS, {}, (1, 2), None, None),
    "append-only": (ORDERS, {"delta.appendOnly": "true"}, (1, 2), None, None),
    "timestamps without zone": (NTZ, {}, (3, 7), ["timestampNtz"], ["timestampNtz"]),
    "in-commit timestamps": (ORDERS, ICT, (1, 7), None, ["inCommitTimestamp"]),
    "both, append-only": (
        NTZ, {**ICT, "delta.appendOnly": "true"}, (3, 7), ["timestampNtz"],
        ["appendOnly", "inCommitTimestamp", "timestampNtz"],
    ),
    "a constraint": (ORDERS, {"delta.constraints.c": "id > 0"}, (1, 7), None, ["checkConstraints"]),
    "mapped columns": (
        ORDERS, {"delta.columnMapping.mode": "name"}, (3, 7), ["columnMapping"], ["columnMapping"],
    ),
    "deletion vectors": (
        ORDERS, {"delta.enableDeletionVectors": "true"}, (3, 7), ["deletionVectors"], ["deletionVectors"],
    ),
    "row tracking": (ORDERS, {"delta.enableRowTracking": "true"}, (1, 7), None, ["domainMetadata", "rowTracking"]),
    "a change data feed": (ORDERS, {"delta.enableChangeDataFeed": "true"}, (1, 7), None, ["changeDataFeed"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "properties", "versions", "reader", "writer"), PROTOCOLS.values(), ids=[f"for {w}" for w in PROTOCOLS]
)
def test_a_new_table_asks_no_more_of_others_than_it_needs(
    tmp_path: Path,
    schema: Schema,
    properties: dict[str, str],
    versions: tuple[int, int],
    reader: list[str] | None,
    writer: list[str] | None,
) -> None:
    lv.create_table(str(tmp_path), schema, properties=properties)
    table_protocol = lv.open_table(str(tmp_path)).snapshot().protocol
    assert (table_protocol.min_reader_version, table_protocol.min_writer_version) == versions
    assert table_protocol.reader_features == (None if reader is None else tuple(reader))
    assert table_protocol.writer_features == (None if writer is None else tuple(writer))


def test_the_schema_of_a_table_may_be_that_of_a_polars_frame(tmp_path: Path) -> None:
    schema = pl.Schema(
        {
            "id": pl.Int64(),
            "at": pl.Datetime("us", "UTC"),
            "price": pl.Decimal(12, 2),
            "place": pl.Struct({"city": pl.String()}),
            "tags": pl.List(pl.String()),
        }
    )
    lv.create_table(str(tmp_path), schema, partition_by=["id"])
    assert lv.open_table(str(tmp_path)).snapshot().schema.to_polars() == schema


def test_a_table_is_not_created_over_another(tmp_path: Path) -> None:
    orders(tmp_path)
    before = files_on_disk(tmp_path)
    with pytest.raises(CommitConflictError) as caught:
        orders(tmp_path)
    assert caught.value.message == f"{tmp_path} holds a table already"
    assert (caught.value.kind, caught.value.fix) == ("table-exists", "open it, or choose another address")
    assert files_on_disk(tmp_path) == before


def test_no_table_is_created_among_files_of_others(tmp_path: Path) -> None:
    source = orders(tmp_path / "source")
    target = tmp_path / "target"
    (target / "day=1").mkdir(parents=True)
    (target / "_checkpoints").mkdir()
    (target / "_checkpoints/offsets").touch()
    (target / "day=1/rows.parquet").touch()
    makers: list[Callable[[], object]] = [lambda: orders(target), lambda: source.clone(str(target))]
    for make in makers:
        with pytest.raises(InvalidRequestError, match="has files and no table, of which a vacuum") as caught:
            make()
        assert (caught.value.kind, "convert_to_delta" in (caught.value.fix or "")) == ("files-without-table", True)
    assert files_on_disk(target) == ["_checkpoints/offsets", "day=1/rows.parquet"]
    (target / "day=1/rows.parquet").unlink()
    (target / "day=1").rmdir()
    assert orders(target).latest_version == 0, "hidden files are no rows of the table, and stay"


def test_a_folder_of_partitions_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "_day=1").mkdir()
    (tmp_path / "_day=1/rows.parquet").touch()
    with pytest.raises(InvalidRequestError, match="has files and no table, of which a vacuum"):
        lv.create_table(str(tmp_path), {"id": pl.Int64, "_day": pl.Int64}, partition_by=["_day"])


def test_a_table_that_is_made_while_its_folder_is_listed_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_checkpoints").touch()
    folders = LocalStorage.folders

    def late(storage: LocalStorage, folder: str) -> list[str]:
        monkeypatch.setattr(LocalStorage, "folders", folders)
        orders(tmp_path)
        (tmp_path / "day=1").mkdir()
        return folders(storage, folder)

    monkeypatch.setattr(LocalStorage, "folders", late)
    with pytest.raises(CommitConflictError, match="holds a table already"):
        orders(tmp_path)


@pytest.mark.parametrize("name", ["v1.metadata.json", "00000-a.gz.metadata.json", "00001-b.metadata.json.gz"])
def test_no_table_takes_the_place_of_an_iceberg_table(tmp_path: Path, name: str) -> None:
    source = orders(tmp_path / "source")
    target = tmp_path / "target"
    (target / "metadata").mkdir(parents=True)
    (target / "metadata" / name).touch()
    pl.DataFrame({"id": [1]}).write_parquet(target / "deleted.parquet")
    makers: list[Callable[[], object]] = [
        lambda: orders(target), lambda: source.clone(str(target)), lambda: lv.convert_to_delta(str(target)),
    ]  # fmt: skip
    for make in makers:
        with pytest.raises(CommitConflictError, match="holds a table already"):
            make()
    assert files_on_disk(target) == ["deleted.parquet", f"metadata/{name}"]


NESTED = Schema((Field("x", PrimitiveType("long")), Field("s", PrimitiveType("string"))))
IMPOSSIBLE: list[tuple[str, dict[str, Any], type[LakeviewError], str]] = [
    ("two columns that differ by case only", {"schema": pa.schema([("a", "int64"), ("A", "int64")])},
     InvalidRequestError, "two columns are called a, case aside"),
    ("two columns of one name", {"schema": pa.schema([("a", "int64"), ("a", "string")])},
     InvalidRequestError, "two columns are called a, case aside"),
    ("an unknown partition column", {"partition_by": ["planet"]}, InvalidRequestError, "planet is not in the schema"),
    ("partition columns only", {"partition_by": ["id", "city"]}, InvalidRequestError, "every column is a partition"),
    ("a partition column twice", {"partition_by": ["city", "city"]}, InvalidRequestError, "city is named twice"),
    ("a partition column without a name", {"schema": pa.schema([("", "int64"), ("b", "int64")]), "partition_by": [""]},
     InvalidRequestError, "a partition column has an empty name"),
    ("a list as partition column", {"schema": pa.schema([("a", pa.list_(pa.int64())), ("b", "int64")]),
     "partition_by": ["a"]}, InvalidRequestError, "a is array<long>, which cannot be a partition column"),
    ("a type no table holds", {"schema": pa.schema([("a", pa.duration("s"))])}, UnsupportedTableError,
     "which a table cannot hold"),
    ("a polars type no table holds", {"schema": pl.Schema({"a": pl.Duration()})}, UnsupportedTableError,
     "which a table cannot hold"),
    ("a polars type of its own", {"schema": {"a": pl.Int128}}, InvalidRequestError, "Int128, which is no type"),
    ("a null character in a name", {"schema": {"\0a": pl.Int64}}, InvalidRequestError, "holds a null character"),
    ("no type at all", {"schema": {"a": "nope"}}, InvalidRequestError, "'nope', which is no type that rows can have"),
    ("another format", {"format": "iceberg"}, UnsupportedTableError, "lakeview creates no iceberg tables"),
    ("a feature that is not written", {"properties": {"delta.enableIcebergCompatV1": "true"}}, UnsupportedTableError,
     "icebergCompatV1"),
]  # fmt: skip


def test_a_partition_value_may_be_longer_than_the_name_of_a_folder(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"p": pl.String, "id": pl.Int64}, partition_by=["p"])
    frame = pl.DataFrame({"p": ["p" * 300, "\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 50], "id": [1, 2]})
    table.append(frame)
    assert sorted(table.scan().collect().rows()) == sorted(frame.rows())


@pytest.mark.parametrize(
    ("arguments", "error", "words"), [row[1:] for row in IMPOSSIBLE], ids=[f"with {row[0]}" for row in IMPOSSIBLE]
)
def test_an_impossible_table_is_not_created(
    tmp_path: Path, arguments: dict[str, Any], error: type[LakeviewError], words: str
) -> None:
    with pytest.raises(error, match=words):
        lv.create_table(str(tmp_path), **{"schema": ORDERS, **arguments})
    assert files_on_disk(tmp_path) == []


def test_a_remote_store_that_cannot_create_exclusively_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError) as caught:
        lv.create_table("data://lake/t", ORDERS)
    assert caught.value.kind == "unsupported-store"
    assert caught.value.message.startswith("data:// cannot create a file only if it is absent")
    assert (
        caught.value.fix
        == "give the storage option commit_coordinator, such as sqlite:///var/lib/lakeview/commits.db, to all writers"
    )


# -- appending, overwriting, removing


def test_appends_overwrites_and_removals_are_seen(address: str) -> None:
    table = orders(address, partition_by=["city"])
    assert table.append(rows(1, 2)) == 1
    assert table.append(rows(3, city="Oslo")) == 2
    assert ids(table) == [1, 2, 3]
    assert table.overwrite(rows(4, city="Oslo"), where="city = 'Oslo'") == 3
    assert ids(table) == [1, 2, 4]
    with table.transaction("DELETE") as txn:
        assert txn.remove("city = 'Rome'") == 1
    assert ids(table) == [4]
    assert table.overwrite(rows(9)) == 5
    assert ids(table) == [9]
    assert [table.scan(v).collect().height for v in range(6)] == [0, 2, 3, 3, 1, 1]
    history = table.history().sort("version")
    assert history["files_added"].to_list() == [0, 1, 1, 1, 0, 1]
    assert history["files_removed"].to_list() == [0, 0, 0, 1, 1, 1]
    assert history["records_added"].to_list() == [0, 2, 1, 1, 0, 1]
    assert history["records_removed"].to_list() == [0, 0, 0, 1, 2, 1]
    assert history["bytes_removed"].null_count() == 0
    assert table.snapshot().num_records == 1


def test_null_and_the_empty_text_share_a_partition(tmp_path: Path) -> None:
    table = orders(tmp_path, partition_by=["city"])
    table.append(pl.concat([rows(1, city=None), rows(2, city="")]))
    assert table.snapshot().files["partition_text"].unique().to_list() == ["city=null"]
    assert table.scan().collect()["city"].to_list() == [None, None]
    with table.transaction() as txn:
        txn.remove("city IS NULL")
    assert ids(table) == []


def test_a_commit_says_who_did_what(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with table.transaction("WRITE", user="ada", user_metadata="note", engine="loader/3", clock=ticking()) as txn:
        txn.append(rows(1, 2))
    info = last_commit(table)["commitInfo"]
    assert info["operation"] == "WRITE"
    assert (info["userName"], info["userMetadata"], info["engineInfo"]) == ("ada", "note", "loader/3")
    assert (info["readVersion"], info["isBlindAppend"], info["isolationLevel"]) == (0, True, "Serializable")
    metrics = info["operationMetrics"]
    assert (metrics["numFiles"], metrics["numOutputRows"], metrics["numRemovedFiles"]) == ("1", "2", "0")
    assert int(metrics["numOutputBytes"]) == table.snapshot().size_bytes
    assert table.history()["user"].to_list() == ["ada", None]


def test_metrics_have_the_names_and_the_zeros_that_other_engines_record(tmp_path: Path) -> None:
    table = orders(tmp_path, partition_by=["city"])
    table.append(rows(1, 2))
    with table.transaction() as txn:
        txn.append(rows(3, city="Oslo"), statistics=False)
    table.set_properties({"delta.logRetentionDuration": "interval 3 days"})
    assert last_commit(table)["commitInfo"]["operationMetrics"] == {}
    table.delete("city = 'Rome'")
    metrics = last_commit(table)["commitInfo"]["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numRemovedFiles"]) == ("2", "1")
    assert (metrics["numCopiedRows"], metrics["numDeletionVectorsAdded"]) == ("0", "0")
    table.delete("city = 'Oslo'")
    assert "numDeletedRows" not in last_commit(table)["commitInfo"]["operationMetrics"], "nothing counted its rows"
    table.merge(rows(1), "id").when_matched_delete().when_not_matched_insert().execute()
    metrics = last_commit(table)["commitInfo"]["operationMetrics"]
    assert (metrics["numTargetRowsInserted"], metrics["numTargetRowsMatchedDeleted"]) == ("1", "0")
    assert int(metrics["numTargetBytesAdded"]) == table.snapshot().size_bytes


def test_parameters_have_the_forms_that_other_engines_record(tmp_path: Path) -> None:
    table = orders(tmp_path / "orders", partition_by=["city"], properties={"owner": "ada"})
    created = last_commit(table)["commitInfo"]["operationParameters"]
    assert (created["partitionBy"], created["properties"]) == ('["city"]', '{"owner":"ada"}')
    table.append(rows(1))
    assert last_commit(table)["commitInfo"]["operationParameters"] == {"mode": "Append", "partitionBy": '["city"]'}
    table.add_column("note", pl.String)
    column = '[{"column":{"name":"note","type":"string","nullable":true,"metadata":{}}}]'
    assert last_commit(table)["commitInfo"]["operationParameters"] == {"columns": column}
    table.upgrade_protocol(["deletionVectors"])
    protocol = json.loads(last_commit(table)["commitInfo"]["operationParameters"]["newProtocol"])
    assert protocol == last_commit(table)["protocol"]
    table.clone(str(tmp_path / "clone"))
    cloned = last_commit(lv.open_table(str(tmp_path / "clone")))["commitInfo"]["operationParameters"]
    assert (cloned["sourceVersion"], cloned["isShallow"]) == (3, True)


def test_an_application_records_how_far_it_got(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with table.transaction() as txn:
        txn.append(rows(1))
        txn.set_transaction("stream", 7)
    assert table.snapshot().transactions.select("app_id", "version").rows() == [("stream", 7)]


def test_a_transaction_without_changes_commits_nothing(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with table.transaction() as txn:
        pass
    assert txn.version is None
    assert table.latest_version == 0


@pytest.mark.parametrize("recreated", [True, False], ids=["created again", "moved away"])
def test_a_table_that_is_there_no_more_is_not_written(tmp_path: Path, recreated: bool) -> None:
    table = orders(tmp_path / "orders")
    table.append(rows(1))
    (tmp_path / "orders").rename(tmp_path / "elsewhere")
    if recreated:
        orders(tmp_path / "orders")
    with pytest.raises(CorruptTableError, match="was moved away, or deleted and created again") as caught:
        table.append(rows(2))
    assert caught.value.kind == "another-table"
    assert caught.value.fix == "open it again"
    assert [p.name for p in tmp_path.glob("orders/**/*.json")] == ["00000000000000000000.json"] * recreated
    assert lv.open_table(tmp_path / "elsewhere").latest_version == 1


def test_a_transaction_commits_once(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with table.transaction() as txn:
        txn.append(rows(1))
        assert txn.commit() == 1
    assert txn.commit() == 1
    assert table.latest_version == 1


def test_columns_may_be_added_and_old_rows_have_none(tmp_path: Path) -> None:
    table = orders(tmp_path)
    table.append(rows(1))
    with table.transaction() as txn:
        txn.evolve(Schema((*ORDERS.fields, Field("price", DecimalType(10, 2)))))
        txn.append(rows(2).with_columns(price=pl.lit(Decimal("1.50"), pl.Decimal(10, 2))))
    assert table.scan().sort("id").collect()["price"].to_list() == [None, Decimal("1.50")]
    assert table.schemas()["version"].to_list() == [0, 2]
    assert table.history()["schema_changed"].to_list() == [True, False, True]


CHANGES: list[tuple[str, Schema, str]] = [
    ("a dropped column", Schema(ORDERS.fields[:1]), "column city would be dropped"),
    ("another type", Schema((ORDERS.fields[0], Field("city", PrimitiveType("long")))), "from string to long"),
    ("a new rule", Schema((ORDERS.fields[0], Field("city", PrimitiveType("string"), nullable=False))),
     "column city would no longer be nullable"),
    ("a new column without nulls", Schema((*ORDERS.fields, Field("x", PrimitiveType("long"), nullable=False))),
     "column x is new and must be nullable"),
    ("a name in another case", Schema((*ORDERS.fields, Field("CITY", PrimitiveType("string")))), "case aside"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "words"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_an_unsafe_change_of_schema_is_refused(tmp_path: Path, schema: Schema, words: str) -> None:
    table = orders(tmp_path)
    with pytest.raises(InvalidRequestError, match=words) as caught, table.transaction() as txn:
        txn.evolve(schema)
    assert caught.value.kind == "schema-change"
    fix = "rename one of them, or drop it: names" if words == "case aside" else "add nullable columns only; rewrite"
    assert str(caught.value.fix).startswith(fix)
    assert table.refresh() is False


def test_a_commit_that_replaces_every_file_may_replace_the_schema(tmp_path: Path) -> None:
    table = orders(tmp_path)
    table.append(rows(1))
    other = Schema((Field("city", PrimitiveType("long")),))
    with table.transaction("WRITE") as txn:
        txn.remove()
        txn.replace_schema(other)
        txn.append(pl.DataFrame({"city": [5]}))
    assert table.snapshot().schema == other
    assert table.scan().collect().to_dicts() == [{"city": 5}]
    assert table.scan(1).collect().columns == ["id", "city"]


def test_a_commit_that_replaces_every_file_may_replace_the_partitions(tmp_path: Path) -> None:
    day = Field("day", PrimitiveType("date"))
    table = lv.create_table(
        str(tmp_path / "t"), Schema((day, Field("id", PrimitiveType("long")))), partition_by=["day"]
    )
    table.append(pl.DataFrame({"day": [date(2026, 1, 1)], "id": [1]}))
    failing = table.transaction()
    failing.remove()
    with pytest.raises(InvalidRequestError, match="partition column day is not in the schema"):
        failing.replace_schema(Schema((Field("id", PrimitiveType("long")),)))
    with table.transaction("WRITE") as txn:
        txn.remove()
        txn.replace_schema(txn.schema, ["id"])
        txn.append(pl.DataFrame({"day": [date(2026, 1, 2)], "id": [2]}))
    assert table.files()["partition"].to_list() == [{"id": 2}]
    other_case = table.transaction()
    other_case.remove()
    other_case.replace_schema(Schema((day, Field("ID", PrimitiveType("long")))))
    assert other_case.definition.partition_columns == ["ID"]
    assert deltalake.DeltaTable(table.address).to_pyarrow_table().to_pylist() == table.scan().collect().to_dicts()
    assert table.scan(1).collect().rows() == [(date(2026, 1, 1), 1)]


def test_the_schema_of_files_that_stay_is_not_replaced(tmp_path: Path) -> None:
    table = orders(tmp_path)
    table.append(rows(1))
    with pytest.raises(InvalidRequestError, match="replaces all of its files first"), table.transaction() as txn:
        txn.replace_schema(Schema((Field("city", PrimitiveType("long")),)))
    assert table.latest_version == 1


def test_properties_are_set_beside_the_others(tmp_path: Path) -> None:
    table = orders(tmp_path, properties={"a": "1", "b": "2"})
    with table.transaction("SET TBLPROPERTIES") as txn:
        txn.set_properties({"b": "3", "delta.appendOnly": "true"})
    assert table.snapshot().properties == {"a": "1", "b": "3", "delta.appendOnly": "true"}


# -- refusals


def _frames() -> Iterator[tuple[str, Any, type[LakeviewError], str, str, str]]:
    yield (
        "a null in a column that has none",
        pl.DataFrame({"id": [1, None], "city": ["x", "y"]}),
        ConstraintViolationError,
        "not-null",
        "column id must not be null, and 1 of the rows have none",
        "id",
    )
    yield (
        "a missing column that must not be null",
        pl.DataFrame({"city": ["x"]}),
        ConstraintViolationError,
        "not-null",
        "column id must not be null",
        "id",
    )
    yield (
        "an unknown column",
        pl.DataFrame({"id": [1], "planet": ["x"]}),
        InvalidRequestError,
        "unknown-column",
        "the rows have a column planet that the table has not",
        "planet",
    )
    yield (
        "a text for a number",
        pl.DataFrame({"id": ["one"], "city": ["x"]}),
        InvalidRequestError,
        "type-mismatch",
        "column id is .* and does not fit int64",
        "id",
    )
    yield (
        "a fraction for a whole number",
        pl.DataFrame({"id": [1.5], "city": ["x"]}),
        InvalidRequestError,
        "type-mismatch",
        "column id is double and does not fit int64",
        "id",
    )
    yield (
        "a list for a text",
        pl.DataFrame({"id": [1], "city": [["x"]]}),
        InvalidRequestError,
        "type-mismatch",
        "column city is .* and does not fit string",
        "city",
    )


@pytest.mark.parametrize(
    ("frame", "error", "kind", "words", "place"), [f[1:] for f in _frames()], ids=[f"with {f[0]}" for f in _frames()]
)
def test_rows_that_do_not_fit_are_refused_and_leave_nothing(
    tmp_path: Path, frame: pl.DataFrame, error: type[LakeviewError], kind: str, words: str, place: str
) -> None:
    table = orders(tmp_path)
    with pytest.raises(error, match=words) as caught, table.transaction() as txn:  # noqa: PT012 (what the transaction did before counts)
        txn.append(rows(1))
        txn.append(frame)
    assert (caught.value.kind, caught.value.place) == (kind, place)
    assert caught.value.fix is not None
    assert files_on_disk(tmp_path) == ["_delta_log/00000000000000000000.json"]


def test_a_null_inside_a_struct_that_allows_none_is_refused(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    table = lv.create_table(str(tmp_path), pa.schema([pa.field("s", inner)]))
    assert isinstance(table, DeltaTable)
    table.append(pa.table({"s": pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())]))}))
    with pytest.raises(ConstraintViolationError, match=r"column s\.a must not be null") as caught:
        table.append(pa.table({"s": pa.array([{"a": None}], pa.struct([("a", pa.int64())]))}))
    assert caught.value.kind == "not-null"
    assert table.snapshot().num_records == 2


def test_removing_from_an_append_only_table_is_refused_and_rearranging_is_not(tmp_path: Path) -> None:
    table = orders(tmp_path, properties={"delta.appendOnly": "true"})
    table.append(rows(1))
    with pytest.raises(ConstraintViolationError) as caught, table.transaction() as txn:
        txn.remove()
    assert (caught.value.kind, caught.value.fix) == ("append-only", "unset delta.appendOnly if the data may go")
    assert "the table is append-only (delta.appendOnly)" in caught.value.message
    with pytest.raises(ConstraintViolationError):
        table.overwrite(rows(2))
    assert ids(table) == [1]
    with table.transaction() as txn:
        assert txn.remove(data_change=False) == 1


def test_rows_outside_the_replaced_partitions_are_refused(tmp_path: Path) -> None:
    table = orders(tmp_path, partition_by=["city"])
    table.append(rows(1))
    before = files_on_disk(tmp_path)
    with pytest.raises(ConstraintViolationError, match=r"2 rows lie outside") as caught:
        table.overwrite(pl.concat([rows(2), rows(3, city="Oslo"), rows(4, city=None)]), where="city = 'Rome'")
    assert caught.value.kind == "replace-where"
    assert files_on_disk(tmp_path) == before


@pytest.mark.parametrize(
    ("where", "kind", "words"),
    [
        ("id = 3", "not-a-partition-column", "id is no partition column"),
        ("planet = 3", "unknown-column", "there is no column planet"),
        ("city =", "bad-predicate", "cannot be read"),
        (pl.col("city") == 3, "bad-predicate", "cannot be evaluated: cannot compare string with numeric"),
        (pl.col("city"), "bad-predicate", "is String, not true or false"),
        (pl.col("city").cast(pl.Int64) == 3, "bad-predicate", "the condition cannot be evaluated"),
    ],
    ids=[
        "on a data column",
        "on an unknown column",
        "that is none",
        "of another type",
        "without a comparison",
        "that a value does not bear",
    ],
)
def test_a_condition_that_selects_no_whole_files_is_refused(
    tmp_path: Path, where: str | pl.Expr, kind: str, words: str
) -> None:
    table = orders(tmp_path, partition_by=["city"])
    table.append(rows(1))
    before = files_on_disk(tmp_path)
    changes = (Transaction.remove, partial(Transaction.overwrite, frame=rows(2)))
    for change in changes[: 1 if kind == "not-a-partition-column" else 2]:  # rows can be overwritten by any condition
        with pytest.raises(InvalidRequestError, match=words) as caught, table.transaction() as txn:
            change(txn, where=where)
        assert caught.value.kind == kind
    assert files_on_disk(tmp_path) == before


def test_a_file_that_is_not_live_cannot_be_removed(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with (
        pytest.raises(InvalidRequestError, match=r"gone\.parquet is no live file of the table") as caught,
        table.transaction() as txn,
    ):
        txn.remove(paths=["gone.parquet"])
    assert caught.value.kind == "file-not-live"


@pytest.mark.parametrize(
    ("paths", "removed"),
    [(["a", "./a"], []), (["f%31"], ["f1"]), (["a b", "a%20b"], [])],
    ids=["added twice in two spellings", "added and removed", "added twice, once encoded"],
)
def test_two_actions_on_one_file_in_a_commit_are_refused(
    history: DeltaHistory, paths: list[str], removed: list[str]
) -> None:
    history.create({"id": "long", "city": "string"}).commit(add("f1"))
    table = open_delta_table(history)
    with (  # noqa: PT012 (what the transaction did before counts)
        pytest.raises(InvalidRequestError, match="would be added or removed twice in one commit") as caught,
        table.transaction() as txn,
    ):
        if removed:
            txn.remove(paths=removed)
        txn.add([AddFile(path=p, size=1) for p in paths])
    assert (caught.value.kind, caught.value.fix) == ("duplicate-file-action", "add and remove each file once")
    assert table.refresh() is False


FEATURES: list[tuple[str, dict[str, Any], str]] = [
    ("writer version 8", protocol(1, 8), "needs Delta writer version 8; this writer implements 1 to 7"),
    ("an unknown feature", protocol(1, 7, writerFeatures=["timeMachine"]), "the Delta writer feature timeMachine"),
    ("two unknown ones", protocol(1, 7, writerFeatures=["b", "a"]), "the Delta writer features a, b"),
]


@pytest.mark.parametrize(("action", "words"), [f[1:] for f in FEATURES], ids=[f[0] for f in FEATURES])
def test_a_table_that_asks_more_of_writers_can_be_read_but_not_written(
    history: DeltaHistory, action: dict[str, Any], words: str
) -> None:
    history.commit(action, metadata()).commit(history.data("f", {"id": [1]}))
    table = open_delta_table(history)
    assert ids(table) == [1]
    before = files_on_disk(history.address)
    with pytest.raises(UnsupportedTableError, match=words) as caught:
        table.append(rows(2))
    assert caught.value.kind in ("unsupported-writer-version", "unsupported-writer-feature")
    assert caught.value.fix is not None
    assert files_on_disk(history.address) == before


@pytest.mark.parametrize(
    "write",
    [lambda table: table.checkpoint(0), lambda table: table.write_checksum(0), lambda table: table.write_checksum()],
    ids=["checkpoint of an earlier version", "checksum of an earlier version", "checksum"],
)
def test_nothing_is_written_beside_the_log_of_such_a_table(
    history: DeltaHistory, write: Callable[[DeltaTable], object]
) -> None:
    history.commit(protocol(), metadata()).commit(protocol(1, 7, writerFeatures=["timeMachine"]))
    before = files_on_disk(history.address)
    with pytest.raises(UnsupportedTableError, match="the Delta writer feature timeMachine"):
        write(open_delta_table(history))
    assert files_on_disk(history.address) == before


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, LakeviewError])
def test_a_transaction_left_by_an_exception_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    table = orders(tmp_path, partition_by=["city"])
    with pytest.raises(error), table.transaction() as txn:  # noqa: PT012 (what the transaction did before counts)
        txn.append(pl.concat([rows(1), rows(2, city="Oslo")]))
        assert len(files_on_disk(tmp_path)) == 3
        raise error("on purpose")
    assert files_on_disk(tmp_path) == ["_delta_log/00000000000000000000.json"]


def test_rows_may_come_as_arrow_in_batches(tmp_path: Path) -> None:
    table = orders(tmp_path)
    frame = rows(1, 2, 3).to_arrow()
    with table.transaction() as txn:
        txn.append(frame)
        txn.append(pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(max_chunksize=1)))
    assert ids(table) == [1, 1, 2, 2, 3, 3]


# -- times


def test_times_inside_commits_rise_even_if_the_clock_goes_back(tmp_path: Path) -> None:
    clock = ticking(START, timedelta(hours=-1))
    table = orders(tmp_path, properties=ICT, clock=clock)
    for i in range(4):
        with table.transaction(clock=clock) as txn:
            txn.append(rows(i))
    history = table.history().sort("version")
    assert set(history["timestamp_source"]) == {"in-commit"}
    moments = history["timestamp"].to_list()
    assert moments == [START + i * timedelta(milliseconds=1) for i in range(5)]
    assert table.snapshot(at=moments[2]).version == 2


def test_a_clock_without_zone_is_refused(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with (
        pytest.raises(InvalidRequestError, match="the moment 2026-03-01 08:00:00 has no time zone") as caught,
        table.transaction(clock=lambda: START.replace(tzinfo=None)) as txn,
    ):
        txn.append(rows(1))
    assert caught.value.kind == "naive-moment"
    with pytest.raises(InvalidRequestError, match="has no time zone"):
        lv.create_table(str(tmp_path / "other"), ORDERS, clock=lambda: START.replace(tzinfo=None))
    assert not (tmp_path / "other").exists()


# -- statistics

EVERYTHING: dict[str, list[Any]] = {
    "string": ["a", None, "\u00e9"],
    "long_text": ["x" * 40, "y" * 32 + "\U0010ffff", None],
    "long": [2**63 - 1, None, -(2**63)],
    "double": [1.5, float("nan"), None],
    "infinite": [float("inf"), 1.0, None],
    "all_nan": [float("nan")] * 3,
    "boolean": [True, None, False],
    "binary": [b"\x00\xff", None, b""],
    "date": [date(2026, 1, 1), None, date(1, 1, 1)],
    "timestamp": [datetime(2026, 1, 1, 0, 0, 0, 1999, tzinfo=UTC), None, datetime(1600, 1, 1, tzinfo=UTC)],
    "decimal": [Decimal("1.50"), None, Decimal("-99999999.99")],
    "list": [[1, None], None, []],
    "nothing": [None, None, None],
}


def test_statistics_of_what_we_write_hold_and_prune(tmp_path: Path) -> None:
    frame = pl.DataFrame(EVERYTHING, schema_overrides={"nothing": pl.Int64, "decimal": pl.Decimal(10, 2)})
    table = lv.create_table(str(tmp_path), frame.to_arrow().schema)
    assert isinstance(table, DeltaTable)
    table.append(frame)
    bounds = table.statistics().row(0, named=True)
    assert {c: bounds[c]["null_count"] for c in EVERYTHING} == {c: frame[c].null_count() for c in EVERYTHING}
    assert (bounds["long"]["min"], bounds["long"]["max"], bounds["long"]["exact"]) == (-(2**63), 2**63 - 1, True)
    assert (bounds["double"]["min"], bounds["double"]["max"]) == (1.5, 1.5)
    assert bounds["long_text"]["min"] == "x" * 32
    assert bounds["long_text"]["max"] is None, "no text of 33 characters is above one that goes on with U+10FFFF"
    assert bounds["decimal"]["min"] == Decimal("-99999999.99")
    for column in ("infinite", "all_nan", "nothing", "boolean", "binary", "list"):
        assert bounds[column]["min"] is None, column
    for column, values in EVERYTHING.items():
        for value in values:
            if value is None or column in ("list", "binary") or value != value:
                continue
            where = pl.col(column) == pl.lit(value, frame.schema[column])
            assert table.plan(where)["kept"].to_list() == [True], (column, value)
    assert table.plan(pl.col("date") > date(2027, 1, 1))["kept"].to_list() == [False]
    assert table.snapshot().num_records == 3
    assert table.scan().collect().equals(frame, null_equal=True)


def test_statistics_are_for_the_first_columns_the_table_wants(tmp_path: Path) -> None:
    table = orders(tmp_path, properties={"delta.dataSkippingNumIndexedCols": "1"})
    table.append(rows(1))
    bounds = table.statistics().row(0, named=True)
    assert (bounds["id"]["max"], bounds["city"]["max"]) == (1, None)


@pytest.mark.parametrize(
    "value",
    [253402300800_000_000, -62135596800_000_001, 2**63 - 1],
    ids=["in the year 10000", "before the year 1", "at the end of 64 bits"],
)
@pytest.mark.parametrize("partitioned", [False, True], ids=["as data", "as a partition value"])
def test_a_time_beyond_the_calendar_is_written_or_refused_by_design(
    tmp_path: Path, value: int, partitioned: bool
) -> None:
    frame = pl.DataFrame({"t": pl.Series([value], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")), "x": [1]})
    table = lv.create_table(str(tmp_path), frame.to_arrow().schema, partition_by=["t"] if partitioned else [])
    assert isinstance(table, DeltaTable)
    if partitioned:
        with pytest.raises(InvalidRequestError) as caught:
            table.append(frame)
        assert caught.value.kind == "partition-value"
        assert files_on_disk(tmp_path) == ["_delta_log/00000000000000000000.json"]
        return
    table.append(frame)
    assert table.statistics()["t"].struct.field("max").to_list() == [None]
    assert table.scan().collect()["t"].dt.epoch("us").to_list() == [value]


def test_a_binary_partition_value_that_is_no_text_is_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"b": [b"\xff\xfe"], "x": [1]})
    table = lv.create_table(str(tmp_path), frame.to_arrow().schema, partition_by=["b"])
    assert isinstance(table, DeltaTable)
    with pytest.raises(InvalidRequestError, match="column b") as caught:
        table.append(frame)
    assert caught.value.kind == "partition-value"
    assert files_on_disk(tmp_path) == ["_delta_log/00000000000000000000.json"]


# -- checkpoints


def state(table: lv.Table) -> dict[str, Any]:
    snapshot = table.snapshot()
    return {
        "files": sorted(map(str, snapshot.files.rows())),
        "tombstones": sorted(snapshot.tombstones.rows()),
        "transactions": sorted(snapshot.transactions.rows()),
        "metadata": (snapshot.schema, snapshot.properties, snapshot.protocol, snapshot.id, snapshot.name),
        "statistics": sorted(map(str, table.statistics().rows())),
    }


@pytest.mark.parametrize("address", ["in a folder", "in memory"], indirect=True)
def test_every_tenth_commit_leaves_a_checkpoint_that_equals_replay(address: str) -> None:
    table = orders(address, partition_by=["city"], properties={"k": "v"}, name="orders")
    for i in range(1, 12):
        with table.transaction() as txn:
            txn.append(rows(i, city=f"c %/{i % 3}"))
            txn.set_transaction(f"app{i % 2}", i)
            if i == 5:
                txn.remove(paths=[table.snapshot().files["path"][0]])
        assert txn.checkpoint_error is None
    replayed = state(lv.open_table(address))
    history = DeltaHistory(address)
    store = table.storage
    names = store.list_from("_delta_log")["name"].to_list()
    assert [n for n in names if "checkpoint" in n] == ["00000000000000000010.checkpoint.parquet", "_last_checkpoint"]
    hint = json.loads(store.read("_delta_log/_last_checkpoint"))
    size = store.list_from("_delta_log").row(by_predicate=pl.col("name").str.ends_with("parquet"))[1]
    assert hint.pop("checksum") == checksum(json.dumps(hint).encode())
    assert hint == {"version": 10, "size": 2 + 2 + 9 + 1, "sizeInBytes": size, "numOfAddFiles": 9}
    history.without(*range(10))
    assert state(lv.open_table(address)) == replayed


def test_the_checkpoint_interval_is_the_tables_own(tmp_path: Path) -> None:
    table = orders(tmp_path, properties={"delta.checkpointInterval": "2"})
    for i in range(5):
        table.append(rows(i))
    assert [n for n in files_on_disk(tmp_path) if n.endswith("checkpoint.parquet")] == [
        "_delta_log/00000000000000000002.checkpoint.parquet", "_delta_log/00000000000000000004.checkpoint.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("age", "versions_kept"), [(timedelta(days=6), 1), (timedelta(days=8), 0)], ids=["young", "expired"]
)
def test_tombstones_expire_by_the_time_of_the_checkpointed_commit_so_that_every_writer_makes_the_same(
    tmp_path: Path, age: timedelta, versions_kept: int
) -> None:
    table = orders(tmp_path, properties={**ICT, "delta.checkpointInterval": "3"}, clock=lambda: START)
    with table.transaction(clock=lambda: START) as txn:
        txn.append(rows(1))
    with table.transaction(clock=lambda: START) as txn:
        txn.remove()
    with table.transaction(clock=lambda: START + age) as txn:
        txn.append(rows(2))
    checkpoint = tmp_path / "_delta_log/00000000000000000003.checkpoint.parquet"
    first = checkpoint.read_bytes()
    checkpoint.unlink()
    write_checkpoint(DeltaTable(FarStorage(tmp_path)), 3)
    assert checkpoint.read_bytes() == first, "whoever writes it, and whenever"
    DeltaHistory(tmp_path).without(0, 1, 2, 3)
    assert lv.open_table(str(tmp_path)).snapshot().tombstones.height == versions_kept


def test_a_checkpoint_that_fails_never_fails_the_commit(tmp_path: Path) -> None:
    table = orders(tmp_path, properties={"delta.checkpointInterval": "1"})
    (tmp_path / "_delta_log/00000000000000000001.checkpoint.parquet").mkdir()
    with table.transaction() as txn:
        txn.append(rows(1))
    assert txn.version == 1
    assert txn.checkpoint_error is not None
    assert ids(table) == [1]


@pytest.mark.parametrize("none", [rows(), rows().to_arrow(), rows().to_arrow().schema.empty_table()])
def test_an_overwrite_without_rows_leaves_none(tmp_path: Path, none: pl.DataFrame | pa.Table) -> None:
    table = orders(tmp_path)
    table.append(rows(1, 2))
    assert table.overwrite(none) == 2
    assert ids(table) == []


def test_a_table_with_in_commit_timestamps_is_written_though_a_checkpoint_alone_is_left_of_its_log(
    tmp_path: Path,
) -> None:
    table = lv.create_table(str(tmp_path), ORDERS, properties=ICT)
    table.checkpoint()
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    again = open_delta_table(str(tmp_path))
    assert again.set_properties({"owner": "ann"}) == table.latest_version + 1
