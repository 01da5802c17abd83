"""Changes and streams: what commits did, line by line, and what is refused before the first of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.actions import info, metadata, protocol, remove
from tests.builders.feeds import FED, feed, ids_file, move, with_vectors
from tests.builders.history import START, STEP, DeltaHistory
from tests.builders.mapped import field as mapped_field
from tests.builders.mapped import mapped
from tests.builders.vectors import deleting
from tests.server.conftest import Api, lines
from tests.server.shared_lake import TABLE
from tests.server.test_queries import share

FORMATS = {"delta-sharing-capabilities": "responseformat=delta;readerfeatures=deletionvectors"}
ChangeLines = list[tuple[str, int, str]]


def changed(api: Api, table: str, headers: dict[str, str] | None = None, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(TABLE.format(table) + "/changes", headers=headers, **query)
    assert answer.status_code == 200, answer.text
    return lines(answer)


def kinds_and_files(lines: list[dict[str, Any]]) -> ChangeLines:
    """(kind, version, file's name) of the lines behind the head."""
    result: ChangeLines = []
    for line in lines[2:]:
        ((kind, body),) = line.items()
        if kind in ("add", "remove", "cdf"):
            result.append((kind, body["version"], body["url"].partition("?")[0].rpartition("/")[2]))
        elif kind == "metaData":
            result.append((kind, body["version"], ""))
    return result


def test_change_files_take_the_place_of_their_commits_files(api: Api) -> None:
    changes = changed(api, "fed", startingVersion=0)
    assert kinds_and_files(changes) == [("add", 1, "a.parquet"), ("add", 2, "b.parquet"), ("cdf", 3, "cdc-1.parquet")]
    first = changes[2]["add"]
    assert first["timestamp"] == int((START + STEP).timestamp() * 1000)
    assert {"url", "id", "partitionValues", "size", "version", "timestamp", "expirationTimestamp"} <= first.keys()


def test_both_ends_are_included_and_the_start_is_told(api: Api) -> None:
    answer = api.get(TABLE.format("fed") + "/changes", startingVersion=2, endingVersion=3)
    assert answer.headers["delta-table-version"] == "2"
    assert [version for _, version, _ in kinds_and_files(lines(answer))] == [2, 3]


def test_moments_stand_for_the_commits_between_them(api: Api) -> None:
    def moment(steps: float) -> str:
        return (START + STEP * steps).isoformat().replace("+00:00", "Z")

    changes = changed(api, "fed", startingTimestamp=moment(0.5), endingTimestamp=moment(2.5))
    assert [version for _, version, _ in kinds_and_files(changes)] == [1, 2]
    assert kinds_and_files(changed(api, "fed", startingTimestamp=moment(0))) == kinds_and_files(
        changed(api, "fed", startingVersion=0)
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "exactly one of startingVersion and startingTimestamp"),
        ({"startingVersion": 0, "startingTimestamp": "2026-01-01T00:00:00Z"}, "exactly one of startingVersion"),
        ({"startingVersion": 0, "endingVersion": 1, "endingTimestamp": "2027-01-01T00:00:00Z"}, "at most one of"),
        ({"startingVersion": "x"}, "Not a numeric value"),
        ({"startingVersion": -1}, "startingVersion must not be negative"),
        ({"startingVersion": 9}, "is after the latest available version"),
        ({"startingVersion": 0, "endingVersion": 9}, "endingVersion 9 is after the latest available version 4"),
        ({"startingVersion": 3, "endingVersion": 1}, "the start version 3 is after the end version 1"),
        ({"startingTimestamp": "2040-01-01T00:00:00Z"}, "Please use a timestamp less than or equal to"),
        ({"startingTimestamp": "2000-01-01T00:00:00Z"}, "Please use a timestamp greater than or equal to"),
        ({"startingVersion": 0, "endingTimestamp": "2040-01-01T00:00:00Z"}, "Please use a timestamp less"),
        ({"startingTimestamp": "x"}, "Invalid startingTimestamp: 'x' is not in ISO 8601"),
        ({"startingVersion": 0, "maxFiles": 0}, "maxFiles must be positive"),
        ({"startingVersion": 0, "pageToken": "x"}, "Error decoding the page token"),
        (
            {"startingVersion": 0, "includeHistoricalMetadata": "x"},
            "includeHistoricalMetadata is neither true nor false",
        ),
    ],
    ids=repr,
)
def test_a_range_that_cannot_be_meant_is_refused(api: Api, query: dict[str, Any], message: str) -> None:
    answer = api.get(TABLE.format("fed") + "/changes", **query)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
    assert message in answer.json()["message"]


