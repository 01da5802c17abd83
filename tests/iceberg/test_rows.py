"""Rows: columns by id through every change of the schema, and every kind of delete where it applies and where not."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from datetime import date, time
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import lakeview as lv
from lakeview.iceberg.scan.data_files import IcebergSource
from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.errors import (
    CorruptTableError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
)
from lakeview.rows.parquet import read_task
from tests.builders.iceberg import IcebergHistory

ID: dict[str, Any] = {"id": 1, "name": "id", "required": False, "type": "long"}
CAT: dict[str, Any] = {"id": 2, "name": "cat", "required": False, "type": "string"}
ROWS = [{"id": i, "cat": "ab"[i % 2]} for i in range(6)]


def ids(address: str, *args: Any, **kwargs: Any) -> list[Any]:
    return sorted(lv.open_table(address).scan(*args, **kwargs).collect()["id"].to_list())


def table(place: Path, *spec: tuple[int, str, str], **more: Any) -> IcebergHistory:
    return IcebergHistory(place / "t", [ID, CAT], spec, **more)


# -- deletes


def test_positions_leave_out_rows_of_the_files_they_name(tmp_path: Path) -> None:
    history = table(tmp_path)
    first, _ = history.append("a", ROWS), history.append("b", [{"id": 100, "cat": "a"}])
    history.delete_positions("d", {first: [0, 5, 5, 99]})
    assert ids(history.address) == [1, 2, 3, 4, 100]
    assert ids(history.address, 1001) == [0, 1, 2, 3, 4, 5]


def test_positions_do_not_reach_files_that_came_later(tmp_path: Path) -> None:
    history = table(tmp_path)
    later = f"{history.location}/data/b"
    first = history.append("a", ROWS)
    history.delete_positions("d", {first: [0], later: [0]})
    history.append("b", [{"id": 100, "cat": "a"}])
    assert ids(history.address) == [1, 2, 3, 4, 5, 100]


def test_equality_reaches_only_older_files_and_null_equals_null(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", [*ROWS, {"id": None, "cat": "a"}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}, {"id": None}])
    history.append("b", [{"id": 1, "cat": "new"}])
    assert ids(history.address) == [0, 1, 2, 3, 4, 5]


def test_equality_of_several_columns_asks_for_all_of_them(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS)
    both = [history.fields["id"], history.fields["cat"]]
    history.delete_equal("d", both, [{"id": 1, "cat": "b"}, {"id": 2, "cat": "b"}])
    assert ids(history.address) == [0, 2, 3, 4, 5]


def test_equality_in_a_partition_stays_there_and_without_one_goes_everywhere(tmp_path: Path) -> None:
    history = table(tmp_path, (2, "identity", "cat"))
    history.append("a", [{"id": 1, "cat": "a"}])
    history.append("b", [{"id": 1, "cat": "b"}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}], partition={"cat": "b"})
    assert lv.open_table(history.address).scan().collect().rows() == [(1, "a")]
    history.partition_by()
    history.delete_equal("e", [history.fields["id"]], [{"id": 1}])
    assert ids(history.address) == []


def test_equality_by_a_column_that_was_dropped_and_one_that_was_widened(tmp_path: Path) -> None:
    narrow = {**ID, "type": "int"}
    history = IcebergHistory(tmp_path / "t", [narrow, CAT])
    history.append("a", ROWS)
    history.delete_equal("d", [history.fields["cat"]], [{"cat": "b"}])
    history.delete_equal("e", [history.fields["id"]], [{"id": 4}])
    history.evolve([ID])
    rows = lv.open_table(history.address).scan().collect()
    assert rows.schema == {"id": pl.Int64}
    assert sorted(rows["id"].to_list()) == [0, 2]


@pytest.mark.parametrize("kind", ["positions", "equality"])
def test_a_delete_file_without_the_columns_it_deletes_by_is_corrupt(tmp_path: Path, kind: str) -> None:
    history = table(tmp_path)
    first = history.append("a", [{"id": 1, "cat": "a"}, {"id": 2, "cat": None}])
    if kind == "positions":
        history.delete_positions("d", {first: [0]})
        pq.write_table(pa.table({"file_path": [first], "pos": [0]}), history.root / "data" / "d")
    else:
        history.delete_equal("d", [history.fields["id"]], [{"id": 1}], ids=[2])
    with pytest.raises(CorruptTableError, match="lacks the column with the field id") as caught:
        lv.open_table(history.address).scan().collect()
    assert str(caught.value.place).endswith("data/d")


def test_equality_by_a_nested_column(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"id": 4, "name": "x", "required": False, "type": "long"}]}
    history = IcebergHistory(tmp_path / "t", [ID, {"id": 3, "name": "s", "required": False, "type": inner}])
    history.append("a", [{"id": i, "s": {"x": i}} for i in range(3)])
    history.delete_equal("d", [history.fields["s"]], [{"s": {"x": 1}}], ids=[4])
    assert ids(history.address) == [0, 2]


def test_vectors_delete_rows_and_are_counted(tmp_path: Path) -> None:
    history = table(tmp_path, version=3)
    first, second = history.append("a", ROWS), history.append("b", ROWS)
    history.delete_vectors("v", {first: [0, 1], second: [5]})
    snapshot = lv.open_table(history.address).snapshot()
    assert ids(history.address) == [0, 1, 2, 2, 3, 3, 4, 4, 5]
    assert snapshot.num_records == 9
    assert snapshot.files["deleted_records"].to_list() == [2, 1]
    assert snapshot.files["deletion_vector"].n_unique() == 2


def test_a_vector_stands_for_all_position_deletes_of_its_file(tmp_path: Path) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS)
    history.delete_positions("d", {first: [5]})
    history.delete_vectors("v", {first: [0]})
    assert ids(history.address) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("byte", [0, 3, 4, 12, -1], ids=["length", "length's end", "magic", "bitmap", "checksum"])
def test_a_damaged_vector_is_an_error_and_never_rows(tmp_path: Path, byte: int) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS)
    history.delete_vectors("v", {first: [0]}, damage=byte)
    opened = lv.open_table(history.address)
    assert opened.snapshot().num_files == 1
    with pytest.raises(CorruptTableError, match="deletion vector"):
        opened.scan().collect()


def test_counts_are_unknown_where_deletes_may_name_a_row_twice(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS)
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}])
    history.append("b", ROWS)
    snapshot = lv.open_table(history.address).snapshot()
    assert snapshot.num_records is None
    assert snapshot.files["deleted_records"].to_list() == [None, 0]
    assert snapshot.delete_files["content"].to_list() == ["equality deletes"]


@pytest.mark.parametrize("kind", ["data", "positions", "equality", "vector"])
def test_a_file_that_is_gone_is_named_when_rows_are_asked_for(tmp_path: Path, kind: str) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS)
    deletes: dict[str, Callable[[], str]] = {
        "data": lambda: first,
        "positions": lambda: history.delete_positions("d", {first: [0]}),
        "equality": lambda: history.delete_equal("d", [history.fields["id"]], [{"id": 1}]),
        "vector": lambda: history.delete_vectors("d", {first: [0]}),
    }
    missing_file = deletes[kind]().rpartition("/")[2]
    (history.root / "data" / missing_file).unlink()
    opened = lv.open_table(history.address)
    assert opened.snapshot().files.height == 1
    with pytest.raises(DataFileMissingError, match=missing_file):
        opened.scan().collect()
    assert not opened.versions()["readable"][0]


# -- columns


def test_columns_follow_their_ids(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS[:1])
    history.evolve(
        [{**CAT, "name": "id"}, {**ID, "name": "cat"}, {"id": 3, "name": "new", "required": False, "type": "int"}]
    )
    history.append("b", [{"id": "x", "cat": 9, "new": 1}])
    opened = lv.open_table(history.address)
    assert sorted(opened.scan().collect().rows(), key=str) == [("a", 0, None), ("x", 9, 1)]
    assert opened.scan(1001).collect().rows() == [(0, "a")]
    assert opened.snapshot(1001).schema.names == ["id", "cat"]
    assert opened.schemas()["version"].to_list() == [1001, 1002]
    assert opened.history().filter(pl.col("schema_changed"))["version"].to_list() == [1002]


def test_a_name_dropped_and_added_again_is_another_column(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS[:1])
    history.evolve([ID])
    history.evolve([ID, {**CAT, "id": 9}])
    assert lv.open_table(history.address).scan().collect().rows() == [(0, None)]


def test_what_a_file_lacks_is_its_partition_value_then_the_default_then_null(tmp_path: Path) -> None:
    history = table(tmp_path, (2, "identity", "cat"), version=3)
    history.append("a", [{"id": 1, "cat": "x"}], leave_out=["cat"])
    extra = {"id": 3, "name": "n", "required": False, "type": "int", "initial-default": 7, "write-default": 8}
    history.evolve(
        [ID, {**CAT, "initial-default": "never"}, extra, {"id": 4, "name": "z", "required": False, "type": "date"}]
    )
    assert lv.open_table(history.address).scan().collect().rows() == [(1, "x", 7, None)]


def test_a_file_whose_struct_may_lack_a_partition_value_is_left_to_no_other_reader() -> None:
    inner = Field("c", PrimitiveType("string"), id=3)
    fields = [Field("s", StructType((inner,)), id=2), Field("id", PrimitiveType("long"), id=1)]
    assert IcebergSource("PARQUET", constants={1: 7}).stores(fields, [])
    assert not IcebergSource("PARQUET", constants={3: "x"}).stores(fields, [])


def test_dictionaries_in_nested_values_may_differ_by_row_group(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"id": 4, "name": "x", "required": False, "type": "string"}]}
    history = IcebergHistory(tmp_path / "t", [ID, {"id": 3, "name": "s", "required": False, "type": inner}])
    path = history.root / "data" / "a"
    history.append("a", [{"id": i, "s": {"x": text}} for i, text in enumerate("abac")])
    stored = pq.read_table(path)
    field = stored.schema.field("s").type.field("x").with_type(pa.dictionary(pa.int32(), pa.string()))
    texts = pa.StructArray.from_arrays([pa.array(list("abac")).dictionary_encode()], fields=[field])
    column = pa.field("s", texts.type, metadata=stored.schema.field("s").metadata)
    pq.write_table(stored.set_column(1, column, texts), path, row_group_size=2)
    rows = lv.open_table(history.address).scan().collect()
    assert rows["s"].to_list() == [{"x": text} for text in "abac"]


def test_a_date_is_no_time_with_a_zone_and_the_other_columns_are_read(tmp_path: Path) -> None:
    day = {"id": 3, "name": "day", "required": False, "type": "date"}
    history = IcebergHistory(tmp_path / "t", [ID, day], version=3)
    history.append("a", [{"id": 1, "day": date(2024, 1, 1)}])
    history.evolve([ID, {**day, "type": "timestamptz"}])
    with pytest.raises(UnsupportedTableError, match="column day is date32"):
        lv.open_table(history.address).scan().collect()
    assert ids_only(history.address) == [1]


def test_a_fixed_value_of_another_length_is_corrupt(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "f", "required": False, "type": "fixed[4]"}])
    history.append("a", [{"f": None}])
    where = history.root / "data" / "a"
    for value in (None, b"abcd", b"abc"):
        pq.write_table(
            pa.table(
                [pa.array([value], pa.binary())],
                schema=pa.schema([pa.field("f", pa.binary(), metadata={"PARQUET:field_id": "1"})]),
            ),
            where,
        )
        opened = lv.open_table(history.address)
        if value == b"abc":
            with pytest.raises(CorruptTableError, match=r"column f is fixed\[4\]"):
                opened.scan().collect()
        else:
            assert opened.scan().collect()["f"].to_list() == [value]


def test_an_explicit_null_stays_null_and_a_null_struct_keeps_its_fields_null(tmp_path: Path) -> None:
    def struct(*fields: dict[str, Any]) -> dict[str, Any]:
        return {"id": 3, "name": "s", "required": False, "type": {"type": "struct", "fields": list(fields)}}

    x = {"id": 4, "name": "x", "required": False, "type": "int"}
    y = {"id": 5, "name": "y", "required": False, "type": "int", "initial-default": 5}
    history = IcebergHistory(tmp_path / "t", [{**ID, "initial-default": 9}, struct(x)], version=3)
    history.append("a", [{"id": None, "s": {"x": 1}}, {"id": 2, "s": None}])
    history.evolve([{**ID, "initial-default": 9}, struct(x, y)])
    assert lv.open_table(history.address).scan().collect().rows() == [(None, {"x": 1, "y": 5}), (2, None)]


DEFAULTS: list[tuple[str, Any, Any]] = [
    ("boolean", True, True),
    ("long", 2**40, 2**40),
    ("double", 1.5, 1.5),
    ("decimal(9, 2)", "14.20", pl.Series(["14.20"]).cast(pl.Decimal(9, 2))[0]),
    ("date", "1969-12-31", date(1969, 12, 31)),
    ("string", "ü", "ü"),
    ("binary", "00ff", b"\x00\xff"),
    ("fixed[2]", "00ff", b"\x00\xff"),
    ("float", 3.4028235e38, (2 - 2**-23) * 2.0**127),  # as Java writes the largest
    ("timestamp_ns", "1969-12-31T23:59:59.999999001", pl.Series([-999]).cast(pl.Datetime("ns"))[0]),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
]


@pytest.mark.parametrize(("type_", "value", "expected"), DEFAULTS, ids=[t for t, _, _ in DEFAULTS])
def test_defaults_are_single_values_of_their_type(tmp_path: Path, type_: str, value: Any, expected: Any) -> None:
    history = table(tmp_path, version=3)
    history.append("a", ROWS[:1])
    history.evolve([ID, {"id": 3, "name": "d", "required": False, "type": type_, "initial-default": value}])
    assert lv.open_table(history.address).scan().collect()["d"].to_list() == [expected]


NO_DEFAULTS: list[tuple[str, Any]] = [
    ("int", "much"),
    ("int", 2**40),
    ("decimal(3,2)", "100.00"),
    ("fixed[4]", "000102"),
    ("float", 1e300),
    ("timestamp_ns", "2500-01-01T00:00:00"),
    ("timestamptz_ns", "1600-01-01T00:00:00+00:00"),
]


@pytest.mark.parametrize(("type_", "value"), NO_DEFAULTS, ids=[f"{t} {v}" for t, v in NO_DEFAULTS])
def test_a_default_that_is_none_of_its_type_is_the_schema_s_fault(tmp_path: Path, type_: str, value: Any) -> None:
    history = table(tmp_path, version=3)
    history.append("a", ROWS[:1])
    history.evolve([ID, {"id": 3, "name": "d", "required": False, "type": type_, "initial-default": value}])
    with pytest.raises(CorruptTableError, match="initial default of column d"):
        lv.open_table(history.address).scan().collect()
    assert ids_only(history.address) == [0]


def ids_only(address: str) -> list[Any]:
    return lv.open_table(address).scan().select("id").collect()["id"].to_list()


def test_a_name_mapping_serves_files_without_ids(tmp_path: Path) -> None:
    mapping = [{"field-id": 1, "names": ["id", "key"]}, {"field-id": 2, "names": ["a.b"]}]
    history = table(tmp_path, properties={"schema.name-mapping.default": json.dumps(mapping)})
    history.append("a", ROWS[:1], ids=False)
    history.append("b", [{"id": 5, "cat": "x"}])
    rows = lv.open_table(history.address).scan().collect()
    assert sorted(rows.rows()) == [(0, None), (5, "x")]


def test_a_partition_value_comes_before_a_column_found_by_its_name(tmp_path: Path) -> None:
    """As in Hive, whose files may hold another value of the column."""
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["old"]}]
    history = table(tmp_path, (2, "identity", "cat"), properties={"schema.name-mapping.default": json.dumps(mapping)})
    history.append("a", [{"id": 1, "cat": "x"}], ids=False)
    pq.write_table(pa.table({"id": [1], "old": ["y"]}), history.root / "data" / "a")
    assert lv.open_table(history.address).scan().collect().rows() == [(1, "x")]


def test_a_field_that_became_void_tells_nothing_of_its_column(tmp_path: Path) -> None:
    history = table(tmp_path, (2, "identity", "cat"), version=3)
    history.append("a", [{"id": 1, "cat": "x"}], leave_out=["cat"])
    history.partition_by((2, "void", "cat"))
    history.document["partition-specs"][1]["fields"][0]["field-id"] = 1000
    history.append("b", [{"id": 2}], leave_out=["cat"])
    history.evolve([ID, {**CAT, "initial-default": "default"}])
    assert sorted(lv.open_table(history.address).scan().collect().rows()) == [(1, "x"), (2, "default")]


def test_without_a_mapping_files_without_ids_hold_none_of_the_columns(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS[:1], ids=False)
    assert lv.open_table(history.address).scan().collect().rows() == [(None, None)]


@pytest.mark.parametrize("type_", ["decimal(39, 0)", "hyperbole"])
def test_a_column_of_a_type_without_rows_is_refused_by_name_and_the_rest_is_shown(tmp_path: Path, type_: str) -> None:
    history = table(tmp_path, version=3)
    history.append("a", ROWS[:1])
    history.evolve([ID, {"id": 3, "name": "g", "required": False, "type": type_}])
    opened = lv.open_table(history.address)
    assert opened.snapshot().schema.names == ["id", "g"]
    assert opened.files()["records"].to_list() == [1]
    assert opened.statistics(columns=["id"])["id"].struct.field("min").to_list() == [0]
    assert [t.schema.names for t in opened.tasks(columns=["id"])] == [["id"]]
    with pytest.raises(UnsupportedTableError, match=re.escape(type_)):
        opened.scan().collect()


def test_tasks_travel_to_other_processes(tmp_path: Path) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS)
    history.delete_vectors("v", {first: [0]})
    history.delete_equal("d", [history.fields["id"]], [{"id": 3}])
    (task,) = pickle.loads(pickle.dumps(lv.open_table(history.address).tasks(columns=["id"])))
    assert sorted(v for batch in read_task(task) for v in batch.column(0).to_pylist()) == [1, 2, 4, 5]


def test_snapshots_survive_pickling_whole(tmp_path: Path) -> None:
    history = table(tmp_path, (2, "identity", "cat"))
    history.append("a", ROWS[:1])
    snapshot = lv.open_table(history.address).snapshot()
    again = pickle.loads(pickle.dumps(snapshot))
    assert again.files.equals(snapshot.files)
    assert (again.version, again.schema) == (snapshot.version, snapshot.schema)


def _attributed(table: pa.Table) -> pa.Table:
    """The ids where ORC keeps them."""
    fields = [f.with_metadata({"iceberg.id": f.metadata[b"PARQUET:field_id"].decode()}) for f in table.schema]
    return table.cast(pa.schema(fields))


def _write_avro(table: pa.Table, path: Path) -> None:
    types = {"int64": "long", "string": "string"}
    fields = [
        {"name": f.name, "field-id": int(f.metadata[b"PARQUET:field_id"]), "type": ["null", types[str(f.type)]]}
        for f in table.schema
    ]
    with path.open("wb") as out:
        schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
        fastavro.writer(out, schema, table.to_pylist(), codec="deflate")


def _write_orc(table: pa.Table, path: Path) -> None:
    orc.write_table(_attributed(table), path)


FORMATS: dict[str, Callable[[pa.Table, Path], None]] = {"ORC": _write_orc, "AVRO": _write_avro}


@pytest.mark.parametrize("format_", FORMATS)
def test_files_of_other_formats_are_read_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str) -> None:
    history = table(tmp_path)
    data_file = history._file

    def write_file(name: str, rows: pa.Table, content: int, partition: Any) -> dict[str, Any]:
        entry = data_file(name, rows, content, partition)
        FORMATS[format_](rows, history.root / "data" / name)
        return {**entry, "file_format": format_}

    monkeypatch.setattr(history, "_file", write_file)
    first = history.append("a", ROWS)
    history.delete_positions("d", {first: [0]})
    history.delete_equal("e", [history.fields["cat"]], [{"cat": "b"}])
    history.evolve([CAT, {**ID, "name": "number"}])
    rows_read = lv.open_table(history.address).scan().collect()
    assert sorted(rows_read.rows()) == [("a", 2), ("a", 4)]


def test_a_column_of_an_orc_file_may_be_called_as_a_part_of_another(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"id": 3, "name": "b", "required": False, "type": "long"}]}
    columns = [{"id": 1, "name": "a.b", "required": False, "type": "long"}]
    columns.append({"id": 2, "name": "a", "required": False, "type": inner})
    history = IcebergHistory(tmp_path / "t", columns)
    entry = history._file("a", pa.table({"a": [0]}), 0, {}) | {"file_format": "ORC"}
    part = pa.struct([pa.field("b", pa.int64(), metadata={"iceberg.id": "3"})])
    types: dict[str, pa.DataType] = {"a.b": pa.int64(), "a": part}
    fields = [pa.field(name, t, metadata={"iceberg.id": str(i)}) for i, (name, t) in enumerate(types.items(), 1)]
    orc.write_table(pa.Table.from_pylist([{"a.b": 7, "a": {"b": 1}}], pa.schema(fields)), history.root / "data" / "a")
    history._commit("append", [entry], 0, {})
    assert lv.open_table(history.address).scan().collect().rows() == [(7, {"b": 1})]


def test_a_file_with_two_columns_of_one_name_is_corrupt_where_one_of_them_is_read(tmp_path: Path) -> None:
    history = table(tmp_path)
    entry = history._file("a", pa.table({"a": [0]}), 0, {})
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(i)}) for i, name in ((1, "id"), (3, "x"), (4, "x"))
    ]
    pq.write_table(
        pa.Table.from_arrays([pa.array([i]) for i in (1, 3, 4)], schema=pa.schema(fields)), history.root / "data/a"
    )
    history._commit("append", [entry], 0, {})
    assert lv.open_table(history.address).scan().collect().rows() == [(1, None)]
    history.evolve([ID, {"id": 4, "name": "y", "required": False, "type": "long"}])
    with pytest.raises(CorruptTableError, match="it holds two columns called x") as caught:
        lv.open_table(history.address).scan().collect()
    assert str(caught.value.place).endswith("data/a")
    assert ids_only(history.address) == [1]


def test_times_of_orc_files_beyond_nanoseconds_are_not_called_corrupt(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "at", "required": False, "type": "timestamp"}])
    entry = history._file("a", pa.table({"at": [0]}), 0, {}) | {"file_format": "ORC"}
    schema = pa.schema([pa.field("at", pa.timestamp("us"), metadata={"iceberg.id": "1"})])
    orc.write_table(pa.table([pa.array([253_370_764_800_000_000], pa.int64())], schema=schema), history.root / "data/a")
    history._commit("append", [entry], 0, {})
    with pytest.raises(UnsupportedTableError, match="beyond the years 1677 to 2262"):
        lv.open_table(history.address).scan().collect()


@pytest.mark.parametrize(("micros", "expected"), [(3_723_000_004, time(1, 2, 3, 4)), (-1, None)])
def test_times_of_orc_files_are_longs(tmp_path: Path, micros: int, expected: time | None) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "at", "required": False, "type": "time"}])
    entry = history._file("a", pa.table({"at": [micros]}), 0, {}) | {"file_format": "ORC"}
    attributes = {"iceberg.id": "1", "iceberg.long-type": "TIME"}
    schema = pa.schema([pa.field("at", pa.int64(), metadata=attributes)])
    orc.write_table(pa.table([[micros]], schema=schema), history.root / "data" / "a")
    history._commit("append", [entry], 0, {})
    rows = lv.open_table(history.address).scan()
    if expected is None:
        with pytest.raises(CorruptTableError, match="data/a cannot be read"):
            rows.collect()
    else:
        assert rows.collect().rows() == [(expected,)]


# -- row lineage


def test_rows_inherit_their_ids_and_keep_them_when_files_move(tmp_path: Path) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS[:3])
    history.append("b", ROWS[3:])
    history.append("gone", ROWS)
    history.remove(f"{history.location}/data/gone")
    history.delete_vectors("v", {first: [1]})
    rows = lv.open_table(history.address).scan(row_tracking=True).collect().sort("id")
    assert rows["_row_id"].to_list() == [0, 2, 3, 4, 5]
    assert rows["_last_updated_sequence_number"].to_list() == [1, 1, 2, 2, 2]
    assert rows.columns == ["id", "cat", "_row_id", "_last_updated_sequence_number"]


def test_a_file_s_own_lineage_wins_where_it_is_not_null(tmp_path: Path) -> None:
    own = {"id": 2147483540, "name": "_row_id", "required": False, "type": "long"}
    history = IcebergHistory(tmp_path / "t", [ID, own], version=3)
    history.append("a", [{"id": 1, "_row_id": 77}, {"id": 2, "_row_id": None}])
    history.evolve([ID])
    rows = lv.open_table(history.address).scan(row_tracking=True).select("id", "_row_id").collect()
    assert rows.rows() == [(1, 77), (2, 1)]


def test_a_removed_file_takes_no_row_ids_from_those_that_inherit_them(tmp_path: Path) -> None:
    history = table(tmp_path)
    dead_path, _ = history.append("gone", ROWS), history.append("a", ROWS[:2])
    history.document |= {"format-version": 3, "next-row-id": 100}
    history.remove(dead_path)
    rows = lv.open_table(history.address).scan(row_tracking=True).collect()
    assert rows["_row_id"].to_list() == [100, 101]


def test_a_file_from_before_the_upgrade_has_no_lineage_whatever_it_holds(tmp_path: Path) -> None:
    own = {"id": 2147483540, "name": "_row_id", "required": False, "type": "long"}
    history = IcebergHistory(tmp_path / "t", [ID, own])
    history.append("a", [{"id": 1, "_row_id": 77}, {"id": 2, "_row_id": None}])
    history.document |= {"format-version": 3, "next-row-id": 0}
    history.evolve([ID])
    rows = lv.open_table(history.address).scan(row_tracking=True).collect()
    assert rows.rows() == [(1, None, None), (2, None, None)]


def test_tables_before_version_3_track_no_rows(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS)
    with pytest.raises(InvalidRequestError, match="does not track its rows"):
        lv.open_table(history.address).scan(row_tracking=True)


# -- changes


def test_changes_of_appends_removals_and_deletes(tmp_path: Path) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS[:3])
    second = history.append("b", [{"id": 9, "cat": "z"}])
    history.delete_vectors("v", {first: [1]})
    history.remove(second)
    opened = lv.open_table(history.address)
    changes = opened.changes(1001).collect()
    changes_found = sorted(changes.select("_commit_version", "_change_type", "id").rows())
    assert changes_found == [
        (1001, "insert", 0), (1001, "insert", 1), (1001, "insert", 2), (1002, "insert", 9), (1003, "delete", 1),
        (1004, "delete", 9),
    ]  # fmt: skip
    assert changes.columns == ["id", "cat", "_change_type", "_commit_version", "_commit_timestamp"]
    assert opened.changes(1003, 1003).select("id").collect().rows() == [(1,)]
    plan = opened.changes_plan(1002)
    assert plan.select("version", "change_type", "rows").rows() == [
        (1002, "insert", 1),
        (1003, "delete", None),
        (1004, "delete", 1),
    ]


@pytest.mark.parametrize("kind", ["vectors", "position deletes"])
def test_rows_that_come_back_are_inserts(tmp_path: Path, kind: str) -> None:
    history = table(tmp_path, version=3 if kind == "vectors" else 2)
    first = history.append("a", ROWS[:3])
    delete = history.delete_vectors if kind == "vectors" else history.delete_positions
    delete("d1", {first: [0, 1]})
    history.restore_deleted_rows()
    delete("d2", {first: [1]})
    opened = lv.open_table(history.address)
    for base, version, expected in ((1002, 1003, [("insert", 0), ("insert", 1)]), (1003, 1004, [("delete", 1)])):
        changes = opened.changes(version, version).select("_change_type", "id").collect()
        assert sorted(changes.rows()) == expected
        assert sorted(opened.difference(base, version).select("_change_type", "id").collect().rows()) == expected
    every = opened.changes(1001).collect()
    sign = pl.when(pl.col("_change_type") == "insert").then(1).otherwise(-1)
    present = every.group_by("id").agg(sign.sum().alias("n")).filter(pl.col("n") != 0)
    assert sorted(present["id"]) == sorted(opened.scan().collect()["id"])


def test_a_smaller_vector_gives_rows_back(tmp_path: Path) -> None:
    history = table(tmp_path, version=3)
    first = history.append("a", ROWS[:3])
    history.delete_vectors("v1", {first: [0, 1]})
    history._manifests = [manifest for manifest in history._manifests if manifest["content"] == 0]
    history.delete_vectors("v2", {first: [1, 2]})
    changes = lv.open_table(history.address).changes(1003).select("_change_type", "id").collect()
    assert sorted(changes.rows()) == [("delete", 2), ("insert", 0)]


def test_a_replace_without_a_parent_inserts_its_rows(tmp_path: Path) -> None:
    history = table(tmp_path)
    history.append("a", ROWS[:2], operation="replace")
    history.append("b", ROWS[:2], operation="replace")
    changes = lv.open_table(history.address).changes(1001).select("_commit_version", "_change_type", "id").collect()
    assert sorted(changes.rows()) == [(1001, "insert", 0), (1001, "insert", 1)]


@pytest.mark.parametrize(("start", "end"), [(77, None), (1002, 1001), (1001, 77)])
def test_a_range_that_is_none_is_refused(tmp_path: Path, start: int, end: int | None) -> None:
    history = table(tmp_path)
    history.append("a", ROWS)
    history.append("b", ROWS)
    with pytest.raises(LakeviewError) as caught:
        lv.open_table(history.address).changes(start, end)
    assert caught.value.fix
