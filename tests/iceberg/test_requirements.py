"""Plain requirements of the Iceberg specification that no other test of the Iceberg reader shows."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import lakeview as lv
from lakeview.iceberg.metadata.types import parse_schema
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.scan.projection import Projection
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from tests.builders.iceberg import IcebergHistory

ID: dict[str, Any] = {"id": 1, "name": "id", "required": False, "type": "long"}


def column(type_: Any, **more: Any) -> dict[str, Any]:
    return {"id": 3, "name": "c", "required": False, "type": type_, **more}


@pytest.mark.parametrize(
    ("stored", "type_", "value", "expected"),
    [
        ("binary", "geometry(srid:4326)", b"\x01\x02", b"\x01\x02"),
        ("binary", "geography", b"\x01\x02", b"\x01\x02"),
        ("long", "unknown", 7, None),
        ("date", "timestamp", date(1970, 1, 2), datetime(1970, 1, 2)),  # noqa: DTZ001 (has no zone)
    ],
)
def test_types_of_version_3(tmp_path: Path, stored: str, type_: str, value: Any, expected: Any) -> None:
    history = IcebergHistory(tmp_path / "t", [ID, column(stored)], version=3)
    history.append("a", [{"id": 1, "c": value}])
    history.evolve([ID, column(type_)])
    assert lv.open_table(history.address).scan().collect()["c"].to_list() == [expected]


X, Y = ({"id": i, "name": name, "required": False, "type": "int"} for i, name in ((5, "x"), (6, "y")))


def test_fields_of_structs_in_lists_have_defaults(tmp_path: Path) -> None:
    def listed(*fields: dict[str, Any]) -> dict[str, Any]:
        return column({"type": "list", "element-id": 4, "element-required": False,
                       "element": {"type": "struct", "fields": list(fields)}})  # fmt: skip

    history = IcebergHistory(tmp_path / "t", [ID, listed(X)], version=3)
    history.append("a", [{"id": 1, "c": [{"x": 1}, None]}])
    history.evolve([ID, listed(X, {**Y, "initial-default": 9})])
    assert lv.open_table(history.address).scan().collect()["c"].to_list() == [[{"x": 1, "y": 9}, None]]


def test_fields_of_structs_in_maps_have_defaults() -> None:
    value = {"type": "struct", "fields": [X, {**Y, "initial-default": 9}]}
    document = column(
        {"type": "map", "key-id": 4, "key": "int", "value-id": 7, "value-required": False, "value": value}
    )
    schema = parse_schema({"type": "struct", "fields": [document]})
    inner = pa.struct([pa.field("x", pa.int32(), metadata={"PARQUET:field_id": "5"})])
    stored = pa.field("c", pa.map_(pa.int32(), inner), metadata={"PARQUET:field_id": "3"})
    rows = pa.array([[(1, {"x": 2}), (3, None)], [], None], stored.type)
    batch = Projection([stored], list(schema), {}).of({0: rows}, 3, schema.as_nullable().to_arrow())
    assert batch["c"].to_pylist() == [[(1, {"x": 2, "y": 9}), (3, None)], [], None]


def test_a_required_field_without_a_default_is_null_where_a_file_lacks_it(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [ID])
    history.append("a", [{"id": 1}])
    history.evolve([ID, {**column("int"), "required": True}])
    assert lv.open_table(history.address).scan().collect()["c"].to_list() == [None]


VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def _write_parquet(rows: list[Any], path: Path) -> None:
    field = pa.field("c", VARIANT, metadata={"PARQUET:field_id": "3"})
    pq.write_table(pa.Table.from_arrays([pa.array(rows, VARIANT)], schema=pa.schema([field])), path)


def _write_orc(rows: list[Any], path: Path) -> None:
    field = pa.field("c", VARIANT, metadata={"iceberg.id": "3", "iceberg.struct-type": "VARIANT"})
    orc.write_table(pa.Table.from_arrays([pa.array(rows, VARIANT)], schema=pa.schema([field])), path)


def _write_avro(rows: list[Any], path: Path) -> None:
    parts = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
    record = {"type": "record", "name": "v", "logicalType": "variant", "fields": parts}
    schema = {"type": "record", "name": "row", "fields": [{"name": "c", "type": ["null", record], "field-id": 3}]}
    with path.open("wb") as out:
        fastavro.writer(out, schema, [{"c": row} for row in rows])


@pytest.mark.parametrize(
    ("format_", "write"), [("PARQUET", _write_parquet), ("ORC", _write_orc), ("AVRO", _write_avro)]
)
def test_variants_are_read_from_files_of_each_format_and_their_bounds_are_no_values(
    tmp_path: Path, format_: str, write: Callable[[list[Any], Path], None]
) -> None:
    history = IcebergHistory(tmp_path / "t", [column("variant")], version=3)
    entry = history._file("a", pa.table({"c": [0, 0]}), 0, {}) | {"file_format": format_}
    write([{"metadata": b"\x01\0\0", "value": b"\x0c\x05"}, None], history.root / "data" / "a")
    bounds = [{"key": 3, "value": b"\x01\0\0\x0c\x05"}]
    history._commit("append", [{**entry, "lower_bounds": bounds, "upper_bounds": bounds}], 0, {})
    table = lv.open_table(history.address)
    assert table.scan().collect()["c"].to_list() == ["5", None]
    assert table.scan().filter(pl.col("c") == "5").collect()["c"].to_list() == ["5"]
    (facts,) = table.statistics().to_dicts()
    assert facts.get("c") is None or (facts["c"].get("min"), facts["c"].get("max")) == (None, None)


def test_partitions_of_nan_are_equal_whatever_its_bits(tmp_path: Path) -> None:
    # "equal if their IEEE 754 floating-point bit layout are equal with NaNs normalized"  Scan Planning
    one, other = (struct.unpack("<Q", struct.pack("<d", float("nan")))[0] + n for n in (0, 5))
    nans = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (one, other)]
    history = IcebergHistory(tmp_path / "t", [ID, column("double")], [(3, "identity", "c")])
    history.append("a", [{"id": 1, "c": nans[0]}, {"id": 2, "c": nans[0]}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}], partition={"c": nans[1]})
    assert lv.open_table(history.address).scan().collect()["id"].to_list() == [2]


@pytest.mark.parametrize(
    ("type_", "value", "default"),
    [
        ({"type": "list", "element-id": 7, "element-required": False, "element": "int"}, [4, 5], [4, 5]),
        ({"type": "map", "key-id": 7, "key": "int", "value-id": 8, "value-required": False, "value": "int"},
         {"keys": [4], "values": [5]}, [(4, 5)]),
    ],
    ids=["list", "map"],
)  # fmt: skip
def test_a_nested_default_is_of_as_many_rows_as_there_are(type_: Any, value: Any, default: Any) -> None:
    fields = [{"id": 1, "name": "c", "required": False, "type": type_, "initial-default": value}]
    schema = parse_schema({"type": "struct", "fields": fields})
    projection = Projection([], list(schema), {})
    target = schema.as_nullable().to_arrow()
    assert [projection.of({}, rows, target)["c"].to_pylist() for rows in (0, 2)] == [[], [default, default]]


@pytest.mark.parametrize("type_", ["unknown", "variant", "geometry", "geography"])
def test_types_without_defaults_have_none(tmp_path: Path, type_: str) -> None:
    history = IcebergHistory(tmp_path / "t", [ID], version=3)
    history.append("a", [{"id": 1}])
    history.evolve([ID, column(type_, **{"initial-default": "00"})])
    with pytest.raises(CorruptTableError, match="initial default of column c"):
        lv.open_table(history.address).scan().collect()


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("{", "the table's name mapping, which is no JSON"),
        (json.dumps([{"field-id": 1, "names": ["id", "c"]}]), "two columns with the field id 1"),
    ],
    ids=["no JSON", "two columns of one id"],
)
def test_a_name_mapping_that_cannot_be_meant_is_refused(tmp_path: Path, mapping: str, words: str) -> None:
    history = IcebergHistory(tmp_path / "t", [ID, column("long")], properties={"schema.name-mapping.default": mapping})
    history.append("a", [{"id": 1, "c": 2}], ids=False)
    with pytest.raises(CorruptTableError, match=words):
        lv.open_table(history.address).scan().collect()


@pytest.mark.parametrize(
    ("source", "transform", "is_known"),
    [
        ({"source-ids": [1]}, "bucket[4]", True),
        ({"source-ids": [1, 3]}, "bucket[4]", False),
        ({"source-ids": [1, 3]}, "zorder", False),
        ({"source-id": 1}, "mystery", False),
    ],
)
def test_a_table_with_a_transform_that_is_not_known_is_read_and_not_written(
    tmp_path: Path, source: dict[str, Any], transform: str, is_known: bool
) -> None:
    history = IcebergHistory(tmp_path / "t", [ID, column("long")], version=3, location=str(tmp_path / "t"))
    history.append("a", [{"id": 34, "c": 1}])
    history.partition_by()
    history.document["partition-specs"][-1]["fields"] = [
        {**source, "field-id": 1000, "transform": transform, "name": "p"}
    ]
    history.evolve([ID, column("long")])
    table, rows = open_iceberg(history.address), pl.DataFrame({"id": [34], "c": [2]})
    if is_known:
        table.append(rows)
    else:
        with pytest.raises(UnsupportedTableError, match="is not known"):
            table.append(rows)
    values = table.scan().filter(pl.col("id") == 34).collect()["c"].to_list()
    assert sorted(values) == ([1, 2] if is_known else [1])


def test_keys_of_encryption_that_no_snapshot_names_hinder_nothing(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [ID], version=3)
    history.append("a", [{"id": 1}])
    history.document["encryption-keys"] = [{"key-id": "5f819b", "encrypted-key-metadata": "aWNlYmVyZwo="}]
    history.evolve([ID])
    assert lv.open_table(history.address).scan().collect().rows() == [(1,)]


def test_bounds_of_zeros_begin_below_zero_and_leave_nan_out(tmp_path: Path) -> None:
    """The summary of partitions: where -0.0 is a value of the field, `lower_bound` must not be 0.0."""
    place = tmp_path / "t"
    history = IcebergHistory(place, [ID, column("double")], [(3, "identity", "p")], location=str(place))
    table = open_iceberg(history.address)
    table.append(pl.DataFrame({"id": [1, 2, 3, 4], "c": [0.0, -0.0, float("nan"), None]}))
    (newest,) = (place / "metadata").glob("snap-*.avro")
    with newest.open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    ((summary,),) = [row["partitions"] for row in rows]
    assert (summary["contains_null"], summary["contains_nan"]) == (True, True)
    assert struct.unpack("<dd", summary["lower_bound"] + summary["upper_bound"]) == (0.0, 0.0)
    assert (summary["lower_bound"][-1], summary["upper_bound"][-1]) == (0x80, 0)
