"""What changed between versions: from the change feed, from whole files, from the difference of deletion vectors."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakeview.delta.data.change_range import change_scan
from lakeview.model.errors import CorruptTableError, DataFileMissingError
from lakeview.model.frames import CHANGES
from lakeview.rows.parquet import read_task
from tests.builders.actions import Action, add, cdc, info, metadata, protocol, remove
from tests.builders.feeds import FED, changes, feed, ids_file, masked, move, of_ids, with_vectors
from tests.builders.history import START, STEP, DeltaHistory
from tests.builders.mapped import field, mapped, stored_field
from tests.builders.opening import open_delta_table
from tests.builders.vectors import deleting

# -- which files tell


def test_added_rows_are_inserted_and_removed_rows_deleted(address: str) -> None:
    history = feed(DeltaHistory(address))
    history.commit(ids_file(history, "a", 1, 2)).commit(ids_file(history, "b", 3)).commit(remove("a", size=10))
    assert changes(history, 0) == [
        *of_ids("delete", 3, 1, 2), *of_ids("insert", 1, 1, 2), *of_ids("insert", 2, 3),
    ]  # fmt: skip
    assert changes(history, 2, 2) == of_ids("insert", 2, 3)
    assert changes(history, 0, 0) == []


def test_where_changes_are_recorded_only_the_record_counts(history: DeltaHistory) -> None:
    feed(history).commit(ids_file(history, "a", 1, 2))
    kinds = ["update_preimage", "update_postimage"]
    change_file = cdc(history.data("_change_data/c", {"id": [2, 7], "_change_type": kinds}))
    history.commit(remove("a"), ids_file(history, "b", 1, 7), change_file)
    assert changes(history, 2) == [("update_postimage", 2, 7), ("update_preimage", 2, 2)]


def test_a_data_file_may_be_a_change_file_as_well(history: DeltaHistory) -> None:
    rows = history.data("a", {"id": [1, 2], "_change_type": ["insert", "insert"]})
    feed(history).commit(rows, cdc(rows))
    assert changes(history, 0) == of_ids("insert", 1, 1, 2)
    assert open_delta_table(history).scan().collect().columns == ["id"]


def test_rows_that_were_only_moved_are_no_changes(history: DeltaHistory) -> None:
    feed(history).commit(ids_file(history, "a", 1)).commit(ids_file(history, "b", 2))
    history.commit(
        remove("a", data_change=False), remove("b", data_change=False), ids_file(history, "c", 1, 2, data_change=False)
    )
    assert changes(history, 3) == []
    assert open_delta_table(history).changes_plan(3).height == 0


@pytest.mark.parametrize(
    ("operation", "metrics", "count"),
    [
        pytest.param("MERGE", {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"},
                     0, id="a merge that changed nothing"),
        pytest.param("MERGE", {"numTargetRowsInserted": 0, "numTargetRowsUpdated": 0, "numTargetRowsDeleted": 0},
                     0, id="the same in numbers"),
        pytest.param("MERGE", {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "1", "numTargetRowsDeleted": "0"},
                     2, id="a merge that updated"),
        pytest.param("MERGE", {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0"}, 2, id="a merge that is mum"),
        pytest.param("MERGE", None, 2, id="a merge without metrics"),
        pytest.param("UPDATE", {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"},
                     2, id="another operation"),
    ],
)  # fmt: skip
def test_a_merge_that_says_it_changed_nothing(
    history: DeltaHistory, operation: str, metrics: dict[str, Any] | None, count: int
) -> None:
    feed(history).commit(ids_file(history, "a", 1))
    history.commit(info(operation=operation, operationMetrics=metrics), remove("a"), ids_file(history, "b", 1))
    assert len(changes(history, 2)) == count


# -- deletion vectors


@pytest.mark.parametrize(
    ("old", "new", "deleted", "inserted"),
    [
        pytest.param(None, [1, 3], [1, 3], [], id="the first vector"),
        pytest.param([1], [1, 2, 3], [2, 3], [], id="a larger one"),
        pytest.param([1, 2, 3], [2], [], [1, 3], id="a smaller one, as a restore makes it"),
        pytest.param([1, 2], [2, 4], [4], [1], id="rows back and other rows gone"),
        pytest.param([0, 1], None, [], [0, 1], id="no vector any more"),
        pytest.param([2], [2], [], [], id="the same one"),
        pytest.param(None, None, [], [], id="none before and none after: other statistics, say"),
    ],
)
def test_of_a_file_that_stays_the_difference_of_its_vectors(
    history: DeltaHistory, old: list[int] | None, new: list[int] | None, deleted: list[int], inserted: list[int]
) -> None:
    before, after = (None if rows is None else deleting(*rows) for rows in (old, new))
    with_vectors(history).commit(*move(None, before)).commit(*move(before, after))
    assert changes(history, 3) == [*of_ids("delete", 3, *deleted), *of_ids("insert", 3, *inserted)]
    history.commit(*reversed(move(after, before)))  # actions within a commit have no order
    assert changes(history, 4) == [*of_ids("delete", 4, *inserted), *of_ids("insert", 4, *deleted)]


def test_of_a_file_that_comes_or_goes_the_rows_that_live(history: DeltaHistory) -> None:
    with_vectors(history).commit(*move(None, deleting(0, 1)))
    history.commit(remove("f", deletionVector=deleting(0, 1)), ids_file(history, "g", 7, 8, deletionVector=deleting(0)))
    assert changes(history, 3) == [*of_ids("delete", 3, 2, 3, 4), ("insert", 3, 8)]


def test_files_of_changes_can_be_read_by_another_process(history: DeltaHistory) -> None:
    with_vectors(history).commit(*move(None, deleting(1))).commit(*move(deleting(1), deleting(1, 2, 3)))
    table = open_delta_table(history)
    scan = change_scan(table.log, table.state, 1, 3)
    tasks = pickle.loads(pickle.dumps(list(scan.tasks(None))))
    changes = [(row["_change_type"], row["id"]) for task in tasks for b in read_task(task) for row in b.to_pylist()]
    assert changes == [*(("insert", i) for i in range(5)), ("delete", 1), ("delete", 2), ("delete", 3)]


# -- what is told beside the rows


def test_the_time_is_the_one_that_time_travel_uses(history: DeltaHistory) -> None:
    feed(history).commit(ids_file(history, "a", 1)).commit(ids_file(history, "b", 2))
    history.dated(2, START)  # before the first: monotonised
    rows = open_delta_table(history).changes(0).sort("id").collect()
    times = dict(open_delta_table(history).history().select("version", "timestamp").iter_rows())
    assert rows["_commit_timestamp"].dtype == pl.Datetime("us", "UTC")
    assert rows["_commit_timestamp"].to_list() == [times[1], times[2]]
    assert times[1] == START + STEP
    assert times[2] == times[1] + timedelta(milliseconds=1)


def test_times_that_commits_carry_inside(history: DeltaHistory) -> None:
    own = {"delta.enableInCommitTimestamps": "true", **FED}
    first = protocol(1, 7, writerFeatures=["inCommitTimestamp", "changeDataFeed"])
    expected = [START + version * timedelta(days=1) for version in range(3)]
    for version, at in enumerate(expected):
        commit_info = info(inCommitTimestamp=int(at.timestamp() * 1000))
        file = ids_file(history, f"f{version}", version)
        history.commit(commit_info, *([] if version else [first, metadata({"id": "long"}, properties=dict(own))]), file)
    rows = open_delta_table(history).changes(1).sort("id").collect()
    assert rows["_commit_timestamp"].to_list() == expected[1:]


def test_times_that_a_copy_flattened_are_the_writers(history: DeltaHistory) -> None:
    feed(history)
    for version in (0, 1, 2):
        commit_info = info(timestamp=int((START + version * timedelta(days=30)).timestamp() * 1000))
        first = [protocol(1, 4), metadata({"id": "long"}, properties=dict(FED))]
        actions = [ids_file(history, f"f{version}", version)] if version else first
        history.commit(commit_info, *actions, version=version).dated(version, START + timedelta(milliseconds=version))
    rows = open_delta_table(history).changes(1).sort("id").collect()
    assert rows["_commit_timestamp"].to_list() == [START + timedelta(days=30), START + timedelta(days=60)]


def test_columns_of_the_table_that_bear_such_names_are_suffixed(history: DeltaHistory) -> None:
    columns = {"_change_type": "string", "_change_type_": "long", "_commit_version": "long"}
    history.create(columns)
    history.commit(history.data("f", {"_change_type": ["mine"], "_change_type_": [1], "_commit_version": [2]}))
    change_rows = open_delta_table(history).changes(0).collect()
    assert change_rows.columns == ["_change_type__", "_change_type_", "_commit_version_", *CHANGES.names()]
    assert change_rows.row(0)[:5] == ("mine", 1, 2, "insert", 1)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_mapped_in_change_files_as_well(history: DeltaHistory, mode: str) -> None:
    protocol_, metadata_ = mapped(mode, field("id", "long", 1), field("day", "date", 2), partition_by=("day",))
    history.commit(protocol_, metadata_)
    day = {"col-2": "2026-03-01"}
    schema = pa.schema([stored_field(pa.int64(), 1)])
    history.commit(history.data("a", pa.table({"col-1": [1]}, schema=schema), partition=day))
    rows = pa.table(
        {"col-1": [1], "_change_type": ["delete"]}, schema=schema.append(pa.field("_change_type", "string"))
    )
    history.commit(remove("a"), cdc(history.data("_change_data/c", rows, partition=day)))
    assert changes(history, 1) == [("delete", 2, 1, date(2026, 3, 1)), ("insert", 1, 1, date(2026, 3, 1))]


# -- what is broken or gone


def test_a_vacuumed_file_is_named_with_its_version(history: DeltaHistory) -> None:
    feed(history).commit(ids_file(history, "a", 1)).commit(remove("a")).commit(ids_file(history, "b", 2)).remove("a")
    with pytest.raises(DataFileMissingError, match="the changes of version 1 need a, which is not in the store") as one:
        open_delta_table(history).changes(0).collect()
    assert one.value.place == "a"
    with pytest.raises(DataFileMissingError, match="the changes of version 2 need a"):
        open_delta_table(history).changes(2).collect()
    assert changes(history, 3) == of_ids("insert", 3, 2)


@pytest.mark.parametrize("broken", [b'{"size":1}', b'{"path":"\xff","size":1,"partitionValues":{},"dataChange":false}'])
def test_a_broken_cdc_action_costs_the_changes_and_nothing_else(history: DeltaHistory, broken: bytes) -> None:
    whole = json.dumps(ids_file(history, "a", 1)).encode()
    feed(history).raw_commit(whole + b'\n{"cdc":' + broken + b"}\n")
    assert open_delta_table(history).scan().collect().height == 1
    with pytest.raises(CorruptTableError, match="has a cdc action that cannot be read") as caught:
        open_delta_table(history).changes(0)
    assert caught.value.place == "00000000000000000001.json"


@pytest.mark.parametrize("more", [{}, {"_change_type": ["INSERT"]}], ids=["none", "an unknown one"])
def test_change_files_that_do_not_say_the_kind_are_corrupt(history: DeltaHistory, more: dict[str, list[str]]) -> None:
    feed(history).commit(cdc(history.data("c", {"id": [1], **more})))
    with pytest.raises(CorruptTableError, match="c of version 1 has rows without _change_type"):
        open_delta_table(history).changes(0).collect()


# -- the law of changes


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_rows_and_their_changes_give_the_next_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    history = with_vectors(DeltaHistory(folder := Path(tmp_path_factory.mktemp("law")) / "table"))
    live: dict[str, frozenset[int] | None] = {"f": None}
    for version in range(2, 2 + data.draw(st.integers(1, 6))):
        actions: list[Action] = []
        for path in sorted(live):
            step = data.draw(st.sampled_from(["stay", "mask", "remove"]))
            old = live[path]
            if step != "stay":
                actions.append(remove(path, **masked(None if old is None else deleting(*old))))
                del live[path]
            if step == "mask":
                new = data.draw(st.none() | st.frozensets(st.integers(0, 4), min_size=1))
                if new == old:
                    actions.pop()
                else:
                    actions.append(add(path, records=5, **masked(None if new is None else deleting(*new))))
                live[path] = new
        if data.draw(st.booleans()):
            actions.append(ids_file(history, f"g{version}", *range(version * 10, version * 10 + 5)))
            live[f"g{version}"] = None
        history.commit(*actions)
    table = open_delta_table(history)
    start, end = sorted(data.draw(st.tuples(st.integers(1, history.version), st.integers(1, history.version))))
    rows = Counter(table.scan(start - 1).collect()["id"])
    for kind, row in table.changes(start, end).select("_change_type", "id").collect().iter_rows():
        rows[row] += 1 if kind == "insert" else -1
    assert {r: n for r, n in rows.items() if n} == dict(Counter(table.scan(end).collect()["id"])), folder
