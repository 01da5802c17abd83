"""Queries: the lines of a table, in both formats, at any version, page by page."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.builders.actions import add, metadata, protocol
from tests.builders.history import START, STEP, DeltaHistory
from tests.server.conftest import Api, hub_of, lines
from tests.server.shared_lake import TABLE, configuration

DELTA = {"delta-sharing-capabilities": "responseformat=delta;readerfeatures=deletionvectors,columnmapping"}
EITHER = {"delta-sharing-capabilities": "responseFormat=Delta,Parquet;ReaderFeatures=DeletionVectors,columnMapping"}


def month_of(file: dict[str, Any]) -> int:
    return int(file["partitionValues"]["month"])


def test_a_table_is_two_lines_and_one_a_file_newest_commit_first(api: Api) -> None:
    first, second, *rest = api.query("months")
    assert first == {"protocol": {"minReaderVersion": 1}}
    assert second["metaData"]["partitionColumns"] == ["month"]
    assert [month_of(line["file"]) for line in rest] == [5, 4, 3, 2, 1, 0]
    file = rest[0]["file"]
    assert (
        file["size"] == (Path(api.hub.catalogue.tables()[0].table.location) / "month=5/part-5.parquet").stat().st_size
    )
    assert json.loads(file["stats"])["numRecords"] == 2
    assert file["expirationTimestamp"] >= (api.hub.seconds() + 3600) * 1000
    assert "version" not in file


def test_headers_of_an_answer(api: Api) -> None:
    answer = api.post(TABLE.format("months") + "/query", {})
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert answer.headers["delta-table-version"] == "2"
    assert "delta-sharing-capabilities" not in answer.headers
    either = api.post(TABLE.format("months") + "/query", {}, EITHER)
    assert either.headers["delta-sharing-capabilities"] == "responseformat=parquet"


def test_an_empty_table_is_two_lines(api: Api) -> None:
    assert [next(iter(line)) for line in api.query("empty")] == ["protocol", "metaData"]


def test_ids_stay_and_urls_are_alike_within_a_window(api: Api) -> None:
    before = api.files("months")
    assert api.files("months") == before
    api.clock.later(hours=2)
    after = api.files("months")
    assert [f["id"] for f in after] == [f["id"] for f in before]
    assert all(a["url"] != b["url"] for a, b in zip(after, before, strict=True))


def test_version_and_head_agree(api: Api) -> None:
    head = api.client.head(f"/delta-sharing/{TABLE.format('months')}", headers=api.headers())
    version_answer = api.get(TABLE.format("months") + "/version")
    assert (head.status_code, head.content, version_answer.content) == (200, b"", b"")
    assert head.headers["delta-table-version"] == version_answer.headers["delta-table-version"] == "2"


@pytest.mark.parametrize(
    ("minutes", "version"), [(-1000, "0"), (0, "0"), (5, "1"), (10, "1"), (19, "2")], ids=str
)  # the commits are ten minutes apart
def test_the_earliest_version_from_a_moment_on(api: Api, minutes: int, version: str) -> None:
    moment = START + STEP * minutes / 10
    answer = api.get(TABLE.format("months") + "/version", startingTimestamp=moment.isoformat().replace("+00:00", "Z"))
    assert answer.headers["delta-table-version"] == version


def test_a_version_and_its_moment_give_the_same(api: Api) -> None:
    at = (START + STEP).isoformat().replace("+00:00", "Z")
    by_number, by_moment = api.query("months", version=1), api.query("months", timestamp=at)
    assert by_number == by_moment
    assert by_number[1]["metaData"]["version"] == 1
    assert [month_of(line["file"]) for line in by_number[2:]] == [2, 1, 0]
    assert {line["file"]["version"] for line in by_number[2:]} == {1}
    assert {line["file"]["timestamp"] for line in by_number[2:]} == {int((START + STEP).timestamp() * 1000)}
    metadata_answer = api.get(TABLE.format("months") + "/metadata", version=1)
    assert lines(metadata_answer) == by_number[:2]


LATE, EARLY = "2030-01-01T00:00:00Z", "2000-01-01T00:00:00Z"
INVALID, MALFORMED = "INVALID_PARAMETER_VALUE", "MALFORMED_REQUEST"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"version": 3}, INVALID, "version 3 is after the latest available version 2"),
        ({"version": -1}, INVALID, "version must not be negative"),
        ({"version": "x"}, MALFORMED, "Not a numeric value"),
        ({"version": 1.5}, MALFORMED, "Not a numeric value"),
        ({"version": 2**63}, MALFORMED, "wrong type"),
        ({"version": 1, "timestamp": LATE}, INVALID, "Please only provide one of"),
        ({"version": 1, "startingVersion": 1}, INVALID, "Please only provide one of"),
        ({"timestamp": LATE, "startingVersion": 1}, INVALID, "Please only provide one of"),
        ({"timestamp": LATE}, INVALID, "is after the latest available version"),
        ({"timestamp": LATE}, INVALID, "Please use a timestamp less than or equal to"),
        ({"timestamp": EARLY}, INVALID, "Please use a timestamp greater than or equal to"),
        ({"timestamp": "yesterday"}, INVALID, "Invalid timestamp: 'yesterday'"),
        ({"timestamp": 5}, MALFORMED, "wrong type"),
        ({"limitHint": -1}, INVALID, "limitHint must not be negative"),
        ({"limitHint": "many"}, MALFORMED, "Not a numeric value"),
        ({"maxFiles": 0}, INVALID, "maxFiles must be positive"),
        ({"maxFiles": -5}, INVALID, "maxFiles must be positive"),
        ({"predicateHints": "id = 1"}, MALFORMED, "wrong type"),
        ({"predicateHints": [1]}, MALFORMED, "wrong type"),
        ({"jsonPredicateHints": {"op": "and"}}, MALFORMED, "wrong type"),
        ({"startingVersion": 3}, INVALID, "version 3 is after the latest available version 2"),
        ({"startingVersion": 2, "endingVersion": 1}, INVALID, "the start version 2 is after the end version 1"),
        ({"pageToken": "x"}, INVALID, "Error decoding the page token"),
        ({"refreshToken": "x"}, INVALID, "Error decoding the refresh token"),
        ({"refreshToken": "x", "version": 1}, INVALID, "a refresh token goes with the first page"),
        ({"includeRefreshToken": True, "version": 1}, INVALID, "a refresh token goes with the first page"),
        ([], MALFORMED, "the body is no JSON object"),
        ("x", MALFORMED, "the body is no JSON object"),
        (b"", MALFORMED, "the body is no JSON"),
        (b"{", MALFORMED, "the body is no JSON"),
        (b"\xff\xfe", MALFORMED, "the body is no JSON"),
        (b"[" * 100_000, MALFORMED, "the body is no JSON"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_query_that_cannot_be_meant_is_refused(api: Api, body: Any, code: str, message: str) -> None:
    answer = api.post(TABLE.format("months") + "/query", body)
    document = answer.json()
    assert (answer.status_code, document["errorCode"]) == (400, code)
    assert document["message"].startswith(message) or message in document["message"]


def test_a_huge_body_is_refused_before_it_is_read(api: Api) -> None:
    answer = api.post(TABLE.format("months") + "/query", b"{" + b" " * (3 << 20) + b"}")
    assert (answer.status_code, answer.json()["message"]) == (413, "the body is larger than 2 MiB")


@pytest.mark.parametrize(
    "body",
    [
        {"version": "1"},
        {"limit_hint": "5", "include_refresh_token": "True"},
        {"limitHint": None, "predicateHints": None, "somethingNew": [1]},
        {"predicateHints": [], "jsonPredicateHints": ""},
        {"endingVersion": 1},  # "only used if startingVersion is set"
    ],
    ids=repr,
)
def test_what_clients_of_today_send_is_taken(api: Api, body: dict[str, Any]) -> None:
    assert api.query("months", **body)[0] == {"protocol": {"minReaderVersion": 1}}


def test_history_is_given_only_where_it_is_shared(api: Api) -> None:
    words = (
        "Reading table by version or timestamp is not supported because history sharing is not enabled on table: "
        "lake.default.vectors"
    )
    for body in ({"version": 0}, {"timestamp": "random"}, {"startingVersion": 0}):  # a timestamp is not even read
        assert api.refused("vectors", **body) == (400, INVALID, words)
    for tail, name in (("version", "startingTimestamp"), ("metadata", "timestamp"), ("metadata", "version")):
        answer = api.get(f"{TABLE.format('vectors')}/{tail}", **{name: "random"})  # type: ignore[arg-type]  # none is called headers
        assert (answer.status_code, answer.json()["message"]) == (400, words)


def test_versions_before_the_first_shared_one_are_refused(lake: Path, tmp_path: Path, api: Api) -> None:
    document = configuration(lake)
    document["shares"][0]["schemas"][0]["tables"][0]["startVersion"] = 2
    hub = hub_of(tmp_path, document, api.clock)
    api.hub.catalogue = hub.catalogue
    assert api.refused("months", version=1)[2] == "You can only query table data since version 2."
    assert len(api.files("months", version=2)) == 6


# -- formats


def test_a_table_with_deletion_vectors_is_given_in_delta_format(api: Api) -> None:
    head, metadata_line, line = api.query("vectors", EITHER)
    assert head["protocol"]["deltaProtocol"]["readerFeatures"] == ["deletionVectors"]
    assert metadata_line["metaData"]["deltaMetadata"]["format"] == {"provider": "parquet", "options": {}}
    action = line["file"]["deltaSingleAction"]["add"]
    vector = action["deletionVector"]
    assert (vector["storageType"], vector["cardinality"], vector["offset"]) == ("p", 2, 1)
    assert api.client.get(vector["pathOrInlineDv"]).content[:1] == b"\x01"
    assert api.client.get(action["path"]).content[:4] == b"PAR1"
    assert len(line["file"]["id"]) == len(line["file"]["deletionVectorFileId"]) == 64


def test_a_mapped_table_keeps_the_logs_own_schema_and_its_mode(api: Api) -> None:
    _, metadata_line, line = api.query("mapped", EITHER)
    metadata_found = metadata_line["metaData"]["deltaMetadata"]
    assert "delta.columnMapping.physicalName" in metadata_found["schemaString"]
    assert metadata_found["configuration"] == {"delta.columnMapping.mode": "name"}
    assert line["file"]["deltaSingleAction"]["add"]["stats"] == '{"numRecords": 2}'


@pytest.mark.parametrize("tail", ["query", "metadata"])
@pytest.mark.parametrize("table", ["vectors", "mapped"])
@pytest.mark.parametrize(
    "capabilities",
    ["", "responseformat=parquet", "responseformat=delta", "responseformat=delta;readerfeatures=",
     "responseformat=delta;readerfeatures=timestampntz"],
)  # fmt: skip
def test_a_client_that_lacks_a_feature_is_told_which(api: Api, table: str, capabilities: str, tail: str) -> None:
    headers = {"delta-sharing-capabilities": capabilities} if capabilities else {}
    path = f"{TABLE.format(table)}/{tail}"
    answer = api.get(path, headers=headers) if tail == "metadata" else api.post(path, {}, headers)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "UNSUPPORTED_OPERATION")
    assert answer.json()["message"].startswith("Unsupported Delta Table Properties: the table uses ")


def test_an_unknown_format_is_refused(api: Api) -> None:
    answer = api.post(TABLE.format("months") + "/query", {}, {"delta-sharing-capabilities": "responseformat=orc"})
    assert (answer.status_code, answer.json()["errorCode"]) == (400, INVALID)


def test_the_scheme_of_ids_is_as_asked_and_told(api: Api) -> None:
    for scheme, length in (("parquet", 32), ("DELTA", 64)):
        answer = api.post(TABLE.format("months") + "/query", {}, {"fileidhash": scheme})
        assert answer.headers["fileidhash"] == scheme.lower()
        assert {len(line["file"]["id"]) for line in lines(answer)[2:]} == {length}
    for wrong in ("x", ""):
        answer = api.post(TABLE.format("months") + "/query", {}, {"fileidhash": wrong})
        assert (answer.status_code, answer.json()["message"]) == (400, f"Unsupported fileidhash: '{wrong}'")


def test_parquet_format_tells_comments_and_nothing_else_of_the_log(api: Api, tmp_path: Path) -> None:
    schema = {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {"comment": "a number", "secret": 1}}],
    }
    history = DeltaHistory(tmp_path / "noted")
    history.commit(protocol(), metadata(schema=json.dumps(schema), properties={"owner": "me", "delta.x": "y"}))
    share(api, tmp_path, "noted")
    metadata_found = api.query("noted")[1]["metaData"]
    assert json.loads(metadata_found["schemaString"])["fields"][0]["metadata"] == {"comment": "a number"}
    assert "configuration" not in metadata_found
    assert "location" not in metadata_found


def share(api: Api, folder: Path, *names: str, **more: Any) -> None:
    """Share tables of a folder as well, from now on."""
    document = configuration(folder)
    tables = [{"name": n, "location": str(folder / n), "historyShared": True, **more} for n in names]
    document["shares"][0]["schemas"][0]["tables"] = tables
    document["shares"] = document["shares"][:1]
    document["recipients"] = document["recipients"][:1]
    hub = hub_of(api.folder, document, api.clock)
    api.hub.catalogue = hub.catalogue
    api.hub.sources.configure(hub.settings)


def test_null_partition_values_are_empty_text(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "nulls")
    history.commit(protocol(), metadata({"id": "long", "day": "date"}, partition_by=("day",)))
    history.commit(add("a.parquet", partition={"day": None}))
    share(api, tmp_path, "nulls")
    assert api.files("nulls")[0]["partitionValues"] == {"day": ""}
    delta = api.query("nulls", DELTA)[2]["file"]["deltaSingleAction"]["add"]
    assert delta["partitionValues"] == {"day": None}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "../other/a.parquet",
        "s3://b/a.parquet",
        "_delta_log/0.json",
        "a/%2e%2e/../../b",
    ],
)
def test_files_outside_the_table_are_never_signed(api: Api, tmp_path: Path, path: str) -> None:
    DeltaHistory(tmp_path / "clone").create().commit(add(path))
    share(api, tmp_path, "clone")
    status, code, message = api.refused("clone")
    assert (status, code) == (400, "UNSUPPORTED_OPERATION")
    assert "not its data" in message
    assert "etc" not in message


def test_a_version_whose_files_are_gone_is_refused(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "cleaned").create()
    history.commit(history.data("a.parquet", {"id": [1]}))
    history.commit({"remove": {"path": "a.parquet", "dataChange": True}}, history.data("b.parquet", {"id": [2]}))
    share(api, tmp_path, "cleaned")
    assert len(api.files("cleaned", version=1)) == 1
    history.remove("a.parquet")
    assert api.refused("cleaned", version=1)[2].startswith("table files missing")
    assert len(api.files("cleaned")) == 1


def test_a_table_is_followed_as_it_grows(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "grows").create()
    share(api, tmp_path, "grows")
    assert api.files("grows") == []
    history.commit(history.data("a.parquet", {"id": [1]}))
    assert len(api.files("grows")) == 1


def test_a_damaged_table_harms_only_itself_and_leaks_no_place(api: Api, lake: Path) -> None:
    status, code, message = api.refused("broken")
    assert (status, code, message) == (400, INVALID, "the table is damaged and cannot be read (corrupt-commit)")
    assert len(api.files("months")) == 6


def test_a_table_that_is_gone_is_400_and_names_no_place(api: Api, tmp_path: Path) -> None:
    share(api, tmp_path, "nowhere")
    status, code, message = api.refused("nowhere")
    assert (status, code) == (400, INVALID)
    assert message.startswith("table files missing")
    assert str(tmp_path) not in message


# -- the stream


def test_an_answer_is_compressed_only_for_clients_that_take_it(api: Api) -> None:
    url = f"/delta-sharing/{TABLE.format('months')}/query"
    plain = api.client.post(url, content=b"{}", headers=api.headers(**{"Accept-Encoding": "gzip;q=0"}))
    assert "content-encoding" not in plain.headers
    with api.client.stream("POST", url, content=b"{}", headers=api.headers(**{"Accept-Encoding": "gzip"})) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        raw = b"".join(packed.iter_raw())
    assert gzip.decompress(raw) == plain.content


def test_statistics_that_a_checkpoint_keeps_as_structs_are_told_as_text(lake: Path, tmp_path: Path) -> None:
    from lakeview.model.data_types import Field, PrimitiveType
    from lakeview.model.schema import Schema
    from lakeview.sharing.server.lines import stats_texts

    schema = Schema((Field("id", PrimitiveType("long")),))
    struct = {"min": 1, "max": 3, "null_count": 0, "exact": True, "null_count_exact": True}
    frame = pl.DataFrame({"_path": ["a"], "id": [struct]})
    (text,) = stats_texts(frame, schema, pl.Series([3]))
    assert json.loads(text or "") == {
        "numRecords": 3,
        "minValues": {"id": 1},
        "maxValues": {"id": 3},
        "nullCount": {"id": 0},
    }