def test_a_table_without_a_feed_names_the_version(api: Api) -> None:
    answer = api.get(TABLE.format("months") + "/changes", startingVersion=0, endingVersion=1)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
    assert answer.json()["message"] == (
        "Error getting change data for range [0, 1] as change data was not recorded for version [0]"
    )


@pytest.mark.parametrize("query", [{"startingVersion": 0}, {"startingTimestamp": "x"}, {}], ids=repr)
@pytest.mark.parametrize("table", ["vectors", "some"])
def test_changes_of_a_table_without_shared_history_are_refused_before_parameters_are_read(
    api: Api, table: str, query: dict[str, Any]
) -> None:
    answer = api.get(TABLE.format(table) + "/changes", **query)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
    assert answer.json()["message"] == f"cdf is not enabled on table lake.default.{table}"


def test_a_timestamp_before_the_first_shared_version_is_refused(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "later"))
    history.commit(ids_file(history, "a.parquet", 1)).commit(ids_file(history, "b.parquet", 2))
    share(api, tmp_path, "later", startVersion=2)
    since = (START + STEP).isoformat().replace("+00:00", "Z")
    answer = api.get(TABLE.format("later") + "/changes", startingTimestamp=since)
    assert (answer.status_code, "Please use a timestamp greater" in answer.json()["message"]) == (400, True)
    assert kinds_and_files(changed(api, "later", startingVersion=2)) == [("add", 2, "b.parquet")]


@pytest.mark.parametrize(
    ("parameters", "kinds"),
    [
        ({}, ["add", "protocol", "metaData", "add"]),
        ({"includeHistoricalProtocol": False}, ["add", "metaData", "add"]),
        ({"includeHistoricalMetadata": False}, ["add", "protocol", "add"]),
        ({"include_historical_metadata": "false", "include_historical_protocol": False}, ["add", "add"]),
    ],
    ids=repr,
)
def test_a_stream_leaves_out_historical_actions_that_are_not_wanted(
    api: Api, tmp_path: Path, parameters: dict[str, Any], kinds: list[str]
) -> None:
    history = DeltaHistory(tmp_path / "raised").create({"id": "long"})
    history.commit(ids_file(history, "a.parquet", 1))
    history.commit(protocol(2, 5), metadata({"id": "long", "more": "long"}))
    history.commit(ids_file(history, "b.parquet", 2))
    share(api, tmp_path, "raised")
    lines = api.query("raised", FORMATS, startingVersion=1, **parameters)
    kinds_found = [next(iter(line)) if "file" not in line else "add" for line in lines[2:]]
    assert kinds_found == kinds


def test_a_version_that_recorded_no_changes_is_named(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "off"))
    history.commit(ids_file(history, "a.parquet", 1))
    history.commit(metadata({"id": "long"}, properties={}))
    history.commit(metadata({"id": "long"}, properties=dict(FED)))
    share(api, tmp_path, "off")
    answer = api.get(TABLE.format("off") + "/changes", startingVersion=0)
    assert answer.json()["message"] == (
        "Error getting change data for range [0, 3] as change data was not recorded for version [2]"
    )
    assert kinds_and_files(changed(api, "off", startingVersion=3)) == []


def test_a_merge_that_changed_nothing_gives_nothing(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "merged"))
    history.commit(ids_file(history, "a.parquet", 1))
    nothing = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
    history.commit(
        info(operation="MERGE", operationMetrics=nothing),
        remove("a.parquet", partitionValues={}),
        ids_file(history, "b.parquet", 1),
    )
    share(api, tmp_path, "merged")
    assert kinds_and_files(changed(api, "merged", startingVersion=0)) == [("add", 1, "a.parquet")]


