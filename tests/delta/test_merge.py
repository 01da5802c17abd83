"""Merges: each clause, whatever the table has enabled, against rows merged one by one in Python."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema
from tests.builders.findings import GRAVE
from tests.builders.opening import open_delta_table

SCHEMA = Schema(
    (
        Field("id", PrimitiveType("long")),
        Field("part", PrimitiveType("integer")),
        Field("price", PrimitiveType("double")),
        Field("name", PrimitiveType("string")),
    )
)
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TABLES = {
    "plain": ({}, ()),
    "partitioned, with vectors": (VECTORS, ("part",)),
    "with a feed": (FEED, ("part",)),
    "with everything": (FEED | VECTORS | TRACKED | MAPPED, ("part",)),
}

Row = dict[str, Any]


def rows(numbers: list[int], price: float, name: str) -> pl.DataFrame:
    return pl.DataFrame(
        [{"id": n, "part": n % 3, "price": price + n, "name": f"{name}{n}"} for n in numbers], SCHEMA.to_polars()
    )


def make_table(
    address: Path, properties: dict[str, str] | None = None, partition_by: tuple[str, ...] = ()
) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties, partition_by=partition_by)
    assert isinstance(table, DeltaTable)
    table.append(rows(list(range(30)), 0.0, "a"))
    table.append(rows(list(range(30, 60)), 0.0, "b"))
    return table


def all_rows(table: lv.Table) -> list[Row]:
    return sorted(lv.open_table(table.address).scan().collect().to_dicts(), key=lambda r: (r["id"], r["price"]))


def row_ids(table: DeltaTable) -> dict[int, int]:
    return dict(table.scan(row_tracking=True).collect().select("id", "_row_id").iter_rows())


def metrics(table: DeltaTable) -> dict[str, int]:
    info = next(json.loads(a) for k, a in table.commit(table.latest_version).select("kind", "action").iter_rows()
                if k == "commitInfo")  # fmt: skip
    return {k: int(v) for k, v in info["operationMetrics"].items()}


@pytest.mark.parametrize(("properties", "partition_by"), TABLES.values(), ids=list(TABLES))
def test_an_upsert_updates_what_is_there_and_inserts_the_rest(
    tmp_path: Path, properties: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = make_table(tmp_path, properties, partition_by)
    source = rows([5, 35, 100, 101], 1000.0, "new")
    version = table.merge(source, ["id"]).when_matched_update().when_not_matched_insert().execute()
    expected = {
        r["id"]: r for r in rows(list(range(30)), 0.0, "a").to_dicts() + rows(list(range(30, 60)), 0.0, "b").to_dicts()
    }
    expected |= {r["id"]: r for r in source.to_dicts()}
    assert version is not None
    assert all_rows(table) == list(expected.values())
    figures = metrics(table)
    assert (figures["numSourceRows"], figures["numTargetRowsInserted"], figures["numTargetRowsUpdated"]) == (4, 2, 2)
    if FEED.items() <= properties.items():
        changes = table.changes(version).collect().sort("id", "_change_type", descending=[False, True])
        assert changes.select("id", "_change_type").rows() == [
            (5, "update_preimage"), (5, "update_postimage"), (35, "update_preimage"), (35, "update_postimage"),
            (100, "insert"), (101, "insert"),
        ]  # fmt: skip
    assert [f for f in table.check() if f.severity in GRAVE] == []


@pytest.mark.parametrize("properties", [TRACKED, TRACKED | VECTORS], ids=["files", "vectors"])
def test_rows_that_a_merge_updates_or_leaves_keep_their_row_ids(tmp_path: Path, properties: dict[str, str]) -> None:
    table = make_table(tmp_path, properties)
    before = row_ids(table)
    table.merge(rows([5, 35, 100], 1000.0, "new"), ["id"]).when_matched_update().when_not_matched_insert().execute()
    after = row_ids(table)
    assert after.items() > before.items()
    assert after[100] not in before.values()


def by_hand(target: list[Row], source: list[Row]) -> list[Row]:
    """What the merge of the test below makes, row by row."""
    rows_read, met = [], set()
    for row in target:
        other = next((s for s in source if s["id"] == row["id"] and row["price"] < 55), None)
        if other is None:
            if row["part"] == 2 and row["id"] > 40:
                continue
            rows_read.append(row if row["id"] != 1 else {**row, "name": "stray"})
            continue
        met.add(other["id"])
        if other["name"] is None:
            continue
        if other["price"] > 1010:
            rows_read.append({**row, "price": row["price"] + other["price"], "name": other["name"].upper()})
        else:
            rows_read.append(row)
    new = [s for s in source if s["id"] not in met and s["price"] < 1100]
    return sorted([*rows_read, *({**s, "name": "late"} for s in new)], key=lambda r: (r["id"], r["price"]))


@pytest.mark.parametrize(("together", "packed", "files"), [(1 << 20, 1 << 20, 6), (1, 1, 9)], ids=["small", "large"])
def test_rows_that_leave_their_partitions_share_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int, packed: int, files: int
) -> None:
    monkeypatch.setattr("lakeview.delta.write.live_files._TOGETHER_BYTES", together)
    monkeypatch.setattr("lakeview.delta.write.row_changes.PACKED_BYTES", packed)
    table = make_table(tmp_path, FEED | TRACKED, ("part",))  # two files of each of three partitions
    before, ids = all_rows(table), row_ids(table)
    source = rows(list(range(0, 60, 2)), 5.0, "n").with_columns(part=pl.col("id") // 3 % 3)
    table.merge(source, ["id"]).when_matched_update().execute()
    after = {r["id"]: r for r in before} | {r["id"]: r for r in source.to_dicts()}
    assert (all_rows(table), row_ids(table)) == (list(after.values()), ids)
    kinds = table.commit(table.latest_version)["kind"].to_list()
    assert (kinds.count("add"), kinds.count("cdc")) == (files, 3)  # each partition's own, and one of those that came


def test_a_merge_that_fails_leaves_none_of_the_files_that_its_rows_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("_GROUP_ROWS", "_OPEN_BYTES"):  # each group of rows is a file at once
        monkeypatch.setattr(f"lakeview.rows.open_files.{limit}", 0)
    table = make_table(tmp_path, FEED | {"delta.constraints.cheap": "price < 1000"}, ("part",))
    before = sorted(tmp_path.rglob("*"))
    source = rows(list(range(60)), 5.0, "n").with_columns(
        part=pl.lit(1, pl.Int32), price=pl.when(pl.col("id") == 59).then(5000.0).otherwise("price")
    )
    with pytest.raises(ConstraintViolationError, match="cheap"):
        table.merge(source, ["id"]).when_matched_update().execute()
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [p for p in before if p.is_file()]


@pytest.mark.parametrize(("properties", "partition_by"), TABLES.values(), ids=list(TABLES))
def test_every_clause_with_a_condition_does_what_a_loop_over_the_rows_does(
    tmp_path: Path, properties: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = make_table(tmp_path, properties, partition_by)
    rng = random.Random(7)
    for _ in range(3):
        before = all_rows(table)
        numbers = rng.sample(range(120), 25)
        source = rows(numbers, 1000.0, "n").with_columns(
            name=pl.when(pl.col("id") % 5 == 0).then(None).otherwise("name")
        )
        merge = table.merge(source, "target.id = source.id AND target.price < 55")
        merge.when_matched_delete(where="source.name IS NULL")
        merge.when_matched_update(
            {"price": "target.price + source.price", "name": "UPPER(source.name)"}, where="source.price > 1010"
        )
        merge.when_not_matched_insert(
            {"id": "source.id", "part": "part", "price": "source.price", "name": "'late'"}, where="price < 1100"
        )
        merge.when_not_matched_by_source_delete(where="part = 2 AND target.id > 40")
        merge.when_not_matched_by_source_update({"name": "'stray'"}, where="id = 1")
        merge.execute()
        assert all_rows(table) == by_hand(before, source.to_dicts())
    if not MAPPED.items() <= properties.items():
        other = deltalake.DeltaTable(str(tmp_path))
        query = deltalake.QueryBuilder().register("t", other).execute("select count(*) n, sum(price) s from t")
        figures = pl.DataFrame(query.read_all())
        assert figures.row(0) == (len(all_rows(table)), pytest.approx(sum(r["price"] for r in all_rows(table))))


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED | TRACKED], ids=["plain", "with vectors", "fed and tracked"])
@pytest.mark.parametrize("does", ["update", "delete"])
def test_each_matched_row_of_a_large_file_meets_its_own_source_row(
    tmp_path: Path, properties: dict[str, str], does: str
) -> None:
    ids = pl.int_range(150_000, eager=True).alias("id")
    missing_ids = [0, 70_007]  # three batches, rows missing in two of them
    table = lv.create_table(
        str(tmp_path), ids.to_frame().with_columns(price=0).to_arrow().schema, properties=properties
    )
    assert isinstance(table, DeltaTable)
    table.append(ids.to_frame().with_columns(price=pl.col("id") * 10))
    table.delete(pl.col("id").is_in(missing_ids))
    keys = ids.gather_every(7).sample(fraction=1.0, shuffle=True, seed=1)
    merge = table.merge(pl.DataFrame([keys, (keys * 3).alias("price")]), ["id"])
    (merge.when_matched_update() if does == "update" else merge.when_matched_delete()).execute()
    remaining_rows = ids.to_frame().filter(~pl.col("id").is_in(missing_ids)).with_columns(price=pl.col("id") * 10)
    met = pl.col("id") % 7 == 0
    updated = remaining_rows.with_columns(price=pl.when(met).then(pl.col("id") * 3).otherwise("price"))
    expected = updated if does == "update" else remaining_rows.filter(~met)
    rows_read = table.scan().collect()
    assert rows_read.sort("id").equals(expected)
    if not properties:
        assert rows_read["id"].is_sorted(), "rows of a file that is written again keep their places"
    assert metrics(table)[f"numTargetRows{does.capitalize()}d"] == remaining_rows.filter(met).height


def test_files_that_hold_no_key_are_not_read(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    other = open_delta_table(str(tmp_path))
    other.merge(rows([35], 0.0, "x"), ["id"]).when_matched_update().execute()
    assert metrics(other)["numTargetFilesRemoved"] == 1
    assert other.storage.requests["open"] == 2, (
        "one file: its keys, then its rows, those that change and those that stay"
    )
    assert table.refresh()


def test_source_rows_that_match_one_row_are_refused_by_their_key(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    source = pl.concat([rows([5, 6], 0.0, "x"), rows([6], 9.0, "y")])
    with pytest.raises(
        InvalidRequestError, match=r"2 rows of the source match one row of the table \(id = 6\)"
    ) as caught:
        table.merge(source, ["id"]).when_matched_update().execute()
    assert caught.value.kind == "ambiguous-merge"
    table.merge(source, ["id"]).when_matched_delete().when_not_matched_insert().execute()
    assert len(all_rows(table)) == 58, "a source row that matched is not inserted, whichever of its like did the work"


def test_keys_of_another_type_match_what_they_equal_and_nothing_else(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    source = pl.DataFrame({"id": [1.5, 2.0, None, float("nan")]})
    table.merge(source, ["id"]).when_matched_delete().execute()
    assert [r["id"] for r in all_rows(table)][:4] == [0, 1, 3, 4]


def test_a_column_of_the_source_may_be_two_keys_of_different_types(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    source = pl.DataFrame({"k": [0.0, 1.0, 1.5, 3.0]})
    table.merge(source, "target.id = source.k AND target.part = source.k").when_matched_delete().execute()
    assert [r["id"] for r in all_rows(table)][:3] == [2, 3, 4]


def test_null_keys_match_nothing_and_are_inserted(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    source = rows([1], 0.0, "x").with_columns(id=pl.lit(None, pl.Int64))
    for _ in range(2):
        table.merge(source, ["id"]).when_matched_update().when_not_matched_insert().execute()
    assert len([r for r in lv.open_table(str(tmp_path)).scan().collect().to_dicts() if r["id"] is None]) == 2


def test_a_key_may_be_called_what_polars_takes_for_a_pattern(tmp_path: Path) -> None:
    frame = pl.DataFrame({"^x$": [1, 2], "x": [10, 20]})
    table = lv.create_table(str(tmp_path), frame.to_arrow().schema)
    table.append(frame)
    merge = table.merge(pl.DataFrame({"^x$": [2, 3], "x": [0, 0]}), on=["^x$"])
    merge.when_matched_update().when_not_matched_insert().execute()
    assert sorted(table.scan().collect().rows()) == [(1, 10), (2, 0), (3, 0)]


def test_a_condition_without_equal_columns_compares_every_pair(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    source = pl.DataFrame({"low": [3], "high": [5]})
    table.merge(source, "target.id BETWEEN source.low AND source.high").when_matched_delete().execute()
    assert [r["id"] for r in all_rows(table)][:4] == [0, 1, 2, 6]


REFUSED: list[tuple[str, Any, str]] = [
    ("no clause", lambda t: t.merge(rows([1], 0, "x"), ["id"]).execute(), "has no clause"),
    ("no key", lambda t: t.merge(rows([1], 0, "x"), []).when_matched_delete().execute(), "names no key"),
    ("an unknown key", lambda t: t.merge(rows([1], 0, "x"), ["planet"]).when_matched_delete().execute(),
     "no column target.planet"),
    ("an unknown key as text", lambda t: t.merge(rows([1], 0, "x"), "planet").when_matched_delete().execute(),
     "the source has no column planet"),
    ("a column without a side", lambda t: t.merge(rows([1], 0, "x"), "id = 1").when_matched_delete().execute(),
     "no column id"),
    ("two columns of one name", lambda t: t.merge(pl.DataFrame({"id": [1], "ID": [2]}), ["id"]).when_matched_delete()
     .execute(), "are called id, case aside"),
    ("a column of a type that polars lacks", lambda t: t.merge(
        pa.table({"id": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([1]))}), ["id"])
     .when_matched_delete().execute(), "a name or a type that cannot be merged"),
    ("a type for which polars panics", lambda t: t.merge(
        pa.table({"id": pa.array([1]), "d": pa.array([1], pa.decimal256(50, 1))}), ["id"])
     .when_matched_delete().execute(), "a name or a type that cannot be merged"),
    ("two columns of one name in Arrow", lambda t: t.merge(pa.table([[1], [2]], names=["id", "id"]), ["id"])
     .when_matched_delete().execute(), "a name or a type that cannot be merged"),
    ("Python objects", lambda t: t.merge(pl.DataFrame({"id": [1], "o": pl.Series([t], dtype=pl.Object)}), ["id"])
     .when_not_matched_insert().execute(), "column o holds Python objects"),
    ("integers of 128 bits", lambda t: t.merge(pl.DataFrame({"id": [1]}, schema={"id": pl.Int128}), ["id"])
     .when_matched_delete().execute(), "has no Arrow type"),
    ("keys that do not compare", lambda t: t.merge(pl.DataFrame({"id": ["x"]}), ["id"]).when_matched_delete()
     .execute(), "do not compare"),
    ("a clause that is never reached", lambda t: t.merge(rows([1], 0, "x"), ["id"]).when_matched_delete()
     .when_matched_update(), "would never be reached"),
    ("a column that the table lacks", lambda t: t.merge(pl.DataFrame({"id": [999], "x": [1]}), ["id"])
     .when_not_matched_insert().execute(), "no column x"),
    ("a condition of a clause that is a value", lambda t: t.merge(rows([999], 0, "x"), ["id"])
     .when_matched_delete(where="source.name").execute(), "the condition of a clause is String, not true or false"),
    ("a condition that is a value", lambda t: t.merge(rows([1], 0, "x"), "target.id = source.id AND target.name")
     .when_matched_delete().execute(), "the condition of the merge is String, not true or false"),
    ("a value of another type", lambda t: t.merge(rows([1], 0, "x"), ["id"])
     .when_matched_update({"price": "source.name"}).execute(), "does not fit"),
]  # fmt: skip


@pytest.mark.parametrize(("merge", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused_and_leaves_nothing(tmp_path: Path, merge: Any, words: str) -> None:
    table = make_table(tmp_path)
    before = table.storage.walk()["name"].to_list()
    with pytest.raises(InvalidRequestError, match=words):
        merge(table)
    assert table.storage.walk()["name"].to_list() == before


def test_rows_that_a_merge_makes_keep_the_rules(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.constraints.c": "price < 100"})
    for clause in ("when_matched_update", "when_not_matched_insert"):
        with pytest.raises(ConstraintViolationError, match="constraint c"):
            getattr(table.merge(rows([5, 70], 1000.0, "x"), ["id"]), clause)().execute()
    assert len(all_rows(table)) == 60


def test_nan_matches_nan_wherever_the_file_that_has_it_lies(tmp_path: Path) -> None:
    schema = Schema((Field("key", PrimitiveType("double")), Field("v", PrimitiveType("long"))))
    table = lv.create_table(str(tmp_path), schema)
    assert isinstance(table, DeltaTable)
    nan = float("nan")
    table.append(pl.DataFrame({"key": [150.0, nan], "v": [1, 2]}))  # bounds 150 to 150
    source = pl.DataFrame({"key": [nan, 100.0], "v": [9, 9]})
    table.merge(source, ["key"]).when_matched_update().when_not_matched_insert().execute()
    assert sorted(table.scan().collect()["v"]) == [1, 9, 9]


def test_nan_matches_nan_where_the_keys_are_sorted(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"key": "double", "v": "long"})
    table.append(pl.DataFrame({"key": [float("nan")], "v": [1]}))  # one row is sorted
    source = pl.DataFrame({"key": [-1.0, float("nan")], "v": [8, 9]}).sort("key")
    table.merge(source, ["key"]).when_matched_update().when_not_matched_insert().execute()
    assert sorted(table.scan().collect()["v"]) == [8, 9]


@pytest.mark.parametrize("properties", [{}, {"delta.enableChangeDataFeed": "true"}, VECTORS], ids=str)
def test_rows_of_several_small_files_get_the_values_of_their_own_source_rows(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table = lv.create_table(str(tmp_path), {"id": "long", "v": "long"}, properties=properties)
    assert isinstance(table, DeltaTable)
    for first in (0, 10, 20):
        table.append(pl.DataFrame({"id": range(first, first + 10), "v": [0] * 10}))
    table.delete("id IN (0, 4, 12)")
    ids = [25, 3, 14, 11, 29, 1, 4, 10]
    table.merge(pl.DataFrame({"id": ids, "v": [-n for n in ids]}), ["id"]).when_matched_update().execute()
    expected = {n: -n if n in ids else 0 for n in range(30) if n not in (0, 4, 12)}
    assert dict(lv.open_table(str(tmp_path)).scan().collect().sort("id").iter_rows()) == expected
