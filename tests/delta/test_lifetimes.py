"""Lifetimes with statistics: what each file held while it was there, and what that makes of every version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.data.statistics import LeafStatistics
from lakeview.delta.log import checkpoint_footer
from lakeview.delta.log.checkpoint_parquet import ParquetActions
from lakeview.model.errors import InvalidRequestError
from lakeview.views.timeline.trend import trend
from tests.builders.actions import add, remove, struct
from tests.builders.history import DeltaHistory, log_name
from tests.builders.opening import open_delta_table

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}


def stats(low: Any, high: Any, nulls: int = 0) -> dict[str, Any]:
    return {
        "numRecords": 9, "minValues": {"id": low, "path": "p"}, "maxValues": {"id": high, "path": "q"},
        "nullCount": {"id": nulls, "path": 1},
    }  # fmt: skip


def write_versions(history: DeltaHistory) -> DeltaHistory:
    history.create({"id": "long", "path": "string", "s": struct(deep="long")})
    history.commit(add("a", stats=stats(1, 5)), add("b", stats=stats(3, 9, 2)))
    history.commit(remove("a"), add("c%20d", stats=stats(-4, 0)))
    history.commit(add("a", stats=stats(100, 200, 9)), add("none"))
    history.commit(remove("none"), remove("b"))
    return history


@pytest.mark.parametrize("base", ["commits", "a checkpoint"])
def test_each_version_is_what_its_own_statistics_say(history: DeltaHistory, base: str) -> None:
    write_versions(history)
    if base == "a checkpoint":
        history.checkpoint(2).without(0, 1, 2)
    table = open_delta_table(history)
    columns = ["id", "path", "s.deep"]
    versions = table.versions().filter("readable")["version"]
    trend_rows = trend(table.lifetimes(columns), versions)
    assert trend_rows["version"].to_list() == sorted(versions.to_list())
    for row in trend_rows.to_dicts():
        own = table.statistics(row["version"], columns)
        snapshot = table.snapshot(row["version"])
        assert (row["files"], row["bytes"]) == (snapshot.num_files, snapshot.size_bytes)
        assert row["records"] == snapshot.num_records
        for name in columns:
            values = own[name].struct.unnest()
            with_statistics = values.filter(~(pl.col("null_count") == 9).fill_null(value=False))
            whole = not with_statistics["min"].has_nulls()
            assert row["statistics"][name]["min"] == (with_statistics["min"].min() if whole else None)
            assert row["statistics"][name]["max"] == (with_statistics["max"].max() if whole else None)
            nulls = values["null_count"]
            assert row["statistics"][name]["null_count"] == (None if nulls.has_nulls() else nulls.sum())


def test_the_statistics_stand_in_a_struct_where_no_name_meets_another(history: DeltaHistory) -> None:
    table = open_delta_table(write_versions(history))
    lives = table.lifetimes(["path", "s"])
    assert lives.columns == [*table.lifetimes().columns, "statistics"]
    assert lives["statistics"].struct.fields == ["path", "s.deep"]
    assert lives.drop("statistics").equals(table.lifetimes())
    assert table.lifetimes([]).equals(table.lifetimes())
    with pytest.raises(InvalidRequestError, match="there is no column x"):
        table.lifetimes(["x"])


def test_a_commit_that_cannot_be_read_and_statistics_that_are_none_tell_nothing(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(add("a", stats="{"), add("b", stats={"minValues": {"id": 7}}))
    history.raw_commit(b"no JSON\n")
    lows = open_delta_table(history).lifetimes(["id"])["statistics"].struct.field("id").struct.field("min")
    assert lows.to_list() == [None, 7]


def test_columns_of_odd_names_have_a_trend(history: DeltaHistory) -> None:
    names = ["^x$", "version", "a.b", "*"]
    values = {name: i for i, name in enumerate(names)}
    history.create(dict.fromkeys(names, "long"))
    history.commit(add("a", stats={"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": {}}))
    rows = trend(open_delta_table(history).lifetimes(["^x$", "version", "`a.b`", "*"]))
    statistics = rows["statistics"][0]
    assert {name: column["max"] for name, column in statistics.items()} == {"^x$": 0, "version": 1, "`a.b`": 2, "*": 3}


def test_a_file_that_a_checkpoint_names_twice_has_one_life(history: DeltaHistory) -> None:
    history.create().commit(add("a"), add("b"), add("c"))
    table = [*history.reconciled(1), add("a"), add("c")]
    history.checkpoint(actions=table).without(0, 1).commit(remove("c"))
    lives = lv.open_table(history.address).lifetimes()
    assert lives.select("path", "removed").sort("path").rows() == [("a", None), ("b", None), ("c", 2)]


def test_lives_begin_with_a_checkpoint_that_was_broken_and_is_restored(history: DeltaHistory) -> None:
    history.create().commit(add("a")).checkpoint().without(0, 1).commit(add("b"))
    name = log_name(1, "checkpoint.parquet")
    whole = Path(history.address, name).read_bytes()
    history.write(name, b"PAR1")
    table = lv.open_table(history.address)
    assert table.lifetimes()["path"].to_list() == ["b"]
    history.write(name, whole)
    assert sorted(table.lifetimes()["path"]) == ["a", "b"]


@pytest.mark.parametrize("layout", ["one file", "parts", "JSON"])
def test_of_files_that_no_commit_touched_no_statistics_are_read(
    history: DeltaHistory, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.create({"id": "long", "path": "string"})
    history.commit(*(add(name, stats=stats(i, i + 5)) for i, name in enumerate(["a", "b", "c%20d", "quiet", "still"])))
    if layout == "JSON":
        lines = "\n".join(map(json.dumps, history.reconciled(1)))
        history.write(log_name(1, "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"), lines.encode())
    else:
        history.checkpoint(parts=3 if layout == "parts" else None)
    history.without(0, 1)
    history.commit(remove("a"), remove("c%20d"), add("new", stats=stats(-4, 0)))
    history.commit(add("a", stats=stats(7, 8)), remove("b"), add("b", stats=stats(1, 2), deletionVector=VECTOR))
    table, rows_read, read = open_delta_table(history), list[int](), LeafStatistics.read

    def counting(self: LeafStatistics, texts: pl.Series | None, parsed: pl.Series | None, rows: int) -> pl.Series:
        rows_read.append(rows)
        return read(self, texts, parsed, rows)

    every = table.lifetimes(["id"])
    monkeypatch.setattr(LeafStatistics, "read", counting)
    assert table.changed_lifetimes(["id"]).equals(every.filter(~pl.col("path").is_in(["quiet", "still"])))
    assert sum(rows_read) == 6  # of three of the checkpoint's five files, and of three adds


@pytest.mark.parametrize("first", ["history", "files"])
@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "only added"])
def test_statistics_of_the_files_that_commits_touch_are_those_read_to_count_rows(
    history: DeltaHistory, first: str, is_removed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_footer, "FEW_ROWS", -1)  # of few rows none are retained
    history.create({"id": "long", "path": "string"}).commit(add("c%20d", stats=stats(1, 2)), add("bare"), add("quiet"))
    history.checkpoint().without(0, 1).commit(add("new", stats=stats(-4, 0)))
    if is_removed:
        history.commit(remove("c%20d"), remove("bare"))
    again = open_delta_table(history).changed_lifetimes(["id"])
    table, leaves_read, leaves = open_delta_table(history), list[str](), ParquetActions.leaves

    def counting(self: ParquetActions, kind: str, names: Sequence[str], *more: Any, **named: Any) -> Any:
        leaves_read.extend(names)
        return leaves(self, kind, names, *more, **named)

    monkeypatch.setattr(ParquetActions, "leaves", counting)
    if first == "files":
        assert table.snapshot().files.height == (2 if is_removed else 4)
    assert table.history().height == (2 if is_removed else 1)
    assert table.changed_lifetimes(["id"]).equals(again)
    assert leaves_read.count("stats") == 1
