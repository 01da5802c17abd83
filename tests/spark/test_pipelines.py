"""Pipelines on Spark: what is published of a sink or view, what becomes of failed rows, and runs that were killed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.inspection import PipelineInspection, inspect_pipelines
from lakeview.model.clock import system_clock
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.spark.pipelines.config import Dataset, Expectation, Mode, parse_config
from lakeview.spark.pipelines.graph import FlowNode, Graph, Input
from lakeview.spark.pipelines.merges import Tombstones
from lakeview.spark.pipelines.publish import Publisher
from lakeview.spark.pipelines.records import Records
from lakeview.spark.pipelines.sources import Places, added_rows
from lakeview.storage.access import NO_OPTIONS

RULES = """
      - {name: priced, condition: price > 0, action: quarantine}
      - {name: named, condition: name IS NOT NULL, action: drop}
      - {name: once, unique: [id], action: drop}
      - {name: small, condition: price < 100, action: warn}
"""


class KilledError(BaseException):
    """The process ends here."""


class Shop:
    """A sink, and what is published of it as the table `orders`."""

    def __init__(self, spark: SparkSession, folder: Path, text: str) -> None:
        self._spark, self.folder = spark, folder
        self.dataset: Dataset = parse_config(f"output: o\ntables:\n  orders:\n    {text}").tables["orders"]
        self.sink: Any = lv.create_table(str(folder / "sink"), rows().to_arrow().schema)
        self.output = str(folder / "lake")
        self.lines: list[str] = []

    def publish(self, run: str = "r", kill: str | None = None, days: int = 0) -> str:
        def step(name: str) -> None:
            if name == kill:
                raise KilledError(name)

        flows = (FlowNode("totals", (Input("/raw", "lakeview", streams=False, version=7),), ()),)
        graph = Graph({"sink": str(self.folder / "sink")}, ("totals",), flows)
        clock = lambda: datetime.now(UTC) + timedelta(days)  # noqa: E731, TID251 (records are sorted by it)
        records = Records(self.output, "shop", clock, "mara")
        places, say = Places("shop", self.output, "orders"), self.lines.append
        publisher = Publisher(self._spark, run, places, self.dataset, graph, records, clock, step, user="mara", say=say)
        outcome = publisher.publish()
        publisher.maintain(outcome)
        return outcome

    def table(self, name: str = "orders") -> pl.DataFrame:
        return lv.open_table(f"{self.output}/{name}").scan().collect().sort("id", "price")

    @property
    def look(self) -> PipelineInspection:
        return inspect_pipelines(self.output, lv.open_table)


def rows(*values: tuple[int, str | None, float]) -> pl.DataFrame:
    return pl.DataFrame(list(values), schema={"id": pl.Int64, "name": pl.String, "price": pl.Float64}, orient="row")


def test_rows_are_published_once_and_each_failed_row_goes_where_its_expectation_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = Shop(spark, tmp_path, f"sink: sink\n    optimize: true\n    expectations:{RULES}")
    shop.sink.append(rows((1, "a", 5), (1, "a", 6), (2, None, 1), (3, "c", -1), (4, None, -1), (5, "e", 500)))
    assert shop.publish("r1") == "succeeded"
    assert shop.table().rows() == [(1, "a", 5), (5, "e", 500)]
    counts, failed = shop.lines[0].split("; ")
    assert counts == "orders: 6 rows in, 2 out, 2 dropped, 2 quarantined"
    assert failed == "rows that fail: priced 2 (quarantine), named 2 (drop), once 1 (drop), small 1 (warn)"
    apart = shop.table("_lakeview/quarantine/orders")
    assert apart.select("id", "_expectations", "_run_id").rows() == [
        (3, ["priced"], "r1"), (4, ["priced", "named"], "r1"),
    ]  # fmt: skip
    expectations = {r["expectation"]: r for r in shop.look.expectations().to_dicts()}
    assert {name: (r["rows_checked"], r["rows_failed"]) for name, r in expectations.items()} == {
        "priced": (6, 2), "named": (6, 2), "once": (6, 1), "small": (6, 1),
    }  # fmt: skip
    assert '"price":500.0' in expectations["small"]["sample"]
    assert '"name":null' in expectations["named"]["sample"]
    assert shop.publish("r2") == "unchanged"
    # a key that is published already, rows that a rearrangement moves, and one that is taken back in time
    shop.sink.append(rows((1, "again", 7), (6, "f", 1), (7, "g", 1)))
    shop.sink.optimize()
    shop.sink.delete("id = 7")
    assert shop.publish("r3") == "succeeded"
    assert shop.table()["id"].to_list() == [1, 5, 6]
    steps = shop.look.frame("runs").filter(step="publish").sort("started")
    assert steps.select("run_id", "status", "rows_in", "rows_out", "rows_dropped", "rows_quarantined").rows() == [
        ("r1", "succeeded", 6, 2, 2, 2), ("r2", "unchanged", None, None, None, None), ("r3", "succeeded", 2, 1, 1, 0),
    ]  # fmt: skip
    lineage = shop.look.lineage().filter(output=f"{shop.output}/orders")
    assert lineage.select("input_from", "input_version").rows() == [(None, 1), (2, 4)]
    for name in ("orders", "_lakeview/quarantine/orders", "_lakeview/runs"):
        assert set(lv.open_table(f"{shop.output}/{name}").history()["user"]) == {"mara"}
    # another sink in the place of the first would be appended a second time
    (tmp_path / "sink").rename(tmp_path / "old")
    lv.create_table(str(tmp_path / "sink"), rows().to_arrow().schema).append(rows((1, "a", 5)))
    with pytest.raises(InvalidRequestError, match="is another table than the one"):
        shop.publish("r4")
    shop.dataset = parse_config("output: o\ntables: {orders: {sink: other}}").tables["orders"]
    with pytest.raises(InvalidRequestError, match="has no sink other"):
        shop.publish("r5")


def test_rows_with_maps_that_a_rearrangement_copied_are_not_added_again(spark: SparkSession) -> None:
    difference = spark.sql(
        "SELECT * FROM VALUES (map('a', 1, 'b', 2), 'insert'), (map('b', 2, 'a', 1), 'delete'), "
        "(map('a', 1, 'b', 2), 'insert'), (map('c', 3), 'delete') AS t(m, _change_type)"
    )
    assert added_rows(difference, ["m"], only_grew=False).collect() == [({"a": 1, "b": 2},)]


def test_a_merge_takes_the_last_row_of_a_key(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, "sink: sink\n    publish: merge\n    keys: [id]\n    order_by: [price]")
    keyless: Any = [(None, "x", 1), (None, "y", 2)]  # equal no other, nor each other
    shop.sink.append(rows((1, "a", 5), (1, "b", 6), (2, "c", 1), *keyless))
    shop.publish()
    shop.sink.append(rows((2, "d", 9), (3, "e", 1)))
    shop.publish()
    assert shop.table().rows() == [*keyless, (1, "b", 6), (2, "d", 9), (3, "e", 1)]
    assert shop.publish() == "unchanged"
    assert shop.look.frame("runs").filter(step="publish")["rows_out"].to_list()[:2] == [4, 2]
    shop.dataset = msgspec.structs.replace(shop.dataset, delete_when="`Name` = 'gone' OR price > 90")
    later: Any = [(1, "gone", 8), (2, "gone", 10), (2, None, 11), (9, "gone", 1), (None, "gone", 3)]
    shop.sink.append(rows(*later))
    shop.publish()
    assert shop.table().rows() == [*keyless, (2, None, 11), (3, "e", 1)]
    shop.sink.append(rows((4, "f", 1)))
    shop.dataset = msgspec.structs.replace(shop.dataset, order_by=("PRICE", "costs"))
    with pytest.raises(InvalidRequestError, match="there is no column costs"):
        shop.publish()


def test_rows_that_arrive_late_change_no_newer_row_and_bring_no_deleted_one_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "sink: sink\n    publish: merge\n    keys: [id]\n    order_by: [price, name]\n    optimize: true"
    shop = Shop(spark, tmp_path, f"{text}\n    delete_when: name LIKE 'gone%'")
    shop.sink.append(rows((1, "a", 5), (2, "b", 5), (3, "c", 5), (4, None, 5)))
    shop.publish()
    # of four keys: a deletion, one of a key that is not there, an older deletion, and a row without the second column
    later: Any = [(1, "gone", 7), (5, "gone", 7), (2, "gone", 4), (None, "gone", 7)]
    shop.sink.append(rows(*later, (3, None, 5)))
    with pytest.raises(KilledError):
        shop.publish(kill="tombstones of orders")
    shop.publish()
    assert shop.table().rows() == [(2, "b", 5), (3, "c", 5), (4, None, 5)]
    shop.sink.append(rows((1, "late", 6), (5, "late", 7), (2, "new", 6), (4, "a", 5)))
    shop.publish()
    assert shop.table().rows() == [(2, "new", 6), (3, "c", 5), (4, "a", 5), (5, "late", 7)]
    shop.sink.append(rows((1, "again", 8), (5, "gone again", 6), (2, "gone", 6)))
    with pytest.raises(KilledError):
        shop.publish(kill="optimized orders")
    assert shop.publish() == "unchanged"  # and what was to follow is done
    assert shop.look.frame("runs").filter(step="maintain").height == 4
    assert shop.table().rows() == [(1, "again", 8), (2, "new", 6), (3, "c", 5), (4, "a", 5), (5, "late", 7)]
    # a table that is created again gets all rows of the sink, and begins without tombstones
    (tmp_path / "lake" / "orders").rename(tmp_path / "old")
    shop.publish()
    assert shop.table().rows() == [(1, "again", 8), (2, "new", 6), (3, "c", 5), (4, "a", 5), (5, "late", 7)]


def test_runs_without_new_rows_forget_deletions_whose_period_is_over(spark: SparkSession, tmp_path: Path) -> None:
    text = "sink: sink\n    publish: merge\n    keys: [id]\n    order_by: [price]\n    tombstones: 30d"
    shop = Shop(spark, tmp_path, f"{text}\n    delete_when: name = 'gone'")
    shop.sink.append(rows((1, "gone", 7)))
    shop.publish()
    with pytest.raises(KilledError):
        shop.publish(kill="pruned orders", days=31)
    assert shop.publish(days=31) == "unchanged"  # and records nothing, as nothing more has expired
    assert shop.look.frame("runs").filter(step="maintain").height == 1
    shop.sink.append(rows((1, "late", 6)))
    shop.publish(days=32)
    assert shop.table().rows() == [(1, "late", 6)]


def test_a_deletion_is_remembered_for_the_period_of_its_dataset(spark: SparkSession, tmp_path: Path) -> None:
    """Since it was published last; one of an older release, which has no time, since the next run."""
    dataset = Dataset(
        sink="s", publish=Mode.MERGE, keys=("id",), order_by=("at",), delete_when="at > 6", tombstones="30d"
    )
    begun = datetime(2026, 5, 6, tzinfo=UTC)

    def after(days: int) -> Tombstones:
        return Tombstones(spark, str(tmp_path), dataset, NO_OPTIONS, None, lambda: begun + timedelta(days))

    late = spark.createDataFrame([(1, 6), (2, 6)], "id long, at long")
    deletions = spark.createDataFrame([(1, 7), (2, 7)], late.schema)
    after(0).add(deletions)
    after(20).add(deletions.where("id = 2"))  # as by the run after one that was killed
    assert not after(29).prune()
    assert after(29).newer(late).collect() == []
    assert [after(31).prune() for _ in range(2)] == [True, False]
    assert after(31).newer(late).collect() == [(1, 6)]
    cast(DeltaTable, lv.open_table(str(tmp_path))).drop_column("published")
    assert not after(60).prune()
    assert not after(89).prune()
    assert after(89).newer(late).collect() == [(1, 6)]
    assert after(91).prune()
    assert sorted(after(91).newer(late).collect()) == [(1, 6), (2, 6)]


def test_a_tombstone_is_found_by_a_key_in_another_case_of_letters(spark: SparkSession, tmp_path: Path) -> None:
    dataset = Dataset(sink="s", publish=Mode.MERGE, keys=("id",), order_by=("at",), delete_when="at > 5")
    tombstones = Tombstones(spark, str(tmp_path), dataset, NO_OPTIONS, None, system_clock)
    tombstones.add(spark.createDataFrame([(1, 7), (2, 1)], "id long, at long"))
    spelled = msgspec.structs.replace(dataset, keys=("ID",), order_by=("At",))
    arrived = spark.createDataFrame([(1, 6), (1, 8), (2, 0)], "ID long, At long")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        newer = replace(tombstones, dataset=spelled).newer(arrived).collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert sorted(newer) == [(1, 8), (2, 0)]


def test_new_columns_of_a_sink_are_published_where_they_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, "sink: sink\n    publish: merge\n    keys: [id]")
    shop.sink.append(rows((1, "a", 5), (2, "b", 6)))
    shop.publish()
    shop.sink.add_column("size", pa.int64())
    shop.sink.append(rows((2, "c", 7), (3, "d", 8)).with_columns(size=pl.col("id") * 10))
    with pytest.raises(InvalidRequestError, match=r"orders does not have: size\n  fix: write merge_schema: true"):
        shop.publish()
    shop.dataset = msgspec.structs.replace(shop.dataset, merge_schema=True)
    assert shop.publish() == "succeeded"
    assert shop.table().rows() == [(1, "a", 5, None), (2, "c", 7, 20), (3, "d", 8, 30)]
    # a word that no column has is said without new rows too
    rule = Expectation("sized", condition="sizes > 0")
    shop.dataset = msgspec.structs.replace(shop.dataset, expectations=(rule,))
    with pytest.raises(InvalidRequestError, match=r"expectation sized: .*sizes"):
        shop.publish()


def test_a_view_replaces_the_table_unless_rows_fail_that_must_not(spark: SparkSession, tmp_path: Path) -> None:
    rule = "{name: once, unique: [id], action: fail}"
    shop = Shop(spark, tmp_path, f"view: totals\n    publish: overwrite\n    expectations: [{rule}]")
    for prices in ([1.0], [2.0, 3.0], [4.0]):
        rows_read = spark.createDataFrame([(1, "a", price) for price in prices], "id long, name string, price double")
        rows_read.createOrReplaceTempView("totals")
        if len(prices) > 1:
            with pytest.raises(ConstraintViolationError, match=r"once \(UNIQUE \(id\)\): 1 rows"):
                shop.publish()
        else:
            shop.publish()
        assert shop.table()["price"].to_list() == [1.0 if prices[0] < 4 else 4.0]
    checks = shop.look.frame("expectations").sort("timestamp")
    assert checks.select("rows_checked", "rows_failed", "version").rows() == [(1, 0, 1), (2, 1, None), (1, 0, 2)]
    assert shop.look.lineage().select("input", "input_version", "output_version").rows() == [
        ("/raw", 7, 1), ("/raw", 7, 2),
    ]  # fmt: skip
    shop.dataset = msgspec.structs.replace(shop.dataset, view="total")
    with pytest.raises(InvalidRequestError, match=r"no view total\n  fix: perhaps totals is meant"):
        shop.publish()


@pytest.mark.parametrize("kill", ["quarantined orders", "published orders"])
def test_a_publication_that_was_killed_is_finished_by_the_next_run(
    spark: SparkSession, tmp_path: Path, kill: str
) -> None:
    shop = Shop(spark, tmp_path, f"sink: sink\n    expectations:{RULES}")
    shop.sink.append(rows((1, "a", 5), (3, "c", -1)))
    with pytest.raises(KilledError):
        shop.publish("r1", kill)
    shop.sink.append(rows((1, "late", 5), (4, "d", -1), (5, "e", 1)))
    if kill.startswith("quarantined"):
        changed = shop.dataset
        shop.dataset = parse_config("output: o\ntables: {orders: {sink: sink, expectations: [{name: x, condition: "
                                    "price > 0, action: quarantine}]}}").tables["orders"]  # fmt: skip
        with pytest.raises(InvalidRequestError, match="changed after its rows were quarantined"):
            shop.publish("r2")
        shop.dataset = changed
    assert shop.publish("r3") == "succeeded"
    assert shop.table().rows() == [(1, "a", 5), (5, "e", 1)]
    assert shop.table("_lakeview/quarantine/orders")["id"].to_list() == [3, 4]
    done = shop.look.frame("runs").filter(step="publish").sort("version")
    assert done.select("rows_in", "rows_out", "rows_quarantined").rows() == [(2, 1, 1), (3, 1, 1)]
    assert done["run_id"].to_list() == ["r1" if kill.startswith("published") else "r3", "r3"]
    assert shop.look.frame("expectations").height == 8
