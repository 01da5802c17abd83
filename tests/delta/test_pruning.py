"""Filters to files: what is spared and why."""

from __future__ import annotations

import pickle

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import PLAN
from lakeview.rows.parquet import read_task
from tests.builders.actions import add, metadata, protocol, struct
from tests.builders.history import DeltaHistory
from tests.builders.months import months
from tests.builders.opening import open_delta_table
from tests.builders.stores import FarStorage

P, S, K = "partition", "statistics", "kept"
PLANS: list[tuple[str, list[str]]] = [
    ("month = 2", [P, K, P]),
    ("month = 2 AND day = 3", [P, K, P]),
    ("month = 2 AND day > 10", [P, S, P]),
    ("month <> 2", [K, P, K]),
    ("month IN (1, 3)", [K, P, K]),
    ("month NOT IN (1, 3)", [P, K, P]),
    ("NOT (month = 1 OR month = 2)", [P, P, K]),
    ("month BETWEEN 2 AND 9", [P, K, K]),
    ("month NOT BETWEEN 2 AND 9", [K, P, P]),
    ("month IS NULL", [P, P, P]),
    ("month IS NOT NULL", [K, K, K]),
    ("day > 10", [S, S, S]),
    ("day >= 10", [K, K, K]),
    ("day IS NULL", [S, S, S]),
    ("city = 'b5'", [S, K, S]),
    ("city LIKE 'b%'", [S, K, S]),
    ("city < 'b'", [K, S, S]),
    ("city IN ('a1', 'c1', 'zz')", [K, S, K]),
    ("month = 1 OR city = 'c3'", [K, S, K]),
    ("1 = 1", [K, K, K]),
    ("1 = 2", [P, P, P]),
    ("day + 1 > 100", [K, K, K]),
    ("month = NULL", [P, P, P]),
]


@pytest.mark.parametrize(("where", "reasons"), PLANS, ids=[where for where, _ in PLANS])
def test_a_plan_says_what_spares_each_file(history: DeltaHistory, where: str, reasons: list[str]) -> None:
    table = lv.open_table(months(history).address)
    plan = table.plan(where)
    assert plan.schema == PLAN
    plan = plan.sort("path")
    assert dict(zip(plan["path"], plan["reason"], strict=True)) == dict(zip(["m1", "m2", "m3"], reasons, strict=True))
    assert plan["kept"].to_list() == [reason == K for reason in reasons]


@pytest.mark.parametrize(("where", "reasons"), PLANS, ids=[where for where, _ in PLANS])
def test_a_scan_opens_only_the_files_its_filter_needs(history: DeltaHistory, where: str, reasons: list[str]) -> None:
    store = FarStorage(months(history).address)
    table = DeltaTable(store)
    rows = table.scan()
    everything = rows.collect()
    store.requests.clear()
    rows_found = rows.filter(pl.sql_expr(where)).collect()
    if where == "month = NULL":  # polars knows by itself that no row can match, and does not ask
        store.requests.clear()
    assert store.requests["open"] == reasons.count(K)
    assert rows_found.equals(everything.filter(pl.sql_expr(where)))


def test_only_as_many_files_are_opened_as_the_first_rows_need(history: DeltaHistory) -> None:
    store = FarStorage(months(history).address)
    assert DeltaTable(store).scan().head(10).collect().height == 10
    assert store.requests["open"] == 1


def test_counting_rows_of_a_partition_reads_no_column(history: DeltaHistory) -> None:
    table = lv.open_table(months(history).address)
    assert table.scan().filter(pl.col("month") == 2).select(pl.len()).collect().item() == 10
    assert table.scan().select("month").collect()["month"].value_counts(sort=True)["count"].to_list() == [10] * 3


def test_a_scan_is_pinned_to_its_version(history: DeltaHistory) -> None:
    table = lv.open_table(months(history).address)
    rows, first = table.scan(), table.scan(1)
    history.commit(history.data("m4", {"day": pa.array([1], pa.int32()), "city": ["d"]}, partition={"month": "4"}))
    table.refresh()
    assert rows.collect().height == 30
    assert first.collect().height == 10
    assert table.scan().collect().height == 31


