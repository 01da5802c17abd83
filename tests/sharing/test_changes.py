"""The change feed of a shared table to rows."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import polars as pl
import pytest

from lakeview.delta.sharing import AddFile, Metadata, Protocol, RemoveFile, change_scan, read_head
from lakeview.model.errors import InvalidRequestError, LakeviewError, SharingError, VersionNotFoundError
from lakeview.model.frames import CHANGES_PLAN
from lakeview.rows.parquet import read_task
from lakeview.sharing.client.file_lines import read_file_lines
from lakeview.sharing.client.opening import open_shared
from lakeview.sharing.client.table import SharedTable
from lakeview.sharing.protocol.messages import DeltaSingleAction, FileLine
from tests.builders.actions import schema_string
from tests.builders.mapped import field, mapped
from tests.builders.shares import SharedStory, SharingServer
from tests.delta.test_feature_files import rows_of, turn_off
from tests.delta.test_mapping_ends import lines as lines_of
from tests.delta.test_mapping_ends import mapped_table

NAME = "sales.eu.orders"


@pytest.fixture
def orders(server: SharingServer) -> SharedStory:
    """A file is added, then another, then the first is removed; an update is recorded in a file of its own."""
    story = server.share(NAME, {"id": "long", "day": "date"}, partition_by=("day",))
    first, second = story.file({"id": [1, 2]}, {"day": "2024-01-01"}), story.file({"id": [3]}, {"day": "2024-01-02"})
    updated = story.file({"id": [4]}, {"day": "2024-01-02"})
    story.holds(first).holds(first, second).holds(second).holds(updated)
    kinds = ["update_preimage", "update_postimage"]
    return story.recorded(story.file({"id": [3, 4], "_change_type": kinds}, {"day": "2024-01-02"}))


def open_orders(profile: Path) -> SharedTable:
    return open_shared(f"{profile}#{NAME}")


@pytest.mark.parametrize("delta", [False, True], ids=["parquet", "delta"])
def test_added_removed_and_recorded_files_give_the_rows_that_changed(
    delta: bool, profile: Path, orders: SharedStory
) -> None:
    orders.delta = delta
    rows = open_orders(profile).changes(1).collect().sort("_commit_version", "id")
    assert rows.select("id", "_change_type", "_commit_version").rows() == [
        (3, "insert", 1),
        (1, "delete", 2),
        (2, "delete", 2),
        (3, "update_preimage", 3),
        (4, "update_postimage", 3),
    ]
    assert str(rows["day"][0]) == "2024-01-02"
    assert rows["_commit_timestamp"][0] == datetime(2023, 11, 14, 22, 13, 20, 1_000, tzinfo=UTC)
    assert rows.columns == ["id", "day", "_change_type", "_commit_version", "_commit_timestamp"]


def test_a_range_ends_with_its_last_version(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    assert open_orders(profile).changes(0, 0).collect()["id"].to_list() == [1, 2]
    request = next(a for a in server.requests if a.path.endswith("/changes"))
    assert request.parameters == {"includeHistoricalMetadata": "true", "startingVersion": "0", "endingVersion": "0"}


def test_filters_spare_files_of_changes(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    rows = open_orders(profile).changes(0).filter(pl.col("_commit_version") == 1).collect()
    assert rows["id"].to_list() == [3]
    assert server.count("files/f1") == 0


def test_the_cost_of_changes_is_known_before(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    plan = open_orders(profile).changes_plan(0)
    assert plan.schema == CHANGES_PLAN
    assert plan.select("version", "change_type", "source").rows() == [
        (0, "insert", "feed"), (1, "insert", "feed"), (2, "delete", "feed"), (3, None, "feed"),
    ]  # fmt: skip
    assert server.count("files/") == 0


def test_rows_that_a_deletion_vector_deletes_are_deleted_rows(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=True, features=("deletionVectors",))
    whole = story.file({"id": [1, 2, 3]})
    masked = story.file({"id": [1, 2, 3]})
    masked.id, masked.deleted = whole.id, (1,)
    story.holds(whole).holds(masked)
    rows = open_orders(profile).changes(1).collect()
    assert rows.select("id", "_change_type").rows() == [(2, "delete")]


def test_tasks_of_changes_are_read_by_another_process(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=True, features=("deletionVectors",))
    file = story.file({"id": [1, 2, 3]})
    story.holds(file).holds(replace(file, deleted=(0, 2)))
    schema, tasks = pickle.loads(pickle.dumps(open_orders(profile).change_tasks(0)))
    profile.unlink()
    rows = [row for task, _ in tasks for batch in read_task(task) for row in batch.to_pylist()]
    assert schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in rows) == [
        (0, "insert", 1), (0, "insert", 2), (0, "insert", 3), (1, "delete", 1), (1, "delete", 3),
    ]  # fmt: skip


def test_changes_that_are_not_shared_are_refused_in_the_servers_words(profile: Path, orders: SharedStory) -> None:
    orders.feed = False
    with pytest.raises(SharingError, match="cdf is not enabled on table"):
        open_orders(profile).changes(0)


RANGES: dict[str, tuple[object, object, type[LakeviewError], str]] = {
    "from a version that is not there": (9, None, VersionNotFoundError, "has no version 9: it is at 3"),
    "before the first": (-1, None, VersionNotFoundError, "has no version -1"),
    "backwards": (2, 1, InvalidRequestError, "end before they start"),
    "between moments backwards": (
        datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC), InvalidRequestError, "end before",
    ),
    "from a naive moment": (datetime(2024, 1, 1), None, InvalidRequestError, "no time zone"),  # noqa: DTZ001 (refused)
}  # fmt: skip


@pytest.mark.parametrize(("start", "end", "error", "message"), RANGES.values(), ids=RANGES)
def test_a_range_may_not_be(
    start: int, end: int | None, error: type[LakeviewError], message: str, server: SharingServer, profile: Path,
    orders: SharedStory,
) -> None:  # fmt: skip
    table = open_orders(profile)
    with pytest.raises(error, match=message):
        table.changes(start, end)
    assert server.count("/changes") == 0


def lines(*schemas: tuple[int, dict[str, str]]) -> bytes:
    lines_found: list[dict[str, object]] = [{"protocol": {"minReaderVersion": 1}}]
    for version, columns in schemas:
        body = {"id": "t", "schemaString": schema_string(columns), "partitionColumns": [], "version": version}
        lines_found.append({"metaData": body})
    return "\n".join(json.dumps(line) for line in lines_found).encode()


def test_a_schema_that_grew_within_the_range_is_the_last_one(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    body = lines((0, {"id": "long"}), (2, {"id": "long", "note": "string"}))
    server.answer_with("/changes", 200, body, {"Delta-Table-Version": "0"})
    assert open_orders(profile).changes(0).collect_schema().names()[:2] == ["id", "note"]


def test_the_first_servers_do_not_say_where_changes_begin(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    server.answer_with("/changes", 200, lines((1, {"id": "long"})))
    assert open_orders(profile).changes(1).collect().is_empty()


def test_a_schema_that_cuts_the_range_in_two_is_refused(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    body = lines((0, {"id": "long", "note": "string"}), (2, {"id": "long"}))
    server.answer_with("/changes", 200, body, {"Delta-Table-Version": "0"})
    with pytest.raises(InvalidRequestError, match="after version 0 column note was dropped") as caught:
        open_orders(profile).changes(0)
    assert caught.value.kind == "incompatible-schema-change"


def test_a_mapping_within_the_range_says_which_columns_are_the_same() -> None:
    """The protocol is told of the first version only, and has no column mapping."""
    _, action = mapped("name", field("id", "long", 1))
    first = Metadata(schema_string=schema_string({"id": "long", "note": "string"}), partition_columns=[])
    head = read_head(Protocol(1, 2), first, "team.share#t", 64, of_log=True)
    with pytest.raises(InvalidRequestError, match="after version 0 column note was dropped"):
        change_scan(head, [(0, first), (1, msgspec.convert(action["metaData"], Metadata))], [], {}, 64)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_changes_are_read_across_an_end_of_column_mapping(tmp_path: Path, mode: str) -> None:
    """As of the log itself."""
    table = mapped_table(tmp_path, mode)
    first = table.append(rows_of(*range(6)))
    assert first is not None
    turn_off(table, "columnMapping")
    table.update({"a": "'new'"}, "id = 4")
    table.delete("id = 5")
    state, commits = table.state(first), list(table.log.commits(range(first, table.latest_version + 1)))
    head = read_head(state.protocol, state.metadata, table.address, 64, of_log=True)
    definitions = [(commit.version, commit.definition[1]) for commit in commits]
    schemas = [(first, state.metadata), *((version, later) for version, later in definitions if later is not None)]
    actions = [(commit.version, action) for commit in commits for action in commit.actions]
    times = {version: None for version, _ in definitions}
    rows = change_scan(head, schemas, actions, times, 64).rows(table.storage).collect().drop("_commit_timestamp")
    assert lines_of(rows, *rows.columns) == lines_of(table.changes(first).collect(), *rows.columns)
    assert {"a1", "a4", "new"} <= set(rows["a"])


def test_a_removed_file_without_a_size_has_that_of_its_add() -> None:
    actions = DeltaSingleAction(add=AddFile("u", 7, {})), DeltaSingleAction(remove=RemoveFile("v"))
    frame = read_file_lines([("file", FileLine("f", version=1, delta_single_action=action)) for action in actions])
    assert (frame.urls["f"].url, frame.urls["f"].size) == ("v", 7)


def test_a_changed_file_without_a_version_is_refused(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    body = lines((0, {"id": "long"})) + b'\n{"add":{"id":"f9","url":"u","size":1}}\n'
    server.answer_with("/changes", 200, body, {"Delta-Table-Version": "0"})
    with pytest.raises(SharingError, match="the changed file f9 has no version"):
        open_orders(profile).changes(0)


def changed(*versions: int) -> bytes:
    files = ({"add": {"id": f"f{v}", "url": "u", "size": 1, "version": v, "timestamp": v}} for v in versions)
    return b"".join(b"\n" + json.dumps(line).encode() for line in files)


def test_changes_after_the_range_are_left_out(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    body = lines((0, {"id": "long"}), (3, {"id": "long", "note": "string"})) + changed(1, 2, 3)
    server.answer_with("/changes", 200, body, {"Delta-Table-Version": "1"})
    server.answer_with("/changes", 200, body, {"Delta-Table-Version": "1"})
    table = open_orders(profile)
    assert table.changes_plan(1, 2)["version"].to_list() == [1, 2]
    assert "note" not in table.changes(1, 2).collect_schema().names()


@pytest.mark.parametrize("version", [0, -1])
def test_changes_before_the_range_are_refused(
    version: int, server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    server.answer_with("/changes", 200, lines((0, {"id": "long"})) + changed(version), {"Delta-Table-Version": "1"})
    with pytest.raises(SharingError, match=f"file f{version} is of version {version}, before the range"):
        open_orders(profile).changes(1, 2)
