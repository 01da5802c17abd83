"""Profile files and addresses: what is understood, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest

from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    NotATableError,
    UnsupportedTableError,
)
from lakeview.model.findings import Severity
from lakeview.sharing.client.profile import TableName, parse_address, parse_profile, read_profile

TOKEN = "dss_not-to-be-seen"
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
PLAIN = {"shareCredentialsVersion": 1, "endpoint": "https://share.example.com/delta/", "bearerToken": TOKEN}
OAUTH = {
    "shareCredentialsVersion": 2, "type": "oauth_client_credentials", "endpoint": "https://share.example.com",
    "tokenEndpoint": "https://login.example.com/token", "clientId": "me", "clientSecret": TOKEN, "scope": "read",
}  # fmt: skip
BASIC = {
    "shareCredentialsVersion": 2, "type": "basic", "endpoint": "https://share.example.com", "username": "me",
    "password": TOKEN,
}  # fmt: skip


def parsed(content: dict[str, Any]) -> Any:
    return parse_profile(json.dumps(content).encode(), "team.share")


def test_the_first_version_has_a_bearer_token_and_an_endpoint_with_or_without_a_slash() -> None:
    profile_found = parsed(PLAIN | {"expirationTime": "2026-07-01T14:00:00.0+02:00", "comment": "ignored"})
    assert (profile_found.kind, profile_found.endpoint) == ("bearer_token", "https://share.example.com/delta")
    assert profile_found.secret.reveal() == TOKEN
    assert profile_found.expires == NOW


@pytest.mark.parametrize(
    ("content", "kind", "user"),
    [
        (PLAIN | {"shareCredentialsVersion": 2, "type": "bearer_token"}, "bearer_token", ""),
        (BASIC, "basic", "me"),
        (OAUTH, "oauth_client_credentials", "me"),
        (OAUTH | {"type": "persistent_oauth2.0"}, "oauth_client_credentials", "me"),
    ],
    ids=["a token", "a login", "client credentials", "client credentials by their older word"],
)
def test_the_second_version_has(content: dict[str, Any], kind: str, user: str) -> None:
    profile_found = parsed(content)
    assert (profile_found.kind, profile_found.user, profile_found.secret.reveal()) == (kind, user, TOKEN)


REFUSED: dict[str, tuple[dict[str, Any], type[LakeviewError], str]] = {
    "a newer version": (PLAIN | {"shareCredentialsVersion": 3}, UnsupportedTableError, "is of version 3; .* up to 2"),
    "credentials of an unknown type": (
        OAUTH | {"type": "oauth_jwt_bearer_private_key_jwt"}, UnsupportedTableError, "type oauth_jwt_bearer",
    ),
    "a token as its type": (OAUTH | {"type": TOKEN}, UnsupportedTableError, "credentials of another type"),
    "no endpoint": ({**PLAIN, "endpoint": ""}, InvalidRequestError, "names no endpoint"),
    "an endpoint that is a file": ({**PLAIN, "endpoint": "file:///etc"}, InvalidRequestError, "names no endpoint"),
    "no token": ({k: v for k, v in PLAIN.items() if k != "bearerToken"}, InvalidRequestError, "has no bearerToken"),
    "a token that breaks the header": (PLAIN | {"bearerToken": f"{TOKEN}\r\nX: y"}, InvalidRequestError, "no header"),
    "a token that is a number": (PLAIN | {"bearerToken": 7}, InvalidRequestError, "Expected `str"),
    "no version": ({"endpoint": "https://a", "bearerToken": TOKEN}, InvalidRequestError, "shareCredentialsVersion"),
    "an expiry that is no time": (PLAIN | {"expirationTime": "soon"}, InvalidRequestError, "that is no time"),
    "no token endpoint": ({**OAUTH, "tokenEndpoint": ""}, InvalidRequestError, "has no tokenEndpoint"),
    "no client id": ({k: v for k, v in OAUTH.items() if k != "clientId"}, InvalidRequestError, "has no clientId"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_a_profile_is_refused_for(content: dict[str, Any], error: type[LakeviewError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        parsed(content)
    assert caught.value.fix
    assert TOKEN not in str(caught.value)


def test_what_is_no_json_is_not_quoted() -> None:
    with pytest.raises(InvalidRequestError, match="it is not JSON") as caught:
        parse_profile(f'{{"bearerToken": "{TOKEN}"'.encode(), "team.share")
    assert caught.value.__cause__ is None
    assert TOKEN not in f"{caught.value!r}{caught.value}"


def test_a_secret_is_not_shown_and_does_not_travel() -> None:
    profile_found = parsed(PLAIN)
    assert (
        TOKEN
        not in f"{profile_found!r} {profile_found} {profile_found.secret!r} {profile_found.secret} {[profile_found]}"
    )
    with pytest.raises(LakeviewError, match="does not travel"):
        pickle.dumps(profile_found)


def test_an_expired_profile_is_refused_before_a_request() -> None:
    profile_found = parsed(PLAIN | {"expirationTime": "2026-07-01T12:00:00Z"})
    profile_found.check(NOW - timedelta(seconds=1))
    with pytest.raises(AccessDeniedError, match="expired on 2026-07-01 at 12:00 UTC") as caught:
        profile_found.check(NOW)
    assert caught.value.kind == "expired-profile"


@pytest.mark.parametrize(
    ("days", "severity"), [(8, None), (3, Severity.ATTENTION), (-1, Severity.BROKEN)], ids=["far", "near", "past"]
)
def test_the_end_of_a_profile_is_told_a_week_before(days: int, severity: Severity | None) -> None:
    findings = parsed(PLAIN | {"expirationTime": (NOW + timedelta(days=days)).isoformat()}).findings(NOW)
    assert [f.severity for f in findings] == ([] if severity is None else [severity])


def test_a_profile_that_others_can_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "team.share"
    path.write_text(json.dumps(PLAIN))
    path.chmod(0o644)
    assert "chmod 600" in str(read_profile(path).findings(NOW)[0].remedy)
    path.chmod(0o600)
    assert read_profile(path).findings(NOW) == []


def test_a_profile_is_read_from_any_store() -> None:
    fsspec.filesystem("memory").pipe_file("/profiles/team.share", json.dumps(PLAIN).encode())
    assert read_profile("memory://profiles/team.share").endpoint == "https://share.example.com/delta"


def test_a_profile_that_is_not_there_or_not_allowed(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match=r"there is no profile at .*none\.share"):
        read_profile(tmp_path / "none.share")
    (tmp_path / "file").touch()
    with pytest.raises(NotATableError, match="there is no profile at"):
        read_profile(tmp_path / "file" / "none.share")
    with pytest.raises(AccessDeniedError, match="outside the allowed roots"):
        read_profile(tmp_path / "none.share", config=Config(roots=(str(tmp_path / "elsewhere"),)))


@pytest.mark.parametrize("address", ["http://localhost:1", "https://share.example.com", "s3://bucket"])
def test_the_address_of_a_server_is_no_profile(address: str) -> None:
    with pytest.raises(NotATableError, match="which names no file") as refused:
        read_profile(address)
    assert refused.value.fix == "give the path or address of the profile file that you were sent"


ADDRESSES = {
    "a local profile": ("team.share#s.d.t", ("team.share", TableName("s", "d", "t"))),
    "a profile in a store, of any name": ("s3://b/p.json#s.d.t", ("s3://b/p.json", TableName("s", "d", "t"))),
    "a share with periods": ("team.share#s.1.d.t", ("team.share", TableName("s.1", "d", "t"))),
    "a path that holds a mark itself": ("a#b/team.share#s.d.t", ("a#b/team.share", TableName("s", "d", "t"))),
    "a table's folder": ("lake/orders", None),
    "a folder with a mark": ("lake/orders#2", None),
}


@pytest.mark.parametrize(("address", "parts"), ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_is_told_from(address: str, parts: object) -> None:
    assert parse_address(address) == parts


def test_a_folder_that_is_called_like_a_shared_table_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "x#a.b.c"
    folder.mkdir()
    assert parse_address(str(folder)) is None


@pytest.mark.parametrize("name", ["", "s", "s.d", "s..t", "s..d.t"])
def test_a_profile_followed_by_no_table_is_told(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="names no shared table"):
        parse_address(f"team.share#{name}")
