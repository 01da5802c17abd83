"""Which files changes are read from: partitions, what a filter spares, what the plan says it costs."""

from __future__ import annotations

from datetime import date
from io import BytesIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeview.model.errors import CorruptTableError
from lakeview.model.frames import CHANGES_PLAN
from tests.builders.actions import Action, add, cdc, metadata, protocol, remove
from tests.builders.feeds import FED, changes, feed, ids_file, move, of_ids, with_vectors
from tests.builders.history import START, STEP, DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.vectors import deleting

# -- partitions


def test_partition_values_are_the_logs(history: DeltaHistory) -> None:
    feed(history, {"id": "long", "day": "date"}, partition_by=("day",))
    history.commit(ids_file(history, "a", 1, partition={"day": "2026-03-01"}))
    history.commit(ids_file(history, "b", 2, partition={"day": None}))
    change_file = history.data(
        "_change_data/c", {"id": [1], "_change_type": ["delete"]}, partition={"day": "2026-03-01"}
    )
    history.commit(remove("a", partitionValues={"day": "2026-03-01"}), cdc(change_file))
    history.commit(remove("b", partitionValues={"day": None}))
    assert changes(history, 0) == [
        ("delete", 3, 1, date(2026, 3, 1)), ("delete", 4, 2, None), ("insert", 1, 1, date(2026, 3, 1)),
        ("insert", 2, 2, None),
    ]  # fmt: skip


def test_a_remove_that_does_not_say_its_partition_has_that_of_its_add(history: DeltaHistory) -> None:
    history.create({"id": "long", "day": "string"}, partition_by=("day",))
    history.commit(ids_file(history, "a", 1, partition={"day": "x"})).commit(remove("a"))
    history.commit(ids_file(history, "b", 2, partition={"day": "y"})).commit(remove("b"))
    assert changes(history, 2) == [("delete", 2, 1, "x"), ("delete", 4, 2, "y"), ("insert", 3, 2, "y")]
    history.commit(remove("unknown"))
    with pytest.raises(CorruptTableError, match="does not say in which partition it lay") as caught:
        open_delta_table(history).changes(5)
    assert caught.value.kind == "missing-partition-values"


def test_files_from_before_another_partitioning_hold_the_column_themselves(history: DeltaHistory) -> None:
    history.create({"id": "long", "day": "string"}).commit(history.data("a", {"id": [1], "day": ["x"]}))
    new = metadata({"id": "long", "day": "string"}, partition_by=("day",))
    history.commit(new, remove("a"), ids_file(history, "b", 1, partition={"day": "x"}))
    old = metadata({"id": "long", "day": "string"})
    history.commit(old, remove("b", partitionValues={"day": "x"}), history.data("c", {"id": [1], "day": ["x"]}))
    expected = [("delete", 2, 1, "x"), ("delete", 3, 1, "x"), *(("insert", v, 1, "x") for v in (1, 2, 3))]
    assert changes(history, 1) == expected
    assert changes(history, 3) == [("delete", 3, 1, "x"), ("insert", 3, 1, "x")]
    assert open_delta_table(history).changes(1).filter(pl.col("day") == "x").collect().height == 5
    assert open_delta_table(history).changes(1).filter(pl.col("day").is_null()).collect().height == 0


def test_filters_spare_files_by_version_time_kind_and_partition(history: DeltaHistory) -> None:
    feed(history, {"id": "long", "day": "string"}, partition_by=("day",))
    for version in range(1, 7):
        day = {"day": "x" if version % 2 else "y"}
        history.commit(ids_file(history, f"f{version}", version, partition=day))
    history.commit(remove("f1", partitionValues={"day": "x"}))
    table = open_delta_table(history)
    scan = table.changes(0)

    def read(where: pl.Expr) -> tuple[list[int], int]:
        before = table.storage.requests["open"]
        tasks = scan.filter(where).collect()
        return sorted(tasks["id"]), table.storage.requests["open"] - before

    assert read(pl.col("_commit_version") > 5) == ([1, 6], 2)
    assert read(pl.col("_commit_version").is_in([2, 3])) == ([2, 3], 2)
    assert read(pl.col("_commit_timestamp") < START + 2 * STEP) == ([1], 1)
    assert read(pl.col("_change_type") == "delete") == ([1], 1)
    assert read(pl.col("day") == "y") == ([2, 4, 6], 3)
    assert read((pl.col("day") == "x") & (pl.col("_commit_version") < 3)) == ([1], 1)
    assert read(pl.col("id") == 4) == ([4], 7)
    assert scan.select(pl.len()).collect().item() == 7
    assert scan.head(2).collect().height == 2
    assert scan.select("_commit_version").collect()["_commit_version"].to_list() == [1, 2, 3, 4, 5, 6, 7]


