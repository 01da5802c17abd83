"""Who may ask: tokens, their life, and how often."""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.tokens import PREFIX, TokenFile, digest
from tests.server.conftest import Api, Clock
from tests.server.shared_lake import configuration, write_configuration


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic dTpw", "bearer lvs_", "Bearer " + "x" * 5000, "lvs_abc"],
)
@pytest.mark.parametrize("path", ["shares", "shares/lake", "shares/nothing", "shares/lake/schemas/a/tables/b/version"])
def test_without_a_token_nothing_is_said_about_what_exists(api: Api, header: str | None, path: str) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = api.client.get(f"/delta-sharing/{path}", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {
        "errorCode": "UNAUTHENTICATED",
        "message": "the bearer token is missing or not known here",
    }


def test_an_expired_token_is_told_so(api: Api) -> None:
    token = api.new_token("bob", timedelta(hours=1))
    assert api.get("shares", token).status_code == 200
    api.clock.later(hours=1)
    answer = api.get("shares", token)
    assert answer.status_code == 401
    assert answer.json()["message"] == "the bearer token has expired, please ask your share provider for a new one"


def test_a_revoked_token_ends_with_the_next_request(api: Api) -> None:
    book = TokenFile(api.folder / "tokens.json", api.clock)
    assert api.get("shares").status_code == 200
    book.revoke("ann")
    answer = api.get("shares")
    assert answer.status_code == 401
    assert "was revoked" in answer.json()["message"]


def test_a_blocked_recipient_is_refused_whatever_it_asks(api: Api, lake: Path) -> None:
    document = configuration(lake)
    document["recipients"][0]["blocked"] = True
    write_configuration(api.config, document)
    api.clock.later(seconds=2)
    answer = api.get("shares/nothing")
    assert (answer.status_code, answer.json()["errorCode"]) == (403, "PERMISSION_DENIED")


def test_the_reference_servers_one_token_opens_every_share(api: Api, lake: Path) -> None:
    write_configuration(api.config, configuration(lake, authorization={"bearerToken": "the one"}))
    api.clock.later(seconds=2)
    shares = api.get("shares", "the one").json()["items"]
    assert [share["name"] for share in shares] == ["lake", "other"]


def test_tokens_are_kept_as_hashes_in_a_file_of_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    text, entry = TokenFile(path, Clock()).create("ann")
    assert text.startswith(PREFIX)
    assert len(text) >= len(PREFIX) + 43  # 256 bits
    assert entry.sha256 == digest(text)
    assert text not in path.read_text()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_recipient_has_two_live_tokens_at_most(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens.json", Clock())
    book.create("ann")
    book.create("ann")
    book.create("bob")
    with pytest.raises(InvalidRequestError, match="ann has 2 live tokens already") as caught:
        book.create("ann")
    assert caught.value.kind == "too-many-tokens"


def test_rotation_leaves_the_old_token_for_a_while(tmp_path: Path) -> None:
    clock = Clock()
    book = TokenFile(tmp_path / "tokens.json", clock)
    _, old = book.create("ann")
    _, new = book.rotate("ann", timedelta(days=90), timedelta(hours=24))

    def states() -> dict[str, str]:
        return {t.id: t.state(clock()) for t in book.tokens()}

    assert states() == {old.id: "live", new.id: "live"}
    _, newest = book.rotate("ann", timedelta(days=90), timedelta(hours=24))
    assert states() == {old.id: "revoked", new.id: "live", newest.id: "live"}
    clock.later(hours=24)
    assert states() == {old.id: "revoked", new.id: "expired", newest.id: "live"}


def test_a_broken_file_of_tokens_lets_nobody_in_and_leaks_nothing(api: Api) -> None:
    (api.folder / "tokens.json").write_text("{")
    answer = api.get("shares")
    assert answer.status_code == 401
    with pytest.raises(InvalidRequestError, match=r"tokens.json is no file of tokens"):
        TokenFile(api.folder / "tokens.json", api.clock).tokens()


def test_too_many_requests_are_told_when_to_come_back(api: Api, lake: Path, tmp_path: Path) -> None:
    api.hub.api_rate._burst = 3
    statuses = [api.get("shares").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    answer = api.get("shares")
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["errorCode"] == "RESOURCE_EXHAUSTED"
    assert api.get("shares", api.new_token("bob")).status_code == 200  # others are not held up
    api.clock.later(seconds=1)
    assert api.get("shares").status_code == 200


def test_guessing_tokens_is_slowed_down(api: Api) -> None:
    statuses = [api.get("shares", "wrong").status_code for _ in range(60)]
    assert statuses.count(401) == 50
    assert statuses[-1] == 429


def test_no_token_and_no_signature_reach_the_log(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="lakeview.sharing.server")
    files = api.files("months")
    api.client.get(files[0]["url"])
    api.files("some")
    api.post("shares/lake/schemas/default/tables/broken/query", {})
    log_text = "\n".join(r.getMessage() for r in caplog.records if r.name == "lakeview.sharing.server")
    assert "cannot be read at line" in log_text
    assert api.token not in log_text
    assert "sig=" not in log_text
