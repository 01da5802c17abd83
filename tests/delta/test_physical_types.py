"""Data files as writers in the wild make them: other encodings, orders, names and empty places, the same rows."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.model.errors import UnsupportedTableError
from tests.builders.actions import Action, add, metadata, protocol, schema_string, struct
from tests.builders.history import DeltaHistory
from tests.builders.mapped import array, map_of
from tests.builders.opening import open_delta_table

YEAR_1, YEAR_9999 = datetime.fromisoformat("0001-01-01"), datetime.fromisoformat("9999-12-31T23:59:59.999999")


def parquet(history: DeltaHistory, path: str, table: pa.Table, **options: Any) -> Action:
    """Write a Parquet file with these options of its writer; returns the add action."""
    buffer = BytesIO()
    pq.write_table(table, buffer, **options)
    history.write(path, buffer.getvalue())
    return add(path, size=buffer.tell())


def read(history: DeltaHistory) -> pl.DataFrame:
    return lv.open_table(history.address).scan().collect()


# -- times


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
def test_int96_of_the_first_and_the_last_year_keeps_every_microsecond(history: DeltaHistory, type_: str) -> None:
    # INT96 by way of nanoseconds wraps before 1677 and after 2262; its days count from 4713 BC
    names = ["timestampNtz"]
    history.commit(
        protocol(3, 7, readerFeatures=names, writerFeatures=names), metadata({"t": type_, "s": struct(t=type_)})
    )
    table = pa.table({"t": pa.array([YEAR_1, YEAR_9999, None], pa.timestamp("us"))})
    table = table.append_column(
        "s", pa.array([{"t": YEAR_9999}, None, {"t": YEAR_1}], pa.struct([("t", pa.timestamp("us"))]))
    )
    history.commit(parquet(history, "f", table, use_deprecated_int96_timestamps=True))
    rows = read(history)
    zone = UTC if type_ == "timestamp" else None
    first, last = YEAR_1.replace(tzinfo=zone), YEAR_9999.replace(tzinfo=zone)
    assert rows["t"].to_list() == [first, last, None]
    assert rows["s"].to_list() == [{"t": last}, None, {"t": first}]


def test_dates_of_the_first_and_the_last_year(history: DeltaHistory) -> None:
    days = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), None]
    history.create({"d": "date"}).commit(history.data("f", {"d": pa.array(days, pa.date32())}))
    history.commit(history.data("g", {"d": pa.array(days, pa.date64())}))
    assert read(history)["d"].to_list() == days * 2


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_file_of_another_time_zone_holds_the_same_instants(history: DeltaHistory, type_: str, unit: str) -> None:
    moment = datetime(2020, 7, 1, 12, 30, tzinfo=UTC)
    history.create({"t": type_})
    for n, zone in enumerate(("Asia/Tokyo", "America/Los_Angeles", "+05:30", "UTC", None)):
        instant = moment if zone is not None else moment.replace(tzinfo=None)
        history.commit(history.data(f"f{n}", {"t": pa.array([instant], pa.timestamp(unit, zone))}))
    expected = moment if type_ == "timestamp" else moment.replace(tzinfo=None)
    assert read(history)["t"].to_list() == [expected] * 5


def test_a_filter_in_another_zone_means_the_same_instant(history: DeltaHistory) -> None:
    history.create({"t": "timestamp"})
    for hour in (0, 12):
        stats = {"numRecords": 1, "minValues": {"t": f"2020-01-01T{hour:02d}:00:00.000Z"},
                 "maxValues": {"t": f"2020-01-01T{hour:02d}:00:00.000Z"}}  # fmt: skip
        at = pa.array([datetime(2020, 1, 1, hour, tzinfo=UTC)], pa.timestamp("us", "UTC"))
        history.commit(history.data(f"f{hour}", {"t": at}, stats=stats))
    moment = datetime(2020, 1, 1, 21, tzinfo=timezone(timedelta(hours=9)))
    assert lv.open_table(history.address).scan().filter(pl.col("t") == moment).collect().height == 1


# -- numbers


DECIMALS = [Decimal("-99999.99"), Decimal("0.01"), None, Decimal("99999.99")]


@pytest.mark.parametrize("dictionary", [True, False], ids=["with a dictionary", "plain"])
@pytest.mark.parametrize(
    ("precision", "as_integer", "kind"),
    [
        pytest.param(7, True, "INT32", id="INT32"),
        pytest.param(18, True, "INT64", id="INT64"),
        pytest.param(7, False, "FIXED_LEN_BYTE_ARRAY", id="bytes of a fixed length"),
        pytest.param(38, False, "FIXED_LEN_BYTE_ARRAY", id="the longest bytes"),
    ],
)
@pytest.mark.parametrize("version", ["1.0", "2.0"], ids=["data pages v1", "data pages v2"])
def test_decimals_are_exact_in_every_encoding(
    history: DeltaHistory, precision: int, as_integer: bool, kind: str, dictionary: bool, version: str
) -> None:
    stored_type = pa.decimal128(precision, 2)
    history.create({"d": f"decimal({precision},2)", "l": array(f"decimal({precision},2)")})
    table = pa.table(
        {"d": pa.array(DECIMALS, stored_type), "l": pa.array([DECIMALS, None, [], [None]], pa.list_(stored_type))}
    )
    action = parquet(history, "f", table, store_decimal_as_integer=as_integer, use_dictionary=dictionary,
                     data_page_version=version)  # fmt: skip
    with pq.ParquetFile(f"{history.address}/f") as file:
        assert file.schema.column(0).physical_type == kind
    history.commit(action)
    rows = read(history)
    assert rows["d"].to_list() == DECIMALS
    assert rows["l"].to_list() == [DECIMALS, None, [], [None]]


def test_floats_keep_what_no_number_is(history: DeltaHistory) -> None:
    odd = [float("inf"), float("-inf"), -0.0, None, 5e-324]
    history.create({"x": "double", "y": "float"})
    history.commit(
        history.data("f", {"x": [*odd, float("nan")], "y": pa.array([*odd[:4], 1.5, float("nan")], pa.float32())})
    )
    rows = read(history)
    assert rows["x"].to_list()[:5] == odd
    assert str(rows["x"][2]) == "-0.0"
    assert rows["x"].is_nan().to_list() == [False, False, False, None, False, True]
    assert rows["y"].is_nan().to_list() == [False, False, False, None, False, True]


# -- other encodings of the same


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd", "brotli"])
def test_every_codec_is_read(history: DeltaHistory, codec: str) -> None:
    history.create({"id": "long", "city": "string"})
    history.commit(parquet(history, "f", pa.table({"id": [1, 2], "city": ["Bern", None]}), compression=codec))
    assert read(history).rows() == [(1, "Bern"), (2, None)]


def test_types_that_only_arrow_knows_are_read_as_what_they_stand_for(history: DeltaHistory) -> None:
    texts = pa.array(["a", None, "b"])
    columns = {
        "dictionary": texts.dictionary_encode(),
        "large": texts.cast(pa.large_string()),
        "view": texts.cast(pa.string_view()),
        "bytes": pa.array([b"a", None, b""], pa.large_binary()),
        "list": pa.array([[1], None, []], pa.large_list(pa.int64())),
        "fixed": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2)),
        "nested": pa.array([[{"x": "a"}], None, []], pa.large_list(pa.struct([("x", pa.large_string())]))),
        "unsigned": pa.array([1, None, 2**31], pa.uint32()),
    }
    types = {
        "dictionary": "string", "large": "string", "view": "string", "bytes": "binary", "list": array("long"),
        "fixed": array("long"), "nested": array(struct(x="string")), "unsigned": "long",
    }  # fmt: skip
    history.create(types).commit(history.data("f", columns))
    rows = read(history)
    assert [rows[name].to_list() for name in ("dictionary", "large", "view")] == [["a", None, "b"]] * 3
    assert rows["bytes"].to_list() == [b"a", None, b""]
    assert rows["list"].to_list() == [[1], None, []]
    assert rows["fixed"].to_list() == [[1, 2], None, [3, None]]
    assert rows["nested"].to_list() == [[{"x": "a"}], None, []]
    assert rows["unsigned"].to_list() == [1, None, 2**31]


def test_dictionaries_in_nested_values_may_differ_by_row_group(history: DeltaHistory) -> None:
    texts = pa.array(["a", "b", None, "a", "c"]).dictionary_encode()
    table = pa.table(
        {
            "s": pa.StructArray.from_arrays([texts], ["x"]),
            "l": pa.ListArray.from_arrays([0, 2, 2, 3, 4, 5], texts),
        }
    )
    history.create({"s": struct(x="string"), "l": array("string")})
    history.commit(parquet(history, "f", table, row_group_size=2))
    rows = read(history)
    assert rows["s"].to_list() == [{"x": x} for x in ("a", "b", None, "a", "c")]
    assert rows["l"].to_list() == [["a", "b"], [], [None], ["a"], ["c"]]


def test_a_file_of_many_row_groups_and_small_pages_keeps_its_order(history: DeltaHistory) -> None:
    rows = 5_000
    table = pa.table({"s": [{"l": [i] * (i % 3)} if i % 5 else None for i in range(rows)], "id": list(range(rows))})
    history.create({"id": "long", "s": struct(l=array("long"))})
    history.commit(parquet(history, "f", table, row_group_size=333, data_page_size=256))
    rows_read = read(history)
    assert rows_read["id"].to_list() == list(range(rows))
    assert rows_read["s"].to_list() == [{"l": [i] * (i % 3)} if i % 5 else None for i in range(rows)]


# -- order, names and empty places


def test_columns_and_fields_may_lie_in_another_order(history: DeltaHistory) -> None:
    history.create({"a": "long", "s": struct(x="long", y="string"), "b": "string"})
    inner = pa.struct([("y", pa.string()), ("x", pa.int64())])
    table = pa.table({"b": ["b"], "s": pa.array([{"y": "y", "x": 1}], inner), "a": [2]})
    history.commit(history.data("f", table))
    assert read(history).rows() == [(2, {"x": 1, "y": "y"}, "b")]


def test_names_are_matched_whatever_their_case_at_every_level(history: DeltaHistory) -> None:
    history.create({"Id": "long", "S": struct(Inner=array(struct(X="long"))), "M": map_of("string", struct(V="long"))})
    table = pa.table({
        "ID": [1],
        "s": pa.array([{"INNER": [{"x": 2}]}]),
        "m": pa.array([[("k", {"v": 3})]], pa.map_(pa.string(), pa.struct([("v", pa.int64())]))),
    })  # fmt: skip
    history.commit(history.data("f", table))
    rows = read(history)
    assert rows.select("Id", "S").rows() == [(1, {"Inner": [{"X": 2}]})]
    assert rows.select("M").to_arrow().to_pylist() == [{"M": [("k", {"V": 3})]}]


ODD = ["a.b", "a b", "`t`", "^x$", "a", "", "*", "ü", "col(1)", '"q"', "key", "element", "0"]


def test_fields_of_structs_may_have_any_name(history: DeltaHistory) -> None:
    row = {name: i for i, name in enumerate(ODD)}
    history.create({"s": struct(**dict.fromkeys(ODD, "long")), "l": array(struct(**dict.fromkeys(ODD, "long")))})
    history.commit(history.data("f", {"s": pa.array([row]), "l": pa.array([[row]])}))
    assert read(history).row(0) == (row, [row])


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        pytest.param({"id": "long", "new": "string"}, {"new": [None]}, id="a column"),
        pytest.param(
            {"id": "long", "s": struct(x="long", new=array("long"))}, {"s": [{"x": 1, "new": None}]}, id="a field"
        ),
        pytest.param(
            {"l": array(struct(x="long", new="date"))}, {"l": [[{"x": 1, "new": None}]]}, id="a field in a list"
        ),
        pytest.param({"s": struct(new=struct(deep="long"))}, {"s": [{"new": None}]}, id="all that a struct now has"),
    ],
)
def test_what_a_file_lacks_is_null(history: DeltaHistory, columns: dict[str, Any], missing: dict[str, Any]) -> None:
    history.create(columns)
    history.commit(history.data("f", {"id": [1], "s": [{"x": 1}], "l": [[{"x": 1}]]}))
    rows = read(history)
    for name, values in missing.items():
        assert rows[name].to_list() == values


def test_a_field_that_the_schema_lacks_is_left_out_at_every_level(history: DeltaHistory) -> None:
    history.create({"s": struct(x="long"), "l": array(struct(x="long"))})
    inner = {"gone": "?", "x": 1, "old": {"z": 1}}
    history.commit(history.data("f", {"s": [inner], "l": [[inner]], "_change_type": ["insert"]}))
    assert read(history).row(0) == ({"x": 1}, [{"x": 1}])


def test_files_without_rows_or_without_row_groups_have_none(history: DeltaHistory) -> None:
    schema = pa.schema([("id", pa.int64()), ("city", pa.string())])
    history.create()
    history.commit(parquet(history, "no-rows", schema.empty_table()))
    buffer = BytesIO()
    pq.ParquetWriter(buffer, schema).close()
    with pq.ParquetFile(BytesIO(buffer.getvalue())) as file:
        assert file.metadata.num_row_groups == 0
    history.write("no-row-groups", buffer.getvalue()).commit(add("no-row-groups", size=buffer.tell()))
    assert read(history).rows() == []
    history.commit(history.data("f", {"id": [1], "city": ["Bern"]}))
    assert read(history).rows() == [(1, "Bern")]
    assert lv.open_table(history.address).scan().select(pl.len()).collect().item() == 1


# -- void, geo


def test_void_columns_are_null_at_every_level(history: DeltaHistory) -> None:
    history.create(
        {"v": "void", "s": struct(x="long", v="void"), "only": struct(v="void"), "l": array(struct(v="void", x="long"))}
    )
    history.commit(history.data("f", {"s": [{"x": 1}, None], "l": [[{"x": 2}], []]}))
    rows = read(history)
    assert rows["v"].to_list() == [None, None]
    assert rows["s"].to_list() == [{"x": 1, "v": None}, None]
    assert rows["l"].to_list() == [[{"v": None, "x": 2}], []]
    assert rows["only"].to_list() in ([None, None], [{"v": None}] * 2)


def test_maps_with_void_keys_are_null_and_cost_no_other_column(history: DeltaHistory) -> None:
    nothing = {**map_of("void", "long"), "valueContainsNull": False}
    history.create(
        {
            "id": "long",
            "m": nothing,
            "s": struct(x="long", m=nothing),
            "l": array(nothing),
            "v": map_of("long", nothing),
        },
        required=("m",),
    )
    history.commit(history.data("f", {"id": [1], "s": [{"x": 2}], "l": pa.array([[]], pa.list_(pa.int64()))}))
    assert read(history).rows() == [(1, None, {"x": 2, "m": None}, [], None)]
    with pytest.raises(UnsupportedTableError, match="m is a map of void"):
        open_delta_table(history.address).append(pl.DataFrame({"id": [1]}))


def test_a_table_of_void_columns_only_knows_its_rows_by_its_files(history: DeltaHistory) -> None:
    history.create({"v": "void"}).commit(history.data("f", {"other": [1, 2, 3]}, stats={"numRecords": 3}))
    assert read(history)["v"].to_list() == [None] * 3


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"v": "void"}, "every column"),
        ({"p": "string"}, "every column"),
        ({"id": "long", "l": array("void")}, "l is an array"),
        ({"id": "long", "s": struct(m=map_of("string", "void"))}, "s.m is a map"),
        ({"id": "long", "s": struct(v="void")}, "field of s"),
    ],
    ids=["nothing else", "a partition column", "in a list", "in a map", "in a struct"],
)
def test_rows_that_no_file_can_hold_are_not_written(
    history: DeltaHistory, columns: dict[str, Any], column: str
) -> None:
    first = next(iter(columns))
    history.commit(protocol(), metadata(columns, partition_by=("p",) if first == "p" else ()))
    rows = pl.DataFrame({first: [None]}, schema={first: {"id": pl.Int64, "p": pl.String, "v": pl.Null}[first]})
    table = open_delta_table(history.address)
    with pytest.raises(UnsupportedTableError, match=column) as caught:
        table.append(rows)
    assert caught.value.kind == "void-columns"


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ({"id": "long", "v": "void"}, [("v", "string")]),
        ({"v": "void"}, [("v", "timestamp_ntz")]),
        ({"id": "long", "l": array("void"), "s": struct(v="void")}, [("l.element", "date"), ("s.v", "long")]),
    ],
    ids=["a column", "the only one", "below a column"],
)
def test_a_void_column_takes_any_type_without_type_widening(
    history: DeltaHistory, columns: dict[str, Any], changes: list[tuple[str, str]]
) -> None:
    history.create(columns).commit(history.data("f", {"id": [1]}))
    table = open_delta_table(history.address)
    for path, name in changes:
        table.widen_column(path, name)
        assert "typeWidening" not in (table.snapshot().protocol.writer_features or ())
    assert "delta.typeChanges" not in str(table.state().metadata.schema_string)
    rows = table.scan().collect()
    table.append(rows)
    assert read(history).rows() == rows.rows() * 2


def test_rows_of_another_type_evolve_a_void_column(history: DeltaHistory) -> None:
    history.create({"id": "long", "v": "void", "s": struct(x="long", v="void")})
    table = open_delta_table(history.address)
    rows = pl.DataFrame({"id": [1], "v": ["a"], "s": [{"x": 2, "v": 3}]})
    with table.transaction() as txn:
        txn.evolve(rows.to_arrow().schema)
        txn.append(rows)
    assert read(history).to_dicts() == rows.to_dicts()


def test_shapes_on_the_globe_are_well_known_binary(history: DeltaHistory) -> None:
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    names = ["geospatial"]
    history.commit(
        protocol(3, 7, readerFeatures=names, writerFeatures=names),
        metadata({"id": "long", "g": "geometry(OGC:CRS84)", "h": "geography(OGC:CRS84, spherical)"}),
    )
    history.commit(history.data("f", {"id": [1], "g": [point], "h": pa.array([None], pa.binary())}))
    rows = read(history)
    assert rows.rows() == [(1, point, None)]
    assert rows.schema["h"] == pl.Binary


# -- partition columns


def test_a_partition_column_stays_where_the_schema_has_it(history: DeltaHistory) -> None:
    history.create({"a": "long", "day": "date", "b": "string"}, partition_by=("day",))
    history.commit(history.data("f", {"b": ["x"], "a": [1], "DAY": ["in the file"]}, partition={"day": "2020-02-29"}))
    assert read(history).rows() == [(1, date(2020, 2, 29), "x")]


SPECIAL = ["a/b", "a%20b", "a b", "ü", "=", "#?", "__HIVE_DEFAULT_PARTITION__", "\n", "'", '"', "null", "..", "a:b"]


@pytest.mark.parametrize("value", SPECIAL)
def test_partition_values_are_what_the_log_says_whatever_the_path(history: DeltaHistory, value: str) -> None:
    history.create({"p": "string", "x": "long"}, partition_by=("p",))
    history.data("p=whatever/f 1%.parquet", {"x": [1]})
    history.commit(add("p=whatever/f%201%25.parquet", partition={"p": value}))
    assert read(history).rows() == [(value, 1)]
    table = lv.open_table(history.address)
    assert table.scan().filter(pl.col("p") == value).collect().height == 1
    assert table.scan().filter(pl.col("p") != value).collect().height == 0


def test_a_file_may_be_named_by_its_whole_address(history: DeltaHistory, tmp_path: Path) -> None:
    history.create().commit(history.data("f", {"id": [1], "city": ["Bern"]}))
    inside = f"{history.address}/deep%20er/g"
    history.data("deep er/g", {"id": [2], "city": ["Chur"]})
    history.commit(add(f"file://{inside}"))
    assert sorted(read(history).rows()) == [(1, "Bern"), (2, "Chur")]


# -- views of text and bytes, which delta-rs has readers make


@pytest.mark.parametrize(
    ("kind", "text", "view", "value"),
    [("string", pa.string(), pa.string_view(), "a"), ("binary", pa.binary(), pa.binary_view(), b"a")],
)
def test_rows_are_deleted_from_a_file_that_asks_for_views(
    history: DeltaHistory, kind: str, text: pa.DataType, view: pa.DataType, value: object
) -> None:
    columns = {
        "c": (kind, text, view, value),
        "s": (struct(x=kind), pa.struct([("x", text)]), pa.struct([("x", view)]), {"x": value}),
        "l": (array(kind), pa.list_(text), pa.list_(view), [value]),
        "large": (array(kind), pa.large_list(text), pa.large_list(view), [value]),
        "m": (map_of(kind, kind), pa.map_(text, text), pa.map_(view, view), [(value, value)]),
    }
    history.create({"id": "long"} | {name: column[0] for name, column in columns.items()})
    rows = {name: pa.array([v, None, v], plain).cast(views) for name, (_, plain, views, v) in columns.items()}
    history.commit(parquet(history, "f", pa.table({"id": [1, 2, 3]} | rows)))
    table = open_delta_table(history.address)
    table.delete("id = 1")
    left = table.scan().select("id", "c", "s", "l", "large").collect().rows()
    assert left == [(2, None, None, None, None), (3, value, {"x": value}, [value], [value])]


# -- collations


@pytest.mark.parametrize(("name", "is_read"), [("spark.UTF8_LCASE", True), ("spark.UTF8_BINARY", False)])
def test_bounds_by_another_order_prune_nothing(history: DeltaHistory, name: str, is_read: bool) -> None:
    schema = json.loads(schema_string({"c": "string"}))
    schema["fields"][0]["metadata"] = {"__COLLATIONS": {"c": name}}
    history.commit(protocol(1, 7, writerFeatures=["collations-preview"]), metadata(schema=json.dumps(schema)))
    stats = {"numRecords": 2, "minValues": {"c": "a"}, "maxValues": {"c": "B"}, "nullCount": {"c": 0}}
    history.commit(history.data("f", {"c": ["a", "B"]}, stats=stats))
    assert lv.open_table(history.address).plan("c = 'B'")["kept"].to_list() == [is_read]


def test_a_column_that_fits_no_type_is_refused_by_its_place(history: DeltaHistory) -> None:
    history.create({"id": "long", "l": array(struct(x="long"))})
    history.commit(history.data("f", {"id": [1], "l": [[{"x": "text"}]]}))
    with pytest.raises(UnsupportedTableError, match=r"column l\.element\.x is string in a file and long in the schema"):
        read(history)
    assert lv.open_table(history.address).scan().select("id").collect().rows() == [(1,)]
