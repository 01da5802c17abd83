"""Requests that mean harm, within one process: odd paths, parameters, headers and tokens never give 5xx or a place."""

from __future__ import annotations

import base64
import json
import statistics
import time
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from lakeview.sharing.server.app import application
from lakeview.sharing.server.tokens import TokenFile
from tests.server.conftest import Api
from tests.server.shared_lake import TABLE

MONTHS = "/delta-sharing/" + TABLE.format("months")


@pytest.fixture
def raw(api: Api) -> TestClient:
    """A client that shows 500 as it is."""
    return TestClient(application(api.hub), raise_server_exceptions=False, base_url="http://127.0.0.1:8080")


def sound(answer: Any, api: Api) -> None:
    """A refusal of the right kind, in JSON, that names no place."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:200])
    assert str(api.folder) not in answer.text
    if answer.request.method != "HEAD":
        assert {"errorCode", "message"} == answer.json().keys()
        assert answer.headers["content-type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/delta-sharing/shares/../shares/lake/nothing", "/delta-sharing/shares/%2e%2e/%2e%2e/etc/passwd",
        "/delta-sharing/shares/", "/delta-sharing/shares/lake%2Fschemas%2Fdefault", "/delta-sharing/shares/lake%00",
        "/delta-sharing/shares/%FF%FE", "/delta-sharing/shares/%ED%A0%80", "/delta-sharing/shares/" + "x" * 20_000,
        "/delta-sharing/shares/lake%0d%0aSet-Cookie:%20a=b", "/delta-sharing/shares/<script>", "/delta-sharing//shares",
        "/delta-sharing/shares/lake/schemas/default/tables/months/_delta_log/00000000000000000000.json",
        "/delta-sharing/shares/lake/schemas/default/tables/months/../secret/version",
        "/_delta_log/", "/files/", "/files/x", "/files/x/", "/files/x/_delta_log/_last_checkpoint",
        "/files/../server.yaml",
        "/files/%2e%2e/keys.json", "/tokens.json", "/keys.json", "/server.yaml", "/docs", "/openapi.json", "/metrics",
        "//",
        "/delta-sharing/shares/lake/schemas/default/tables/months/temporary-table-credentials",
        "/delta-sharing/shares/lake/schemas/default/tables/months/queries/1",
    ],
)  # fmt: skip
def test_odd_paths_lead_nowhere(path: str, api: Api, raw: TestClient) -> None:
    for method in ("GET", "POST", "HEAD"):
        answer = raw.request(method, path, headers=api.headers())
        sound(answer, api)
        assert answer.status_code in (403, 404, 405)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_other_methods_are_refused(method: str, api: Api, raw: TestClient) -> None:
    sound(raw.request(method, MONTHS + "/query", headers=api.headers()), api)


NUMBERS = [
    "-1",
    "1e3",
    "0x10",
    "\u0661",
    "1_000",
    " 1",
    "99999999999999999999",
    "nan",
    "null",
    "true",
    "1;2",
    "%00",
    "1.0",
]


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    ("path", "name"),
    [("/delta-sharing/shares", "maxResults"), (MONTHS + "/metadata", "version"),
     ("/delta-sharing/" + TABLE.format("fed") + "/changes", "startingVersion")],
)  # fmt: skip
def test_numbers_that_are_none_are_refused(path: str, name: str, value: str, api: Api, raw: TestClient) -> None:
    sound(raw.get(path, params={name: value}, headers=api.headers()), api)


MOMENTS = ["now", "2026", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "+99999-01-01T00:00:00Z", "T", "9" * 40,
           "2026-01-01T00:00:00+99:99", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "\u0000",
           "2026-01-01T25:00:00Z", "2026-W01"]  # fmt: skip


@pytest.mark.parametrize("value", MOMENTS)
def test_moments_that_are_none_are_refused(value: str, api: Api, raw: TestClient) -> None:
    for path, name in ((MONTHS + "/version", "startingTimestamp"), (MONTHS + "/metadata", "timestamp")):
        answer = raw.get(path, params={name: value}, headers=api.headers())
        assert answer.status_code in (200, 400)
        assert answer.status_code == 200 or answer.json()["errorCode"] == "INVALID_PARAMETER_VALUE"
    assert raw.post(MONTHS + "/query", json={"timestamp": value}, headers=api.headers()).status_code == 400


VALUES: list[Any] = [None, True, -1, 2**63, 2**200, 1.5, 1e308, "", "x" * 5000, "\ud800", [], [None], {}, {"a": 1}]
FIELDS = ["predicateHints", "jsonPredicateHints", "limitHint", "version", "timestamp", "startingVersion",
          "endingVersion",
          "maxFiles", "pageToken", "includeRefreshToken", "refreshToken", "idempotencyKey",
          "PREDICATE_HINTS"]  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_no_value_of_a_body_is_a_fault_of_ours(name: str, api: Api, raw: TestClient) -> None:
    for value in VALUES:
        body = json.dumps({name: value}).encode()
        answer = raw.post(MONTHS + "/query", content=body, headers=api.headers())
        assert answer.status_code in (200, 400), (value, answer.text)


@pytest.mark.parametrize(
    "hint",
    [
        "id = 1; DROP TABLE months", "id = (SELECT max(id) FROM months)", "(" * 5000 + "id = 1" + ")" * 5000,
        "NOT " * 5000 + "id = 1", " AND ".join(["id = 1"] * 5000), "id IN (" + ",".join(["1"] * 20_000) + ")",
        "id = " + "9" * 5000, "id = 1e99999", "id = -" * 2000 + "1", "`" * 999, "'" * 999, "id = '\\", "/*" * 2000,
        "id LIKE '%" + "a%" * 2000 + "'", "\u0000", "id = CAST('x' AS DATE)", "id BETWEEN 5 AND", "CASE " * 500,
        "a.b.c.d.e.f.g = 1", "id = 1 --", "x" * 65_536,
    ],
    ids=lambda hint: hint[:30],
)  # fmt: skip
def test_hostile_sql_spares_no_file_and_costs_little(hint: str, api: Api, raw: TestClient) -> None:
    begun = time.process_time()
    answer = raw.post(MONTHS + "/query", json={"predicateHints": [hint]}, headers=api.headers())
    assert answer.status_code == 200
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    "tree",
    [
        '{"op":"not","children":[' * 5000 + "]}" * 5000, "[" * 500_000, '{"op":"and","children":' + "[1," * 2000,
        '{"op":"equal","children":[{"op":"column","name":"id","valueType":"long"},{"op":"literal","value":"'
        + "9" * 5000 + '","valueType":"long"}]}',
        "9" * 5000, "null", '"' + "\\ud800" + '"',
    ],
    ids=lambda tree: tree[:30],
)  # fmt: skip
def test_hostile_trees_spare_no_file(tree: str, api: Api, raw: TestClient) -> None:
    answer = raw.post(MONTHS + "/query", json={"jsonPredicateHints": tree}, headers=api.headers())
    assert (answer.status_code, answer.text.count('"file"')) == (200, 6)


# -- tokens of ours


def changed(part: str) -> list[str]:
    """A part of a token with one bit flipped, at every seventh byte."""
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    others = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), 7)]
    return [base64.urlsafe_b64encode(other).decode().rstrip("=") for other in others]


def test_a_page_token_that_was_changed_anywhere_is_refused(api: Api) -> None:
    page = api.query("months", maxFiles=2)
    token = page[-1]["endStreamAction"]["nextPageToken"]
    assert api.post(TABLE.format("months") + "/query", {"maxFiles": 2, "pageToken": token}).status_code == 200
    value, _, signature = token.partition(".")
    for text in (*(f"{other}.{signature}" for other in changed(value)), *(f"{value}.{o}" for o in changed(signature))):
        assert "Error decoding" in api.refused("months", maxFiles=2, pageToken=text)[2]
    for text in (token[:-3], token + "AAAA", "x" * 100_000, "=", "\u0000", "é"):
        assert "Error decoding" in api.refused("months", maxFiles=2, pageToken=text)[2]


def test_a_token_of_pages_is_of_one_recipient_table_request_and_purpose(api: Api) -> None:
    token = api.query("months", maxFiles=2)[-1]["endStreamAction"]["nextPageToken"]
    assert "does not match the table" in api.refused("fed", maxFiles=2, pageToken=token)[2]
    assert "mismatch" in api.refused("months", maxFiles=3, pageToken=token)[2]
    assert "Error decoding the refresh token" in api.refused("months", refreshToken=token)[2]
    listing = api.get("shares", pageToken=token)
    assert (listing.status_code, "invalid pageToken" in listing.json()["message"]) == (400, True)
    api.clock.later(days=4)
    assert "has expired" in api.refused("months", maxFiles=2, pageToken=token)[2]


def test_a_page_token_does_not_outlive_the_grant(api: Api) -> None:
    token = api.query("months", maxFiles=2)[-1]["endStreamAction"]["nextPageToken"]
    body = {"maxFiles": 2, "pageToken": token}
    assert api.post(TABLE.format("months") + "/query", body, token=api.new_token("bob")).status_code == 404
    TokenFile(api.folder / "tokens.json", api.clock).revoke("ann")
    assert api.post(TABLE.format("months") + "/query", body).status_code == 401


# -- headers


@pytest.mark.parametrize(
    "capabilities",
    ["", ";;;===", "responseformat", "responseformat=", "responseformat=,,,", "=" * 9000, "responseformat=\x7f",
     ";".join(f"k{i}=v" for i in range(5000)), "responseformat=parquet;responseformat=delta",
     "readerfeatures=" + "x," * 9000,
     "includeendstreamaction=perhaps", "RESPONSEFORMAT=PARQUET"],
    ids=lambda c: c[:20],
)  # fmt: skip
def test_odd_capabilities_are_read_or_refused(capabilities: str, api: Api, raw: TestClient) -> None:
    headers = {**api.headers(), "delta-sharing-capabilities": capabilities, "accept-encoding": "gzip;q=x,*;q=,br;q=0"}
    assert raw.post(MONTHS + "/query", json={}, headers=headers).status_code in (200, 400)


def test_two_tokens_in_one_request_are_not_mixed(api: Api, raw: TestClient) -> None:
    good, bad = f"Bearer {api.token}", "Bearer wrong"
    for first, second in ((good, bad), (bad, good), (good, good)):
        headers = httpx.Headers([("Authorization", first), ("Authorization", second)])
        assert raw.get("/delta-sharing/shares", headers=headers).status_code == 401
    assert raw.get("/delta-sharing/shares", headers={"Authorization": f"{good}, {good}"}).status_code == 401


@pytest.mark.parametrize("header", ["Host", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-For", "Forwarded",
                                    "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"])  # fmt: skip
def test_headers_of_proxies_change_nothing(header: str, api: Api, raw: TestClient) -> None:
    for value in ("evil.example", "/delta-sharing/shares/other", "DELETE", "for=1.2.3.4;host=evil.example", "https"):
        answer = raw.post(MONTHS + "/query", json={}, headers={**api.headers(), header: value})
        assert answer.status_code == 200
        assert "evil" not in answer.text
        assert "http://127.0.0.1:8080/files/" in answer.text


def test_a_compressed_body_is_not_unpacked(api: Api, raw: TestClient) -> None:
    import gzip

    bomb = gzip.compress(b"{" + b" " * (50 << 20) + b"}")
    answer = raw.post(MONTHS + "/query", content=bomb, headers={**api.headers(), "Content-Encoding": "gzip"})
    sound(answer, api)
    assert answer.json()["message"] == "the body is no JSON"


@pytest.mark.parametrize(
    "value", ["bytes=" + ",".join(f"{i}-{i}" for i in range(5000)), "bytes=0-" + "9" * 100, "bytes=-" + "9" * 19,
              "bytes=" + "9" * 19 + "-", "bytes=00000000000000000000-1", "bytes=0-1\t", "bytes=\u0661-\u0662",
              "bytes = 0-1"],
    ids=lambda v: v[:20],
)  # fmt: skip
def test_odd_ranges_give_the_whole_file_once_or_a_refusal(value: str, api: Api, raw: TestClient) -> None:
    file = api.files("months")[0]
    answer = raw.get(file["url"], headers={"Range": value.encode()})
    assert answer.status_code in (200, 206, 416)
    assert len(answer.content) <= max(file["size"], 200)


# -- what is forbidden is like what is not there, in time as well


def test_forbidden_and_missing_take_about_as_long(api: Api) -> None:
    def median(path: str) -> float:
        times = []
        for _ in range(40):
            begun = time.process_time()
            assert api.get(path).status_code == 404
            times.append(time.process_time() - begun)
        return statistics.median(times)

    forbidden = median("shares/other/schemas/default/tables/Secret/metadata")
    missing = median("shares/nobody/schemas/default/tables/Secret/metadata")
    assert max(forbidden, missing) < 3 * min(forbidden, missing)  # opening a table would cost ten times as much
