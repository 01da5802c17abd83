"""A shared table to snapshots, listings and rows."""

from __future__ import annotations

import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import lakeview as lv
from lakeview.delta.sharing import AddCDCFile, RemoveFile, live_lifetimes
from lakeview.model.errors import (
    AccessDeniedError,
    CorruptTableError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    NotATableError,
    SharingError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.model.frames import ACTIONS, COMMITS, FILES, LIFETIMES
from lakeview.model.table import Table
from lakeview.rows.parquet import read_task
from lakeview.sharing.client.answers import Kind
from lakeview.sharing.client.file_lines import read_file_lines, read_version_files
from lakeview.sharing.client.opening import open_shared
from lakeview.sharing.client.portable_tasks import SignedRows
from lakeview.sharing.client.table import SharedTable
from lakeview.sharing.protocol.messages import DeltaSingleAction, FileLine
from lakeview.sharing.server.config_file import folder_settings
from tests.builders.mapped import field, physical, stored_field, struct
from tests.builders.shares import TOKEN, SharedStory, SharingServer

NAME = "sales.eu.orders"


def open_by_profile(profile: Path, name: str = NAME) -> SharedTable:
    return open_shared(f"{profile}#{name}")


@pytest.fixture
def orders(server: SharingServer) -> SharedStory:
    """Two days in three versions; the last file of the first day was replaced."""
    story = server.share(NAME, {"id": "long", "note": "string", "day": "date"}, partition_by=("day",))
    first = story.file({"id": [1, 2], "note": ["a", "b"]}, {"day": "2024-01-01"}, stats=bounds(1, 2))
    second = story.file({"id": [3, 4], "note": ["c", None]}, {"day": "2024-01-02"}, stats=bounds(3, 4))
    third = story.file({"id": [5], "note": ["e"]}, {"day": None}, stats=bounds(5, 5))
    return story.holds(first).holds(first, second).holds(second, third)


def bounds(low: int, high: int) -> dict[str, object]:
    return {"minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}


def test_a_profile_finds_the_tables_of_its_server_which_are_not_shared_on(server: SharingServer, profile: Path) -> None:
    for name in ("a.x.t", "b.y.u"):
        server.share(name, {"id": "long"})
    names = ("a.x.t", "b.y.u")
    assert lv.find_tables(profile).rows() == [(f"{profile}#{name}", "sharing", name) for name in names]
    with pytest.raises(InvalidRequestError, match="no table below"):
        folder_settings(str(profile))


def test_it_is_a_table_whose_snapshot_knows_its_schema_without_its_files(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    assert isinstance(table, Table)
    assert table.format == "sharing"
    assert table.latest_version == 2
    snapshot = table.snapshot()
    assert (snapshot.version, snapshot.name, snapshot.timestamp) == (2, "orders", None)
    assert snapshot.schema.names == ["id", "note", "day"]
    assert snapshot.partition_columns == ["day"]
    assert snapshot.protocol.min_reader_version == 1
    assert snapshot.location == f"{profile}#{NAME}"
    assert server.count("POST") == 0
    assert (snapshot.num_files, snapshot.num_records) == (2, 3)
    assert server.count("POST") == 1


def test_files_are_named_by_their_ids_and_no_url_is_shown(profile: Path, orders: SharedStory) -> None:
    files = open_by_profile(profile).files()
    assert files["path"].to_list() == ["f2", "f3"]
    assert files["partition_text"].to_list() == ["day=2024-01-02", "day=null"]
    assert files["partition"].struct.field("day").to_list() == [date(2024, 1, 2), None]
    assert files["records"].to_list() == [2, 1]
    assert files["modified"].to_list() == [None, None]
    assert set(FILES.names()) <= set(files.columns)
    assert "http" not in str(files.to_dicts())


def test_rows_are_read_over_the_signed_urls_and_kept_by_id(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    expected = pl.DataFrame(
        {"id": [3, 4, 5], "note": ["c", None, "e"], "day": [date(2024, 1, 2), date(2024, 1, 2), None]}
    )
    assert_frame_equal(table.scan().collect(), expected)
    file_reads = server.count("files/")
    assert_frame_equal(table.scan().collect(), expected)
    assert server.count("files/") == file_reads
    assert {a.headers["range"][:6] for a in server.requests if a.path.startswith("/files/")} == {"bytes="}
    assert not any("authorization" in a.headers for a in server.requests if a.path.startswith("/files/"))


def test_a_filter_goes_to_the_server_as_hints_and_holds_here(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    rows = table.scan().filter(pl.col("day") == date(2024, 1, 2), pl.col("id") >= 4).collect()
    assert rows["id"].to_list() == [4]
    body = next(a for a in server.requests if a.method == "POST").body
    assert sorted(body["predicateHints"]) == ["day = '2024-01-02'", "id >= 4"]
    assert '"op":"greaterThanOrEqual"' in body["jsonPredicateHints"]
    # the server ignored the hints and sent both files: one was spared here
    assert server.count("files/f3") == 0


def test_a_preview_asks_for_as_many_rows_as_it_shows(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    assert open_by_profile(profile).scan().head(1).collect().height == 1
    assert [a.body for a in server.requests if a.method == "POST"] == [{"limitHint": 1}]
    assert server.count("files/f3") == 0


def test_a_limit_behind_a_filter_is_no_hint(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    open_by_profile(profile).scan().filter(pl.col("note") == "e").head(1).collect()
    assert not any("limitHint" in a.body for a in server.requests)


def test_statistics_and_plans_come_from_the_lines(profile: Path, orders: SharedStory) -> None:
    table = open_by_profile(profile)
    statistics = table.statistics(columns=["id"])
    assert statistics["_path"].to_list() == ["f2", "f3"]
    assert statistics["id"].struct.field("min").to_list() == [3, 5]
    plan = table.plan("id > 4 AND day IS NULL")
    assert dict(plan.select("path", "reason").iter_rows()) == {"f2": "partition", "f3": "kept"}


def test_a_file_is_looked_into_over_its_signed_url(profile: Path, orders: SharedStory) -> None:
    table = open_by_profile(profile)
    path, records = table.files(columns=["path", "records"]).row(0)
    assert table.physical(path).records == records


def test_an_earlier_version_is_asked_for_by_its_number(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    assert table.snapshot(0).num_records == 2
    assert table.scan(1).collect()["id"].to_list() == [1, 2, 3, 4]
    assert {a.body["version"] for a in server.requests if a.method == "POST"} == {0, 1}
    assert table.snapshot(at=datetime(2024, 1, 1, 0, 1, tzinfo=UTC)).version == 1
    assert table.snapshot(at=datetime(2024, 1, 1, 0, 9, tzinfo=UTC)).version == 2, "after the latest"


def test_without_history_only_the_latest_version_is_readable(profile: Path, orders: SharedStory) -> None:
    orders.history = False
    table = open_by_profile(profile)
    versions = table.versions()
    assert versions["version"].to_list() == [2, 1, 0]
    assert versions["readable"].to_list() == [True, False, False]
    assert "history sharing is not enabled" in versions["reason"][1]
    with pytest.raises(VersionNotFoundError, match=r"not given as it was at version 1: .*history sharing"):
        table.snapshot(1)
    claims = [f.claim for f in table.check()]
    assert claims == ["Its history is not shared", "Its log is not shared"]


def test_with_history_every_version_is_readable(profile: Path, orders: SharedStory) -> None:
    table = open_by_profile(profile)
    assert table.versions()["readable"].to_list() == [True, True, True]
    assert [f.claim for f in table.check()] == ["Its log is not shared"]


def test_what_the_protocol_does_not_tell_is_not_told(profile: Path, orders: SharedStory) -> None:
    table = open_by_profile(profile)
    assert table.history().schema == COMMITS
    assert table.history().is_empty()
    assert table.commit(1).schema == ACTIONS
    assert table.refs().is_empty()
    lives = table.lifetimes()
    assert lives.schema == LIFETIMES
    assert lives.select("added", "removed").null_count().row(0) == (2, 2)
    assert table.schemas()["version"].to_list() == [2]
    assert table.snapshot().tombstones.is_empty()
    assert table.snapshot().transactions.is_empty()


def test_lifetimes_have_statistics_of_columns_whose_names_are_patterns_to_polars() -> None:
    file = {"path": ["a"], "deletion_vector": [None], "size": [1], "records": [1], "deleted_records": [0]}
    statistics = pl.DataFrame({"_path": ["a"], "_deletion_vector": [None], "^x$": [1], "x": [2]})
    files = pl.DataFrame(file, schema_overrides={"deletion_vector": pl.String})
    lives = live_lifetimes(files, statistics.cast({"_deletion_vector": pl.String}))
    assert lives["statistics"].to_list() == [{"^x$": 1, "x": 2}]


def test_a_version_that_is_not_there_is_told_without_asking(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    requests_before = len(server.requests)
    with pytest.raises(VersionNotFoundError, match="has no version 3: it is at 2"):
        table.scan(3)
    with pytest.raises(VersionNotFoundError, match="there is no branch or tag audit"):
        table.snapshot(ref="audit")
    with pytest.raises(InvalidRequestError, match="no time zone"):
        table.snapshot(at=datetime(2024, 1, 1))  # noqa: DTZ001 (a naive moment is what is refused)
    assert len(server.requests) == requests_before


def test_refreshing_costs_one_request_and_files_are_listed_again_only_after_a_change(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    table.snapshot().files  # noqa: B018 (loads them)
    before = len(server.requests)
    assert table.refresh() is False
    assert [str(a) for a in server.requests[before:]] == ["GET /sharing/shares/sales/schemas/eu/tables/orders/version"]
    table.snapshot().files  # noqa: B018 (they are there)
    assert len(server.requests) == before + 1
    orders.holds(orders.file({"id": [9], "note": ["z"]}, {"day": None}))
    assert table.refresh() is True
    assert table.snapshot().num_records == 1


def test_a_table_that_was_recreated_with_fewer_versions_is_read_anew(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    table = open_by_profile(profile)
    assert table.snapshot(0).schema.names == ["id", "note", "day"]
    server.share(NAME, {"other": "long"}).holds()
    assert table.refresh() is True
    assert table.snapshot().schema.names == ["other"]


@pytest.mark.parametrize("history", [True, False])
def test_a_table_that_moves_on_while_it_is_looked_at(
    history: bool, profile: Path, server: SharingServer, orders: SharedStory
) -> None:
    orders.history = history
    table = open_by_profile(profile)
    snapshot = table.snapshot()
    orders.holds(orders.file({"id": [9], "note": ["z"]}, {"day": None}))
    if history:
        assert snapshot.num_records == 3
    else:
        with pytest.raises(VersionNotFoundError, match="is at version 3 by now, and version 2 is not given"):
            snapshot.files  # noqa: B018 (loads them)


@pytest.mark.parametrize("tokens", [True, False])
def test_urls_that_were_withdrawn_are_asked_for_again(
    tokens: bool, server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    server.end_stream = server.refresh_tokens = tokens
    table = open_by_profile(profile)
    table.snapshot().files  # noqa: B018 (loads them)
    server.signature = 2
    assert table.scan().collect().height == 3
    last = [a.body for a in server.requests if a.method == "POST"][-1]
    assert ("refreshToken" in last) is tokens


def test_urls_near_their_end_are_asked_for_before_they_are_used(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    server.lifetime = 1_000_000_030_000
    clock = lambda: datetime.fromtimestamp(1_000_000_000, UTC)  # noqa: E731 (a clock that stands)
    table = open_shared(f"{profile}#{NAME}", clock=clock)
    table.snapshot().files  # noqa: B018 (loads them)
    assert server.count("POST") == 1
    assert table.scan().collect().height == 3
    assert server.count("POST") == 2, "once, and not before every read"


def test_a_store_that_goes_on_refusing_is_told_without_its_url(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    server.answer_with("files/f2", 403, b"<Error/>", times=9)
    with pytest.raises(AccessDeniedError, match=r"the store refuses file f2 \(403\)") as caught:
        open_by_profile(profile).scan().collect()
    assert "sig=" not in f"{caught.value} {caught.value.place}"


FILE_FAULTS = {
    "a file that is gone": (404, {}, DataFileMissingError, "^file f2 is in the server's list but not in its store"),
    "a file that is shorter than listed": (
        206,
        {"Content-Range": "bytes 0-2/3"},
        CorruptTableError,
        "holds 3 bytes in its store, .* by the server's list",
    ),
    "a store that moves a file about without end": (302, {"Location": "/files/f2"}, SharingError, "moved about"),
    "a store that leads to a local file": (302, {"Location": "file:///etc/passwd"}, SharingError, "no http or https"),
    "a store that leads to plain http elsewhere": (
        302,
        {"Location": "http://example.com/"},
        SharingError,
        "plain http",
    ),
    "a store that never is ready": (503, {"Retry-After": "100000"}, LakeviewError, "cannot answer for file f2 now"),
}


@pytest.mark.parametrize(("status", "headers", "error", "message"), FILE_FAULTS.values(), ids=FILE_FAULTS)
def test_a_data_file_that_cannot_be_had(
    status: int,
    headers: dict[str, str],
    error: type[LakeviewError],
    message: str,
    server: SharingServer,
    profile: Path,
    orders: SharedStory,
) -> None:
    server.answer_with("files/f2", status, b"PAR", headers, times=9)
    with pytest.raises(error, match=message):
        open_by_profile(profile).scan().collect()


def test_a_deletion_vector_and_a_footer_that_are_gone(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=True, features=("deletionVectors",))
    story.holds(story.file({"id": [1, 2]}, deleted=[0]))
    server.answer_with(r"files/f1\.bin", 404)
    with pytest.raises(DataFileMissingError, match=r"^file /deletion-vectors/f1\.bin is in the server's list"):
        open_by_profile(profile).scan().collect()
    server.answer_with("files/f1", 410)
    with pytest.raises(DataFileMissingError, match=r"^file f1 is in the server's list"):
        open_by_profile(profile).physical("f1")


def test_a_store_without_ranges_sends_small_files_whole_and_once(server: SharingServer, profile: Path) -> None:
    server.ranges = False
    story = server.share(NAME, {"a": "long"})
    file = story.file({"a": random.Random(1).choices(range(2**40), k=400_000)})
    story.holds(file)
    assert len(file.data) > 2 << 20
    assert open_by_profile(profile).scan().collect().height == 400_000
    assert server.count("files/f1") == 1


def test_deletion_vectors_and_column_mapping_of_the_delta_format(server: SharingServer, profile: Path) -> None:

    schema = json.dumps(struct(field("id", "long", 1), field("day", "date", 2)))
    story = server.share(
        NAME, {}, schema=schema, partition_by=("day",), delta=True, features=("columnMapping", "deletionVectors"),
        properties={"delta.columnMapping.mode": "name"},
    )  # fmt: skip
    rows = pa.table([[1, 2, 3]], schema=pa.schema([stored_field(pa.int64(), 1)]))
    one = {"numRecords": 3, "minValues": {physical(1): 1}, "maxValues": {physical(1): 3}}
    story.holds(story.file(rows, {physical(2): "2024-01-01"}, stats=one, deleted=(0, 2)))
    table = open_by_profile(profile)
    assert table.scan().collect().to_dicts() == [{"id": 2, "day": date(2024, 1, 1)}]
    assert table.snapshot().num_records == 1
    files = table.files()
    assert files["deleted_records"].to_list() == [2]
    assert files["deletion_vector"].to_list() == ["p/deletion-vectors/f1.bin@1"]
    assert files["modified"].null_count() == 0
    assert table.snapshot().protocol.features == ("columnMapping", "deletionVectors")
    assert table.plan("id > 5")["kept"].to_list() == [False]
    assert "readerfeatures=" in server.requests[0].headers["delta-sharing-capabilities"]


def test_a_feature_that_is_not_implemented_is_named(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=True, features=("timeMachine",))
    story.holds()
    with pytest.raises(UnsupportedTableError, match="needs the Delta reader feature timeMachine"):
        open_by_profile(profile)


def test_types_and_empty_partition_values(server: SharingServer, profile: Path) -> None:
    columns = {"n": "integer", "at": "timestamp", "flag": "boolean", "price": "decimal(5,2)", "plain": "timestamp_ntz"}
    story = server.share(NAME, {**columns, "x": "long"}, partition_by=tuple(columns))
    values = {"n": "7", "at": "2024-01-02 03:04:05", "flag": "true", "price": "1.50", "plain": "2024-01-02 03:04:05"}
    story.holds(story.file({"x": [1]}, values), story.file({"x": [2]}, dict.fromkeys(columns)))
    rows = open_by_profile(profile).scan().collect().sort("x")
    assert rows["at"].to_list() == [datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), None]
    assert rows["n"].to_list() == [7, None]
    assert rows["flag"].to_list() == [True, None]
    assert str(rows["price"][0]) == "1.50"
    assert rows["plain"][0] == datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001 (a time without a zone)


def test_files_without_statistics_have_unknown_counts(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"})
    story.holds(story.file({"id": [1]}, stats=False))
    snapshot = open_by_profile(profile).snapshot()
    assert (snapshot.num_files, snapshot.num_records) == (1, None)


OTHER_DEFINITIONS = {
    "another table": {"id": "another"},
    "other partition columns": {"partitionColumns": []},
    "another schema": {"schemaString": '{"type":"struct","fields":[]}'},
}


@pytest.mark.parametrize("change", OTHER_DEFINITIONS.values(), ids=OTHER_DEFINITIONS)
def test_a_version_with_two_definitions_is_refused(
    change: dict[str, object], server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    head = [dict(line) for line in server.head(orders)]
    head[1]["metaData"] = {**head[1]["metaData"], **change}
    body = b"".join(json.dumps(line).encode() + b"\n" for line in head)
    server.answer_with("POST", 200, body, {"Delta-Table-Version": "2"})
    with pytest.raises(SharingError, match="two definitions for version 2"):
        open_by_profile(profile).scan().collect()


def test_a_version_whose_query_needs_another_protocol_is_refused(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=True).holds()
    table = open_by_profile(profile)
    story.features = ("a feature of tomorrow",)
    with pytest.raises(SharingError, match="two definitions for version 0"):
        table.files()


def test_an_empty_table_has_no_rows(server: SharingServer, profile: Path) -> None:
    server.share(NAME, {"id": "long"}).holds()
    table = open_by_profile(profile)
    assert table.scan().collect().height == 0
    assert table.snapshot().num_records == 0


def test_large_files_are_read_in_parts(server: SharingServer, profile: Path) -> None:
    numbers = random.Random(1).choices(range(2**40), k=400_000)
    story = server.share(NAME, {"a": "long", "b": "long"})
    file = story.file({"a": list(range(400_000)), "b": numbers})
    story.holds(file)
    assert len(file.data) > 4 << 20
    table = open_by_profile(profile)
    assert table.scan().select(pl.col("b").sum()).collect().item() == sum(numbers)
    assert 1 < server.count("files/f1") < 12
    ranges = [a.headers["range"] for a in server.requests if a.path.startswith("/files/")]
    assert len(ranges) == len(set(ranges))


def test_a_snapshot_travels_with_its_frames_and_without_any_secret(profile: Path, orders: SharedStory) -> None:
    table = open_by_profile(profile)
    data = pickle.dumps(table.snapshot())
    assert TOKEN.encode() not in data
    assert b"sig=" not in data
    assert pickle.loads(data).num_records == 3
    assert TOKEN not in f"{table!r} {table.client!r} {table.profile!r} {table._repr_html_()}"
    with pytest.raises((LakeviewError, TypeError)):
        pickle.dumps(table)


def test_a_table_that_is_not_shared_is_told_in_the_servers_words(profile: Path, orders: SharedStory) -> None:
    with pytest.raises(NotATableError, match=r"the server has no table sales.eu.none: .*does not exist"):
        open_by_profile(profile, "sales.eu.none")


def test_it_cannot_be_written(profile: Path, orders: SharedStory) -> None:
    with pytest.raises(UnsupportedTableError, match="shared to be read"):
        open_by_profile(profile).transaction()


def test_tasks_are_read_by_another_process_without_profile_or_token(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    tasks = open_by_profile(profile).tasks(columns=["day", "id"], where="id >= 4")
    profile.unlink()
    data = pickle.dumps(tasks)
    assert TOKEN.encode() not in data
    rows = [row for task in pickle.loads(data) for batch in read_task(task) for row in batch.to_pylist()]
    assert rows == [
        {"day": date(2024, 1, 2), "id": 3}, {"day": date(2024, 1, 2), "id": 4}, {"day": None, "id": 5},
    ]  # fmt: skip
    server.signature = 2
    with pytest.raises(AccessDeniedError, match=r"signed URLs of .* have expired"):
        list(read_task(pickle.loads(data)[0]))
    with pytest.raises(InvalidRequestError, match="no column none"):
        opened_again(server, profile).tasks(columns=["none"])


def test_tasks_of_a_server_elsewhere_do_not_lead_to_this_machine(
    server: SharingServer, profile: Path, orders: SharedStory
) -> None:
    tasks = open_by_profile(profile).tasks()
    rows_source = tasks[0].source
    assert isinstance(rows_source, SignedRows)
    task = replace(tasks[0], source=replace(rows_source, server="https://share.example.com"))
    with pytest.raises(SharingError, match="leads to this machine, and the server is another one"):
        list(read_task(pickle.loads(pickle.dumps(task))))
    assert rows_source.server == server.profile()["endpoint"]


def opened_again(server: SharingServer, profile: Path) -> SharedTable:
    profile.write_text(json.dumps(server.profile()))
    return open_by_profile(profile)


def test_tasks_leave_out_what_a_deletion_vector_deletes(server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=True, features=("deletionVectors",))
    story.holds(story.file({"id": [1, 2, 3]}, deleted=(1,)))
    tasks = pickle.loads(pickle.dumps(open_by_profile(profile).tasks()))
    assert [v for task in tasks for batch in read_task(task) for v in batch.column("id").to_pylist()] == [1, 3]


@pytest.mark.parametrize("delta", [False, True], ids=["parquet", "delta"])
@pytest.mark.parametrize("name", ["a%20b", "../up", "s3://x//y", "with space", "ü%", "/deletion-vectors/f1"])
def test_an_id_may_be_any_text(name: str, delta: bool, server: SharingServer, profile: Path) -> None:
    story = server.share(NAME, {"id": "long"}, delta=delta, features=("deletionVectors",))
    file = story.file({"id": [1, 2]}, deleted=(0,) if delta else ())
    story.holds(file)
    table = open_by_profile(profile)
    rows = table.scan().collect()["id"].to_list()
    file.id = name
    again = open_by_profile(profile)
    assert again.files()["path"].to_list() == [name]
    assert again.scan().collect()["id"].to_list() == rows


@pytest.mark.parametrize("kind", ["file", "cdf"])
def test_a_file_that_is_listed_twice_is_refused(kind: Kind) -> None:
    line = FileLine("f1", "https://store/f1", size=1)
    with pytest.raises(SharingError, match="file f1 is listed twice"):
        read_file_lines([(kind, line), (kind, line)])


@pytest.mark.parametrize(
    "action", [DeltaSingleAction(remove=RemoveFile("u")), DeltaSingleAction(cdc=AddCDCFile("u", {}, 1))]
)
def test_a_version_lists_files_that_were_added_and_no_others(action: DeltaSingleAction) -> None:
    with pytest.raises(SharingError, match="listed as removed, or as a file of changes"):
        read_version_files([("file", FileLine("f1", delta_single_action=action))])


def test_several_threads_read_one_table(server: SharingServer, profile: Path, orders: SharedStory) -> None:
    table = open_by_profile(profile)
    with ThreadPoolExecutor(8) as pool:
        sums = list(pool.map(lambda version: table.scan(version % 3).collect()["id"].sum(), range(24)))
    assert sums == [3, 10, 12] * 8
