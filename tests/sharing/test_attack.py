"""Servers that mean harm, against our client: bombs, redirects, odd headers, texts that are not what they seem."""

from __future__ import annotations

import gzip
import json
import resource
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lakeview.model.errors import AccessDeniedError, LakeviewError, SharingError
from lakeview.sharing.client.answers import read_answer
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.file_lines import read_file_lines
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.opening import open_shared
from lakeview.sharing.client.profile import TableName, parse_profile
from lakeview.sharing.client.refusals import retry_after
from lakeview.sharing.protocol.messages import QueryRequest
from tests.builders.shares import TOKEN, SharingServer

ORDERS = TableName("sales", "eu", "orders")
HEAD = b'{"protocol":{"minReaderVersion":1}}\n{"metaData":{"id":"t","schemaString":"{}","partitionColumns":[]}}\n'
VERSION = {"Delta-Table-Version": "0"}
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


def client(server: SharingServer, limits: Limits | None = None) -> SharingClient:
    profile = parse_profile(json.dumps(server.profile()).encode(), "team.share")
    return SharingClient(profile, limits=limits or Limits(attempts=2, patience=5))


@cache
def bomb(size: int) -> bytes:
    """So many bytes of blank lines, packed a thousand times smaller."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"\n" * (1 << 20)
    return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_packed_bomb_is_cut_off_before_it_takes_memory(packing: str, server: SharingServer) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    server.answer_with("POST", 200, bomb(256 << 20), {**VERSION, "Content-Encoding": packing})
    with pytest.raises(SharingError, match="sent more than 16,777,216 bytes"):
        client(server, Limits(stream=16 << 20)).query(ORDERS, QueryRequest())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


@pytest.mark.parametrize("packing", ["gzip, gzip", "zstd", "br", "nonsense", "gzip\x0b"])
def test_packings_that_were_not_asked_for_are_refused(packing: str, server: SharingServer) -> None:
    body = gzip.compress(gzip.compress(HEAD))
    server.answer_with("POST", 200, body, {**VERSION, "Content-Encoding": packing}, times=9)
    with pytest.raises(LakeviewError) as caught:
        client(server).query(ORDERS, QueryRequest())
    assert caught.value.kind in ("bad-answer", "store-unavailable")


@pytest.mark.parametrize(
    "body", [gzip.compress(HEAD)[:-9], gzip.compress(HEAD) + b"more", b"\x1f\x8bnonsense", HEAD],
    ids=["cut", "followed by more", "broken", "none"],
)  # fmt: skip
def test_a_packing_that_is_broken_is_told(body: bytes, server: SharingServer) -> None:
    server.answer_with("POST", 200, body, {**VERSION, "Content-Encoding": "gzip"})
    with pytest.raises(SharingError, match="broken where it is unpacked"):
        client(server).query(ORDERS, QueryRequest())


@pytest.mark.parametrize("cut", [None, 40, len(HEAD)], ids=["one member", "cut in a line", "cut after a line"])
def test_a_packed_answer_is_read(cut: int | None, server: SharingServer) -> None:
    data = HEAD + b'{"file":{"id":"f","url":"u","size":1}}\n'
    members = [data] if cut is None else [data[:cut], data[cut:]]
    server.answer_with("POST", 200, b"".join(map(gzip.compress, members)), {**VERSION, "Content-Encoding": "gzip"})
    assert len(client(server).query(ORDERS, QueryRequest()).files) == 1
    assert server.requests[-1].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    "to", ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "/elsewhere", "//evil/x", "https://[::1"]
)
def test_the_token_follows_no_redirect(to: str, server: SharingServer) -> None:
    for pattern in ("GET", "POST"):
        server.answer_with(pattern, 302, b"", {"Location": to}, times=9)
    sharing_client = client(server)
    for call in (
        sharing_client.shares,
        lambda: sharing_client.query(ORDERS, QueryRequest()),
        lambda: sharing_client.version(ORDERS),
    ):
        with pytest.raises(LakeviewError) as caught:
            call()
        assert TOKEN not in str(caught.value)
    assert {a.path.partition("/sharing")[0] for a in server.requests} == {""}


def shared(server: SharingServer, tmp_path: Path, url: str) -> object:
    """The rows of a table whose one file lies at this URL."""
    metadata = {"id": "t", "format": {"provider": "parquet"}, "schemaString": SCHEMA, "partitionColumns": []}
    file = {"url": url, "id": "f", "partitionValues": {}, "size": 100}
    lines = [{"protocol": {"minReaderVersion": 1}}, {"metaData": metadata}, {"file": file}]
    body = "\n".join(map(json.dumps, lines)).encode()
    server.answer_with("/version", 200, b"", VERSION, times=9)
    server.answer_with("/metadata", 200, "\n".join(map(json.dumps, lines[:2])).encode(), VERSION, times=9)
    server.answer_with("POST", 200, body, VERSION, times=9)
    profile = tmp_path / "team.share"
    profile.write_text(json.dumps(server.profile()))
    return open_shared(f"{profile}#sales.eu.orders").scan().collect()


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "/etc/passwd", "../x", "ftp://host/x", "s3://bucket/x", "gopher://127.0.0.1:25/x", "http://",
     "https://[::1", "http://evil.example/x", "javascript:alert(1)", "data:,x", "https:///x", "", "\u0000",
     "http://127.0.0.1\r\nX: y/", "https://127.0.0.1:99999/x", "https://user:pw@/x"],
)  # fmt: skip
def test_a_file_url_that_leads_anywhere_but_the_web_reads_nothing(
    url: str, server: SharingServer, tmp_path: Path
) -> None:
    with pytest.raises(LakeviewError) as caught:
        shared(server, tmp_path, url)
    assert "root:" not in str(caught.value)


@pytest.mark.parametrize("to", ["https://[::1", "http://evil.example/x", "file:///etc/passwd"])
def test_a_store_that_leads_away_is_not_followed(to: str, server: SharingServer, tmp_path: Path) -> None:
    server.answer_with("/leads", 302, b"", {"Location": to}, times=9)
    with pytest.raises(LakeviewError):
        shared(server, tmp_path, f"{server.url}/leads")


def test_messages_of_a_server_are_text_without_control_and_short(server: SharingServer) -> None:
    document = {"errorCode": "X", "message": "\x1b[31mred\r\n" + "long " * 20_000 + "\u0000"}
    server.answer_with("GET", 400, document)
    with pytest.raises(SharingError, match=r"\(400\): \[31mred") as caught:
        client(server).shares()
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "line",
    [
        {"endStreamAction": {"errorMessage": "\x1b[31m" + "long " * 500}},
        {"file": {"id": "\x1b" * 900, "deltaSingleAction": {}}},
    ],
)
def test_texts_within_an_answer_are_so_too(line: dict[str, Any]) -> None:
    with pytest.raises(SharingError) as caught:
        read_file_lines(read_answer([*HEAD.splitlines(), json.dumps(line).encode()], 0).files)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("version", ["-1", "1e3", "\u0661".encode().decode("latin-1"), "", "9" * 4000, "1, 2"])
def test_versions_that_are_none_are_refused(version: str, server: SharingServer) -> None:
    server.answer_with("/version", 200, b"", {"Delta-Table-Version": version})
    with pytest.raises((SharingError, AccessDeniedError)):
        client(server).version(ORDERS)


@pytest.mark.parametrize("wait", ["-5", "nan", "inf", "1e309", "soon", "9" * 400])
def test_odd_waits_are_not_waited_for(wait: str, server: SharingServer) -> None:
    server.answer_with("/version", 429, b"", {"Retry-After": wait}, times=9)
    with pytest.raises(LakeviewError):
        client(server, Limits(attempts=2, patience=2)).version(ORDERS)


DATES = {
    "one later than the answer's own": ("Sun, 22 Nov 2026 12:00:30 GMT", "Sun, 22 Nov 2026 12:00:00 GMT", 30.0),
    "one of the past": ("Sun, 22 Nov 2026 11:00:00 GMT", "Sun, 22 Nov 2026 12:00:00 GMT", 0.0),
    "one of another zone": ("Sun, 22 Nov 2026 13:00:30 +0100", "Sun, 22 Nov 2026 12:00:00 GMT", 30.0),
    "one without a zone": ("Sun Nov 22 12:00:30 2026", "Sun, 22 Nov 2026 12:00:00 GMT", 30.0),
    "an answer without a date": ("Sun, 22 Nov 2026 12:00:30 GMT", None, 0.0),
    "no date": ("the day after tomorrow", "Sun, 22 Nov 2026 12:00:00 GMT", 0.0),
    "a day that there is not": ("Sun, 99 Nov 2026 12:00:30 GMT", "Sun, 22 Nov 2026 12:00:00 GMT", 0.0),
    "a number": ("7", None, 7.0),
    "nothing": ("", None, 0.0),
}


@pytest.mark.parametrize(("then", "now", "seconds"), DATES.values(), ids=DATES)
def test_when_to_ask_again_may_be_a_date(then: str, now: str | None, seconds: float) -> None:
    headers = {"Retry-After": then} | ({} if now is None else {"Date": now})
    assert retry_after(headers) == seconds
