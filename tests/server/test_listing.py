"""Listings: what a recipient sees, page by page, under any spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Api
from tests.server.shared_lake import TABLE, configuration, write_configuration

NAMES = ["months", "fed", "vectors", "mapped", "empty", "broken", "odd", "some"]


def names(answer: Any) -> list[str]:
    return [item["name"] for item in answer.json()["items"]]


def test_a_recipient_sees_the_shares_granted_and_no_other(api: Api) -> None:
    assert names(api.get("shares")) == ["lake"]
    assert names(api.get("shares", api.new_token("bob"))) == ["other"]


def test_listings_are_in_the_order_of_the_configuration_and_have_their_ids(api: Api) -> None:
    share = api.get("shares/lake").json()["share"]
    assert share["name"] == "lake"
    assert api.get("shares/lake/schemas").json() == {"items": [{"name": "default", "share": "lake"}]}
    tables = api.get("shares/lake/schemas/default/tables").json()["items"]
    assert [t["name"] for t in tables] == NAMES
    assert {t["shareId"] for t in tables} == {share["id"]}
    assert len({t["id"] for t in tables}) == len(tables)
    assert api.get("shares/lake/all-tables").json()["items"] == tables


@pytest.mark.parametrize("path", ["shares/lake/all-tables", "shares/lake/schemas/default/tables"])
def test_pages_of_one_add_up_to_the_whole_list(api: Api, path: str) -> None:
    texts: list[str] = []
    token: dict[str, Any] = {}
    for _ in NAMES:
        page = api.get(path, maxResults=1, **token).json()
        texts += [item["name"] for item in page["items"]]
        token = {"pageToken": page["nextPageToken"]} if "nextPageToken" in page else {}
    assert (texts, token) == (NAMES, {})


def test_a_page_of_none_is_empty_and_goes_on(api: Api) -> None:
    page = api.get("shares/lake/all-tables", maxResults=0).json()
    assert page["items"] == []
    assert names(api.get("shares/lake/all-tables", pageToken=page["nextPageToken"])) == NAMES


@pytest.mark.parametrize("most", ["-1", "501", "x", "1.5", "9" * 30, "٣"])
def test_a_page_size_that_cannot_be_is_refused(api: Api, most: str) -> None:
    answer = api.get("shares", maxResults=most)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")


def test_page_tokens_are_of_one_listing_and_one_recipient(api: Api) -> None:
    token = api.get("shares/lake/all-tables", maxResults=1).json()["nextPageToken"]
    both = {"maxResults": 1, "pageToken": token}
    for answer in (
        api.get("shares/lake/schemas/default/tables", **both),
        api.get("shares", **both),
        api.get("shares/lake/all-tables", pageToken=token[:-2] + "AA"),
        api.get("shares/lake/all-tables", pageToken="nonsense"),
        api.get("shares/lake/all-tables", pageToken="\u00e4%00"),
    ):
        assert answer.status_code == 400
        assert answer.json()["message"] == "invalid pageToken: it is none of this listing"


def test_names_are_found_in_any_case_and_answered_as_they_are(api: Api) -> None:
    assert api.get("shares/LaKe").json()["share"]["name"] == "lake"
    tables = api.get("shares/LAKE/schemas/Default/tables").json()["items"]
    assert {(t["share"], t["schema"]) for t in tables} == {("lake", "default")}
    assert api.get("shares/LAKE/schemas/DEFAULT/tables/MONTHS/version").headers["Delta-Table-Version"] == "2"


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ("shares/other", "shares/nothing"),
        ("shares/other/schemas", "shares/nothing/schemas"),
        ("shares/other/all-tables", "shares/nothing/all-tables"),
        ("shares/other/schemas/default/tables", "shares/nothing/schemas/default/tables"),
        (TABLE.format("Secret").replace("lake", "other") + "/version", TABLE.format("Secret") + "/version"),
        (TABLE.format("Secret").replace("lake", "other") + "/metadata", TABLE.format("Secret") + "/metadata"),
    ],
)
def test_what_is_not_granted_looks_like_what_is_not_there(api: Api, granted: str, missing: str) -> None:
    forbidden, absent = api.get(granted), api.get(missing)
    assert forbidden.status_code == absent.status_code == 404
    renamed = absent.text.replace("nothing", "other").replace("'lake/", "'other/")
    assert forbidden.text == renamed

    def own_headers(answer: Any) -> dict[str, str]:
        return {k: v for k, v in answer.headers.items() if k not in ("x-request-id", "content-length", "date")}

    assert own_headers(forbidden) == own_headers(absent)


def test_the_message_of_a_missing_table_names_what_was_asked_for(api: Api) -> None:
    answer = api.get("shares/Lake/schemas/x/tables/y/version")
    assert answer.json() == {
        "errorCode": "RESOURCE_DOES_NOT_EXIST",
        "message": "[Share/Schema/Table] 'Lake/x/y' does not exist, please contact your share provider for further "
        "information.",
    }
    assert answer.headers["content-type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize("path", ["", "nothing", "shares/lake/nothing", "shares/lake/schemas/default/tables/months/x"])
def test_what_is_no_endpoint_is_told_in_json(api: Api, path: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.json()["errorCode"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_method_that_an_endpoint_has_not_is_told_in_json(api: Api) -> None:
    answer = api.post("shares", {})
    assert (answer.status_code, answer.json()["errorCode"]) == (405, "MALFORMED_REQUEST")


def test_an_empty_page_token_is_the_first_page(api: Api) -> None:
    first = api.get("shares/lake/all-tables", maxResults=1)
    assert api.get("shares/lake/all-tables", maxResults=1, pageToken="").json()["items"] == first.json()["items"]


def test_a_share_without_schemas_has_no_items(api: Api, lake: Path) -> None:
    recipients = [{"name": "ann", "shares": ["bare"]}]
    write_configuration(api.config, configuration(lake, shares=[{"name": "bare"}], recipients=recipients))
    api.clock.later(seconds=2)
    assert names(api.get("shares")) == ["bare"]
    assert [api.get(f"shares/bare/{kind}").json() for kind in ("schemas", "all-tables")] == [{"items": []}] * 2