@pytest.mark.parametrize("address", ["in a folder", "in memory"], indirect=True)
def test_two_scans_of_the_same_files_may_be_read_in_turns(address: str) -> None:
    table = open_delta_table(months(DeltaHistory(address)).address)
    with table.storage.open("m1") as one, table.storage.open("m1") as other:
        begun = one.read(8)
        assert other.read(4) == begun[:4]
        assert one.read() == table.storage.read("m1")[8:]


REFUSED = {
    "an unknown column": ("planet = 3", "unknown-column", "there is no column planet"),
    "no condition": ("month = ", "bad-predicate", "cannot be read"),
    "a statement": ("DROP TABLE x", "bad-predicate", "stopped at 'DROP'"),
    "nothing": ("", "bad-predicate", "is empty"),
}


@pytest.mark.parametrize(("where", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_a_filter_that_cannot_be_meant_is_refused(history: DeltaHistory, where: str, kind: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        lv.open_table(months(history).address).plan(where)
    assert caught.value.kind == kind
    assert caught.value.fix is not None
    assert caught.value.place == "where"


def test_a_fraction_in_the_file_below_a_widened_column_is_not_pruned_by_old_bounds(history: DeltaHistory) -> None:
    """Bounds of a file from before a column was widened are in the old type's text: still bounds."""
    history.commit(protocol(), metadata({"x": "integer"}))
    stats = {"numRecords": 1, "minValues": {"x": 5}, "maxValues": {"x": 5}, "nullCount": {"x": 0}}
    history.commit(history.data("f", {"x": pa.array([5], pa.int32())}, stats=stats))
    history.commit(metadata({"x": "double"}))
    table = lv.open_table(history.address)
    assert table.scan().filter(pl.col("x") == 5.0).collect().rows() == [(5.0,)]
    assert table.plan("x > 5.5").height == 1


def test_fields_of_structs_prune_as_columns_do(history: DeltaHistory) -> None:
    history.create({"s": struct(a="long", b="string")})
    for low in (0, 100):
        rows = pa.table({"s": [{"a": low, "b": "x"}, {"a": low + 9, "b": "y"}]})
        stats = {
            "numRecords": 2, "minValues": {"s": {"a": low}}, "maxValues": {"s": {"a": low + 9}},
            "nullCount": {"s": {"a": 0}},
        }  # fmt: skip
        history.commit(history.data(f"f{low}", rows, stats=stats))
    table = lv.open_table(history.address)
    where = pl.col("s").struct.field("a") > 50
    assert dict(table.plan(where).select("path", "reason").iter_rows()) == {"f0": "statistics", "f100": "kept"}
    assert table.scan().filter(where).collect().height == 2


def test_a_file_without_statistics_is_always_read(history: DeltaHistory) -> None:
    history.create({"x": "long"}).commit(history.data("f", {"x": [1]}), add("g", stats='{"numRecords":1}'))
    assert lv.open_table(history.address).plan("x > 5")["reason"].to_list() == ["kept", "kept"]


def test_a_file_whose_values_are_all_null_matches_no_comparison(history: DeltaHistory) -> None:
    stats = {"numRecords": 2, "nullCount": {"x": 2}}
    history.create({"x": "long"}).commit(add("f", stats=stats))
    table = lv.open_table(history.address)
    assert table.plan("x > 5")["reason"].to_list() == ["statistics"]
    assert table.plan("x IS NOT NULL")["reason"].to_list() == ["statistics"]
    assert table.plan("x IS NULL")["reason"].to_list() == ["kept"]


def test_a_task_travels_alone(history: DeltaHistory) -> None:
    table = open_delta_table(months(history).address)
    tasks = table.tasks(columns=["month", "day"], where="month = 2")
    copies = pickle.loads(pickle.dumps(tasks))
    batches = [batch for task in copies for batch in read_task(task)]
    assert sum(b.num_rows for b in batches) == 10
    assert batches[0].schema.names == ["month", "day"]
    with pytest.raises(InvalidRequestError, match="there is no column planet"):
        table.tasks(columns=["planet"])
