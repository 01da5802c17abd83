"""What an append refuses by name before or while it writes, and values that only few tables hold."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from lakeview.model.errors import CorruptTableError, InvalidRequestError, UnsupportedTableError
from tests.builders.opening import open_iceberg_table
from tests.iceberg.test_append import PLAIN, document_of, entry_of, field, latest, make_table

ID_AND_N = [field(1, "id", "long"), field(2, "n", "long")]


def changed(place: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The table's metadata, as another writer would have written it."""
    document = document_of(place)
    change(document)
    Path(latest(place)).write_text(json.dumps(document))


@pytest.mark.parametrize(("names", "ids", "words"), [
    (("a b", "a_x20b"), (1000, 1001), "a b and a_x20b, which have one name in manifests"),
    (("1st", "_1st"), (1000, 1001), "1st and _1st, which have one name in manifests"),
    (("p", "p"), (1000, 1001), "p and p, which have one name in manifests"),
    (("p", "q"), (1000, 1000), "p and q, which have the field id 1000"),
])  # fmt: skip
def test_parts_of_a_partition_that_manifests_confuse_are_refused(
    tmp_path: Path, names: tuple[str, str], ids: tuple[int, int], words: str
) -> None:
    place = make_table(tmp_path / "t", ID_AND_N)
    parts = [
        {"source-id": 1 + i, "field-id": ids[i], "name": names[i], "transform": "identity"} for i in range(2)
    ]  # fmt: skip
    changed(place, lambda document: document["partition-specs"][0].update(fields=parts))
    with pytest.raises(UnsupportedTableError, match=words) as caught:
        open_iceberg_table(place).append(pl.DataFrame({"id": [1], "n": [2]}))
    assert caught.value.kind == "ambiguous-partition"
    assert not list((place / "data").iterdir())


def test_a_default_is_written_although_another_column_differs_by_case_alone(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", [*PLAIN, field(3, "ID", "string", default="new")], version=3)
    open_iceberg_table(place).append(pl.DataFrame({"id": [1]}))
    open_iceberg_table(place).append(pl.DataFrame({"id": [2], "ID": ["given"]}))
    assert open_iceberg_table(place).scan().collect().sort("id")["ID"].to_list() == ["new", "given"]


REQUIRED = {"type": "struct", "fields": [
    field(2, "r", "long", required=True), field(3, "u", "uuid", required=True),
    field(4, "l", {"type": "list", "element-id": 5, "element": "string", "element-required": True}, required=True),
    field(6, "m", {"type": "map", "key-id": 7, "key": "string", "value-id": 8, "value": "boolean",
        "value-required": True}, required=True),
    field(9, "s", {"type": "struct", "fields": [field(10, "d", "date", required=True)]}, required=True),
]}  # fmt: skip
INNER = pa.struct([
    ("r", pa.int64()), ("u", pa.binary()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.bool_())),
    ("s", pa.struct([("d", pa.date32())])),
])  # fmt: skip
WHOLE = {"r": 7, "u": b"u" * 16, "l": ["a"], "m": [("k", True)], "s": {"d": date(2026, 1, 2)}}
BELOW: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "a struct": (REQUIRED, INNER, [WHOLE, None, WHOLE, None]),
    "structs in a list": (
        {"type": "list", "element-id": 20, "element": REQUIRED, "element-required": False}, pa.list_(INNER),
        [[None, WHOLE], None, [], [WHOLE, None]]),
    "structs in a map": (
        {"type": "map", "key-id": 20, "key": "string", "value-id": 21, "value": REQUIRED, "value-required": False},
        pa.map_(pa.string(), INNER), [[("a", None), ("b", WHOLE)], None, []]),
}  # fmt: skip


@pytest.mark.parametrize("case", BELOW)
def test_null_is_written_where_fields_below_it_must_not_be_null(tmp_path: Path, case: str) -> None:
    type_, arrow, values = BELOW[case]
    place = make_table(tmp_path / "t", [field(1, "x", type_)])
    rows = pa.table({"x": pa.array(values, arrow)})
    open_iceberg_table(place).append(rows)
    assert open_iceberg_table(place).scan().collect()["x"].to_list() == pl.Series(pl.from_arrow(rows["x"])).to_list()
    (file,) = (place / "data").iterdir()
    assert pq.read_table(file, arrow_extensions_enabled=False)["x"].to_pylist() == rows["x"].to_pylist()
    if case == "a struct":
        entry = entry_of(StaticTable.from_metadata(latest(place)))
        assert (entry.null_value_counts[2], entry.lower_bounds[2]) == (2, (7).to_bytes(8, "little"))


@pytest.mark.parametrize(("name", "text"), [
    ("write.data.path", "foo/bar"), ("write.data.path", "~/x"), ("write.data.path", ""),
    ("write.target-file-size-bytes", "9" * 5_000),
])  # fmt: skip
def test_properties_that_cannot_be_honoured_are_refused(tmp_path: Path, name: str, text: str) -> None:
    place = make_table(tmp_path / "t", ID_AND_N, properties={name: text})
    with pytest.raises(UnsupportedTableError, match=name) as caught:
        open_iceberg_table(place).append(pl.DataFrame({"id": [1]}))
    assert caught.value.kind == "unsupported-property"
    assert not list((place / "data").iterdir())


def test_a_limit_of_metrics_that_is_no_number_leaves_them_as_they_are(tmp_path: Path) -> None:
    name = "write.metadata.metrics.max-inferred-column-defaults"
    place = make_table(tmp_path / "t", ID_AND_N, properties={name: "9" * 5_000})
    open_iceberg_table(place).append(pl.DataFrame({"id": [1]}))
    assert set(entry_of(StaticTable.from_metadata(latest(place))).value_counts) == {1, 2}


