"""The client against a server that keeps the protocol, and against one that does not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    NotATableError,
    SharingError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.sharing.client.endpoints import SHARES, TABLES, SharingClient
from lakeview.sharing.client.http import Http, is_loopback, redacted_url
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.profile import TableName, parse_profile
from lakeview.sharing.client.state import head_of
from lakeview.sharing.protocol.messages import QueryRequest
from tests.builders.shares import TOKEN, SharedStory, SharingServer

NAME = "sales.eu.orders"
ORDERS = TableName("sales", "eu", "orders")


def client(server: SharingServer, *, limits: Limits | None = None, **profile: Any) -> SharingClient:
    content = json.dumps(server.profile(**profile)).encode()
    return SharingClient(parse_profile(content, "team.share"), limits=limits)


@pytest.fixture
def orders(server: SharingServer) -> SharedStory:
    story = server.share(NAME, {"id": "long"})
    return story.holds(story.file({"id": [1]}), story.file({"id": [2, 3]}), story.file({"id": [4]}))


# -- lists


def test_shares_schemas_and_tables_are_listed_page_by_page(server: SharingServer) -> None:
    for name in ("a.x.t", "a.x.u", "a.y.v", "b.z.w"):
        server.share(name, {"id": "long"})
    server.page_size = 1
    sharing_client = client(server)
    assert sharing_client.shares().schema == SHARES
    assert sharing_client.shares()["share"].to_list() == ["a", "b"]
    assert sharing_client.schemas("a")["schema"].to_list() == ["x", "y"]
    assert sharing_client.tables("a", "x")["table"].to_list() == ["t", "u"]
    tables = sharing_client.all_tables("a")
    assert tables.schema == TABLES
    assert tables["address"].to_list() == ["team.share#a.x.t", "team.share#a.x.u", "team.share#a.y.v"]
    assert tables["id"].to_list() == ["id-t", "id-u", "id-v"]


def test_a_server_that_lists_by_schema_only_is_asked_so(server: SharingServer) -> None:
    for name in ("a.x.t", "a.y.v"):
        server.share(name, {"id": "long"})
    server.all_tables = False
    assert client(server).all_tables("a")["table"].to_list() == ["t", "v"]


@pytest.mark.parametrize("body", [{}, {"items": []}, {"items": None, "nextPageToken": ""}, {"more": 1}])
def test_a_list_may_be_missing_or_empty(body: dict[str, Any], server: SharingServer) -> None:
    server.answer_with("GET /sharing/shares", 200, body)
    assert client(server).shares().is_empty()


def test_a_share_has_the_name_and_the_comment_that_are_for_people(server: SharingServer) -> None:
    named = {"name": "v", "displayName": "Vaccine Share", "comment": "of 2024", "properties": {"owner": "team"}}
    server.answer_with("GET /sharing/shares", 200, {"items": [named, {"name": "w"}]})
    shares = client(server).shares()
    assert shares.rows() == [("v", None, "Vaccine Share", "of 2024"), ("w", None, None, None)]
    assert shares.schema == SHARES


def test_an_endless_list_is_told(server: SharingServer) -> None:
    server.answer_with("GET /sharing/shares", 200, {"items": [], "nextPageToken": "again"}, times=99)
    with pytest.raises(SharingError, match="its list has no end"):
        client(server).shares()


ENDLESS = {
    "by their number": (Limits(pages=3), SharingError, "more than 3 pages: its list has no end"),
    "by their time": (Limits(all_pages=0), StoreUnavailableError, "had no end after 0 seconds"),
    "by their entries": (Limits(items=2), SharingError, "lists more than 2 entries"),
}


@pytest.mark.parametrize(("limits", "error", "message"), ENDLESS.values(), ids=ENDLESS)
def test_pages_of_a_list_that_go_on_with_fresh_tokens_are_cut_off(
    limits: Limits, error: type[LakeviewError], message: str, server: SharingServer
) -> None:
    for number in range(9):
        page = {"items": [{"name": f"s{number}"}], "nextPageToken": str(number)}
        server.answer_with("GET /sharing/shares", 200, page)
    with pytest.raises(error, match=message):
        client(server, limits=limits).shares()


@pytest.mark.parametrize("limits", [Limits(lines=5), Limits(stream=1_000)], ids=["lines", "bytes"])
def test_pages_of_an_answer_are_bounded_together(limits: Limits, server: SharingServer) -> None:
    for number in range(9):
        server.answer_with("POST", 200, HEAD + b'{"endStreamAction":{"nextPageToken":"%d"}}\n' % number, VERSION)
    with pytest.raises(SharingError, match=r"lines or .* bytes together"):
        client(server, limits=limits).query(ORDERS, QueryRequest())


def test_a_list_that_is_none_is_told(server: SharingServer) -> None:
    server.answer_with("GET /sharing/shares", 200, b"<html>welcome</html>")
    with pytest.raises(SharingError, match="list cannot be read"):
        client(server).shares()


def test_names_travel_as_one_segment(server: SharingServer) -> None:
    client(server).schemas("a/../b c")
    assert server.requests[-1].path == "/sharing/shares/a%2F..%2Fb%20c/schemas"


# -- versions, metadata, files


def test_the_version_is_asked_by_get_and_of_old_servers_by_head(server: SharingServer, orders: SharedStory) -> None:
    assert client(server).version(ORDERS, datetime(2024, 1, 1, tzinfo=UTC)) == 0
    assert server.requests[-1].parameters == {"startingTimestamp": "2024-01-01T00:00:00Z"}
    server.get_version = False
    assert client(server).version(ORDERS) == 0
    assert server.requests[-1].method == "HEAD"
    server.answer_with("/version", 405)
    assert client(server).version(ORDERS) == 0


def test_pages_of_files_are_put_together(server: SharingServer, orders: SharedStory) -> None:
    server.files_page = 1
    answer = client(server).query(ORDERS, QueryRequest(limit_hint=9))
    assert [file.id for _, file in answer.files] == ["f1", "f2", "f3"]
    assert [a.body for a in server.requests if a.method == "POST"] == [
        {"limitHint": 9},
        {"limitHint": 9, "pageToken": "1"},
        {"limitHint": 9, "pageToken": "2"},
    ]


@pytest.mark.parametrize("token", [None, "0"])
def test_a_refresh_token_goes_with_the_first_page_and_stays_with_the_answer(
    token: str | None, server: SharingServer, orders: SharedStory
) -> None:
    server.files_page, server.end_stream, server.refresh_tokens = 2, True, True
    answer = client(server).query(ORDERS, QueryRequest(include_refresh_token=True, refresh_token=token))
    assert [file.id for _, file in answer.files] == ["f1", "f2", "f3"]
    assert answer.end is not None
    assert answer.end.refresh_token == "0"


def test_an_old_server_answers_in_parquet_format_and_sends_no_capabilities(
    server: SharingServer, orders: SharedStory
) -> None:
    answer = client(server).query(ORDERS, QueryRequest())
    assert answer.head.format == "parquet"
    capabilities = server.requests[-1].headers["delta-sharing-capabilities"]
    assert capabilities.startswith("responseformat=delta,parquet;readerfeatures=columnmapping,deletionvectors")
    assert "v2checkpoint" not in capabilities


HEAD = b'{"protocol":{"minReaderVersion":1}}\n{"metaData":{"id":"t","schemaString":"{}","partitionColumns":[]}}\n'
ENDS = {"delta-sharing-capabilities": "includeEndStreamAction=TRUE", "Delta-Table-Version": "0"}
VERSION = {"Delta-Table-Version": "0"}
BROKEN: dict[str, tuple[bytes, dict[str, str], type[LakeviewError], str]] = {
    "a line that is no JSON": (HEAD + b"{oops\n", VERSION, SharingError, "line 3 cannot be read"),
    "a file without a URL": (HEAD + b'{"file":{"id":"f","size":1}}\n', VERSION, SharingError, "a file without url"),
    "a file without a size": (HEAD + b'{"file":{"id":"f","url":"u"}}\n', VERSION, SharingError, "a file without size"),
    "no metadata": (HEAD.split(b"\n")[0], VERSION, SharingError, "has no metaData line"),
    "nothing": (b"", VERSION, SharingError, "has no protocol line"),
    "an end that was promised": (HEAD, ENDS, SharingError, "stopped before its end"),
    "lines after the end": (HEAD + b'{"endStreamAction":{}}\n' + HEAD, ENDS, SharingError, "after the end"),
    "an error in the stream": (
        HEAD + b'{"endStreamAction":{"errorMessage":"the\\nstore burnt down"}}\n', ENDS, SharingError,
        "broke off: the store burnt down",
    ),
    "a newer protocol": (
        HEAD.replace(b":1}}\n", b":2}}\n", 1), VERSION, UnsupportedTableError, "speaks version 2 of the",
    ),
    "two formats in one answer": (
        b'{"protocol":{"deltaProtocol":{"minReaderVersion":1,"minWriterVersion":2}}}\n' + HEAD.split(b"\n")[1],
        VERSION, SharingError, "different formats",
    ),
    "no version": (HEAD, {}, SharingError, "no Delta-Table-Version that is a number"),
    "a version beyond all numbers": (HEAD, {"Delta-Table-Version": "9" * 30}, SharingError, "no Delta-Table-Version"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "headers", "error", "message"), BROKEN.values(), ids=BROKEN)
def test_an_answer_that_breaks_the_protocol_is_refused(
    body: bytes, headers: dict[str, str], error: type[LakeviewError], message: str, server: SharingServer
) -> None:
    server.answer_with("POST", 200, body, headers)
    with pytest.raises(error, match=message):
        client(server).query(ORDERS, QueryRequest())


def test_unknown_lines_fields_and_blank_lines_are_skipped(server: SharingServer) -> None:
    server.answer_with("POST", 200, b"\n" + HEAD + b'\n{"news":{"today":1}}\n', VERSION)
    assert client(server).query(ORDERS, QueryRequest()).files == []


def test_pages_about_different_versions_are_refused(server: SharingServer) -> None:
    server.answer_with("POST", 200, HEAD + b'{"endStreamAction":{"nextPageToken":"2"}}\n', VERSION)
    server.answer_with("POST", 200, HEAD, {"Delta-Table-Version": "1"})
    with pytest.raises(SharingError, match="different versions"):
        client(server).query(ORDERS, QueryRequest())


# -- what goes wrong on the way


def test_a_server_that_is_busy_is_asked_again(server: SharingServer, orders: SharedStory) -> None:
    server.answer_with("/version", 503)
    server.answer_with("/version", 529)
    server.answer_with("/version", 429, headers={"Retry-After": "0"})
    assert client(server).version(ORDERS) == 0
    assert server.count("/version") == 4


def test_a_server_that_stays_busy_is_told(server: SharingServer, orders: SharedStory) -> None:
    server.answer_with("/version", 500, {"errorCode": "INTERNAL_ERROR", "message": "out of order"}, times=99)
    with pytest.raises(
        StoreUnavailableError, match=r"cannot answer for table sales.eu.orders now \(500\): out of order"
    ):
        client(server, limits=Limits(attempts=3)).version(ORDERS)
    assert server.count("/version") == 3


def test_a_wait_longer_than_our_patience_is_not_waited_for(server: SharingServer, orders: SharedStory) -> None:
    server.answer_with("/version", 429, headers={"Retry-After": "3600"}, times=9)
    with pytest.raises(StoreUnavailableError) as caught:
        client(server).version(ORDERS)
    assert caught.value.fix == "try again in 3,600 seconds"
    assert server.count("/version") == 1


REFUSALS = {
    "a bad request": (400, SharingError, "sharing-refused"),
    "a credential that is not known": (401, AccessDeniedError, "sharing-unauthenticated"),
    "a grant that is missing": (403, AccessDeniedError, "sharing-forbidden"),
    "a table that is not there": (404, NotATableError, "not-shared"),
    "another status": (418, SharingError, "sharing-refused"),
    "what the server does not implement": (501, SharingError, "sharing-refused"),
    "a redirect, which would carry the token elsewhere": (302, SharingError, "sharing-refused"),
}


@pytest.mark.parametrize(("status", "error", "kind"), REFUSALS.values(), ids=REFUSALS)
def test_what_will_not_change_is_asked_once(
    status: int, error: type[LakeviewError], kind: str, server: SharingServer
) -> None:
    body = {"errorCode": "X", "message": "say <b>please</b>\x07\nnow"}
    server.answer_with("/metadata", status, body, {"Location": "http://127.0.0.1:1/"}, times=9)
    with pytest.raises(error, match=r"say <b>please</b> now") as caught:
        client(server).metadata(ORDERS)
    assert caught.value.kind == kind
    assert ("the endpoint that the server moved to" in str(caught.value.fix)) is (status == 302)
    assert server.count("/metadata") == 1


def test_a_server_that_echoes_the_token_shows_it_to_nobody(server: SharingServer, orders: SharedStory) -> None:
    with pytest.raises(AccessDeniedError, match=r"the token Bearer \*\*\* is not known") as caught:
        client(server, bearerToken="dss_wrong-token").version(ORDERS)
    assert "dss_wrong-token" not in f"{caught.value!r}{caught.value}"


def test_a_stream_that_echoes_the_token_shows_it_to_nobody(server: SharingServer) -> None:
    body = HEAD + json.dumps({"endStreamAction": {"errorMessage": f"no {TOKEN}"}}).encode()
    server.answer_with("POST", 200, body, VERSION)
    with pytest.raises(SharingError, match=r"the server broke off: no \*\*\*"):
        client(server).query(ORDERS, QueryRequest())


def test_a_page_in_place_of_an_error_is_not_shown(server: SharingServer) -> None:
    server.answer_with("/metadata", 403, b"<html><script>alert(1)</script></html>")
    with pytest.raises(AccessDeniedError) as caught:
        client(server).metadata(ORDERS)
    assert "<" not in str(caught.value)


def test_a_server_that_is_not_there_is_told(server: SharingServer) -> None:
    dead_client = client(server, limits=Limits(attempts=2))
    server.close()
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1 does not answer as it should"):
        dead_client.shares()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(stream=1_000), "more than 1,000 bytes"),
        (Limits(line=300), "a line of more than 300 bytes"),
        (Limits(lines=3), "more than 3 lines"),
    ],
    ids=["bytes", "a line", "lines"],
)
def test_an_answer_without_measure_is_cut_off(
    limits: Limits, message: str, server: SharingServer, orders: SharedStory
) -> None:
    body = HEAD + b'{"news":1}\n' * 5 + b"x" * 5_000
    server.answer_with("POST", 200, body, VERSION)
    with pytest.raises(SharingError, match=message):
        client(server, limits=limits).query(ORDERS, QueryRequest())


def test_a_list_without_measure_is_cut_off(server: SharingServer) -> None:
    server.answer_with("GET", 200, b" " * 2_000)
    with pytest.raises(SharingError, match="more than 1,000 bytes"):
        client(server, limits=Limits(body=1_000)).shares()


# -- credentials


def test_an_expired_profile_asks_nothing(server: SharingServer) -> None:
    with pytest.raises(AccessDeniedError, match="expired on 2020-01-01"):
        client(server, expirationTime="2020-01-01T00:00:00Z").shares()
    assert server.requests == []


def test_a_login_travels_as_one(server: SharingServer) -> None:
    server.answer_with("GET /sharing/shares", 200, {})
    client(server, shareCredentialsVersion=2, type="basic", username="me", password="secret").shares()
    assert server.requests[-1].headers["authorization"] == "Basic bWU6c2VjcmV0"


class Ticking:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 7, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def oauth(server: SharingServer, clock: Ticking) -> SharingClient:
    content = server.profile(
        shareCredentialsVersion=2, type="oauth_client_credentials", tokenEndpoint=f"{server.root}/token", clientId="me",
        clientSecret="hush", scope="read",
    )  # fmt: skip
    return SharingClient(parse_profile(json.dumps(content).encode(), "team.share"), clock=clock)


def test_a_token_is_asked_for_once_and_again_shortly_before_it_ends(server: SharingServer) -> None:
    clock = Ticking()
    server.answer_with("POST /token", 200, {"access_token": TOKEN, "expires_in": 3600}, times=9)
    source = oauth(server, clock)
    source.shares()
    source.shares()
    assert server.count("/token") == 1
    assert server.requests[0].headers["authorization"] == "Basic bWU6aHVzaA=="
    clock.now += timedelta(seconds=3_550)
    source.shares()
    assert server.count("/token") == 2


def test_a_token_that_is_not_accepted_any_more_is_asked_for_anew_once(server: SharingServer) -> None:
    server.answer_with("POST /token", 200, {"access_token": "stale"})
    server.answer_with("POST /token", 200, {"access_token": TOKEN}, times=9)
    assert oauth(server, Ticking()).shares().is_empty()
    assert server.count("/token") == 2
    server.token = "another"
    with pytest.raises(AccessDeniedError):
        oauth(server, Ticking()).shares()
    assert server.count("/token") == 4


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, {"error": "invalid_client", "message": "hush is wrong"}, r"refused a token \(400\): \*\*\* is wrong"),
        (200, {"token": TOKEN}, "gave no token that can be read"),
    ],
    ids=["refused", "unreadable"],
)
def test_a_token_endpoint_that_gives_none(
    status: int, body: dict[str, Any], message: str, server: SharingServer
) -> None:
    server.answer_with("POST /token", status, body)
    with pytest.raises(SharingError, match=message) as caught:
        oauth(server, Ticking()).shares()
    assert "hush" not in str(caught.value)
    assert TOKEN not in f"{caught.value}{caught.value.__cause__}"


# -- where requests go


def test_credentials_are_not_sent_over_plain_http_to_other_machines() -> None:
    profile = parse_profile(
        b'{"shareCredentialsVersion":1,"endpoint":"http://share.example.com","bearerToken":"x"}', "team.share"
    )
    with pytest.raises(InvalidRequestError, match=r"plain http to share\.example\.com"):
        SharingClient(profile)
    SharingClient(profile, limits=Limits(plain_http=True))


URLS = {
    "a file of this machine": ("file:///etc/passwd", "no http or https"),
    "another scheme": ("s3://bucket/key", "no http or https"),
    "no URL": ("https://[oops", "no http or https"),
    "plain http elsewhere": ("http://example.com/f?sig=secret", "plain http to example.com"),
}


@pytest.mark.parametrize(("url", "message"), URLS.values(), ids=URLS)
def test_a_url_that_is_handed_out_may_not_be(url: str, message: str) -> None:
    with pytest.raises(SharingError, match=message) as caught:
        Http().check_url(url, "the URL of file f")
    assert "secret" not in f"{caught.value} {caught.value.place}"


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "[::1]", "localhost"])
def test_a_server_elsewhere_does_not_lead_to_this_machine(host: str) -> None:
    Http(server="http://localhost:9000/sharing").check_url(f"http://{host}/f", "the URL of file f")
    with pytest.raises(SharingError, match="the URL of file f leads to this machine, and the server is another one"):
        Http(server="https://share.example.com").check_url(f"http://{host}/f", "the URL of file f")


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254", "localhost"])
def test_private_addresses_are_refused_where_several_users_share_the_app(host: str) -> None:
    Http().check_url(f"https://{host}/f", "the URL of file f")
    with pytest.raises(AccessDeniedError, match="lies in a private network"):
        Http(Limits(private=False)).check_url(f"https://{host}/f", "the URL of file f")


def test_a_name_that_leads_elsewhere_than_it_was_looked_up_is_found_out(server: SharingServer) -> None:
    http = Http(Limits(private=False))
    with pytest.raises(AccessDeniedError, match="private network"), http.stream("GET", server.url, headers={}):
        pass
    with pytest.raises(AccessDeniedError, match="the endpoint of the profile leads to 127"):
        client(server, limits=Limits(private=False))


def test_what_is_this_machine() -> None:
    assert [is_loopback(h) for h in ("localhost", "127.0.0.9", "::1", "10.0.0.1", "localhost.evil.com")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_a_url_is_shown_without_what_signs_it() -> None:
    assert redacted_url("https://me:pw@store/a/b?sig=1#x") == "https://store/a/b"


# -- access modes


@pytest.mark.parametrize("delta", [False, True], ids=["parquet", "delta"])
def test_a_table_that_is_shared_by_directory_only_is_refused_by_name_and_not_queried(
    delta: bool, server: SharingServer, orders: SharedStory
) -> None:
    orders.delta, orders.access_modes = delta, ["dir"]
    with pytest.raises(UnsupportedTableError, match="shared in access mode dir only") as error:
        client(server).metadata(ORDERS)
    assert (error.value.kind, "access by URL" in str(error.value.fix)) == ("unsupported-access-mode", True)
    assert server.count("/query") == 0
    assert client(server).all_tables("sales")["access_modes"].to_list() == [["dir"]]


def test_a_table_that_its_server_only_lists_is_refused_by_its_access_mode(
    server: SharingServer, orders: SharedStory
) -> None:
    orders.access_modes = ["dir"]
    server.answer_with("GET .*/metadata", 404, {"errorCode": "RESOURCE_DOES_NOT_EXIST", "message": "no"}, times=2)
    with pytest.raises(UnsupportedTableError, match=r"table sales\.eu\.orders is shared in access mode dir only"):
        head_of(client(server), ORDERS)
    orders.access_modes = ["dir", "url"]
    with pytest.raises(NotATableError):
        head_of(client(server), ORDERS)


@pytest.mark.parametrize("modes", [None, [], ["url"], ["dir", "url"], ["url", "later"]], ids=repr)
def test_access_by_url_is_one_of_the_modes_or_is_meant(
    modes: list[str] | None, server: SharingServer, orders: SharedStory
) -> None:
    orders.access_modes = modes
    assert len(client(server).query(ORDERS, QueryRequest()).files) == 3
