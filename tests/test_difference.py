"""Rows that only one of two versions has: from the files of the two alone, whatever lay between."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.model.errors import CorruptTableError, DataFileMissingError, InvalidRequestError, VersionNotFoundError
from lakeview.model.frames import CHANGES_PLAN
from tests.builders.actions import add, metadata, protocol, remove
from tests.builders.feeds import ids_file, masked, with_vectors
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.builders.mapped import field, mapped, stored_field
from tests.builders.opening import open_delta_table
from tests.builders.vectors import deleting
from tests.views.at_once import row_difference

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "note", "required": False, "type": "string"},
]


@pytest.fixture
def history(tmp_path: Path) -> DeltaHistory:
    return DeltaHistory(tmp_path / "t")


def change_rows(frame: pl.LazyFrame) -> list[tuple[Any, ...]]:
    """(kind, the table's columns...), sorted."""
    rows = frame.collect()
    return sorted(rows.select("_change_type", pl.exclude("_change_type")).rows(), key=repr)


def planned(plan: pl.DataFrame) -> list[tuple[Any, ...]]:
    assert plan.schema == CHANGES_PLAN
    return plan.select("version", "change_type", "path").rows()


def test_files_that_both_versions_have_are_not_read(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(ids_file(history, "a", 1, 2), ids_file(history, "b", 3))
    history.commit(remove("b"), ids_file(history, "c", 4, 5))
    table = open_delta_table(history)
    history.remove("a")  # not so much as opened
    assert change_rows(table.difference(1, 2)) == [("delete", 3), ("insert", 4), ("insert", 5)]
    assert planned(table.difference_plan(1, 2)) == [(1, "delete", "b"), (2, "insert", "c")]
    assert change_rows(table.difference(2, 2)) == [] == change_rows(table.difference(1, 1))
    assert table.difference_plan(2).is_empty()


def test_the_rows_of_a_difference_come_by_kind_and_from_fewer_bytes_first(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(ids_file(history, "a", *range(999)))
    history.commit(remove("a"), ids_file(history, "b", 4))
    table = open_delta_table(history)
    for base, version, first in ((1, 2, "insert"), (2, 1, "delete")):
        sides = table.difference_sides(base, version)
        assert next(kind for kind, _ in sides) == first
        assert [set(side.collect()["_change_type"]) for _, side in sides] == [{kind} for kind, _ in sides]


def test_files_of_the_versions_between_may_be_gone(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(ids_file(history, "a", 1))
    history.commit(remove("a"), ids_file(history, "b", 1, 2)).commit(remove("b"), ids_file(history, "c", 1, 2, 3))
    history.remove("b")
    table = open_delta_table(history)
    with pytest.raises(DataFileMissingError):
        table.changes(2, 3).collect()
    difference = row_difference(table.difference(1, 3))
    assert (difference.gains, difference.losses, difference.rows_read) == (2, 0, 4)
    assert difference.rows.rows() == [(1, 2), (1, 3)]


def test_a_file_of_the_two_that_is_gone_is_named(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(ids_file(history, "a", 1)).commit(remove("a"))
    history.remove("a")
    with pytest.raises(DataFileMissingError, match="data file a is in the log"):
        open_delta_table(history).difference(1, 2).collect()


def test_either_version_may_come_first(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(ids_file(history, "a", 1)).commit(ids_file(history, "b", 2))
    table = open_delta_table(history)
    assert change_rows(table.difference(1)) == [("insert", 2)]
    assert change_rows(table.difference(2, 1)) == [("delete", 2)]
    assert planned(table.difference_plan(2, 1)) == [(2, "delete", "b")]


def test_of_a_file_whose_deletes_differ_only_those_rows_are_read(history: DeltaHistory) -> None:
    with_vectors(history)
    first, second = deleting(1, 2), deleting(2, 4)
    for old, new in ((None, first), (first, second), (second, None)):
        history.commit(add("f", records=5, **masked(new)), remove("f", **masked(old)))
    table = open_delta_table(history)
    assert change_rows(table.difference(1, 2)) == [("delete", 1), ("delete", 2)]
    assert change_rows(table.difference(2, 3)) == [("delete", 4), ("insert", 1)]
    assert change_rows(table.difference(3, 4)) == [("insert", 2), ("insert", 4)]
    assert change_rows(table.difference(1, 4)) == []
    assert planned(table.difference_plan(2, 3)) == [(2, "delete", "f"), (3, "insert", "f")]


def test_columns_are_those_of_the_later_version(history: DeltaHistory) -> None:
    history.create({"id": "long", "_change_type": "long"})
    history.commit(history.data("a", {"id": [1], "_change_type": [7]}))
    history.commit(
        metadata({"id": "long", "more": "string"}), remove("a"), history.data("b", {"id": [2], "more": ["x"]})
    )
    table = open_delta_table(history)
    assert table.difference(1, 2).collect().columns == ["id", "more", "_change_type"]
    assert change_rows(table.difference(1, 2)) == [("delete", 1, None), ("insert", 2, "x")]
    assert change_rows(table.difference(2, 1)) == [("delete", 2, "x"), ("insert", 1, None)]
    assert table.difference(0, 1).collect().rows() == [(1, 7, "insert")]
    assert table.difference(0, 1).collect_schema().names() == ["id", "_change_type_", "_change_type"]


def test_a_renamed_column_is_compared_with_itself(history: DeltaHistory) -> None:
    history.commit(*mapped("name", field("day", "string", 1), field("id", "long", 2), partition_by=("day",)))
    file = history.data(
        "a", pa.table([[1]], schema=pa.schema([stored_field(pa.int64(), 2)])), partitionValues={"col-1": "monday"}
    )
    history.commit(file)
    _, renamed = mapped("name", field("date", "string", 1), field("number", "long", 2), partition_by=("date",))
    history.commit(renamed).commit(remove("a"))
    assert change_rows(open_delta_table(history).difference(1, 3)) == [("delete", "monday", 1)]
    assert change_rows(open_delta_table(history).difference(1, 2)) == []


def test_a_column_that_became_of_another_type_is_told(history: DeltaHistory) -> None:
    history.create({"id": "string"}).commit(metadata({"id": "long"}))
    for base, version in ((0, 1), (1, 0)):
        with pytest.raises(
            InvalidRequestError,
            match=r"versions 0 and 1 of .* cannot be read with one schema: column id was changed from string to long",
        ) as error:
            open_delta_table(history).difference(base, version)
        assert error.value.fix == "compare versions that are both before or both after that change"


def test_what_a_file_was_partitioned_by_its_own_version_says(history: DeltaHistory) -> None:
    history.commit(protocol(), metadata({"id": "long", "day": "string"}, partition_by=("day",)))
    history.commit(history.data("a", {"id": [1]}, partitionValues={"day": "monday"}))
    history.commit(metadata({"id": "long", "day": "string"}), remove("a"))
    history.commit(history.data("b", {"id": [1], "day": ["sunday"]}))
    assert change_rows(open_delta_table(history).difference(1, 3)) == [("delete", 1, "monday"), ("insert", 1, "sunday")]
    assert change_rows(open_delta_table(history).difference(3, 1)) == [("delete", 1, "sunday"), ("insert", 1, "monday")]


def test_files_of_both_versions_are_left_out_before_their_partition_values_are_read(history: DeltaHistory) -> None:
    history.commit(protocol(), metadata({"id": "long", "day": "date"}, partition_by=("day",)))
    history.commit(
        add("broken", partitionValues={"day": "no day"}), add("moved", partitionValues={"day": "2026-01-01"})
    )
    history.commit(remove("moved"), add("moved", partitionValues={"day": "2026-01-02"}), add("c", partitionValues={}))
    table = open_delta_table(history)
    assert planned(table.difference_plan(1, 2)) == [(1, "delete", "moved"), (2, "insert", "moved"), (2, "insert", "c")]
    with pytest.raises(CorruptTableError, match="partition value 'no day' of column day is no date"):
        table.difference_plan(0, 2)


def test_a_version_that_is_not_there_is_told(history: DeltaHistory) -> None:
    history.create({"id": "long"})
    with pytest.raises(VersionNotFoundError):
        open_delta_table(history).difference(0, 7)


# -- any two versions, against reading both whole

STEP = st.tuples(st.sampled_from(["add", "remove", "mask", "copy"]), st.integers(0, 3), st.sets(st.integers(0, 4)))


@given(st.lists(STEP, min_size=1, max_size=6))
@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_any_two_versions_differ_as_their_rows_do(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    history = with_vectors(DeltaHistory(tmp_path_factory.mktemp("t")))
    live: dict[str, Any] = {"f": None}
    for number, (kind, which, rows) in enumerate(steps):
        name = sorted(live)[which % len(live)] if live else None
        if kind == "add" or name is None:
            live[f"n{number}"] = None
            history.commit(ids_file(history, f"n{number}", *range(number, number + 5)))
        elif kind == "mask":
            old, live[name] = live[name], deleting(*rows) if rows else None
            history.commit(add(name, records=5, **masked(live[name])), remove(name, **masked(old)))
        else:
            old = live.pop(name)
            wrote = [ids_file(history, f"n{number}", *range(5))] if kind == "copy" else []
            live |= {f"n{number}": None} if wrote else {}
            history.commit(remove(name, **masked(old)), *wrote)
    table = open_delta_table(history)
    rows_of = [Counter(table.scan(v).collect()["id"].to_list()) for v in range(table.latest_version + 1)]
    pairs = combinations_with_replacement(range(1, len(rows_of)), 2)
    for number, pair in enumerate(pairs):  # each once, half of them back in time
        base, version = pair if number % 2 else pair[::-1]
        difference = row_difference(table.difference(base, version))
        assert difference.gains == (rows_of[version] - rows_of[base]).total()
        assert difference.losses == (rows_of[base] - rows_of[version]).total()


# -- Iceberg


@pytest.mark.parametrize("version", [2, 3])
def test_snapshots_differ_by_their_files_and_deletes(tmp_path: Path, version: int) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, version=version)
    live_path = history.append("a", [{"id": i, "note": "x"} for i in range(4)])
    deleted_path = history.append("b", [{"id": 10, "note": None}])
    history.remove(deleted_path)
    if version == 3:
        history.delete_vectors("v", {live_path: [0, 3]})
    else:
        history.delete_positions("d", {live_path: [0, 3]})
    history.append("c", [{"id": 50, "note": "z"}])
    table = lv.open_table(history.address)
    assert change_rows(table.difference(1002)) == [
        ("delete", 0, "x"), ("delete", 10, None), ("delete", 3, "x"), ("insert", 50, "z"),
    ]  # fmt: skip
    assert change_rows(table.difference(1005, 1001)) == [("delete", 50, "z"), ("insert", 0, "x"), ("insert", 3, "x")]
    assert planned(table.difference_plan(1003, 1005))[0][:2] == (1003, "delete")
    assert change_rows(table.difference(1001, 1003)) == []


def test_manifests_that_both_snapshots_have_are_not_read(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "note": "x"}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 9}])
    history.append("b", [{"id": 2, "note": "x"}])
    table = lv.open_table(history.address)
    (tmp_path / "t/metadata/manifest-1001.avro").unlink()
    assert [row[:2] for row in planned(table.difference_plan(1002, 1003))] == [(1003, "insert")]
    with pytest.raises(CorruptTableError):  # what the one alone deletes may be in a file of both
        table.difference_plan(1001, 1003)


def test_equality_deletes_are_told_by_the_rows_they_hit(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": i, "note": "x"} for i in range(3)])
    history.delete_equal("d", [history.fields["id"]], [{"id": 1}])
    history.append("b", [{"id": 1, "note": "y"}])
    assert change_rows(lv.open_table(history.address).difference(1001)) == [("delete", 1, "x"), ("insert", 1, "y")]


def test_equality_deletes_compare_fields_whose_names_are_patterns_to_polars(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [
        {"id": 11, "name": "^n$", "type": "int", "required": False},
        {"id": 12, "name": "n", "type": "int", "required": False},
    ]}  # fmt: skip
    history = IcebergHistory(tmp_path / "t", [{"id": 10, "name": "^s$", "type": inner, "required": False}])
    rows = [{"^s$": {"^n$": 1, "n": 2}}, {"^s$": {"^n$": 2, "n": 1}}]
    history.append("a", rows)
    history.delete_equal("d", [history.fields["^s$"]], [{"^s$": {"^n$": 2, "n": 2}}], ids=[11])
    assert lv.open_table(history.address).scan().collect().to_dicts() == rows[:1]


def test_branches_are_compared_though_neither_comes_before_the_other(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "note": "x"}])
    history.branch("audit")
    with history.on("audit"):
        history.append("b", [{"id": 2, "note": "x"}])
    history.evolve([FIELDS[0], {**FIELDS[1], "name": "remark"}])
    history.append("c", [{"id": 3, "remark": "x"}])
    difference = lv.open_table(history.address).difference(1002)
    assert change_rows(difference) == [("delete", 2, "x"), ("insert", 3, "x")]
    assert difference.collect_schema().names() == ["id", "remark", "_change_type"]


def test_filters_and_chosen_columns_hold(history: DeltaHistory) -> None:
    history.create({"id": "long"}).commit(ids_file(history, "a", 1, 2, 3))
    rows = open_delta_table(history).difference(0, 1)
    assert rows.filter(pl.col("id") > 1).select("id").collect()["id"].to_list() == [2, 3]
    assert rows.select(pl.len()).collect().item() == 3
