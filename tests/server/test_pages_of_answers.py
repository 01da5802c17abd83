"""Answers of several pages, and answers under fresh URLs: tokens bound to who asked what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builders.history import DeltaHistory
from tests.server.conftest import Api, lines
from tests.server.shared_lake import TABLE
from tests.server.test_queries import share


def ends(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return dict(lines[-1]["endStreamAction"])


def test_pages_of_two_add_up_and_repeat_the_head(api: Api) -> None:
    whole = api.query("months")
    files: list[dict[str, Any]] = []
    token: dict[str, Any] = {}
    for _ in range(3):
        answer = api.post(TABLE.format("months") + "/query", {"maxFiles": 2, **token})
        assert answer.headers["delta-sharing-capabilities"] == "responseformat=parquet;includeendstreamaction=true"
        page = lines(answer)
        assert page[:2] == whole[:2]
        files += page[2:-1]
        token = {"pageToken": ends(page).get("nextPageToken")}
    assert files == whole[2:]
    assert token == {"pageToken": None}


def test_a_page_is_of_the_version_its_first_was_of(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "paged").create()
    history.commit(history.data("a.parquet", {"id": [1]}), history.data("b.parquet", {"id": [2]}))
    share(api, tmp_path, "paged")
    first = api.query("paged", maxFiles=1)
    history.commit(history.data("c.parquet", {"id": [3]}))
    second = api.query("paged", maxFiles=1, pageToken=ends(first)["nextPageToken"])
    assert {f["file"]["url"].partition("?")[0][-9:] for f in (first[2], second[2])} == {"a.parquet", "b.parquet"}
    assert "nextPageToken" not in ends(second)


def test_page_tokens_are_bound_to_their_request(api: Api) -> None:
    token = ends(api.query("months", maxFiles=2))["nextPageToken"]
    assert "mismatch" in api.refused("months", maxFiles=3, pageToken=token)[2]
    assert "mismatch" in api.refused("months", maxFiles=2, limitHint=1, pageToken=token)[2]
    assert "does not match the table" in api.refused("empty", maxFiles=2, pageToken=token)[2]
    tampered = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    assert "Error decoding the page token" in api.refused("months", maxFiles=2, pageToken=tampered)[2]
    api.clock.later(days=3)
    assert "has expired" in api.refused("months", maxFiles=2, pageToken=token)[2]


def test_an_end_of_stream_comes_only_where_it_was_agreed(api: Api) -> None:
    assert "file" in api.query("months")[-1]
    capabilities = {"delta-sharing-capabilities": "includeEndStreamAction=true"}
    answer = api.post(TABLE.format("months") + "/query", {}, capabilities)
    assert "includeendstreamaction=true" in answer.headers["delta-sharing-capabilities"]
    end = ends(lines(answer))
    assert end == {"minUrlExpirationTimestamp": lines(answer)[2]["file"]["expirationTimestamp"]}


def test_a_refresh_gives_the_same_files_under_fresh_urls(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "fresh").create()
    history.commit(history.data("a.parquet", {"id": [1]}))
    share(api, tmp_path, "fresh")
    first = api.query("fresh", includeRefreshToken=True)
    history.commit(history.data("b.parquet", {"id": [2]}))
    api.clock.later(minutes=50)
    second = api.query("fresh", refreshToken=ends(first)["refreshToken"], includeRefreshToken=True)
    assert [f["file"]["id"] for f in second[2:-1]] == [f["file"]["id"] for f in first[2:-1]]
    assert second[2]["file"]["url"] != first[2]["file"]["url"]
    api.clock.later(minutes=20)
    assert "The refresh token has expired" in api.refused("fresh", refreshToken=ends(first)["refreshToken"])[2]
