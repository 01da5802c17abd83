"""Per-file statistics: JSON text to bounds, exact or not, unknown where the log does not say."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from tests.builders.actions import add, struct
from tests.builders.bounds import bounds, statistics
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table

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
        datetime(2026, 1, 1, 23, 0, 0, 999999, tzinfo=UTC),
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
        datetime.fromisoformat("2026-01-01T00:00:00.124999"),
        False,
    ),
]


@pytest.mark.parametrize(("type_", "low", "high", "minimum", "maximum", "exact"), VALUES)
def test_bounds_have_the_type_of_their_column(
    history: DeltaHistory, type_: str, low: Any, high: Any, minimum: Any, maximum: Any, exact: bool
) -> None:
    column = statistics(history, {"x": type_}, bounds(low, high))["x"]
    assert column["null_count"] == 0
    assert (column["min"], column["max"]) == (minimum, maximum) or column["max"] != column["max"]
    assert column["exact"] is exact


def test_columns_made_at_once_have_the_bounds_of_each_made_alone(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lows, highs = ({f"c{i}": values[side] for i, values in enumerate(VALUES)} for side in (1, 2))
    text = json.dumps({"numRecords": 1, "minValues": lows, "maxValues": highs})
    loose = json.dumps({"numRecords": 1, "minValues": lows, "maxValues": highs, "tightBounds": False})
    history.create({f"c{i}": values[0] for i, values in enumerate(VALUES)})
    history.commit(*(add(name, stats=stats) for name, stats in (("f", text), ("g", None), ("h", text), ("i", loose))))
    at_once = lv.open_table(history.address).statistics()
    for column in at_once.columns[2:]:
        assert at_once[column].equals(lv.open_table(history.address).statistics(columns=[column])[column]), column
    monkeypatch.setattr("lakeview.delta.data.statistics._VALUES", 1)
    assert at_once.equals(lv.open_table(history.address).statistics())


def test_no_digit_of_a_decimal_is_lost(history: DeltaHistory) -> None:
    low, high = "-0.12345678901234567890", "99999999999999999.99999999999999999999"
    text = f'{{"numRecords":1,"minValues":{{"x":{low}}},"maxValues":{{"x":{high}}}}}'
    column = statistics(history, {"x": "decimal(38,20)"}, text)["x"]
    assert column["min"] == Decimal(low)
    assert column["max"] == Decimal(high)
    assert column["exact"] is True


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
    column = statistics(history, {"x": type_}, bounds(bound, bound))["x"]
    cut_off = timedelta(microseconds=999) if isinstance(value, datetime) else None
    assert (column["min"], column["max"]) == (value, value if cut_off is None else value + cut_off)


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
    column = statistics(history, {"x": type_}, stats)["x"]
    assert column == {"min": None, "max": None, "null_count": 0, "exact": False, "null_count_exact": True}


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
    column = statistics(history, {"x": "long"}, stats)["x"]
    assert column == {"min": None, "max": None, "null_count": None, "exact": False, "null_count_exact": False}
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
    column_list = {"a.b": "`a.b`", "back`tick": "`back``tick`", "_path": "`_path`"}
    columns = [column_list.get(n, n) for n in NAMES]
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
    frame = statistics(history, columns, stats)
    assert list(frame) == ["_path", "_deletion_vector", "s.a", "s.t.b", "l", "b"]
    assert (frame["s.a"]["min"], frame["s.t.b"]["max"], frame["s.t.b"]["null_count"]) == (1, "y", 4)
    assert frame["l"] == {"min": None, "max": None, "null_count": 3, "exact": False, "null_count_exact": True}
    assert frame["b"]["null_count"] == 1
    table = lv.open_table(history.address)
    assert table.statistics(columns=["s"]).columns == ["_path", "_deletion_vector", "s.a", "s.t.b"]
    assert table.statistics(columns=["s.t.b"]).columns == ["_path", "_deletion_vector", "s.t.b"]


def test_statistics_of_an_unknown_column_are_refused(history: DeltaHistory) -> None:
    history.create({"x": "long"})
    with pytest.raises(InvalidRequestError, match="there is no column y") as caught:
        lv.open_table(history.address).statistics(columns=["y"])
    assert (caught.value.kind, caught.value.fix, caught.value.place) == ("unknown-column", "choose from x", "y")


def test_bounds_that_are_not_tight_are_not_exact(history: DeltaHistory) -> None:
    column = statistics(history, {"x": "long"}, {**bounds(1, 2, 3), "tightBounds": False})["x"]
    assert column == {"min": 1, "max": 2, "null_count": 3, "exact": False, "null_count_exact": False}


@pytest.mark.parametrize(("nulls", "exact"), [(0, True), (9, False), (3, False)])
def test_a_null_count_of_none_is_exact_even_in_loose_bounds(history: DeltaHistory, nulls: int, exact: bool) -> None:
    column = statistics(history, {"x": "long"}, {**bounds(1, 2, nulls), "tightBounds": False})["x"]
    assert column["null_count_exact"] is exact


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

    columns = {f"c{i}": "long" for i in range(2_000)}
    values = {name: i for i, name in enumerate(columns)}
    stats = {"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": dict.fromkeys(columns, 0)}
    history.create(columns).commit(add("f", stats=json.dumps(stats)), add("g"))
    begun = time.process_time()
    table = lv.open_table(history.address)
    assert table.statistics().width == 2_002
    assert table.plan("c1999 > 10000")["reason"].to_list() == ["statistics", "kept"]
    assert table.snapshot().schema.names[-1] == "c1999"
    assert time.process_time() - begun < 6


def test_the_upper_bound_of_a_timestamp_holds_what_writers_cut_off(history: DeltaHistory) -> None:
    """A writer that keeps microseconds in its rows and milliseconds in the log: 10:00:00.123456 is recorded as .123."""
    cut = {"t": "2026-01-01T10:00:00.123Z"}
    document = {"numRecords": 1, "minValues": cut, "maxValues": cut}
    column = statistics(history, {"t": "timestamp"}, document)["t"]
    assert column["min"] <= datetime(2026, 1, 1, 10, 0, 0, 123456, tzinfo=UTC) <= column["max"]
    assert column["exact"] is False


@pytest.mark.parametrize(
    ("text", "prefix", "exact"),
    [
        ("a" * 31, None, True),
        ("a" * 32, None, False),
        ("\N{GRINNING FACE}" * 15, None, True),
        ("\N{GRINNING FACE}" * 16, None, False),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}" * 31, None, True),
        ("a" * 7, "8", True),
        ("a" * 8, "8", False),
        ("a" * 40, "64", False),
        ("a" * 31, "nonsense", True),
    ],
)
def test_a_string_that_may_be_cut_is_no_value(
    history: DeltaHistory, text: str, prefix: str | None, exact: bool
) -> None:
    """Spark cuts after UTF-16 units, of which a character beyond the basic plane takes two."""
    properties = {} if prefix is None else {"delta.dataSkippingStringPrefixLength": prefix}
    history.create({"x": "string"}, properties=properties)
    history.commit(add("f", stats=bounds(text, text)))
    assert lv.open_table(history.address).statistics()["x"].struct.field("exact").to_list() == [exact]


def test_statistics_of_a_share_of_the_files_are_those_of_some_and_the_same_each_time(tmp_path: Path) -> None:
    stats = [{"numRecords": i + 1, "minValues": {"id": i}, "maxValues": {"id": i}} for i in range(100)]
    history = DeltaHistory(tmp_path / "t").create().commit(*(add(f"f{i}", stats=each) for i, each in enumerate(stats)))
    history.checkpoint().commit(*(add(f"g{i}", records=7) for i in range(10)))
    table = lv.open_table(history.address)
    part, again = (opened.sampled_statistics(2, 0.3) for opened in (table, lv.open_table(history.address)))
    assert part is not None
    assert again is not None
    assert part.height == 33
    assert part.equals(again)
    assert part.equals(table.statistics().filter(pl.col("_path").is_in(part["_path"].implode())))
    assert sum(table.files(columns=["records"])["records"]) == 5050 + 70


def test_a_share_of_files_that_are_listed_in_small_parts_is_not_empty(tmp_path: Path) -> None:
    stats = [{"numRecords": 1, "minValues": {"id": i}, "maxValues": {"id": i}} for i in range(40)]
    history = DeltaHistory(tmp_path / "t").create().commit(*(add(f"f{i}", stats=each) for i, each in enumerate(stats)))
    open_delta_table(history.address).checkpoint(parts=4)
    part = lv.open_table(history.address).sampled_statistics(1, 0.05)
    assert part is not None
    assert part["id"].struct.field("min").drop_nulls().len() == part.height == 4