def test_later_metadata_is_told_where_it_is_asked_for(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "wider"))
    history.commit(ids_file(history, "a.parquet", 1))
    history.commit(metadata({"id": "long", "more": "long"}, properties=dict(FED)))
    history.commit(ids_file(history, "b.parquet", 2))
    share(api, tmp_path, "wider")
    plain = changed(api, "wider", startingVersion=1)
    assert kinds_and_files(plain) == [("add", 1, "a.parquet"), ("add", 3, "b.parquet")]
    assert "more" in plain[1]["metaData"]["schemaString"]
    changes = changed(api, "wider", startingVersion=1, includeHistoricalMetadata="True")
    assert kinds_and_files(changes) == [("add", 1, "a.parquet"), ("metaData", 2, ""), ("add", 3, "b.parquet")]
    assert changes[1]["metaData"]["version"] == 1
    assert "more" not in changes[1]["metaData"]["schemaString"]


def test_changes_come_in_pages(api: Api) -> None:
    whole = kinds_and_files(changed(api, "fed", startingVersion=0))
    changes: ChangeLines = []
    token: dict[str, Any] = {}
    for _ in range(3):
        page = changed(api, "fed", startingVersion=0, maxFiles=1, **token)
        end = page.pop()["endStreamAction"]
        changes += kinds_and_files(page)
        token = {"pageToken": end["nextPageToken"]} if "nextPageToken" in end else {}
    assert (changes, token) == (whole, {})
    stranger = api.get(TABLE.format("fed") + "/changes", startingVersion=1, maxFiles=1, pageToken="x")
    assert stranger.status_code == 400


def test_a_stream_gives_adds_and_removes_and_omits_compactions(api: Api) -> None:
    changes = kinds_and_files(api.query("fed", startingVersion=0))
    assert changes == [
        ("add", 1, "a.parquet"), ("add", 2, "b.parquet"), ("remove", 3, "a.parquet"), ("add", 3, "c.parquet"),
    ]  # fmt: skip
    assert kinds_and_files(api.query("fed", startingVersion=2, endingVersion=2)) == [("add", 2, "b.parquet")]
    whole = api.query("fed", startingVersion=2)
    assert api.query("fed", startingVersion=2, endingVersion=99) == whole, "the end is a hint"


def test_a_streams_start_tells_its_metadata_once_and_later_ones_in_place(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "evolves").create({"id": "long"})
    history.commit(ids_file(history, "a.parquet", 1))
    history.commit(metadata({"id": "long", "more": "long"}))
    share(api, tmp_path, "evolves")
    assert kinds_and_files(api.query("evolves", startingVersion=0)) == [("add", 1, "a.parquet"), ("metaData", 2, "")]
    assert kinds_and_files(api.query("evolves", startingVersion=2)) == []


def test_a_protocol_that_rises_on_the_way_is_too_new(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "rises").create({"id": "long"})
    history.commit(ids_file(history, "a.parquet", 1))
    history.commit(protocol(2, 5))
    share(api, tmp_path, "rises")
    assert "is too new" in api.refused("rises", startingVersion=0)[2]


def test_removes_without_partition_values_and_sizes_get_those_of_their_adds(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "bare")
    history.commit(protocol(), metadata({"id": "long", "month": "integer"}, partition_by=("month",)))
    added = history.data("a.parquet", {"id": [1]}, partition={"month": "4"})
    history.commit(added)
    history.commit(remove("a.parquet"))
    share(api, tmp_path, "bare")
    (line,) = api.query("bare", startingVersion=2)[2:]
    assert line["remove"]["partitionValues"] == {"month": "4"}
    assert line["remove"]["size"] == added["add"]["size"]


