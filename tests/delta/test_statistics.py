"""Per-file statistics: JSON text and parsed structs to bounds, exact or not, unknown where the log does not say."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.errors import InvalidRequestError
from tests.builders.actions import add, metadata, protocol, struct
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory

Bound = dict[str, Any]


def statistics(history: DeltaHistory, columns: dict[str, Any], stats: Any, **more: Any) -> dict[str, Bound]:
    """The one row of STATISTICS for a file with these statistics."""
    history.create(columns).commit(add("f", stats=stats))
    return row(lv.open_table(history.address), **more)


def row(table: lv.Table, **more: Any) -> dict[str, Any]:
    return table.statistics(**more).row(0, named=True)


def bounds(low: Any, high: Any, nulls: int | None = 0) -> dict[str, Any]:
    return {
        "numRecords": 9,
        "minValues": {"x": low},
        "maxValues": {"x": high},
        **({} if nulls is None else {"nullCount": {"x": nulls}}),
    }


LONG_TEXT = "a" * 32
VALUES: list[tuple[str, Any, Any, Any, Any, bool]] = [
    ("long", -(2**63), 2**63 - 1, -(2**63), 2**63 - 1, True),
    ("long", 1, 2**63, 1, None, False),
    ("long", "1", 2, None, 2, False),
    ("long", True, 2, None, 2, False),
    ("integer", 1, 2**31, 1, None, False),
    ("double", 1, 2.5, 1.0, 2.5, True),
    ("double", "-Infinity", "Infinity", float("-inf"), float("inf"), True),
    ("double", 1, "NaN", 1.0, float("nan"), True),
    ("string", "a", "b", "a", "b", True),
    ("string", "", "b", "", "b", True),
    ("string", "a", LONG_TEXT, "a", LONG_TEXT, False),
    ("string", LONG_TEXT, LONG_TEXT + "\U0010ffff", LONG_TEXT, LONG_TEXT + "\U0010ffff", False),
    ("string", "a", 5, "a", None, False),
    ("string", "a" * 31, "a" * 31, "a" * 31, "a" * 31, True),
    ("boolean", False, True, False, True, True),
    ("date", "2026-01-01", "2026-12-31", date(2026, 1, 1), date(2026, 12, 31), True),
    ("date", "2026-01-01", "2026-13-31", date(2026, 1, 1), None, False),
    (
        "timestamp",
        "2026-01-01T00:00:00.123Z",
        "2026-01-02T00:00:00.999+01:00",
        datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=UTC),
        datetime(2026, 1, 1, 23, 0, 0, 999000, tzinfo=UTC),
        False,
    ),
    (
        "timestamp",
        "2026-01-01T00:00:00.000001Z",
        "2026-01-01T00:00:00.000002Z",
        datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 0, 0, 0, 2, tzinfo=UTC),
        True,
    ),
    (
        "timestamp_ntz",
        "2026-01-01T00:00:00.123",
        "2026-01-01T00:00:00.124",
        datetime.fromisoformat("2026-01-01T00:00:00.123"),
        datetime.fromisoformat("2026-01-01T00:00:00.124"),
        False,
    ),
]


@pytest.mark.parametrize(("type_", "low", "high", "minimum", "maximum", "exact"), VALUES)
def test_bounds_have_the_type_of_their_column(
    history: DeltaHistory, type_: str, low: Any, high: Any, minimum: Any, maximum: Any, exact: bool
) -> None:
    found = statistics(history, {"x": type_}, bounds(low, high))["x"]
    assert found["null_count"] == 0
    assert (found["min"], found["max"]) == (minimum, maximum) or found["max"] != found["max"]
    assert found["exact"] is exact


def test_no_digit_of_a_decimal_is_lost(history: DeltaHistory) -> None:
    low, high = "-0.12345678901234567890", "99999999999999999.99999999999999999999"
    text = f'{{"numRecords":1,"minValues":{{"x":{low}}},"maxValues":{{"x":{high}}}}}'
    found = statistics(history, {"x": "decimal(38,20)"}, text)["x"]
    assert found["min"] == Decimal(low)
    assert found["max"] == Decimal(high)
    assert found["exact"] is True


OLD_BOUNDS: list[tuple[str, Any, Any]] = [
    ("decimal(12,2)", 7, Decimal("7.00")),
    ("decimal(22,1)", -(2**63), Decimal(-(2**63))),
    ("double", 7, 7.0),
    ("long", 2**31 - 1, 2**31 - 1),
    ("timestamp_ntz", "2026-01-31", datetime.fromisoformat("2026-01-31T00:00:00")),
    ("timestamp", "2026-01-31 01:02:03", datetime(2026, 1, 31, 1, 2, 3, tzinfo=UTC)),
    ("date", "2026-01-31T00:00:00.000Z", date(2026, 1, 31)),
]


@pytest.mark.parametrize(("type_", "bound", "value"), OLD_BOUNDS, ids=[f"{b} as {t}" for t, b, _ in OLD_BOUNDS])
def test_bounds_from_before_a_type_was_widened_are_read(
    history: DeltaHistory, type_: str, bound: Any, value: Any
) -> None:
    found = statistics(history, {"x": type_}, bounds(bound, bound))["x"]
    assert (found["min"], found["max"]) == (value, value)


def test_bounds_of_floats_that_became_doubles_reach_what_the_float_was(history: DeltaHistory) -> None:
    change = [{"fromType": "float", "toType": "double"}]
    field = {"name": "x", "type": "double", "nullable": True, "metadata": {"delta.typeChanges": change}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    history.create(schema=schema).commit(add("f", stats=bounds(0.1, 0.1)), add("g", stats=bounds(0.5, 0.7)))
    rows = {r["_path"]: r["x"] for r in lv.open_table(history.address).statistics().to_dicts()}
    assert (rows["f"]["min"], rows["f"]["max"], rows["f"]["exact"]) == (0.1, 0.10000000149011612, False)
    assert (rows["g"]["min"], rows["g"]["max"], rows["g"]["exact"]) == (0.5, 0.7, False)


@pytest.mark.parametrize(
    ("type_", "text"),
    [("double", "1e400"), ("double", "-1e400"), ("float", "1e39"), ("decimal(5,2)", "1e400"), ("decimal(5,2)", "9999"),
     ("long", "1.5"), ("long", "99999999999999999999"), ("byte", "128"), ("date", '"today"'), ("timestamp", '"now"'),
     ("timestamp", '"12026-01-01T00:00:00Z"')],
)  # fmt: skip
def test_bounds_beyond_their_type_are_unknown(history: DeltaHistory, type_: str, text: str) -> None:
    stats = f'{{"numRecords":3,"minValues":{{"x":{text}}},"maxValues":{{"x":{text}}},"nullCount":{{"x":0}}}}'
    found = statistics(history, {"x": type_}, stats)["x"]
    assert found == {"min": None, "max": None, "null_count": 0, "exact": False, "null_count_exact": True}


def test_an_offset_is_no_fraction(history: DeltaHistory) -> None:
    moment = "2026-01-01T00:00:00.123+01:00"
    assert statistics(history, {"x": "timestamp"}, bounds(moment, moment))["x"]["exact"] is False


UNKNOWN: dict[str, Any] = {
    "none at all": None,
    "no JSON": "{",
    "a list": "[1]",
    "null": "null",
    "no bounds": {"numRecords": 3},
    "bounds that are no object": {"numRecords": 3, "minValues": 4, "maxValues": [], "nullCount": "x"},
    "bounds of another column": {"minValues": {"y": 1}, "nullCount": {"y": 1}},
    "bounds deeper than the column": {"minValues": {"x": {"y": 1}}, "nullCount": {"x": {"y": 1}}},
    "negative counts": {"numRecords": -1, "nullCount": {"x": -3}},
    "counts beyond 64 bits": {"numRecords": 10**30, "nullCount": {"x": 10**30}},
    "fractional counts": {"numRecords": 1.5, "nullCount": {"x": 1.5}},
    "nesting without end": "[" * 100_000,
}


@pytest.mark.parametrize("stats", UNKNOWN.values(), ids=[f"statistics that are {words}" for words in UNKNOWN])
def test_what_statistics_do_not_say_is_unknown(history: DeltaHistory, stats: Any) -> None:
    found = statistics(history, {"x": "long"}, stats)["x"]
    assert found == {"min": None, "max": None, "null_count": None, "exact": False, "null_count_exact": False}
    records = lv.open_table(history.address).snapshot().num_records
    assert records == (3 if isinstance(stats, dict) and stats.get("numRecords") == 3 else None)


RECORDS: dict[str, tuple[str, int | None]] = {
    "first": ('{"numRecords":7,"minValues":{}}', 7),
    "first with blanks": (' { "numRecords" : 7 , "minValues":{}}', 7),
    "alone": ('{"numRecords":7}', 7),
    "last": ('{"minValues":{"numRecords":1},"nullCount":{"numRecords":2},"numRecords":7}', 7),
    "beyond 64 bits": ('{"numRecords":99999999999999999999}', None),
    "a fraction": ('{"numRecords":7.5}', None),
    "in exponent form": ('{"numRecords":7e2}', None),
    "in words": ('{"numRecords":"7"}', None),
    "negative": ('{"numRecords":-7}', None),
    "only as a column": ('{"minValues":{"numRecords":1}}', None),
}


@pytest.mark.parametrize(("text", "expected"), RECORDS.values(), ids=[f"numRecords {words}" for words in RECORDS])
def test_the_number_of_rows_is_found_wherever_it_stands(history: DeltaHistory, text: str, expected: int | None) -> None:
    history.create({"numRecords": "long"}).commit(add("f", stats=text))
    table = lv.open_table(history.address)
    assert table.snapshot().files["records"].to_list() == [expected]
    assert table.snapshot().num_records == expected
    assert table.history()["records_added"].to_list() == [expected, 0]


NAMES = ["a.b", "back`tick", "^x$", "path", "_path", "numRecords", "minValues", "*", "", " ", "\u00e9", "a b", "null"]


def test_columns_of_any_name_have_statistics_of_their_own(history: DeltaHistory) -> None:
    stats = {
        "numRecords": 3,
        "minValues": {n: i for i, n in enumerate(NAMES)},
        "maxValues": {n: i + 10 for i, n in enumerate(NAMES)},
        "nullCount": {n: i % 3 for i, n in enumerate(NAMES)},
    }
    history.create(dict.fromkeys(NAMES, "long")).commit(add("f", stats=stats))
    frame = lv.open_table(history.address).statistics()
    shown = {"a.b": "`a.b`", "back`tick": "`back``tick`", "_path": "`_path`"}
    columns = [shown.get(n, n) for n in NAMES]
    assert frame.width == len(NAMES) + 2
    assert frame["_path"].to_list() == ["f"]
    for i, column in enumerate(columns):
        assert frame[column].to_list() == [
            {"min": i, "max": i + 10, "null_count": i % 3, "exact": True, "null_count_exact": True}
        ]


def test_nested_columns_are_named_by_their_path_and_lists_have_null_counts_only(history: DeltaHistory) -> None:
    columns = {
        "s": struct(a="long", t=struct(b="string")),
        "l": {"type": "array", "elementType": "long"},
        "b": "binary",
    }
    stats = {
        "numRecords": 5,
        "minValues": {"s": {"a": 1, "t": {"b": "x"}}},
        "maxValues": {"s": {"a": 2, "t": {"b": "y"}}},
        "nullCount": {"s": {"a": 0, "t": {"b": 4}}, "l": 3, "b": 1},
    }
    found = statistics(history, columns, stats)
    assert list(found) == ["_path", "_deletion_vector", "s.a", "s.t.b", "l", "b"]
    assert (found["s.a"]["min"], found["s.t.b"]["max"], found["s.t.b"]["null_count"]) == (1, "y", 4)
    assert found["l"] == {"min": None, "max": None, "null_count": 3, "exact": False, "null_count_exact": True}
    assert found["b"]["null_count"] == 1
    table = lv.open_table(history.address)
    assert table.statistics(columns=["s"]).columns == ["_path", "_deletion_vector", "s.a", "s.t.b"]
    assert table.statistics(columns=["s.t.b"]).columns == ["_path", "_deletion_vector", "s.t.b"]


def test_statistics_of_an_unknown_column_are_refused(history: DeltaHistory) -> None:
    history.create({"x": "long"})
    with pytest.raises(InvalidRequestError, match="there is no column y") as caught:
        lv.open_table(history.address).statistics(columns=["y"])
    assert (caught.value.kind, caught.value.fix, caught.value.place) == ("unknown-column", "choose from x", "y")


def test_bounds_that_are_not_tight_are_not_exact(history: DeltaHistory) -> None:
    found = statistics(history, {"x": "long"}, {**bounds(1, 2, 3), "tightBounds": False})["x"]
    assert found == {"min": 1, "max": 2, "null_count": 3, "exact": False, "null_count_exact": False}


@pytest.mark.parametrize(("nulls", "exact"), [(0, True), (9, True), (3, False)])
def test_null_counts_of_none_or_all_are_exact_even_in_loose_bounds(
    history: DeltaHistory, nulls: int, exact: bool
) -> None:
    found = statistics(history, {"x": "long"}, {**bounds(1, 2, nulls), "tightBounds": False})["x"]
    assert found["null_count_exact"] is exact


def parsed_shape(count_name: str, value: pa.DataType) -> dict[str, dict[str, pa.DataType]]:
    inner = pa.struct([("x", value)])
    counts = pa.struct([("x", pa.int64())])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", inner), ("maxValues", inner), (count_name, counts)])
    adds = {k: v for k, v in CHECKPOINT_SHAPE["add"].items() if k != "stats"}
    return {**CHECKPOINT_SHAPE, "add": {**adds, "stats_parsed": parsed}}


MOMENT = datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
PARSED: list[tuple[str, pa.DataType, Any]] = [
    ("long", pa.int64(), 5),
    ("long", pa.int32(), 5),
    ("double", pa.float64(), 0.5),
    ("string", pa.string(), "x"),
    ("date", pa.date32(), date(2026, 1, 1)),
    ("timestamp", pa.timestamp("us", "UTC"), MOMENT),
    ("timestamp", pa.timestamp("us"), MOMENT.replace(tzinfo=None)),
    ("timestamp_ntz", pa.timestamp("us"), MOMENT.replace(tzinfo=None)),
    ("decimal(12,3)", pa.decimal128(12, 3), Decimal("1.500")),
]


@pytest.mark.parametrize("count_name", ["nullCount", "nullCounts"])
@pytest.mark.parametrize(("type_", "arrow", "value"), PARSED, ids=[f"{t} from {a}" for t, a, _ in PARSED])
def test_a_checkpoint_may_hold_statistics_as_a_struct_only(
    history: DeltaHistory, count_name: str, type_: str, arrow: pa.DataType, value: Any
) -> None:
    action = add("f")
    action["add"]["stats_parsed"] = {
        "numRecords": 9, "minValues": {"x": value}, "maxValues": {"x": value}, count_name: {"x": 2},
    }  # fmt: skip
    history.create({"x": type_}).checkpoint(
        actions=[protocol(), metadata({"x": type_}), action], shape=parsed_shape(count_name, arrow)
    ).without(0)
    history.commit(add("g", stats={"numRecords": 1}))
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 10
    frame = table.statistics().sort("_path")
    found = frame["x"].struct.unnest()
    expected = value.replace(tzinfo=UTC) if type_ == "timestamp" else value
    assert found["min"].to_list() == [expected, None]
    assert found["max"].to_list() == [expected, None]
    assert found["null_count"].to_list() == [2, None]


def test_json_and_struct_are_joined_file_by_file(history: DeltaHistory) -> None:
    one, other = add("f", stats=bounds(1, 2)), add("g")
    other["add"]["stats_parsed"] = {
        "numRecords": 4, "minValues": {"x": 7}, "maxValues": {"x": 8}, "nullCount": {"x": 0},
    }  # fmt: skip
    shape = parsed_shape("nullCount", pa.int64())
    shape["add"]["stats"] = pa.string()
    rows = [protocol(), metadata({"x": "long"}), one, other]
    history.create({"x": "long"}).checkpoint(actions=rows, shape=shape).without(0)
    table = lv.open_table(history.address)
    assert table.statistics()["x"].struct.field("max").sort().to_list() == [2, 8]
    assert table.snapshot().num_records == 13


def checkpointed(history: DeltaHistory, names: list[str], *, count: int | None = 4) -> lv.Table:
    """A table whose checkpoint has statistics as structs, 1 to 2 in each column, and as text that says 7 to 8."""
    numbers = pa.struct([(name, pa.int64()) for name in names])
    shape = parsed_shape("nullCount", pa.int64())
    inner = [("numRecords", pa.int64()), ("minValues", numbers), ("maxValues", numbers), ("nullCount", numbers)]
    shape["add"] |= {"stats_parsed": pa.struct(inner), "stats": pa.string()}
    text = {"numRecords": 9, "minValues": dict.fromkeys(names, 7), "maxValues": dict.fromkeys(names, 8)}
    action = add("f", stats=text)
    action["add"]["stats_parsed"] = {
        "numRecords": count, "minValues": dict.fromkeys(names, 1), "maxValues": dict.fromkeys(names, 2),
        "nullCount": dict.fromkeys(names, 0),
    }  # fmt: skip
    columns = dict.fromkeys(names, "long")
    history.create(columns).checkpoint(actions=[protocol(), metadata(columns), action], shape=shape).without(0)
    return lv.open_table(history.address)


def test_text_is_not_read_where_structs_say_it(history: DeltaHistory) -> None:
    found = row(checkpointed(history, ["x", "y"]), columns=["y"])
    assert (found["y"]["min"], found["y"]["max"], found["y"]["null_count"]) == (1, 2, 0)


def test_text_is_read_where_structs_leave_files_out(history: DeltaHistory) -> None:
    found = row(checkpointed(history, ["x"], count=None))
    assert (found["x"]["min"], found["x"]["max"], found["x"]["null_count"]) == (7, 8, 0)


def test_structs_have_columns_of_any_name_too(history: DeltaHistory) -> None:
    names = ["a.b", "a", "back`tick", "^x$", "path", "stats", " ", "\u00e9", "numRecords"]
    table = checkpointed(history, names)
    frame = table.statistics()
    for column in frame.columns[2:]:
        assert [found["max"] for found in frame[column]] == [2], column
    assert table.statistics(columns=["`a.b`"])["`a.b`"].struct.field("min").to_list() == [1]


def test_moments_in_structs_have_columns_of_any_name_too(history: DeltaHistory) -> None:
    action, columns = add("f"), {"^x$": "timestamp"}
    action["add"]["stats_parsed"] = {"numRecords": 1, "minValues": {"^x$": MOMENT}, "maxValues": {"^x$": MOMENT}}
    moments = pa.struct([("^x$", pa.timestamp("ns", "Europe/Rome"))])
    shape = parsed_shape("nullCount", pa.int64())
    parsed = [("numRecords", pa.int64()), ("minValues", moments), ("maxValues", moments)]
    shape["add"]["stats_parsed"] = pa.struct(parsed)
    history.create(columns).checkpoint(actions=[protocol(), metadata(columns), action], shape=shape).without(0)
    assert row(lv.open_table(history.address))["^x$"]["max"] == MOMENT


def test_filters_use_structs_and_text_alike(history: DeltaHistory) -> None:
    table = checkpointed(history, ["x", "y"])
    history.commit(add("g", stats=bounds(5, 6)), version=1)
    assert table.refresh()
    assert dict(table.plan("x > 4").select("path", "reason").rows()) == {"f": "statistics", "g": "kept"}
    assert dict(table.plan("x < 2 AND y < 2").select("path", "kept").rows()) == {"f": True, "g": False}


def test_statistics_have_their_columns_when_there_is_no_file(history: DeltaHistory) -> None:
    history.create({"x": "long", "p": "string"}, partition_by=("p",))
    frame = lv.open_table(history.address).statistics()
    bound = {"min": pl.Int64(), "max": pl.Int64(), "null_count": pl.Int64(), "exact": pl.Boolean()}
    assert frame.schema == pl.Schema(
        {
            "_path": pl.String(),
            "_deletion_vector": pl.String(),
            "x": pl.Struct({**bound, "null_count_exact": pl.Boolean()}),
        }
    )


@pytest.mark.slow
def test_statistics_of_thousands_of_columns_take_seconds_not_minutes(history: DeltaHistory) -> None:

    columns = {f"c{i}": "long" for i in range(5_000)}
    values = {name: i for i, name in enumerate(columns)}
    stats = {"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": dict.fromkeys(columns, 0)}
    history.create(columns).commit(add("f", stats=json.dumps(stats)), add("g"))
    begun = time.monotonic()
    table = lv.open_table(history.address)
    assert table.statistics().width == 5_002
    assert table.plan("c4999 > 10000")["reason"].to_list() == ["statistics", "kept"]
    assert table.snapshot().schema.names[-1] == "c4999"
    assert time.monotonic() - begun < 20


def test_structs_of_thousands_of_columns_take_seconds_too(history: DeltaHistory) -> None:
    names = [f"c{i}" for i in range(1_000)]
    numbers = pa.struct([(name, pa.int64()) for name in names])
    shape = parsed_shape("nullCount", pa.int64())
    inner = [("numRecords", pa.int64()), ("minValues", numbers), ("maxValues", numbers), ("nullCount", numbers)]
    shape["add"]["stats_parsed"] = pa.struct(inner)
    action = add("f")
    values = {name: i for i, name in enumerate(names)}
    action["add"]["stats_parsed"] = {"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": values}
    columns = dict.fromkeys(names, "long")
    history.create(columns).checkpoint(actions=[protocol(), metadata(columns), action], shape=shape).without(0)
    begun = time.monotonic()
    frame = lv.open_table(history.address).statistics()
    assert frame["c999"].struct.field("max").to_list() == [999]
    assert time.monotonic() - begun < 15
