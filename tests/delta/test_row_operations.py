"""Deletes and updates by a condition: the rows that polars makes of the whole table, whatever it has enabled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import wait
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import deltalake
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from polars.testing import assert_frame_equal

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.group_reader import RowsNeeded, matches_of
from lakeview.delta.write.rewrites import Numbers, Rewrite, apply_changes, with_changed_rows
from lakeview.delta.write.row_changes import THREADS
from lakeview.delta.write.row_operations import RowOutcome
from lakeview.delta.write.target import Progress
from lakeview.delta.write.transaction import Transaction
from lakeview.delta.write.writer import FileWriter
from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.matching import matching_rows
from tests.builders.findings import GRAVE
from tests.builders.opening import open_delta_table

SCHEMA = Schema(
    (
        Field("id", PrimitiveType("long")),
        Field("city", PrimitiveType("string")),
        Field("day", PrimitiveType("date")),
        Field("at", StructType((Field("x", PrimitiveType("double")), Field("tag", PrimitiveType("string"))))),
    )
)
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}
TABLES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "partitioned": ({}, ("city",)),
    "with deletion vectors": (VECTORS, ()),
    "mapped by name, partitioned": (MAPPED, ("city",)),
    "mapped by id, with deletion vectors": ({"delta.columnMapping.mode": "id"} | VECTORS, ("city",)),
    "with a change feed": (FEED, ("city",)),
    "with a change feed and deletion vectors": (FEED | VECTORS, ()),
    "with row tracking": (TRACKED | FEED, ("city",)),
    "with everything": (TRACKED | FEED | VECTORS | MAPPED, ("city",)),
}


def rows(first: int, count: int) -> pl.DataFrame:
    numbers = range(first, first + count)
    return pl.DataFrame(
        {
            "id": list(numbers),
            "city": [("Rome", "Oslo", None)[n % 3] for n in numbers],
            "day": [date(2026, 1, 1 + n % 28) for n in numbers],
            "at": [{"x": n / 4, "tag": None if n % 5 == 0 else f"t{n}"} for n in numbers],
        },
        schema=SCHEMA.to_polars(),
    )


def make_table(address: Path, properties: dict[str, str], partition_by: tuple[str, ...]) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties, partition_by=partition_by)
    assert isinstance(table, DeltaTable)
    table.append(rows(0, 40))
    table.append(rows(40, 40))
    return table


def all_rows(table: lv.Table) -> pl.DataFrame:
    return lv.open_table(table.address).scan().collect().sort("id")


def by_deltalake(address: Path) -> pl.DataFrame | None:
    """The rows as deltalake reads them; None for a table that it does not read."""
    try:
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(address)))
        rows_read = pl.DataFrame(query.execute("select * from t order by id").read_all())
    except deltalake.exceptions.DeltaError:
        return None
    return rows_read


@pytest.mark.parametrize(("properties", "partition_by"), TABLES.values(), ids=list(TABLES))
def test_deletes_and_updates_do_what_they_say(
    tmp_path: Path, properties: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = make_table(tmp_path, properties, partition_by)
    expected = all_rows(table)
    tracked = "delta.enableRowTracking" in properties
    ids = row_ids(table) if tracked else {}
    for where in ("id % 7 = 3", "city = 'Rome' AND id > 50", "at.tag IS NULL", "day = '2026-01-02'"):
        version = table.delete(where)
        expected = expected.filter(pl.sql_expr(where.replace("'2026", "DATE '2026")).not_().fill_null(value=True))
        assert table.latest_version == version
        assert_frame_equal(all_rows(table), expected)
    table.update({"city": "'Paris'", "id": "id + 1000"}, "id < 20 AND city IS NOT NULL")
    condition = (pl.col("id") < 20) & pl.col("city").is_not_null()
    expected = expected.with_columns(
        city=pl.when(condition).then(pl.lit("Paris")).otherwise("city"),
        id=pl.when(condition).then(pl.col("id") + 1000).otherwise("id"),
    ).sort("id")
    assert_frame_equal(all_rows(table), expected)
    other = by_deltalake(tmp_path)
    if other is not None:
        assert_frame_equal(other, expected, check_dtypes=False)
    if tracked:
        now = row_ids(table)
        assert now == {n: ids[n if n < 1000 else n - 1000] for n in now}
    assert [f for f in table.check() if f.severity in GRAVE] == []


def row_ids(table: DeltaTable) -> dict[int, int]:
    rows_read = table.scan(row_tracking=True).collect()
    return dict(rows_read.select("id", "_row_id").iter_rows())


@pytest.mark.parametrize("properties", [FEED, FEED | VECTORS, FEED | TRACKED], ids=["files", "vectors", "row ids"])
def test_the_change_feed_tells_rows_before_and_after(tmp_path: Path, properties: dict[str, str]) -> None:
    table = make_table(tmp_path, properties, ("city",))
    table.delete("id < 3")
    table.update({"id": "id + 1000"}, "id = 5")
    changes = table.changes(3).collect().sort("_commit_version", "id")
    assert changes.select("id", "_change_type", "_commit_version").rows() == [
        (0, "delete", 3), (1, "delete", 3), (2, "delete", 3), (5, "update_preimage", 4), (1005, "update_postimage", 4),
    ]  # fmt: skip


def actions(table: DeltaTable) -> dict[str, list[dict[str, Any]]]:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for kind, text in table.commit(table.latest_version).select("kind", "action").iter_rows():
        by_kind.setdefault(kind, []).append(json.loads(text))
    return by_kind


def test_the_metrics_of_several_operations_are_those_of_the_commit(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64})
    for first in (0, 2, 4):
        table.append(pl.DataFrame({"id": [first, first + 1]}))
    with table.transaction("UPDATE") as txn:
        txn.update({"id": "-id"}, "id = 1")
        txn.update({"id": "-id"}, "id BETWEEN 2 AND 3")
        txn.delete("id >= 4")
        txn.append(pl.DataFrame({"id": [9]}))
    commit = actions(table)
    metrics = commit["commitInfo"][0]["operationMetrics"]
    assert (metrics["numUpdatedRows"], metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("3", "2", "1")
    assert int(metrics["numAddedFiles"]) == len(commit["add"]) == 3
    assert int(metrics["numAddedBytes"]) == sum(a["size"] for a in commit["add"])
    assert int(metrics["numRemovedFiles"]) == len(commit["remove"]) == 3


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["plain", "with deletion vectors"])
@pytest.mark.parametrize("operation", ["DELETE", "UPDATE", "MERGE"])
def test_the_audit_proves_commits_that_do_more_than_their_names_say(
    operation: str, properties: dict[str, str], tmp_path: Path
) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64}, properties=properties)
    table.append(pl.DataFrame({"id": [6, 7]}))
    whole = table.files()["path"].to_list()
    for first in (0, 2, 4):
        table.append(pl.DataFrame({"id": [first, first + 1]}))
    with table.transaction(operation) as txn:
        txn.delete("id = 0")
        txn.update({"id": "-id"}, "id = 2")
        txn.remove(paths=whole)
        txn.merge(pl.DataFrame({"id": [4, 20]}), "id").when_matched_delete().when_not_matched_insert().execute()
        txn.append(pl.DataFrame({"id": [30, 31, 32]}))
    assert table.scan().collect()["id"].sort().to_list() == [-2, 1, 3, 5, 20, 30, 31, 32]
    verdicts = table.audit(5).filter(pl.col("verdict") != "proven").select("law", "verdict")
    assert [law for law, verdict in verdicts.rows() if verdict == "violated" or law == "row-counts-fit-operation"] == []


@pytest.mark.parametrize("operation", ["WRITE", "DELETE", "UPDATE", "MERGE"])
def test_the_audit_convicts_no_restore_that_is_part_of_another_commit(operation: str, tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64}, properties=VECTORS)
    table.append(pl.DataFrame({"id": [1, 2]}))
    table.append(pl.DataFrame({"id": [3]}))
    table.delete("id <> 2")
    for version in (2, 1):  # one that brings files back, and one that does not
        with table.transaction(operation) as txn:
            txn.restore(version)
            txn.append(pl.DataFrame({"id": [4]}))
    assert table.audit().filter(pl.col("verdict") == "violated").is_empty()


def test_a_vector_grows_and_its_file_goes_with_its_last_row(tmp_path: Path) -> None:
    table = make_table(tmp_path, VECTORS, ())
    table.delete("id = 1")
    first = actions(table)
    (add,), (remove,) = first["add"], first["remove"]
    assert add["path"] == remove["path"]
    assert "deletionVector" not in remove
    assert (add["deletionVector"]["cardinality"], add["deletionVector"]["offset"]) == (1, 1)
    stats = json.loads(add["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (40, False)
    assert first["commitInfo"][0]["operationMetrics"]["numDeletionVectorsAdded"] == "1"
    table.delete("id IN (1, 2, 45)")
    second = actions(table)
    assert sorted(a["deletionVector"]["cardinality"] for a in second["add"]) == [1, 2]
    assert [r["deletionVector"] for r in second["remove"] if "deletionVector" in r] == [add["deletionVector"]]
    assert len({a["deletionVector"]["pathOrInlineDv"] for a in second["add"]}) == 1, "one file for a commit's vectors"
    table.delete("id < 40")
    assert "add" not in actions(table)
    assert table.snapshot().num_records == 39


def test_files_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    table = make_table(tmp_path, {}, ())
    opened = open_delta_table(str(tmp_path))
    opened.delete("id = 3")
    assert opened.storage.requests["open"] == 2, "one file, for the condition and for what stays"
    assert actions(table if table.refresh() else opened)["commitInfo"][0]["operationMetrics"] | {} == {
        **actions(opened)["commitInfo"][0]["operationMetrics"],
        "numRemovedFiles": "1",
        "numAddedFiles": "1",
        "numDeletedRows": "1",
        "numCopiedRows": "39",
    }


@pytest.mark.parametrize("where", ["v <= 0.1", pl.col("v") == 0.1], ids=["SQL", "an expression"])
def test_a_number_is_the_nearest_float_for_files_as_for_rows(tmp_path: Path, where: str | pl.Expr) -> None:
    table: Any = lv.create_table(str(tmp_path), Schema((Field("v", PrimitiveType("float")),)))
    table.append(pl.DataFrame({"v": [0.1, 0.1]}, schema={"v": pl.Float32}))
    assert table.plan(where)["kept"].to_list() == [True]
    table.delete(where)
    assert table.scan().collect().is_empty()


def test_a_condition_that_selects_nothing_commits_nothing(tmp_path: Path) -> None:
    table = make_table(tmp_path, {}, ("city",))
    assert table.delete("id > 1000") is None
    assert table.delete("city = 'Atlantis'") is None
    assert table.delete("NULL") is None
    with table.transaction() as txn:
        assert txn.remove("city = 'Atlantis'") == 0
    assert table.latest_version == 2


REFUSED: list[tuple[str, Any, str]] = [
    ("an unknown column", lambda t: t.delete("planet = 1"), "no column planet"),
    ("a condition that is none", lambda t: t.delete("id + 1"), "not true or false"),
    ("an overwrite by a number", lambda t: t.overwrite(rows(5, 1), "id + 1"), "not true or false"),
    ("an overwrite by a text", lambda t: t.overwrite(rows(5, 1), "city"), "not true or false"),
    ("text for a number", lambda t: t.delete("id = 'x'"), "cannot be evaluated"),
    ("text for a condition, all files skipped", lambda t: t.delete("city"), "the condition is String, not true"),
    ("an unknown column set", lambda t: t.update({"planet": "1"}), "no column planet"),
    ("an expression of an unknown column", lambda t: t.update({"id": "planet"}), "no column planet"),
    ("no assignment", lambda t: t.update({}), "without assignments"),
    ("a plain value", lambda t: t.update({"id": 5}), "neither SQL text nor an expression"),
    ("a value of another type", lambda t: t.update({"id": "'x'"}), "does not fit"),
]


@pytest.mark.parametrize(("change", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused_and_leaves_nothing(tmp_path: Path, change: Any, words: str) -> None:
    table = make_table(tmp_path, {}, ())
    before = table.storage.walk()["name"].to_list()
    with pytest.raises(InvalidRequestError, match=words):
        change(table)
    assert table.storage.walk()["name"].to_list() == before


@pytest.mark.parametrize("where", ["STRPOS(city, 'x') = 0", "CONCAT(city, '!') < 'a'"])
def test_rows_without_a_text_stay_where_a_condition_is_about_the_text(tmp_path: Path, where: str) -> None:
    table = make_table(tmp_path, {}, ())
    rows = table.scan().collect()
    table.delete(where)
    assert_frame_equal(table.scan().collect(), rows.filter(pl.col("city").is_null()), check_row_order=False)


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["files", "vectors"])
def test_progress_is_reported_by_file(tmp_path: Path, properties: dict[str, str]) -> None:
    table = make_table(tmp_path, properties, ())
    source = table.scan().collect()
    changes: list[Callable[[Progress], object]] = [
        lambda progress: table.update({"id": "id"}, progress=progress),
        lambda progress: table.merge(source, "id").when_matched_update().execute(progress=progress),
        lambda progress: table.overwrite(source.filter(pl.col("id") % 3 == 0), "id % 3 = 0", progress=progress),
        lambda progress: table.delete("id % 2 = 0", progress=progress),
    ]
    for change in changes:
        total = table.snapshot().size_bytes
        reports: list[tuple[int, int]] = []

        def report(done: int, every: int, reports: list[tuple[int, int]] = reports) -> None:
            reports.append((done, every))

        change(report)
        assert reports[-1] == (total, total)
        assert reports == sorted(reports)


def test_rows_of_an_append_only_table_stay(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.appendOnly": "true"}, ())
    with pytest.raises(ConstraintViolationError, match="append-only"):
        table.delete("id = 1")
    with pytest.raises(ConstraintViolationError, match="append-only"):
        table.update({"id": "1"})
    new = table.scan().head(1).with_columns(id=pl.lit(1000, pl.Int64)).collect()
    with pytest.raises(ConstraintViolationError, match="append-only"):
        table.merge(new, "id").when_matched_update().when_not_matched_insert().execute()
    table.merge(new, "id").when_not_matched_insert().execute()
    assert table.scan().filter(pl.col("id") == 1000).collect().height == 1


ODD = ["^x$", "a.b", "source", "target", "\u00fc ", "^.*$"]


@pytest.mark.parametrize("properties", [{}, VECTORS | MAPPED], ids=["plain", "mapped"])
def test_names_that_mean_something_to_others_are_names(tmp_path: Path, properties: dict[str, str]) -> None:
    every = pl.DataFrame({name: [float(n), n + 0.5, None] for n, name in enumerate(ODD)})
    table = lv.create_table(str(tmp_path), every.to_arrow().schema, properties=properties)
    table.append(every)
    table.delete('"a.b" = 1.5')
    table.update({"^x$": '"a.b" * 10'}, "source = 2")
    other = every.with_columns(pl.lit(7.0).alias("^x$"))
    table.merge(other, ["a.b"]).when_matched_update().when_not_matched_insert().execute()
    table.optimize(z_order_by=["^x$", "a.b"])
    rows_read = lv.open_table(str(tmp_path)).scan().collect()
    assert sorted(map(repr, rows_read["a.b"])) == ["1.0", "1.5", "None", "None"]
    assert sorted(map(repr, rows_read["^x$"])) == ["7.0", "7.0", "7.0", "None"]


# -- overwriting


@pytest.mark.parametrize(("properties", "partition_by"), list(TABLES.values())[:3], ids=list(TABLES)[:3])
def test_an_overwrite_replaces_the_rows_that_a_condition_selects(
    tmp_path: Path, properties: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = make_table(tmp_path, properties, partition_by)
    expected = all_rows(table).filter(~pl.col("id").is_between(10, 50))
    new = rows(20, 3)
    table.overwrite(new, "id BETWEEN 10 AND 50")
    assert_frame_equal(all_rows(table), pl.concat([expected, new]).sort("id"))
    before = table.storage.walk().height
    with pytest.raises(ConstraintViolationError, match="1 rows lie outside"):
        table.overwrite(rows(49, 3), "id BETWEEN 10 AND 50")
    assert table.storage.walk().height == before


def test_the_partitions_that_rows_fall_into_are_replaced_and_no_others(tmp_path: Path) -> None:
    table = make_table(tmp_path, {}, ("city",))
    old = all_rows(table)
    new = rows(3, 1).vstack(rows(5, 1))  # Rome, and null
    table.overwrite_partitions(new)
    assert_frame_equal(all_rows(table), pl.concat([old.filter(pl.col("city") == "Oslo"), new]).sort("id"))
    with pytest.raises(InvalidRequestError, match="has no partitions"):
        make_table(tmp_path / "plain", {}, ()).overwrite_partitions(new)


@pytest.mark.parametrize("days", [[1, 2, None], [date(2026, 1, 1), date(2026, 1, 2), None]], ids=["integer", "date"])
def test_a_partition_column_whose_name_is_a_pattern_to_polars(tmp_path: Path, days: list[Any]) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "^x$": days})
    table = lv.create_table(tmp_path, frame.schema, partition_by=["^x$"])
    table.append(frame)
    assert_frame_equal(all_rows(table), frame)
    table.overwrite_partitions(frame.head(1).with_columns(id=pl.lit(9, pl.Int64)))
    assert all_rows(table).rows() == [(2, days[1]), (3, None), (9, days[0])]


def test_structs_whose_names_are_patterns_to_polars(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 2], "^x$": [{"^y$": 1, "^.*$": {"^z$": date(2026, 1, 1)}}, None]})
    table = lv.create_table(tmp_path, frame.schema)
    table.append(frame)
    assert_frame_equal(all_rows(table), frame)
    assert table.statistics()["^x$.^y$"].to_list()[0]["null_count"] == 1


def test_answers_about_columns_whose_names_are_patterns_to_polars(tmp_path: Path) -> None:
    """`^id$` stands for the column `id` to polars, and `^.*$` for all columns."""
    frame = pl.DataFrame({"^id$": [1, 2, 3], "id": [7, 7, 7], "^.*$": ["a", "a", None], "a.b": [1, 1, 1]})
    table = lv.create_table(tmp_path, frame.schema, partition_by=["^.*$", "a.b"])
    table.append(frame)
    table.add_constraint("c", "`a.b` > 0")
    table.set_nullable("^id$", nullable=False)
    with pytest.raises(ConstraintViolationError, match="1 row of the table"):
        table.set_nullable(("^.*$",), nullable=False)
    look = lv.inspect(table)
    assert look.columns().tree["null_share"].to_list() == [0, 0, 1 / 3, 0]
    assert look.constraints().rules["verdict"].to_list() == ["satisfied", "satisfied"]


TWICE = {
    "two deletes": lambda txn: (txn.delete("id = 1"), txn.delete("id = 2")),
    "a delete and an update": lambda txn: (txn.delete("id = 1"), txn.update({"id": "0"}, "id = 2")),
    "a delete and all": lambda txn: (txn.delete("id = 1"), txn.delete()),
    "an optimize and a delete": lambda txn: (txn.optimize(), txn.delete("id = 2")),
}


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED], ids=["files", "vectors", "feed"])
@pytest.mark.parametrize("operations", TWICE.values(), ids=list(TWICE))
def test_one_transaction_does_not_change_a_file_twice(
    tmp_path: Path, operations: Any, properties: dict[str, str]
) -> None:
    table = make_table(tmp_path, properties, ())
    before = all_rows(table)
    with pytest.raises(InvalidRequestError, match="two operations of one transaction"), table.transaction() as txn:
        operations(txn)
    assert_frame_equal(all_rows(table), before)


FAILING = {
    "an update": (lambda txn: txn.update({"id": pl.when(id=70).then(2.5).otherwise("id")}), {}),
    "an update by vectors": (lambda txn: txn.update({"id": pl.when(id=70).then(2.5).otherwise("id")}), FEED | VECTORS),
    "a merge": (lambda txn: txn.merge(rows(70, 1), "id").when_matched_update({"id": "2.5"}).execute(), {}),
    "an overwrite": (lambda txn: txn.overwrite(pl.DataFrame({"unknown": [1]})), {}),
}


@pytest.mark.parametrize(("operation", "properties"), FAILING.values(), ids=list(FAILING))
def test_nothing_is_committed_after_an_operation_that_failed_in_its_midst(
    tmp_path: Path, operation: Any, properties: dict[str, str]
) -> None:
    table = make_table(tmp_path, properties, ("city",))
    before = all_rows(table)
    with pytest.raises(InvalidRequestError, match="failed in its midst"), table.transaction() as txn:  # noqa: PT012
        with pytest.raises(InvalidRequestError, match=r"fit|unknown"):
            operation(txn)
        txn.append(rows(100, 1))
    assert_frame_equal(all_rows(table), before)


# -- again, and never twice


def test_what_an_application_has_done_is_not_done_again(tmp_path: Path) -> None:
    table = make_table(tmp_path, {}, ())
    for expected in (3, None):
        with table.transaction("WRITE") as txn:
            assert txn.set_transaction("loader", 7, once=True) is (expected is not None)
            txn.append(rows(100, 1))
        assert txn.version == expected
    assert all_rows(table).height == 81
    assert len(list(tmp_path.glob("*.parquet"))) == 3


def test_an_operation_that_collides_is_done_again_on_what_is_there_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path, {}, ())
    other = open_delta_table(str(tmp_path))
    commit = Transaction.commit
    waiting = [lambda: other.delete("id = 2")]

    def first_the_other(txn: Transaction) -> int | None:
        while waiting:
            waiting.pop()()
        return commit(txn)

    monkeypatch.setattr(Transaction, "commit", first_the_other)
    assert table.delete("id IN (2, 3)") == 4
    assert all_rows(table)["id"].to_list()[:4] == [0, 1, 4, 5]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["plain", "with deletion vectors"])
def test_a_file_with_more_rows_than_its_statistics_say_keeps_them(tmp_path: Path, properties: dict[str, str]) -> None:
    lv.create_table(str(tmp_path), SCHEMA, properties=properties).append(rows(0, 3))
    commit = tmp_path / "_delta_log" / f"{1:020d}.json"
    commit.write_text(commit.read_text().replace('numRecords\\":3', 'numRecords\\":2'))
    table = open_delta_table(str(tmp_path))
    table.delete("id < 2")
    assert table.scan().collect()["id"].to_list() == [2]


@pytest.mark.parametrize(
    ("type_", "values", "more"),
    [
        (pa.int8(), [1, None, 3], [None]),
        (pa.float64(), [float("inf"), 0.0, -0.0], [-0.0]),
        (pa.list_(pa.float32()), [[float("inf")], [0.0], [-0.0]], [[-0.0]]),
        (pa.bool_(), [True, None, False], [True]),
        (pa.decimal128(38, 2), [Decimal("1.10"), None, Decimal(3)], [Decimal(9)]),
        (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), None, None], [datetime(2026, 1, 1, tzinfo=UTC)]),
        (pa.string(), ["a", None, ""], ["a longer one"]),
        (pa.binary(), [b"a", None, b""], [b"\xff"]),
        (pa.null(), [None, None, None], [None]),
        (pa.list_(pa.string()), [["a"], None, []], [["b", None]]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None, []], [[("b", None)]]),
        (pa.struct([("x", pa.list_(pa.int8()))]), [{"x": [1]}, None, {"x": None}], [{"x": []}]),
    ],
    ids=str,
)
def test_changed_rows_stay_in_their_place(type_: pa.DataType, values: list[Any], more: list[Any]) -> None:
    rows = pa.record_batch({"id": pa.array([1, 2, 3]), "v": pa.array(values, type_)})
    mask = pa.array([False, True, False])
    before = rows.filter(mask)
    after = pa.record_batch({"id": before["id"], "v": pa.array(more, type_)})
    result = with_changed_rows(rows, mask, lambda *_: after)
    expected = [{"id": 1, "v": values[0]}, {"id": 2, "v": more[0]}, {"id": 3, "v": values[2]}]
    assert result.to_pylist() == expected
    assert str(result["v"]) == str(pa.array([values[0], more[0], values[2]], type_))  # -0.0 is another text than 0.0
    assert result.schema == rows.schema


def test_small_parts_that_one_change_applies_to_are_changed_at_once() -> None:
    sizes: list[int] = []

    def doubled(rows: pa.RecordBatch, numbers: Numbers) -> pa.RecordBatch:
        sizes.append(rows.num_rows)
        assert numbers.tolist() == rows["x"].to_pylist(), "each row has its own number"
        return pa.record_batch({"x": pc.multiply(rows["x"], 2)})

    def part(first: int, change: Any, *rows: int) -> Rewrite:
        numbers = np.array([first + row for row in rows], np.int64)
        return Rewrite(pa.record_batch({"x": [first, first + 1]}), np.isin([0, 1], rows), change, numbers)

    other = partial(doubled)
    parts = [part(0, doubled, 0), part(2, doubled), part(4, doubled, 0, 1), part(6, other, 1), part(8, other)]
    whole = [Rewrite(pa.record_batch({"x": [10, 11]}))]
    result = [x for batch in apply_changes([*parts, *whole]) for x in batch["x"].to_pylist()]
    assert result == [0, 1, 2, 3, 8, 10, 6, 14, 8, 9, 10, 11]
    assert sizes == [3, 1]
    assert list(apply_changes([])) == []


@pytest.mark.parametrize(("limit", "evaluations"), [(1 << 30, 1), (0, 3)], ids=["together", "one by one"])
def test_a_condition_is_evaluated_once_for_small_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, evaluations: int
) -> None:
    table = make_table(tmp_path, VECTORS, ())
    table.append(rows(80, 3))
    table.delete("id IN (41, 45)")
    calls: list[int] = []

    def counted(frame: pl.DataFrame, where: pl.Expr) -> pl.Series:
        calls.append(frame.height)
        return matching_rows(frame, where)

    monkeypatch.setattr("lakeview.delta.write.group_reader.matching_rows", counted)
    monkeypatch.setattr("lakeview.delta.write.live_files._TOGETHER_BYTES", limit)
    files = table.transaction().live_files(None)
    firsts = [json.loads(file.row["stats"])["minValues"]["id"] for file in files]
    positions = [list(p) for _, p in matches_of(files, table.storage, pl.col("id") % 40 > 3)]
    assert dict(zip(firsts, positions, strict=True)) == {0: [*range(4, 40)], 40: [4, *range(6, 40)], 80: []}
    assert (len(calls), sum(calls)) == (evaluations, 81)


def test_counts_of_zero_from_other_processes_are_recorded() -> None:
    table = lv.create_table("memory://counts-of-zero", SCHEMA)
    assert isinstance(table, DeltaTable)
    with table.transaction("DELETE") as txn:
        txn.take([RowOutcome([], {}, [], [], [], Counter(numDeletedRows=1, numCopiedRows=0))] * 2, {})
    assert txn.entry.counts == {"numDeletedRows": 2, "numCopiedRows": 0}


@pytest.mark.parametrize(("largest", "files"), [(9, 3), (1.5, 6), (0, 9)], ids=["small", "two of them full", "large"])
def test_small_files_of_a_partition_that_are_written_again_share_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: float, files: int
) -> None:
    table = make_table(tmp_path, {}, ("city",))
    table.append(rows(80, 40))
    before = all_rows(table)
    size = int(largest * max(table.files()["size"].to_list()))
    monkeypatch.setattr("lakeview.delta.write.row_changes.PACKED_BYTES", size)
    table.update({"day": pl.lit(date(2030, 1, 1))}, "id % 2 = 0")
    table.refresh()
    assert table.snapshot().num_files == files
    after = pl.when(pl.col("id") % 2 == 0).then(date(2030, 1, 1)).otherwise("day").alias("day")
    assert_frame_equal(all_rows(table), before.with_columns(after))


def test_a_condition_is_evaluated_for_a_bounded_number_of_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lv.create_table(str(tmp_path), SCHEMA)
    for _ in range(5):
        table.append(rows(0, 2))
    heights = []

    def count(frame: pl.DataFrame, where: pl.Expr) -> pl.Series:
        heights.append(frame.height)
        return matching_rows(frame, where)

    monkeypatch.setattr("lakeview.delta.write.group_reader.matching_rows", count)
    monkeypatch.setattr("lakeview.delta.write.live_files._TOGETHER_ROWS", 4)
    table.delete("id % 2 = 1")
    assert sorted(heights) == [2, 4, 4]
    assert all_rows(table)["id"].to_list() == [0] * 5


@pytest.mark.parametrize("partition_by", [(), ("city",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize("operation", ["delete", "update", "merge"])
def test_small_files_that_change_are_opened_once_where_most_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, partition_by: tuple[str, ...]
) -> None:
    table = lv.create_table(str(tmp_path), SCHEMA, partition_by=partition_by)
    assert isinstance(table, DeltaTable)
    for start in range(0, 240, 20):
        table.append(rows(start, 20))
    files = table.snapshot().num_files or 0
    monkeypatch.setattr("lakeview.delta.write.live_files._TOGETHER_ROWS", 40)
    before = table.storage.requests["open"]
    hit = pl.col("id") % 4 == 1
    if operation == "delete":
        table.delete("id % 4 = 1")
        expected = rows(0, 240).filter(~hit)
    elif operation == "update":
        table.update({"day": pl.lit(date(2030, 1, 1))}, "id % 4 = 1")
        expected = rows(0, 240).with_columns(day=pl.when(hit).then(date(2030, 1, 1)).otherwise("day"))
    else:
        source = rows(0, 240).filter(hit).with_columns(day=date(2030, 1, 1))
        table.merge(source, ["id"]).when_matched_update().execute()
        expected = rows(0, 240).with_columns(day=pl.when(hit).then(date(2030, 1, 1)).otherwise("day"))
    opened = table.storage.requests["open"] - before
    first_groups = 12 if partition_by else 4  # two of them are begun before it is known how many files change
    assert files <= opened <= files + first_groups + 1, "and what was committed since the table was opened"
    assert_frame_equal(all_rows(table), expected)


def test_of_small_files_with_long_rows_few_bytes_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lv.create_table(str(tmp_path), SCHEMA)
    assert isinstance(table, DeltaTable)
    for start in range(0, 240, 20):
        table.append(rows(start, 20))
    monkeypatch.setattr("lakeview.delta.write.live_files._TOGETHER_ROWS", 40)
    size = rows(0, 20).to_arrow().nbytes
    for limit, files in ((1 << 30, 12), (size, 0)):
        monkeypatch.setattr("lakeview.delta.write.group_reader._IN_MEMORY_BYTES", limit)
        live = table.transaction().live_files(None)
        matches = list(matches_of(live, table.storage, pl.col("id") % 4 == 1, RowsNeeded(SCHEMA, all_may_go=False)))
        assert sum(file.in_memory is not None for file, _ in matches) == files
        assert [len(positions) for _, positions in matches] == [5] * 12
    table.update({"day": pl.lit(date(2030, 1, 1))}, "id % 4 = 1")
    changed = pl.when(pl.col("id") % 4 == 1).then(date(2030, 1, 1)).otherwise("day")
    assert_frame_equal(all_rows(table), rows(0, 240).with_columns(day=changed))


def test_files_are_not_sought_far_ahead_of_those_that_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lv.create_table(str(tmp_path), SCHEMA)
    for start in range(0, 160, 20):
        table.append(rows(start, 20))
    sought = written = 0
    ahead: list[int] = []
    waits = Event()

    write_conformed = FileWriter.write_conformed

    def write(*work: Any) -> Any:
        nonlocal written
        waits.wait(1)  # for no time where files that are found wait for a writer
        adds = write_conformed(*work)
        written += bool(adds)
        return adds

    def wait_for_writer(*futures: Any, **options: Any) -> Any:
        waits.set()
        return wait(*futures, **options)

    def count(_done: int, _total: int) -> None:
        nonlocal sought
        sought += 1
        ahead.append(sought - written)

    monkeypatch.setattr(FileWriter, "write_conformed", write)
    monkeypatch.setattr("lakeview.delta.write.row_changes.wait", wait_for_writer)
    monkeypatch.setattr("lakeview.delta.write.row_changes.PACKED_BYTES", 1)
    monkeypatch.setattr("lakeview.delta.write.live_files._TOGETHER_BYTES", 1)
    table.delete("id % 4 = 1", progress=count)
    assert sought == 8
    assert max(ahead) <= THREADS