def test_vectors_travel_in_delta_format(api: Api, tmp_path: Path) -> None:
    history = with_vectors(DeltaHistory(tmp_path / "masked"))
    history.commit(*move(None, deleting(1)))
    share(api, tmp_path, "masked")
    changes = changed(api, "masked", FORMATS, startingVersion=1)
    actions = [line["file"]["deltaSingleAction"] for line in changes[2:]]
    assert [next(iter(a)) for a in actions] == ["add", "add", "remove"]
    assert actions[1]["add"]["deletionVector"]["storageType"] == "i"
    assert {line["file"]["version"] for line in changes[2:]} == {1, 2}
    assert changes[1]["metaData"]["version"] == 2
    assert api.get(TABLE.format("masked") + "/changes", startingVersion=1).status_code == 400


def test_a_commit_that_is_gone_refuses_the_range(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "gone"))
    for i in range(3):
        history.commit(ids_file(history, f"{i}.parquet", i))
    history.checkpoint(2).without(0, 1)
    share(api, tmp_path, "gone")
    answer = api.get(TABLE.format("gone") + "/changes", startingVersion=1)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")


def test_a_vector_that_lives_only_inside_the_range_is_never_given_without_its_mask(api: Api, tmp_path: Path) -> None:
    history = with_vectors(DeltaHistory(tmp_path / "brief"))
    history.commit(*move(None, deleting(1)))
    packed = ids_file(history, "g", 0, 2, 3, 4, data_change=False)
    history.commit(remove("f", data_change=False, deletionVector=deleting(1)), packed)
    share(api, tmp_path, "brief")
    path = TABLE.format("brief") + "/changes"
    assert api.get(path, startingVersion=3).status_code == 200  # neither end has a vector
    refused = api.get(path, startingVersion=1)
    assert (refused.status_code, refused.json()["errorCode"]) == (400, "UNSUPPORTED_OPERATION")
    assert "the table uses deletionvectors, which needs responseformat=delta" in refused.json()["message"]
    assert "deletionvectors" in api.refused("brief", startingVersion=1)[2]
    changes = changed(api, "brief", FORMATS, startingVersion=1)
    assert [next(iter(line["file"]["deltaSingleAction"])) for line in changes[2:]] == ["add", "add", "remove"]
    both = {"delta-sharing-capabilities": "responseformat=delta,parquet;readerfeatures=deletionvectors"}
    answer = api.get(path, startingVersion=1, headers=both)
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=delta"
    assert "responseformat=parquet" in api.get(path, startingVersion=3, headers=both).headers.values()


def test_a_mapping_that_lives_only_inside_the_range_needs_a_client_that_knows_it(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "mapped_once"))
    history.commit(ids_file(history, "a", 1))
    up, mapping = mapped("name", mapped_field("id", "long", 1))
    mapping["metaData"]["configuration"].update(FED)
    history.commit(up, mapping)
    history.commit(history.data("b", {"col-1": [2]}))
    history.commit(metadata({"id": "long"}, properties=dict(FED)))
    share(api, tmp_path, "mapped_once")
    path = TABLE.format("mapped_once") + "/changes"
    assert api.get(path, startingVersion=4).status_code == 200
    answer = api.get(path, startingVersion=1)
    assert "the table uses columnmapping" in answer.json()["message"]


def test_a_vector_that_the_protocol_denies_is_refused_by_name(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "denied"))
    history.commit(ids_file(history, "f", 0, 1, 2, deletionVector=deleting(1)))
    share(api, tmp_path, "denied")
    for answer in (
        api.post(TABLE.format("denied") + "/query", {}),
        api.get(TABLE.format("denied") + "/changes", startingVersion=0),
    ):
        assert (answer.status_code, answer.json()["errorCode"]) == (400, "UNSUPPORTED_OPERATION")
        assert answer.json()["message"].endswith("files have deletion vectors that the protocol denies")


def test_a_change_file_that_cannot_be_read_is_the_tables_fault(api: Api, tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "odd_cdc"))
    history.commit({"cdc": {"path": 7}})
    share(api, tmp_path, "odd_cdc")
    answer = api.get(TABLE.format("odd_cdc") + "/changes", startingVersion=0)
    assert (answer.status_code, answer.json()["message"]) == (
        400, "the table is damaged and cannot be read (corrupt-commit)",
    )  # fmt: skip
