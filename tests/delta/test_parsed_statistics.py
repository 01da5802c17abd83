"""Statistics as structs, which checkpoints may hold beside JSON text or instead of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint.struct_statistics import StructStatistics, documents_of
from lakeview.model.data_types import Field, PrimitiveType
from tests.builders.actions import add, metadata, protocol
from tests.builders.bounds import bounds, row
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory
from tests.builders.opening import open_delta_table


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
    extremes = frame["x"].struct.unnest()
    expected = value.replace(tzinfo=UTC) if type_ == "timestamp" else value
    assert extremes["min"].to_list() == [expected, None]
    assert extremes["max"].to_list() == [expected, None]
    assert extremes["null_count"].to_list() == [2, None]


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
    extremes = row(checkpointed(history, ["x", "y"]), columns=["y"])
    assert (extremes["y"]["min"], extremes["y"]["max"], extremes["y"]["null_count"]) == (1, 2, 0)


def test_text_is_read_where_structs_leave_files_out(history: DeltaHistory) -> None:
    extremes = row(checkpointed(history, ["x"], count=None))
    assert (extremes["x"]["min"], extremes["x"]["max"], extremes["x"]["null_count"]) == (7, 8, 0)


@pytest.mark.parametrize("count", [-4, 2**60])
def test_rows_that_no_file_has_are_unknown_in_structs_too(history: DeltaHistory, count: int) -> None:
    table = checkpointed(history, ["x"], count=count)
    assert table.snapshot().num_records is None
    assert table.lifetimes()["records"].to_list() == [None]


def test_structs_have_columns_of_any_name_too(history: DeltaHistory) -> None:
    names = ["a.b", "a", "back`tick", "^x$", "path", "stats", " ", "\u00e9", "numRecords"]
    table = checkpointed(history, names)
    frame = table.statistics()
    for column in frame.columns[2:]:
        assert [extremes["max"] for extremes in frame[column]] == [2], column
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
    begun = time.process_time()
    frame = lv.open_table(history.address).statistics()
    assert frame["c999"].struct.field("max").to_list() == [999]
    assert time.process_time() - begun < 15


def cloned(table: DeltaTable) -> DeltaTable:
    table.clone(f"{table.address}-clone")
    return open_delta_table(f"{table.address}-clone")


def restored(table: DeltaTable) -> DeltaTable:
    table.delete()
    table.restore(1)
    return table


AGAIN: dict[str, Callable[[DeltaTable], object]] = {
    "with a deletion vector": lambda table: table.delete("x = 2"),
    "with row ids": lambda table: table.set_properties({"delta.enableRowTracking": "true"}),
    "by a restore": restored,
    "in a clone": cloned,
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=[f"added again {words}" for words in AGAIN])
def test_a_file_that_is_added_again_keeps_statistics_that_a_checkpoint_has_as_structs(
    history: DeltaHistory, again: Callable[[DeltaTable], object]
) -> None:
    vectors = ["deletionVectors"]
    features = protocol(3, 7, readerFeatures=vectors, writerFeatures=vectors)
    actions = [features, metadata({"x": "long"}, properties={"delta.enableDeletionVectors": "true"})]
    file = history.data("f", {"x": [1, 2, 3]})
    parsed = {"numRecords": 3, "minValues": {"x": 1}, "maxValues": {"x": 3}, "nullCount": {"x": 0}}
    add_file = {"add": {**file["add"], "stats_parsed": parsed}}
    history.commit(*actions).commit(file)
    history.checkpoint(actions=[*actions, add_file], shape=parsed_shape("nullCount", pa.int64())).without(0, 1)
    table = open_delta_table(history.address)
    result = again(table)
    newest = result if isinstance(result, DeltaTable) else table
    (action,) = newest.commit(newest.snapshot().version).filter(kind="add")["action"]
    stats = json.loads(json.loads(action)["stats"])
    assert {name: value for name, value in stats.items() if name != "tightBounds"} == parsed


def test_documents_that_structs_become_have_no_bounds_of_variants_and_bytes() -> None:
    variant = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
    structs = pl.Series([{"numRecords": 1, "minValues": {"v": variant, "b": b"x", "id": 1}, "nullCount": {"v": 0}}])
    documents = documents_of(pl.Series([None], dtype=pl.String), structs)
    assert documents.to_list() == ['{"numRecords":1,"minValues":{"id":1},"nullCount":{"v":0}}']


def test_structs_hold_the_values_of_floats_that_became_doubles() -> None:
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    leaves = [(("x",), ("x",), Field("x", PrimitiveType("double"), metadata=changes))]
    documents = pl.Series(['{"numRecords":2,"minValues":{"x":0.7},"maxValues":{"x":0.2}}'])
    (row,) = StructStatistics(leaves).read(documents, None)
    assert row["minValues"] == {"x": 0.699999988079071}  # as a float it is a little less, and 0.2 a little more
    assert row["maxValues"] == {"x": 0.20000000298023224}
