"""Rows of versions from before column mapping ended beside later ones: files have names of their own until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import InvalidRequestError
from lakeview.rows.parquet import read_task
from tests.delta.test_feature_files import ALL_ELSE, COLUMNS, rows_of, turn_off


def mapped_table(tmp_path: Path, mode: str = "name", *, partitioned: bool = True, **properties: str) -> DeltaTable:
    properties = {"delta.columnMapping.mode": mode, **properties}
    return lv.create_table(str(tmp_path), COLUMNS, partition_by=["day"] if partitioned else [], properties=properties)


def lines(frame: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(frame.select(columns).rows(), key=repr)


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "in one folder"])
@pytest.mark.parametrize("properties", [{}, ALL_ELSE], ids=["plain", "change feed and vectors"])
def test_changes_are_read_across_the_end(
    tmp_path: Path, mode: str, partitioned: bool, properties: dict[str, str]
) -> None:
    table = mapped_table(tmp_path, mode, partitioned=partitioned, **properties)
    table.rename_column("a", "b")
    first = table.append(rows_of(*range(6)).rename({"a": "b"}))
    assert first is not None
    last = table.delete("id = 3")
    turn_off(table, "columnMapping")
    again = table.update({"b": "'new'", "s.x": "7"}, "id = 4")
    assert again is not None
    table.delete("id = 5")
    every = table.changes(first).collect()
    apart = pl.concat([table.changes(first, last).collect(), table.changes(again).collect()])
    assert lines(every, *every.columns) == lines(apart, *every.columns)
    deletes = every.filter(pl.col("_change_type") == "delete", pl.col("id") == 3)
    assert deletes["l"].to_list() == [[{"e": 3}, {"e": None}]]
    some = table.changes(first).filter(pl.col("day") == pl.date(2026, 1, 2)).collect()
    assert lines(some, *every.columns) == lines(every.filter(pl.col("day") == pl.date(2026, 1, 2)), *every.columns)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_versions_are_compared_across_the_end(tmp_path: Path, mode: str) -> None:
    table = mapped_table(tmp_path, mode)
    first = table.append(rows_of(1, 2))
    assert first is not None
    for old, new in (("id", "n"), ("day", "date")):  # under its new name a column is the same
        table.rename_column(old, new)
    turn_off(table, "columnMapping")
    table.delete("n = 2")
    for ends, kinds in (((first, None), ("delete", "insert")), ((table.latest_version, first), ("insert", "delete"))):
        rows = table.difference(*ends).collect()
        day = rows_of(1)["day"][0]
        assert lines(rows.filter(pl.col("n") == 1), "_change_type", "a", "s", "date") == sorted(
            (kind, "a1", {"x": 1, "y": "y"}, day) for kind in kinds
        )
        assert lines(rows.filter(pl.col("n") != 1), "_change_type", "n", "a") == [(kinds[0], 2, "a2")]
        _, tasks = table.difference_tasks(*ends)
        numbers = [
            (kind, n) for task, kind in tasks for b in read_task(task, table.storage) for n in b["n"].to_pylist()
        ]
        assert sorted(numbers) == lines(rows, "_change_type", "n")


def test_a_column_that_came_later_has_no_values_of_one_that_was_dropped(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64, "a": pl.String})  # whose names in files stay
    table.append(pl.DataFrame({"id": [1], "a": ["old"]}))
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.drop_column("a")
    first = table.append(pl.DataFrame({"id": [2]}))
    assert first is not None
    table.delete("id = 1")
    turn_off(table, "columnMapping")
    table.add_column("a", "string")
    assert lines(table.changes(first).collect(), "_change_type", "id", "a") == [
        ("delete", 1, None),
        ("insert", 2, None),
    ]
    assert set(table.difference(first).collect()["a"]) == {None}


def test_a_column_that_was_renamed_within_a_range_is_named_with_the_version(tmp_path: Path) -> None:
    table = mapped_table(tmp_path)
    first = table.append(rows_of(1))
    assert first is not None
    renamed = table.rename_column("a", "b")
    turn_off(table, "columnMapping")
    with pytest.raises(InvalidRequestError, match=f"in version {renamed} column a was renamed to b"):
        table.changes(first)
    assert table.changes(renamed or 0).collect().is_empty()


def test_a_restore_begins_the_mapping_that_ended_with_the_names_of_then(tmp_path: Path) -> None:
    table = mapped_table(tmp_path)
    first = table.append(rows_of(1))
    assert first is not None
    turn_off(table, "columnMapping")
    between = table.append(rows_of(2))
    assert between is not None
    table.restore(first)
    table.append(rows_of(3))
    assert lines(table.changes(between).collect(), "_commit_version", "_change_type", "id", "a") == [
        (between, "insert", 2, "a2"),
        (between + 1, "delete", 1, "a1"),
        (between + 1, "delete", 2, "a2"),
        (between + 1, "insert", 1, "a1"),
        (between + 2, "insert", 3, None),
    ]
    for base, ids in ((first, [3]), (between, [1, 1, 2, 3])):
        rows = table.difference(base).collect()
        assert sorted(rows["id"]) == ids
        assert rows.filter(pl.col("id") == 2)["a"].to_list() == ["a2"] * (base == between)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_version_is_compared_across_a_restore_to_other_names(tmp_path: Path, mode: str) -> None:
    table = mapped_table(tmp_path, mode)
    first = table.append(rows_of(1))
    assert first is not None
    for old, new in (("a", "b"), ("day", "date"), ("s", "t")):
        table.rename_column(old, new)
    turn_off(table, "columnMapping")
    between = table.append(rows_of(7).rename({"a": "b", "day": "date", "s": "t"}))
    assert between is not None
    table.restore(first)
    table.append(rows_of(11))
    rows = table.difference(between).collect()
    assert lines(rows, "_change_type", "id", "a", "s", "day") == sorted(
        [
            (kind, number, f"a{number}", {"x": number, "y": "y"}, rows_of(number)["day"][0])
            for kind, number in (("delete", 1), ("delete", 7), ("insert", 1), ("insert", 11))
        ],
        key=repr,
    )


def test_versions_are_compared_where_mapping_ended_and_began_again_before_all_columns_got_other_names(
    tmp_path: Path,
) -> None:
    table = lv.create_table(
        str(tmp_path), {"id": pl.Int64, "a": pl.String}, properties={"delta.columnMapping.mode": "name"}
    )
    first = table.append(pl.DataFrame({"id": [1, 2], "a": ["a1", "a2"]}))
    assert first is not None
    turn_off(table, "columnMapping")
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.rename_column("id", "n")
    table.rename_column("a", "b")
    rows = table.difference(first).collect()
    assert lines(rows, "_change_type", "n", "b") == [(k, i, f"a{i}") for k in ("delete", "insert") for i in (1, 2)]