# -- the plan


def test_the_plan_tells_what_reading_costs(history: DeltaHistory) -> None:
    with_vectors(history).commit(*move(None, deleting(1)))
    history.commit(*move(deleting(1), deleting(1, 2)))
    change_file = cdc(history.data("_change_data/c", {"id": [5], "_change_type": ["insert"]}))
    history.commit(ids_file(history, "g", 5), change_file)
    history.remove("f")  # the plan reads no data file
    plan = open_delta_table(history).changes_plan(1)
    size = change_file["cdc"]["size"]
    assert plan.schema == CHANGES_PLAN
    assert plan.drop("size").rows() == [
        (1, "insert", "f", 5, "feed"), (2, "delete", "f", 1, "feed"), (3, "delete", "f", None, "feed"),
        (3, "insert", "f", None, "feed"), (4, None, "_change_data/c", None, "feed"),
    ]  # fmt: skip
    assert plan["size"].to_list()[1:] == [100, 100, 100, size]


def test_a_file_of_which_no_row_changed_is_not_opened(history: DeltaHistory) -> None:
    with_vectors(history).commit(*move(None, deleting(1))).commit(*move(deleting(1), deleting(1, 2)))
    table = open_delta_table(history)
    before = table.storage.requests["open"]
    assert table.changes(3).collect()["id"].to_list() == [2]
    assert table.storage.requests["open"] - before == 1


FEED_IN_7 = protocol(1, 7, writerFeatures=["changeDataFeed"])


@pytest.mark.parametrize(
    ("first", "properties", "source"),
    [
        pytest.param(protocol(1, 4), FED, "feed", id="writer version 4"),
        pytest.param(protocol(1, 6), {"delta.enableChangeDataFeed": "TRUE"}, "feed", id="writer version 6"),
        pytest.param(FEED_IN_7, FED, "feed", id="the feature in writer version 7"),
        pytest.param(protocol(1, 7, writerFeatures=["appendOnly"]), FED, "derived", id="7 without the feature"),
        pytest.param(protocol(1, 2), FED, "derived", id="writer version 2, which knows no feed"),
        pytest.param(protocol(1, 4), {}, "derived", id="switched off"),
    ],
)
def test_whether_changes_are_recorded_or_derived(
    history: DeltaHistory, first: Action, properties: dict[str, str | None], source: str
) -> None:
    history.commit(first, metadata({"id": "long"}, properties=properties)).commit(ids_file(history, "a", 1))
    assert open_delta_table(history).changes_plan(0)["source"].to_list() == [source]
    assert changes(history, 0) == of_ids("insert", 1, 1)


def test_a_feed_that_begins_and_ends_within_the_range(history: DeltaHistory) -> None:
    off, on = metadata({"id": "long"}), metadata({"id": "long"}, properties=dict(FED))
    history.commit(protocol(1, 4), off, ids_file(history, "a", 1)).commit(ids_file(history, "b", 2))
    history.commit(on).commit(remove("a")).commit(off, remove("b"))
    plan = open_delta_table(history).changes_plan(0)
    assert dict(plan.select("version", "source").iter_rows()) == {0: "derived", 1: "derived", 3: "feed", 4: "derived"}
    assert [row[:2] for row in changes(history, 0)] == [("delete", 3), ("delete", 4), ("insert", 0), ("insert", 1)]


def test_row_groups_of_which_no_row_changed_are_not_read(history: DeltaHistory) -> None:
    buffer = BytesIO()
    pq.write_table(pa.table({"id": range(30_000)}), buffer, row_group_size=5_000, compression="none")
    chunk = pq.ParquetFile(buffer).metadata.row_group(2).column(0)
    data = bytearray(buffer.getvalue())
    data[chunk.data_page_offset : chunk.data_page_offset + 16] = b"\xff" * 16  # to read this group is an error
    with_vectors(history).write("big", bytes(data))
    history.commit(add("big", records=30_000))
    deleted_ids = [0, 4_999, 5_000, 15_000, 29_999]
    after = deleting(*deleted_ids)
    history.commit(remove("big"), add("big", records=30_000, deletionVector=after))
    assert [row[2] for row in changes(history, 3)] == sorted(deleted_ids, key=repr)
    with pytest.raises(CorruptTableError):
        changes(history, 2)