@pytest.mark.parametrize(("type_", "value"), [
    ("int", -(2**31)), ("long", -(2**63)), ("decimal(3,1)", Decimal("-99.9")),
])  # fmt: skip
def test_a_number_whose_truncation_leaves_its_type_is_refused(tmp_path: Path, type_: str, value: Any) -> None:
    place = make_table(tmp_path / "t", [field(1, "x", type_)], [(1, "truncate[10]", "ten")])
    with pytest.raises(InvalidRequestError, match=r"truncate\[10\] of it") as caught:
        open_iceberg_table(place).append(pl.DataFrame({"x": [value, None]}))
    assert caught.value.kind == "partition-value"
    open_iceberg_table(place).append(pl.DataFrame({"x": [value + 10, None]}))


@pytest.mark.parametrize(("type_", "words"), [
    ("fixed[3]", "column x holds values of 3 bytes, and one of the rows has 2"),
    ("uuid", r"column x is binary and does not fit fixed_size_binary\[16\]: row 1 .* holds b'ab'"),
])  # fmt: skip
def test_bytes_of_another_length_are_refused(tmp_path: Path, type_: str, words: str) -> None:
    place = make_table(tmp_path / "t", [field(1, "x", type_)])
    with pytest.raises(InvalidRequestError, match=words) as caught:
        open_iceberg_table(place).append(pa.table({"x": pa.array([None, b"ab"], pa.binary())}))
    assert (caught.value.kind, caught.value.place) == ("type-mismatch", "x")


SUB_FIELDS = [
    {**field(3, "a", "int"), "initial-default": 0, "write-default": 9}, {**field(4, "b", "int"), "initial-default": 0},
]  # fmt: skip
INTS = {"type": "map", "key-id": 3, "key": "int", "value-id": 4, "value-required": False, "value": "int"}


@pytest.mark.parametrize(("type_", "value", "written"), [
    ({"type": "struct", "fields": SUB_FIELDS}, {}, {"a": 9, "b": None}),
    (INTS, {"keys": [1], "values": [2]}, {1: 2}),
], ids=["struct", "map"])  # fmt: skip
def test_nested_write_defaults_are_written(tmp_path: Path, type_: Any, value: Any, written: Any) -> None:
    fields = [field(1, "id", "long"), {**field(2, "x", type_), "initial-default": value, "write-default": value}]
    table = open_iceberg_table(make_table(tmp_path / "t", fields, version=3))
    table.append(pl.DataFrame({"id": [1]}))
    assert table.scan().collect()["x"].to_list() == [written]


@pytest.mark.parametrize(("type_", "value"), [
    ("int", "much"), ("int", 2**40), ("decimal(3,2)", "100.00"), ("fixed[4]", "00"),
])  # fmt: skip
def test_a_write_default_that_is_none_of_its_type_is_the_schema_s_fault(tmp_path: Path, type_: str, value: Any) -> None:
    fields = [field(1, "id", "long"), {**field(2, "x", type_), "write-default": value}]
    place = make_table(tmp_path / "t", fields, version=3)
    with pytest.raises(CorruptTableError, match="the write default of column x cannot be understood") as caught:
        open_iceberg_table(place).append(pl.DataFrame({"id": [1]}))
    assert (caught.value.kind, caught.value.place) == ("invalid-metadata", "x")
    assert open_iceberg_table(place).append(pl.DataFrame({"id": [1], "x": [None]})) is not None


def test_zeros_of_either_sign_are_two_partitions(tmp_path: Path) -> None:
    place = make_table(tmp_path / "t", [field(1, "x", "double"), field(2, "n", "long")], [(1, "identity", "p")])
    open_iceberg_table(place).append(pl.DataFrame({"x": [-0.0, 0.0, 0.0], "n": [1, 2, 3]}))
    table = StaticTable.from_metadata(latest(place))
    partitions = {(str(task.file.partition[0]), task.file.record_count) for task in table.scan().plan_files()}
    assert partitions == {("-0.0", 1), ("0.0", 2)}
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.io)
    assert manifest.partitions is not None
    (summary,) = manifest.partitions
    assert (summary.lower_bound, summary.upper_bound) == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))
    assert open_iceberg_table(place).scan().filter(pl.col("x") == 0).collect()["n"].sort().to_list() == [1, 2, 3]


@pytest.mark.parametrize("empty", [
    pl.DataFrame(schema={"id": pl.Int64, "zzz": pl.Int64}),
    pa.RecordBatchReader.from_batches(pa.schema([("zzz", pa.int64())]), []),
])  # fmt: skip
def test_columns_that_the_table_lacks_are_refused_without_rows(tmp_path: Path, empty: Any) -> None:
    with pytest.raises(InvalidRequestError, match="column zzz that the table has not"):
        open_iceberg_table(make_table(tmp_path / "t", ID_AND_N)).append(empty)


def test_a_manifest_of_several_uuid_partitions_is_not_skipped(tmp_path: Path) -> None:
    keys = [bytes(16), b"\xff" * 16]
    place = make_table(tmp_path / "t", [field(1, "key", "uuid")], [(1, "identity", "key")])
    open_iceberg_table(place).append(pa.table({"key": pa.array([*keys, None], pa.binary())}))
    assert [open_iceberg_table(place).scan().filter(pl.col("key") == key).collect().height for key in keys] == [1, 1]
    table = StaticTable.from_metadata(latest(place))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert [manifest.partitions for manifest in snapshot.manifests(table.io)] == [None]
