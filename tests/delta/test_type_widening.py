"""Type widening: files of a column's earlier types read as the type it has now, at every level."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.data.type_widening import widens
from lakeview.model.data_types import DecimalType, PrimitiveType
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from tests.builders.actions import Action, metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.mapped import Json, array, map_of, struct

MIDNIGHT = datetime.fromisoformat("2020-02-29T00:00:00")
D = Decimal


def widened(name: str, type_: Any, *changes: Json) -> Json:
    """A field of a schemaString with these type changes."""
    return {"name": name, "type": type_, "nullable": True, "metadata": {"delta.typeChanges": list(changes)}}


def change(before: str, after: str, path: str | None = None) -> Json:
    """An entry of delta.typeChanges."""
    return {"fromType": before, "toType": after} | ({} if path is None else {"fieldPath": path})


def described(*fields: Json, feature: str = "typeWidening") -> tuple[Action, Action]:
    """protocol and metaData with these fields."""
    names = [feature, "timestampNtz"]
    return protocol(3, 7, readerFeatures=names, writerFeatures=names), metadata(schema=json.dumps(struct(*fields)))


CHANGES: list[Any] = [
    pytest.param("byte", "short", pa.int8(), -128, -128, id="byte to short"),
    pytest.param("byte", "integer", pa.int32(), 127, 127, id="byte, which Parquet keeps in 32 bits, to integer"),
    pytest.param("byte", "long", pa.int8(), 7, 7, id="byte to long"),
    pytest.param("short", "integer", pa.int16(), -32768, -32768, id="short to integer"),
    pytest.param("short", "long", pa.int16(), 7, 7, id="short to long"),
    pytest.param("integer", "long", pa.int32(), -(2**31), -(2**31), id="integer to long"),
    pytest.param("float", "double", pa.float32(), 0.1, 0.10000000149011612, id="float to double"),
    pytest.param("byte", "double", pa.int8(), 7, 7.0, id="byte to double"),
    pytest.param("short", "double", pa.int16(), 7, 7.0, id="short to double"),
    pytest.param("integer", "double", pa.int32(), 2**31 - 1, 2147483647.0, id="integer to double"),
    pytest.param("date", "timestamp_ntz", pa.date32(), MIDNIGHT.date(), MIDNIGHT, id="date to timestamp"),
    pytest.param(
        "decimal(5,2)", "decimal(9,4)", pa.decimal128(5, 2), D("-123.45"), D("-123.4500"), id="a wider decimal"
    ),
    pytest.param("decimal(5,2)", "decimal(38,2)", pa.decimal128(5, 2), D("1.00"), D("1.00"), id="the widest decimal"),
    pytest.param("byte", "decimal(10,0)", pa.int8(), -128, D(-128), id="byte to decimal"),
    pytest.param("short", "decimal(12,2)", pa.int16(), -32768, D("-32768.00"), id="short to decimal"),
    pytest.param("integer", "decimal(11,1)", pa.int32(), 2**31 - 1, D("2147483647.0"), id="integer to decimal"),
    pytest.param("long", "decimal(20,0)", pa.int64(), 2**63 - 1, D(2**63 - 1), id="long to decimal"),
    pytest.param("long", "decimal(38,18)", pa.int64(), -(2**63), D(-(2**63)).quantize(D(1)), id="long to the finest"),
]


@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
@pytest.mark.parametrize(("before", "after", "kind", "old_value", "expected"), CHANGES)
def test_old_files_are_read_as_the_new_type(
    history: DeltaHistory, before: str, after: str, kind: pa.DataType, old_value: Any, expected: Any, feature: str
) -> None:
    within = struct(widened("x", after, change(before, after)))
    history.commit(
        *described(
            widened("x", after, change(before, after)),
            {"name": "s", "type": within, "nullable": True, "metadata": {}},
            widened("l", array(after), change(before, after, "element")),
            widened("m", map_of("string", array(after)), change(before, after, "value.element")),
            feature=feature,
        )
    )
    nested = [pa.struct([("x", kind)]), pa.list_(kind), pa.map_(pa.string(), pa.list_(kind))]
    values = [{"x": old_value}, [old_value, None], [("k", [old_value])]]
    columns = {"x": pa.array([old_value, None], kind)} | {
        name: pa.array([value, None], type_) for name, value, type_ in zip("slm", values, nested, strict=True)
    }
    history.commit(history.data("f", columns))
    rows = lv.open_table(history.address).scan().collect()
    assert rows["x"].to_list() == [expected, None]
    assert rows["s"].to_list() == [{"x": expected}, None]
    assert rows["l"].to_list() == [[expected, None], None]
    assert rows.select("m").to_arrow().to_pylist() == [{"m": [("k", [expected])]}, {"m": None}]


def test_files_of_every_type_a_column_had_are_read_together(history: DeltaHistory) -> None:
    steps = change("byte", "short"), change("short", "integer"), change("integer", "long")
    history.commit(*described(widened("x", "long", *steps)))
    for n, kind in enumerate((pa.int8(), pa.int16(), pa.int32(), pa.int64())):
        history.commit(history.data(f"f{n}", {"x": pa.array([n], kind)}))
    assert lv.open_table(history.address).scan().collect()["x"].to_list() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("before", "after", "kind", "old_value", "bound", "hit", "miss"),
    [
        pytest.param("date", "timestamp_ntz", pa.date32(), date(2020, 2, 29), "2020-02-29",
                     "x = TIMESTAMP '2020-02-29 00:00:00'", "x > TIMESTAMP '2020-03-01 00:00:00'", id="a day"),
        pytest.param("integer", "double", pa.int32(), 5, 5, "x = 5.0", "x < 4.5", id="an integer under a double"),
        pytest.param("long", "decimal(22,2)", pa.int64(), 5, 5, "x = 5", "x > 6", id="a long under a decimal"),
        pytest.param("decimal(5,2)", "decimal(9,4)", pa.decimal128(5, 2), D("1.50"), 1.5,
                     "x = 1.5", "x > 1.6", id="a shorter decimal"),
        pytest.param("float", "double", pa.float32(), 0.5, 0.5, "x = 0.5", "x < 0.4", id="a float under a double"),
    ],
)  # fmt: skip
def test_bounds_in_the_old_type_prune_by_the_new_one(
    history: DeltaHistory, before: str, after: str, kind: pa.DataType, old_value: Any, bound: Any, hit: str, miss: str
) -> None:
    history.commit(*described(widened("x", after, change(before, after))))
    stats = {"numRecords": 1, "minValues": {"x": bound}, "maxValues": {"x": bound}, "nullCount": {"x": 0}}
    history.commit(history.data("f", {"x": pa.array([old_value], kind)}, stats=stats))
    table = lv.open_table(history.address)
    assert table.plan(hit)["kept"].to_list() == [True]
    assert table.plan(miss)["kept"].to_list() == [False]
    assert table.statistics()["x"].struct.field("min").null_count() == 0


def test_a_partition_value_from_before_the_change_is_read_as_the_new_type(history: DeltaHistory) -> None:
    changed = {"d": ("date", "timestamp_ntz"), "n": ("integer", "decimal(12,1)"), "f": ("byte", "double")}
    fields = [widened(name, after, change(before, after)) for name, (before, after) in changed.items()]
    started, _ = described(*fields)
    schema = json.dumps(struct(*fields))
    history.commit(started, metadata(schema=schema, partition_by=("d", "n", "f")))
    history.commit(history.data("old", {"z": [0]}, partition={"d": "2020-02-29", "n": "7", "f": "-3"}))
    history.commit(history.data("new", {"z": [0]}, partition={"d": "2020-02-29 12:30:00.5", "n": "7.5", "f": "0.5"}))
    assert sorted(lv.open_table(history.address).scan().collect().rows()) == [
        (MIDNIGHT, D("7.0"), -3.0),
        (MIDNIGHT.replace(hour=12, minute=30, microsecond=500_000), D("7.5"), 0.5),
    ]


UNKNOWN: list[Any] = [
    pytest.param(widened("x", "integer", change("string", "integer")), "x", "string to integer", id="another kind"),
    pytest.param(widened("x", "byte", change("long", "byte")), "x", "long to byte", id="a narrower type"),
    pytest.param(
        widened("x", "double", change("long", "double")), "x", "long to double", id="a type that is not wider"
    ),
    pytest.param(
        widened("x", "timestamp", change("date", "timestamp")), "x", "date to timestamp", id="a day to an instant"
    ),
    pytest.param(
        widened("x", "decimal(9,4)", change("decimal(9,2)", "decimal(9,4)")),
        "x",
        r"decimal\(9,2\) to decimal\(9,4\)",
        id="a decimal that loses digits",
    ),
    pytest.param(
        widened("x", "decimal(10,1)", change("integer", "decimal(10,1)")), "x", "integer to decimal", id="too narrow"
    ),
    pytest.param(
        widened("l", array("integer"), change("string", "integer", "element")),
        r"l\.element",
        "string to integer",
        id="in a list",
    ),
    pytest.param(
        {
            "name": "m",
            "type": map_of("string", struct(widened("x", "byte", change("long", "byte")))),
            "nullable": True,
            "metadata": {},
        },
        r"m\.value\.x",
        "long to byte",
        id="in a struct in a map",
    ),
]


@pytest.mark.parametrize(("change", "column", "words"), UNKNOWN)
def test_a_change_that_is_not_known_is_refused_by_name_and_the_log_shown(
    history: DeltaHistory, change: Json, column: str, words: str
) -> None:
    history.commit(*described(change)).commit(history.data("f", {"other": [1]}, stats={"numRecords": 1}))
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 1
    assert table.history().height == 2
    for read in (table.scan, table.tasks):
        with pytest.raises(UnsupportedTableError, match=f"column {column} was changed from {words}") as caught:
            read()
        assert caught.value.kind == "unsupported-type-change"
        assert caught.value.fix is not None


@pytest.mark.parametrize("entry", [3, {}, {"fromType": 1, "toType": "long"}])
def test_a_change_without_types_is_corrupt(history: DeltaHistory, entry: Any) -> None:
    history.commit(*described(widened("x", "long", entry))).commit(history.data("f", {"x": [1]}))
    with pytest.raises(CorruptTableError, match="a type change of column x does not say which types") as caught:
        lv.open_table(history.address).scan()
    assert caught.value.kind == "corrupt-schema"


def test_a_column_that_was_void_needs_no_feature(history: DeltaHistory) -> None:
    history.create({"x": "void", "id": "long"}).commit(history.data("f", {"id": [1]}))
    fields = widened("x", "string", change("void", "string")), widened("id", "long")
    history.commit(metadata(schema=json.dumps(struct(*fields))))
    assert lv.open_table(history.address).scan().collect().rows() == [(None, 1)]


@pytest.mark.parametrize("scale", [0, 3])
@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize(("finer", "fits"), [(0, True), (2, True), (3, False)])
def test_decimals_grow_in_digits_at_least_as_much_as_in_scale(scale: int, extra: int, finer: int, fits: bool) -> None:
    before, after = DecimalType(10, scale), DecimalType(10 + extra, scale + finer)
    assert widens(before, after) is (finer <= extra)
    assert fits or not widens(before, after)


def test_a_long_needs_twenty_digits() -> None:
    assert widens(PrimitiveType("long"), DecimalType(20, 0))
    assert not widens(PrimitiveType("long"), DecimalType(20, 1))
    assert not widens(PrimitiveType("float"), DecimalType(38, 10))
