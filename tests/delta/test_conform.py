"""Rows to the columns of a table: what fits, and what is refused with its path, a value and its row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, LakeviewError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows.conform import conform_batch

INNER = pa.struct([("a", pa.int64()), ("t", pa.string())])
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", INNER),
        ("items", pa.list_(INNER)),
        ("m", pa.map_(INNER, INNER)),
        ("deep", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(INNER)))]))),
    ]
)
WIDE = pa.struct([*INNER, ("b", pa.int64())])
NARROW = pa.struct([("a", pa.int64())])


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def one(value: Any, type_: pa.DataType) -> pa.Array:
    """Three rows: null, the value, null; the value is in row 1."""
    return pa.array([None, value, None], type_)


def structs(inner: pa.DataType) -> dict[str, tuple[pa.Array, str]]:
    """The columns of NESTED with a struct of their own, one at a time; and the path of the struct."""
    value = {field.name: None for field in inner}
    return {
        "s": (one(value, inner), "s"),
        "items": (one([value], pa.list_(inner)), "items.element"),
        "m": (one([({"a": 1, "t": "x"}, value)], pa.map_(INNER, inner)), "m.value"),
        "key": (one([(value, None)], pa.map_(inner, INNER)), "m.key"),
        "deep": (
            one([{"m": [("k", [value])]}], pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(inner)))]))),
            "deep.element.m.value.element",
        ),
    }


def table_of(address: Path, schema: pa.Schema, **more: Any) -> DeltaTable:
    table = lv.create_table(str(address), schema, **more)
    assert isinstance(table, DeltaTable)
    return table


def files(address: Path) -> list[str]:
    return sorted(str(path.relative_to(address)) for path in address.rglob("*") if path.is_file())


@pytest.mark.parametrize("where", ["s", "items", "m", "key", "deep"])
@pytest.mark.parametrize(
    ("inner", "kind", "field", "words"),
    [
        (WIDE, "unknown-column", "b", "the rows have a field {} that the table has not"),
        (NARROW, "missing-field", "t", "the rows have no field {}, and the table has one"),
        (pa.struct([("a", pa.int64()), ("x", pa.string())]), "missing-field", "t", "the rows have no field {}"),
        (pa.struct([*INNER, ("A", pa.int64())]), "duplicate-column", "A", "differ only by case"),
    ],
    ids=["one field more", "one field less", "one field renamed", "a field in two cases"],
)
def test_a_field_too_many_or_too_few_is_refused_by_its_path_at_every_depth(
    tmp_path: Path, where: str, inner: pa.DataType, kind: str, field: str, words: str
) -> None:
    table = table_of(tmp_path, NESTED)
    array, path = structs(inner)[where]
    rows = pa.table({"id": pa.array([1, 2, 3]), "m" if where == "key" else where: array})
    with pytest.raises(InvalidRequestError) as caught:
        table.append(rows)
    assert (caught.value.kind, caught.value.place) == (kind, f"{path}.{field}")
    assert words.format(f"{path}.{field}") in caught.value.message
    assert caught.value.fix
    assert files(tmp_path) == ["_delta_log/00000000000000000000.json"]


@pytest.mark.parametrize("where", ["s", "items", "m", "deep"])
def test_fields_may_be_added_at_every_depth_and_rows_without_them_have_null(tmp_path: Path, where: str) -> None:
    table = table_of(tmp_path, NESTED)
    old, _ = structs(INNER)[where]
    new, _ = structs(WIDE)[where]
    table.append(pa.table({"id": pa.array([1, 2, 3]), where: old}))
    wider = NESTED.set(NESTED.get_field_index(where), pa.field(where, new.type))
    with table.transaction() as txn:
        txn.evolve(Schema.from_arrow(wider))
        txn.append(pa.table({"id": pa.array([4, 5, 6]), where: new}))
        txn.append(pa.table({"id": pa.array([7, 8, 9]), where: old}), fill_missing=True)
    values = lv.open_table(str(tmp_path)).scan().collect().sort("id").to_arrow()[where].to_pylist()
    assert values[:3] == values[3:6] == values[6:]
    assert "'b': None" in str(values[1])
    with pytest.raises(InvalidRequestError, match=r"the rows have no field .*\.b"):
        table.append(pa.table({"id": pa.array([1, 2, 3]), where: old}))


def test_the_fields_of_a_maps_key_stay_as_they_are(tmp_path: Path) -> None:
    table = table_of(tmp_path, NESTED)
    wider = NESTED.set(3, pa.field("m", pa.map_(WIDE, INNER)))
    with (
        pytest.raises(InvalidRequestError, match="the key of column m would change") as caught,
        table.transaction() as txn,
    ):
        txn.evolve(Schema.from_arrow(wider))
    assert caught.value.place == "m.key"


def test_names_are_found_without_their_case_and_kept_in_the_tables() -> None:
    schema = Schema.from_arrow(pa.schema([("Id", pa.int64()), ("S", pa.struct([("A", pa.int64())]))]))
    batch_given = batch(s=pa.array([{"a": 2}]), ID=pa.array([1]))
    assert conform_batch(batch_given, schema).to_pylist() == [{"Id": 1, "S": {"A": 2}}]
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["id", "ID"])
    with pytest.raises(InvalidRequestError, match="two columns of the rows id and ID differ only by case"):
        conform_batch(twice, schema)
    both = Schema.from_arrow(pa.schema([("Id", pa.int64()), ("id", pa.int64())]))
    with pytest.raises(InvalidRequestError, match="ID of the rows may be Id or id"):
        conform_batch(batch(ID=pa.array([1])), both)
    same = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["Id", "Id"])
    with pytest.raises(InvalidRequestError, match="two columns of the rows are both called Id"):
        conform_batch(same, schema)


NOON = datetime(2026, 3, 1, 12, 30, 15, 123456)  # noqa: DTZ001 (without zone on purpose)
EXACT: list[tuple[pa.Array, pa.DataType, Any]] = [
    (one(7, pa.int64()), pa.int8(), 7),
    (one(200, pa.uint8()), pa.int16(), 200),
    (one(2**63 - 1, pa.uint64()), pa.int64(), 2**63 - 1),
    (one(3.0, pa.float64()), pa.int32(), 3),
    (one(2**53, pa.int64()), pa.float64(), 2.0**53),
    (one(2**24, pa.int64()), pa.float32(), 2.0**24),
    (one(1.5, pa.float64()), pa.float32(), 1.5),
    (one(float("inf"), pa.float64()), pa.float32(), float("inf")),
    (one(1.5, pa.float16()), pa.float64(), 1.5),
    (one(10**18, pa.int64()), pa.decimal128(38, 2), Decimal(10**18)),
    (one(Decimal("1.20"), pa.decimal128(10, 2)), pa.decimal128(4, 1), Decimal("1.2")),
    (one(Decimal("1.2"), pa.decimal256(50, 1)), pa.decimal128(4, 2), Decimal("1.20")),
    (one(NOON, pa.timestamp("ns")), pa.timestamp("us"), NOON),
    (one(datetime(2026, 1, 1, tzinfo=UTC), pa.timestamp("s", "Europe/Oslo")), pa.timestamp("us", "UTC"),
     datetime(2026, 1, 1, tzinfo=UTC)),
    (one(date(2026, 1, 1), pa.date64()), pa.date32(), date(2026, 1, 1)),
    (one("x", pa.large_string()), pa.string(), "x"),
    (one("x", pa.string_view()), pa.string(), "x"),
    (one("x", pa.string()).dictionary_encode(), pa.string(), "x"),
    (one(b"ab", pa.binary(2)), pa.binary(), b"ab"),
    (one(b"ab", pa.binary_view()), pa.binary(), b"ab"),
    (one([1, None], pa.large_list(pa.int32())), pa.list_(pa.int64()), [1, None]),
    (one([1, 2], pa.list_(pa.int64(), 2)), pa.list_(pa.int64()), [1, 2]),
    (one([1, 2], pa.list_view(pa.int64())), pa.list_(pa.int64()), [1, 2]),
    (one([1, 2], pa.large_list_view(pa.int32())), pa.list_(pa.int64()), [1, 2]),
    (pa.ListArray.from_arrays([0, 1, 2, 3], one("x", pa.string_view()), mask=one(False, pa.bool_()).is_null()),
     pa.list_(pa.string()), ["x"]),  # nulls with elements
    (pa.nulls(3), pa.int64(), None),
]  # fmt: skip


@pytest.mark.parametrize(("array", "type_", "value"), EXACT, ids=[f"{a.type} as {t}" for a, t, _ in EXACT])
def test_values_that_the_column_holds_exactly_are_taken(array: pa.Array, type_: pa.DataType, value: Any) -> None:
    schema = Schema.from_arrow(pa.schema([("x", type_)]))
    assert conform_batch(batch(x=array), schema).to_pylist() == [{"x": None}, {"x": value}, {"x": None}]
    assert conform_batch(batch(x=array).slice(1, 1), schema).to_pylist() == [{"x": value}]


def test_nan_stays_nan() -> None:
    schema = Schema.from_arrow(pa.schema([("x", pa.float32())]))
    assert str(conform_batch(batch(x=one(float("nan"), pa.float64())), schema).to_pylist()[1]["x"]) == "nan"


ALTERED: list[tuple[pa.Array, pa.DataType, str]] = [
    (one(300, pa.int64()), pa.int8(), "300"),
    (one(2**63, pa.uint64()), pa.int64(), "9223372036854775808"),
    (one(1.5, pa.float64()), pa.int64(), "1.5"),
    (one(2.0**63, pa.float64()), pa.int64(), "9.223372036854776e+18"),
    (one(-1e300, pa.float64()), pa.int64(), "-1e+300"),
    (one(float("nan"), pa.float64()), pa.int64(), "nan"),
    (one(float("inf"), pa.float64()), pa.int64(), "inf"),
    (one(2**53 + 1, pa.int64()), pa.float64(), "9007199254740993"),
    (one(2**24 + 1, pa.int64()), pa.float32(), "16777217"),
    (one(0.1, pa.float64()), pa.float32(), "0.1"),
    (one(1e300, pa.float64()), pa.float32(), "1e+300"),
    (one(10**18, pa.int64()), pa.decimal128(10, 2), "1000000000000000000"),
    (one(Decimal("1.25"), pa.decimal128(10, 2)), pa.decimal128(4, 1), "1.25"),
    (one(Decimal("99.5"), pa.decimal128(10, 1)), pa.decimal128(2, 1), "99.5"),
    (one(1001, pa.timestamp("ns")), pa.timestamp("us"), "1970-01-01 00:00:00.000001001"),
    (one(2**62, pa.timestamp("s")), pa.timestamp("us"), str(2**62)),
    (one(86_400_001, pa.int64()).view(pa.date64()), pa.date32(), "1970-01-02"),
]  # fmt: skip


@pytest.mark.parametrize(("array", "type_", "type_name"), ALTERED, ids=[f"{a.type} as {t}" for a, t, _ in ALTERED])
@pytest.mark.parametrize("depth", ["column", "struct", "list", "map"])
def test_a_value_that_would_be_altered_is_refused_with_its_row(
    array: pa.Array, type_: pa.DataType, type_name: str, depth: str
) -> None:
    whole, path = array, "x"
    match depth:
        case "struct":
            whole, type_ = pa.StructArray.from_arrays([array], ["v"]), pa.struct([("v", type_)])
            path = "x.v"
        case "list":  # the second of the second list's elements, after a null and an empty list
            whole = pa.ListArray.from_arrays(pa.array([None, 0, 0, 3]).cast(pa.int32()), array)
            whole, type_, path = pa.concat_arrays([whole.slice(1)]), pa.list_(type_), "x.element"
        case "map":
            whole = pa.MapArray.from_arrays([0, 0, 3], ["a", "b", "c"], array)
            type_, path = pa.map_(pa.string(), type_), "x.value"
    with pytest.raises(InvalidRequestError) as caught:
        conform_batch(batch(x=whole), Schema.from_arrow(pa.schema([("x", type_)])), first=10)
    assert (caught.value.kind, caught.value.place) == ("type-mismatch", path)
    assert f"row 11 (counted from 0) holds {type_name}" in caught.value.message
    assert caught.value.message.startswith(f"column {path} is {array.type} and does not fit ")


FOREIGN: list[tuple[pa.Array, pa.DataType]] = [
    (one("1", pa.string()), pa.int64()),
    (one("2026-01-01", pa.string()), pa.date32()),
    (one("2026-01-01", pa.string()), pa.timestamp("us")),
    (one("true", pa.string()), pa.bool_()),
    (one("x", pa.string()), pa.binary()),
    (one(b"x", pa.binary()), pa.string()),
    (one(1, pa.int64()), pa.string()),
    (one(7, pa.int64()), pa.bool_()),
    (one(True, pa.bool_()), pa.int64()),
    (one(1.25, pa.float64()), pa.decimal128(5, 2)),
    (one(Decimal("1.5"), pa.decimal128(2, 1)), pa.float64()),
    (one(NOON, pa.timestamp("us")), pa.date32()),
    (one(date(2026, 1, 1), pa.date32()), pa.timestamp("us")),
    (one(date(2026, 1, 1), pa.date32()), pa.timestamp("us", "UTC")),
    (one(NOON, pa.timestamp("us")), pa.timestamp("us", "UTC")),
    (one(NOON, pa.timestamp("us", "UTC")), pa.timestamp("us")),
    (one(0, pa.int64()), pa.timestamp("us")),
    (one(NOON, pa.timestamp("us")), pa.int64()),
    (one(time(1), pa.time64("us")), pa.int64()),
    (one(timedelta(1), pa.duration("us")), pa.int64()),
    (one(1, pa.int64()), pa.null()),
    (one([1], pa.list_(pa.int64())), pa.int64()),
    (one(1, pa.int64()), pa.list_(pa.int64())),
    (one({"a": 1}, NARROW), pa.map_(pa.string(), pa.int64())),
    (one({"a": 1}, NARROW), pa.string()),
    (one([("a", 1)], pa.map_(pa.string(), pa.int64())), NARROW),
]


@pytest.mark.parametrize(("array", "type_"), FOREIGN, ids=[f"{a.type} as {t}" for a, t in FOREIGN])
def test_values_of_another_kind_are_never_converted(array: pa.Array, type_: pa.DataType) -> None:
    schema = Schema.from_arrow(pa.schema([("x", type_)]))
    with pytest.raises(InvalidRequestError) as caught:
        conform_batch(batch(x=array), schema)
    assert (caught.value.kind, caught.value.place) == ("type-mismatch", "x")
    assert caught.value.message == f"column x is {array.type} and does not fit {schema.to_arrow().field('x').type}"


def test_times_are_not_shifted_and_the_fix_says_so() -> None:
    schema = Schema.from_arrow(pa.schema([("x", pa.timestamp("us", "UTC"))]))
    with pytest.raises(InvalidRequestError) as caught:
        conform_batch(batch(x=one(NOON, pa.timestamp("us"))), schema)
    assert caught.value.fix == "say which zone its times are in before writing: times are not shifted on the way"


def test_the_same_type_costs_nothing() -> None:
    rows = batch(id=pa.array([1, 2]))
    result = conform_batch(rows, Schema.from_arrow(rows.schema))
    assert result.column(0).buffers()[1].address == rows.column(0).buffers()[1].address


def test_values_below_a_null_do_not_count() -> None:
    values = pa.array([1, 300])
    lists = pa.ListArray.from_buffers(
        pa.list_(pa.int64()),
        2,
        [pa.py_buffer(b"\x01"), pa.array([0, 1, 2], pa.int32()).buffers()[1]],
        children=[values],
    )
    schema = Schema.from_arrow(pa.schema([("x", pa.list_(pa.int8()))]))
    assert conform_batch(batch(x=lists), schema).to_pylist() == [{"x": [1]}, {"x": None}]


NOT_NULL = pa.schema(
    [
        pa.field("s", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
    ]
)


@pytest.mark.parametrize(
    ("array", "column", "path"),
    [
        (pa.array([None, {"a": None}], NARROW), "s", "s.a"),
        (pa.array([None, {}], pa.struct([])), "s", "s.a"),
        (pa.array([None, [1, None]], pa.list_(pa.int64())), "l", "l.element"),
        (pa.array([None, [("k", None)]], pa.map_(pa.string(), pa.int64())), "m", "m.value"),
    ],
    ids=["in a struct", "for want of a field", "in a list", "in a map"],
)
@pytest.mark.parametrize("fill_missing", [False, True])
def test_a_null_where_none_may_be_is_refused_by_its_path(
    array: pa.Array, column: str, path: str, fill_missing: bool
) -> None:
    with pytest.raises(ConstraintViolationError, match=f"column {path} must not be null") as caught:
        conform_batch(batch(**{column: array}), Schema.from_arrow(NOT_NULL), fill_missing=fill_missing)
    assert (caught.value.kind, caught.value.place) == ("not-null", path)
    fine = batch(**{column: array.slice(0, 1)})
    if array.type != pa.struct([]):
        assert conform_batch(fine, Schema.from_arrow(NOT_NULL), fill_missing=True).num_rows == 1


def test_the_row_is_that_of_the_whole_frame(tmp_path: Path) -> None:
    table = table_of(tmp_path, pa.schema([("x", pa.int8())]))
    frame = pa.table({"x": [*range(100), 999, *range(100)]})
    reader = pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(max_chunksize=30))
    with pytest.raises(InvalidRequestError, match=r"row 100 \(counted from 0\) holds 999"):
        table.append(reader)
    with pytest.raises(InvalidRequestError, match=r"row 100 \(counted from 0\) holds 999"):
        table.overwrite(frame)
    assert files(tmp_path) == ["_delta_log/00000000000000000000.json"]


def test_large_batches_are_written_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.rows.open_files._MOST_BYTES", 100)
    table = table_of(tmp_path, pa.schema([("id", pa.int32()), ("text", pa.string())]))
    frame = pa.table({"id": range(50), "text": pa.array(["x" * 30] * 50, pa.large_string())})
    table.append(frame)
    assert table.scan().sort("id").collect().to_arrow()["id"].to_pylist() == list(range(50))
    with pytest.raises(InvalidRequestError, match=r"row 49 \(counted from 0\) holds 4294967296"):
        table.append(pa.table({"id": [*range(49), 2**32], "text": frame["text"]}))


@pytest.mark.parametrize("rows", [pl.LazyFrame({"x": [1]}), {"x": [1]}, [1]], ids=["lazy", "a dict", "a list"])
def test_what_are_no_rows_is_refused(tmp_path: Path, rows: Any) -> None:
    table = table_of(tmp_path, pa.schema([("x", pa.int64())]))
    with pytest.raises(InvalidRequestError, match="rows were given as ") as caught:
        table.append(rows)
    assert caught.value.kind == "not-rows"
    with table.transaction() as txn:
        txn.append(batch(x=pa.array([1])))
    assert table.scan().collect().rows() == [(1,)]


@pytest.mark.parametrize("where", ["text", "inside"])
@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append,
        lambda table: table.overwrite,
        lambda table: lambda rows: table.merge(rows, ["id"]).when_not_matched_insert().execute(),
    ],
    ids=["append", "overwrite", "merge"],
)
def test_bytes_that_are_no_text_are_refused_by_their_column(
    tmp_path: Path, where: str, write: Callable[[DeltaTable], Callable[[pa.Table], object]]
) -> None:
    offsets = pa.array([0, 1, 3, 6], pa.int32()).buffers()[1]
    values = pa.py_buffer(b"a\xc3\x28\xe8\xaa\x9e")  # those in the middle are no text, and no bound
    text = pa.Array.from_buffers(pa.string(), 3, [None, offsets, values])
    column = text if where == "text" else pa.StructArray.from_arrays([text], names=["t"])
    rows = pa.table({"id": [1, 2, 3], "s": column})
    table = table_of(tmp_path, rows.schema)
    with pytest.raises(InvalidRequestError, match=r"column s holds a value that is no .*UTF8") as caught:
        write(table)(rows)
    assert caught.value.place == "s"
    assert not table.refresh()


def test_a_column_of_polars_without_an_arrow_type_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path, pa.schema([("x", pa.int64())]))
    with pytest.raises(InvalidRequestError, match="a column of the rows has no Arrow type"):
        table.append(pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}))


@pytest.mark.parametrize(
    ("schema", "error", "words"),
    [
        (pa.schema([("x", pa.decimal256(50, 2))]), UnsupportedTableError, r"column x is decimal\(50,2\)"),
        (pa.schema([("s", pa.struct([("a", pa.int64()), ("A", pa.int64())]))]), InvalidRequestError,
         "two fields of s are called a, case aside"),
        (Schema((Field("x", PrimitiveType("time")),)), UnsupportedTableError, "column x is time"),
    ],
    ids=["a decimal too wide", "fields in two cases", "a type of another format"],
)  # fmt: skip
def test_a_schema_that_no_table_can_have_is_refused(
    tmp_path: Path, schema: Any, error: type[LakeviewError], words: str
) -> None:
    with pytest.raises(error, match=words):
        lv.create_table(str(tmp_path), schema)
    assert files(tmp_path) == []
    table = table_of(tmp_path, pa.schema([("id", pa.int64())]))
    added = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    with pytest.raises(error, match=words), table.transaction() as txn:
        txn.evolve(Schema((*table.snapshot().schema.fields, *added.fields)))
