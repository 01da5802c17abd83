"""Signed URLs: bytes for who holds one, whole or in ranges, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from lakeview.sharing.server.signing import FileSigner, Grant, Key, Keys, TokenSigner, load_keys, save_keys
from lakeview.sharing.server.tokens import TokenFile
from tests.builders.actions import add
from tests.builders.history import DeltaHistory
from tests.server.conftest import Api, RunningServer, hub_of
from tests.server.shared_lake import TABLE, configuration
from tests.server.test_queries import share


def url_of(api: Api, table: str = "months") -> str:
    return str(api.files(table)[-1]["url"])


def test_a_url_gives_the_file_whole_without_a_token(api: Api, lake: Path) -> None:
    answer = api.client.get(url_of(api))
    assert answer.content == (lake / "months/month=0/part-0.parquet").read_bytes()
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["accept-ranges"] == "bytes"
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize(
    ("header", "status", "first", "last"),
    [
        ("bytes=0-3", 206, 0, 3),
        ("bytes=4-", 206, 4, -1),
        ("bytes=-8", 206, -8, -1),
        ("bytes=0-999999999", 206, 0, -1),
        ("bytes=-999999999", 206, 0, -1),
        ("BYTES=0-0", 206, 0, 0),
        ("bytes=0-1,3-4", 200, 0, -1),
        ("bytes=3-1", 200, 0, -1),
        ("bytes=-", 200, 0, -1),
        ("rows=0-1", 200, 0, -1),
        ("nonsense", 200, 0, -1),
    ],
)
def test_ranges(api: Api, lake: Path, header: str, status: int, first: int, last: int) -> None:
    whole = (lake / "months/month=0/part-0.parquet").read_bytes()
    size = len(whole)
    start, end = first % size, last % size
    answer = api.client.get(url_of(api), headers={"Range": header})
    assert (answer.status_code, answer.content) == (status, whole[start : end + 1])
    if status == 206:
        assert answer.headers["content-range"] == f"bytes {start}-{end}/{size}"


@pytest.mark.parametrize("header", ["bytes=999999-", "bytes=-0"])
def test_a_range_behind_the_end_is_416(api: Api, lake: Path, header: str) -> None:
    answer = api.client.get(url_of(api), headers={"Range": header})
    assert answer.status_code == 416
    assert answer.headers["content-range"].startswith("bytes */")


def test_head_tells_the_size_and_no_byte(api: Api) -> None:
    answer = api.client.head(url_of(api))
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


def test_only_get_and_head(api: Api) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert api.client.request(method, url_of(api)).status_code == 405


def test_urls_bear_the_mark_that_kernel_clients_look_for(api: Api) -> None:
    assert "?sp=r&" in url_of(api)


def changed(url: str, part: str) -> str:
    """A URL with one thing in it made different."""
    match = re.search(rf"{part}=([^&]*)", url)
    assert match is not None
    other = "0" if match[1][:1] != "0" else "1"
    return url.replace(f"{part}={match[1]}", f"{part}={other}{match[1][1:]}")


@pytest.mark.parametrize("part", ["sp", "se", "rcp", "kid", "sig"])
def test_a_url_that_was_changed_is_refused(api: Api, part: str) -> None:
    url = url_of(api)
    assert api.client.get(url).status_code == 200
    for other in (changed(url, part), re.sub(rf"{part}=[^&]*&?", "", url), re.sub(rf"{part}=[^&]*", f"{part}=", url)):
        answer = api.client.get(other)
        assert (answer.status_code, answer.json()["errorCode"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    "edit",
    [
        lambda url: url + "&se=9999999999",
        lambda url: url.replace("?sp=r&", "?sp=r&se=9999999999&"),
        lambda url: url + "0",
        lambda url: url[:-1],
        lambda url: re.sub(r"sig=(\w+)", lambda m: f"sig={m[1].upper()}", url),
        lambda url: re.sub(r"sig=(\w+)", lambda m: f"sig={m[1]}%00", url),
        lambda url: re.sub(r"rcp=[^&]*", "rcp=bearer", url),
        lambda url: url.partition("?")[0],
    ],
    ids=["a second expiry", "an expiry before", "longer", "shorter", "upper case", "a zero", "another", "no query"],
)
def test_a_url_that_was_edited_is_refused(api: Api, edit: Callable[[str], str]) -> None:
    url = url_of(api)
    edited = edit(url)
    assert edited != url
    answer = api.client.get(edited)
    assert answer.status_code == 403
    assert b"PAR1" not in answer.content


@pytest.mark.parametrize(
    "path",
    ["month=1/part-1.parquet", "_delta_log/00000000000000000000.json", "../fed/a.parquet", "%2e%2e/fed/a.parquet",
     "..%2Ffed%2Fa.parquet", "/etc/passwd", "month=0/part-0.parquet/", "month=0//part-0.parquet",
     "month=0/part-0.parquet%00", "month=0\\part-0.parquet", "", "."],
)  # fmt: skip
def test_a_signature_is_of_one_path(api: Api, path: str) -> None:
    head, _, query = url_of(api).partition("?")
    table = head.split("/files/")[1].split("/")[0]
    answer = api.client.get(f"{head.split('/files/')[0]}/files/{table}/{path}?{query}")
    assert answer.status_code in (403, 404)
    assert "PAR1" not in answer.text


def test_a_signature_is_of_one_table(api: Api) -> None:
    url = url_of(api)
    mine = url.split("/files/")[1].split("/")[0]
    other = api.files("fed")[0]["url"].split("/files/")[1].split("/")[0]
    assert api.client.get(url.replace(mine, other)).status_code == 403


def test_a_url_ends_with_its_time_with_its_recipient_and_with_its_grant(api: Api, lake: Path) -> None:
    url = url_of(api)
    api.clock.later(hours=1)
    assert api.client.get(url).status_code == 200
    api.clock.later(hours=1)
    assert api.client.get(url).status_code == 403
    url = url_of(api)
    TokenFile(api.folder / "tokens.json", api.clock).revoke("ann")
    assert api.client.get(url).status_code == 403
    api.token = api.new_token("ann", timedelta(days=1))
    assert api.client.get(url).status_code == 200
    document = configuration(lake)
    document["recipients"][0]["shares"] = []
    api.hub.catalogue = hub_of(api.folder, document, api.clock).catalogue
    assert api.client.get(url).status_code == 403


def test_a_link_out_of_the_table_is_not_followed(api: Api, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    DeltaHistory(tmp_path / "linked").create().commit(add("a.parquet"), add("folder/b.parquet"))
    (tmp_path / "linked" / "a.parquet").symlink_to(secret)
    (tmp_path / "linked" / "folder").symlink_to(tmp_path)
    (tmp_path / "b.parquet").write_text("secret")
    share(api, tmp_path, "linked")
    for file in api.files("linked"):
        answer = api.client.get(file["url"])
        assert answer.status_code == 404
        assert answer.json()["message"] == "the file is not there any more; ask for the table again"


def test_a_file_that_is_gone_is_404(api: Api, tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "lost").create().commit(add("a.parquet"))
    share(api, tmp_path, "lost")
    assert api.client.get(api.files("lost")[0]["url"]).status_code == 404


# -- keys


def test_what_the_key_before_signed_is_accepted_and_older_is_not(tmp_path: Path) -> None:
    first = Keys.new()
    second, third = first.rotate(), first.rotate().rotate()
    grant = Grant("t", "r", 1)
    (query,) = FileSigner(first.files).queries(grant, ["a/b"])
    key_id, signature = re.findall(r"kid=(\w+)&sig=(\w+)", query)[0]
    assert FileSigner(second.files).allows(grant, key_id, signature, "a/b")
    assert not FileSigner(third.files).allows(grant, key_id, signature, "a/b")
    sealed = TokenSigner(first.tokens).seal("pages", ["x"])
    assert TokenSigner(second.tokens).open("pages", sealed, list[str]) == ["x"]
    assert TokenSigner(second.tokens).open("refresh", sealed, list[str]) is None
    assert TokenSigner(third.tokens).open("pages", sealed, list[str]) is None
    save_keys(tmp_path / "keys.json", second)
    assert load_keys(tmp_path / "keys.json") == second


def test_keys_are_made_once_kept_private_and_not_mixed(tmp_path: Path) -> None:
    keys = load_keys(tmp_path / "keys.json")
    assert load_keys(tmp_path / "keys.json") == keys
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600
    assert keys.files[0].secret != keys.tokens[0].secret
    assert len(Key.new().secret) == 32


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": [], "tokens": []}', '{"files": [{"id": "a", "secret": "YQ=="}], "tokens": []}']
)
def test_a_file_that_holds_no_keys_is_told(tmp_path: Path, text: str) -> None:
    from lakeview.model.errors import InvalidRequestError

    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(InvalidRequestError, match=r"keys.json is no file of signing keys"):
        load_keys(tmp_path / "keys.json")


# -- over the wire


def client(running: RunningServer) -> httpx.Client:
    return httpx.Client(headers={"Authorization": f"Bearer {running.token}"}, timeout=30)


def test_a_real_server_gives_lines_and_ranges(running: RunningServer) -> None:
    with client(running) as http:
        answer = http.post(f"{running.endpoint}/{TABLE.format('months')}/query", json={})
        lines: list[dict[str, Any]] = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["delta-table-version"] == "2"
    url = lines[-1]["file"]["url"]
    assert url.startswith(running.url)
    with httpx.Client() as anyone:
        part = anyone.get(url, headers={"Range": "bytes=0-3"})
        assert (part.status_code, part.content) == (206, b"PAR1")
        assert len(anyone.get(url).content) == lines[-1]["file"]["size"]
        assert anyone.head(url).headers["content-length"] == str(lines[-1]["file"]["size"])


def test_the_host_header_does_not_steer_urls(running: RunningServer) -> None:
    with client(running) as http:
        answer = http.post(
            f"{running.endpoint}/{TABLE.format('months')}/query",
            json={},
            headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"},
        )
    assert "evil" not in answer.text
    assert running.url in answer.text


def test_polars_reads_signed_urls(running: RunningServer) -> None:
    with client(running) as http:
        answer = http.post(f"{running.endpoint}/{TABLE.format('months')}/query", json={})
        urls = [json.loads(line)["file"]["url"] for line in answer.text.splitlines()[2:]]
        rows = pl.concat([pl.read_parquet(BytesIO(http.get(url).content)) for url in urls])
    assert sorted(rows["id"]) == list(range(12))


def test_paths_are_quoted_once_and_come_back(running: RunningServer) -> None:
    with client(running) as http:
        answer = http.post(f"{running.endpoint}/{TABLE.format('odd')}/query", json={})
        url = json.loads(answer.text.splitlines()[2])["file"]["url"]
        assert "region=a%2520b%252Fc%253Dd%2525%25C3%25A9/%C3%BC%20%23%3F%26%2B.parquet?" in url
        assert http.get(url).content == b"odd"
