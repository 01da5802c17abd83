"""Which changes may be asked for: ranges of versions and moments, commits that are gone, schemas that changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from lakeview.model.errors import CorruptTableError, InvalidRequestError, VersionNotFoundError
from lakeview.model.frames import CHANGES
from tests.builders.actions import metadata, remove
from tests.builders.actions import struct as struct_of
from tests.builders.feeds import changes, feed, ids_file
from tests.builders.history import START, STEP, DeltaHistory
from tests.builders.mapped import field, mapped
from tests.builders.opening import open_delta_table


def write_versions(history: DeltaHistory, last: int) -> DeltaHistory:
    """Each version but the first adds the row that is its number."""
    feed(history)
    for version in range(1, last + 1):
        history.commit(ids_file(history, f"f{version}", version))
    return history


# -- versions and moments


@pytest.mark.parametrize(
    ("start", "end", "ids"),
    [
        pytest.param(0, None, [1, 2, 3, 4], id="from the first to the latest"),
        pytest.param(2, 3, [2, 3], id="both ends are included"),
        pytest.param(4, 4, [4], id="one version"),
        pytest.param(START + STEP, START + 2 * STEP, [1, 2], id="moments of commits are included"),
        pytest.param(START + 1.5 * STEP, None, [2, 3, 4], id="from the first commit after a moment"),
        pytest.param(START - STEP, 2, [1, 2], id="from before the table"),
        pytest.param(3, START + 99 * STEP, [3, 4], id="to a moment after the latest"),
        pytest.param(START + 1.2 * STEP, START + 1.8 * STEP, [], id="no commit lies between"),
        pytest.param(START + 99 * STEP, None, [], id="from after the latest: nothing yet"),
    ],
)
def test_a_range_of_versions_or_moments(
    history: DeltaHistory, start: int | datetime, end: int | datetime | None, ids: list[int]
) -> None:
    table = open_delta_table(write_versions(history, 4))
    rows = table.changes(start, end).collect()
    assert sorted(rows["id"]) == ids
    assert rows.columns == ["id", *CHANGES.names()]
    assert table.changes_plan(start, end).height == len(ids)


def test_the_range_is_pinned_when_it_is_asked_for(history: DeltaHistory) -> None:
    table = open_delta_table(write_versions(history, 1))
    scan = table.changes(0)
    history.commit(ids_file(history, "f2", 2))
    assert table.refresh()
    assert scan.collect()["id"].to_list() == [1]
    assert table.changes(0).collect()["id"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("start", "end", "error", "why"),
    [
        pytest.param(3, 2, InvalidRequestError, "changes from 3 to 2 end before they start", id="backwards"),
        pytest.param(START + STEP, START, InvalidRequestError, "end before they start", id="moments backwards"),
        pytest.param(START + 1.8 * STEP, START + 1.2 * STEP, InvalidRequestError, "end before", id="between commits"),
        pytest.param(-1, None, VersionNotFoundError, "has no version -1: it is at 4", id="a version below 0"),
        pytest.param(5, None, VersionNotFoundError, "has no version 5: it is at 4", id="a version to come"),
        pytest.param(0, 5, VersionNotFoundError, "has no version 5: it is at 4", id="an end to come"),
        pytest.param(0, 10**30, VersionNotFoundError, "has no version 1000", id="an end of thirty digits"),
        pytest.param("1", None, InvalidRequestError, "is '1', which is no whole number", id="text"),
        pytest.param(0, 1.0, InvalidRequestError, "is 1.0, which is no whole number", id="a float"),
        pytest.param(True, None, InvalidRequestError, "is True, which is no whole number", id="a truth"),
        pytest.param(START.replace(tzinfo=None), None, InvalidRequestError, "no time zone", id="a naive moment"),
        pytest.param(0, START.replace(tzinfo=None), InvalidRequestError, "no time zone", id="a naive end"),
        pytest.param(0, START - STEP, VersionNotFoundError, "its log begins at", id="an end before the table"),
    ],
)
def test_a_range_that_cannot_be_meant(
    history: DeltaHistory, start: Any, end: Any, error: type[Exception], why: str
) -> None:
    table = open_delta_table(write_versions(history, 4))
    for ask in (table.changes, table.changes_plan):
        with pytest.raises(error, match=why.replace("(", r"\(")):
            ask(start, end)


# -- commits that are gone


def test_commits_that_were_cleaned_up_are_named(history: DeltaHistory) -> None:
    write_versions(history, 5).checkpoint(3).without(0, 1, 2)
    table = open_delta_table(history)
    with pytest.raises(VersionNotFoundError, match="no longer has 2 commits from 1 to 2") as caught:
        table.changes(1)
    assert caught.value.fix == "ask for changes from version 3 on"
    with pytest.raises(VersionNotFoundError, match="no longer has commit 2"):
        table.changes(2)
    assert sorted(table.changes(3).collect()["id"]) == [3, 4, 5]


def test_gaps_are_found_by_what_is_there(history: DeltaHistory) -> None:
    write_versions(history, 2).checkpoint(2)
    history.checkpoint(10**18 - 1, actions=history.reconciled(2))
    history.commit(ids_file(history, "far", 9), version=10**18)
    table = open_delta_table(history)
    with pytest.raises(VersionNotFoundError, match="no longer has 999,999,999,999,999,997 commits from 3 to 9999999"):
        table.changes(1)
    assert table.changes(10**18).collect()["id"].to_list() == [9]
    assert sorted(table.changes(1, 2).collect()["id"]) == [1, 2]


def test_a_log_of_a_checkpoint_alone_tells_no_changes(history: DeltaHistory) -> None:
    write_versions(history, 2).checkpoint(2).without(0, 1, 2)
    with pytest.raises(VersionNotFoundError, match="no longer has commit 2") as caught:
        open_delta_table(history).changes(2)
    assert caught.value.fix == "compare two versions by their rows"


def test_a_corrupt_commit_costs_the_ranges_it_lies_in(history: DeltaHistory) -> None:
    write_versions(history, 1).raw_commit(b'{"add":').checkpoint(2, actions=history.reconciled(1))
    history.commit(ids_file(history, "f3", 3))
    table = open_delta_table(history)
    with pytest.raises(CorruptTableError, match=r"commit 00000000000000000002\.json cannot be read"):
        table.changes(1)
    assert table.changes(3).collect()["id"].to_list() == [3]


# -- schemas


def test_columns_added_within_the_range_are_null_before(history: DeltaHistory) -> None:
    feed(history).commit(ids_file(history, "a", 1))
    history.commit(metadata({"id": "long", "t": "string"}), history.data("b", {"id": [2], "t": ["x"]}))
    assert changes(history, 0) == [("insert", 1, 1, None), ("insert", 2, 2, "x")]
    assert changes(history, 0, 1) == [("insert", 1, 1)]


def test_types_widened_within_the_range_are_the_wider_ones(history: DeltaHistory) -> None:
    feed(history, {"id": "integer"})
    history.commit(history.data("a", pl.DataFrame({"id": [1]}, schema={"id": pl.Int32}).to_arrow()))
    history.commit(metadata({"id": "long"}), ids_file(history, "b", 2**40))
    rows = open_delta_table(history).changes(0).collect()
    assert rows.schema["id"] == pl.Int64
    assert sorted(rows["id"]) == [1, 2**40]


NESTED = {"a": {"type": "array", "elementType": struct_of(x="long"), "containsNull": True}}
REQUIRED = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}},'
    '{"name":"city","type":"string","nullable":true,"metadata":{}}]}'
)
WITHOUT_NULLS = (
    '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":'
    '{"type":"array","elementType":"long","containsNull":false}}]}'
)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        pytest.param(
            metadata(), metadata({"id": "string", "city": "string"}), "column id was changed from long to string",
            id="another type",
        ),
        pytest.param(
            metadata(), metadata({"id": "integer", "city": "string"}), "column id was changed from long to integer",
            id="a narrower type",
        ),
        pytest.param(metadata(), metadata({"id": "long"}), "column city was dropped", id="a column gone"),
        pytest.param(metadata(), metadata(schema=REQUIRED), "column id must not be null any more", id="null forbidden"),
        pytest.param(
            metadata(NESTED), metadata({"a": {**NESTED["a"], "elementType": struct_of(x="double")}}),
            r"column a\.element\.x was changed from long to double", id="within a list of structs",
        ),
        pytest.param(
            metadata({"a": {"type": "array", "elementType": "long", "containsNull": True}}),
            metadata(schema=WITHOUT_NULLS), r"column a\.element must not be null any more", id="no null in a list",
        ),
        pytest.param(
            mapped("name", field("a", "long", 1), field("b", "long", 2))[1],
            mapped("name", field("a", "long", 1), field("c", "long", 2))[1],
            "column b was renamed to c", id="a rename under column mapping",
        ),
        pytest.param(
            mapped("name", field("a", "long", 1), field("b", "long", 2))[1],
            mapped("name", field("a", "long", 1), field("b", "long", 3))[1],
            "column b was dropped", id="a column dropped and another of its name",
        ),
    ],
)  # fmt: skip
def test_a_schema_change_that_old_rows_cannot_follow_cuts_the_range(
    history: DeltaHistory, before: dict[str, Any], after: dict[str, Any], why: str
) -> None:
    protocol = mapped("name", field("a", "long", 1))[0]
    history.commit(protocol, before).commit(before).commit(after).commit(after)
    table = open_delta_table(history)
    with pytest.raises(InvalidRequestError, match=f"cannot be read with one schema: in version 2 {why}") as caught:
        table.changes(0)
    assert caught.value.kind == "incompatible-schema-change"
    assert caught.value.fix == "ask for changes up to version 1, and then from 2 on"
    assert table.changes(0, 1).collect().height == table.changes(2).collect().height == 0


def test_a_column_that_came_and_went_within_the_range_cuts_it_as_well(history: DeltaHistory) -> None:
    feed(history).commit(metadata({"id": "long", "t": "string"})).commit(metadata({"id": "long"}))
    with pytest.raises(InvalidRequestError, match="in version 2 column t was dropped"):
        open_delta_table(history).changes(0)


def test_rows_removed_with_the_schema_they_had_are_not_read_as_nulls(history: DeltaHistory) -> None:
    history.create({"id": "long", "t": "string"}).commit(history.data("a", {"id": [1], "t": ["x"]}))
    history.commit(metadata({"id": "string"}), remove("a"), history.data("b", {"id": ["one"]}))
    history.commit(history.data("c", {"id": ["two"]}))
    with pytest.raises(InvalidRequestError, match="in version 2 column id was changed from long to string") as caught:
        open_delta_table(history).changes(2)
    assert caught.value.fix == "ask for changes up to version 1, and then from 3 on"
    assert changes(history, 0, 1) == [("insert", 1, 1, "x")]
    assert changes(history, 3) == [("insert", 3, "two")]


def test_rows_removed_with_other_columns_have_those_that_are_left(history: DeltaHistory) -> None:
    history.create({"id": "integer", "t": "string"}).commit(history.data("a", {"id": [1], "t": ["x"]}))
    history.commit(metadata({"id": "long", "u": "string"}), remove("a"))
    assert changes(history, 2) == [("delete", 2, 1, None)]
    with pytest.raises(InvalidRequestError, match="in version 2 column t was dropped"):
        open_delta_table(history).changes(1)


def test_times_of_many_commits_are_those_of_history(history: DeltaHistory) -> None:
    table = open_delta_table(write_versions(history, 40))
    times = dict(table.history().select("version", "timestamp").iter_rows())
    expected = table.changes(7, 33).select("_commit_version", "_commit_timestamp").collect()
    assert dict(expected.iter_rows()) == {v: times[v] for v in range(7, 34)}
    assert times[7] - START == timedelta(minutes=70)


class Mode(str):
    """A mode of column mapping that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Mode.comparisons += 1
        return str(self) == str(other)


def test_the_end_of_column_mapping_is_looked_for_once_however_many_metadata_there_are(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeview.delta.data.change_range.column_mapping_mode", lambda *_: Mode("none"))
    monkeypatch.setattr(Mode, "comparisons", 0)
    feed(history)
    for version in range(1, 41):
        history.commit(metadata({"id": "long"}, properties={"version": str(version)}))
    assert open_delta_table(history).changes_plan(0).is_empty()
    assert Mode.comparisons < 200
