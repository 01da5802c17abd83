"""The file of tokens in clumsy hands: edited, linked, changed by several at once, of another owner."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.tokens import TokenFile
from tests.server.conftest import Api, Clock
from tests.server.shared_lake import configuration, write_configuration

Tokens = list[dict[str, Any]]


def edited(path: Path, change: Callable[[Tokens], object]) -> None:
    """The file as somebody leaves it who edits it by hand."""
    document = json.loads(path.read_text())
    change(document["tokens"])
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[0].update(expires="2027-01-01T00:00:00"), "timezone"),
        (lambda t: t[0].update(created="yesterday"), "Invalid RFC3339"),
        (lambda t: t.append({**t[0], "id": "other", "sha256": "é" * 64}), "matching regex"),
        (lambda t: t[0].update(sha256=t[0]["sha256"].upper()), "matching regex"),
        (lambda t: t.append({**t[0], "id": "copied", "recipient": "bob"}), "two tokens have the sha256"),
        (lambda t: t.append({**t[0], "sha256": "0" * 64}), "two tokens have the id"),
        (lambda t: t[0].pop("recipient"), "missing required field `recipient`"),
    ],
)
def test_a_file_of_tokens_that_leaves_anything_open_lets_nobody_in(
    api: Api, caplog: pytest.LogCaptureFixture, change: Callable[[Tokens], object], message: str
) -> None:
    edited(api.folder / "tokens.json", change)
    for _ in range(3):
        assert api.get("shares").status_code == 401
    messages = [r.getMessage() for r in caplog.records if "every request is refused" in r.getMessage()]
    assert len(messages) == 1  # and not again with each request
    assert message in messages[0]


def test_a_token_that_is_there_revoked_and_copied_does_not_open_anything(api: Api) -> None:
    edited(api.folder / "tokens.json", lambda t: t.insert(0, {**t[0], "id": "x", "revoked": "2026-01-01T00:00:00Z"}))
    assert api.get("shares").status_code == 401


def test_a_file_of_tokens_that_is_mended_is_read_again(api: Api) -> None:
    path = api.folder / "tokens.json"
    before = path.read_bytes()
    path.write_bytes(before[:-5])
    assert api.get("shares").status_code == 401
    path.write_bytes(before)
    assert api.get("shares").status_code == 200


def test_a_place_that_is_no_file_lets_nobody_in(api: Api) -> None:
    path = api.folder / "tokens.json"
    path.unlink()
    path.symlink_to(path)  # a link to itself
    assert api.get("shares").status_code == 401


def test_several_processes_lose_none_of_each_others_changes(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    clock = Clock()
    first = [TokenFile(path, clock).create(f"r{i}")[1] for i in range(4)]

    def change(i: int) -> None:  # each with a file of its own, as processes have
        if i < 4:
            TokenFile(path, clock).revoke(first[i].id)
        elif i < 8:
            TokenFile(path, clock).rotate(f"r{i}", None, timedelta())
        else:
            TokenFile(path, clock).create(f"r{i}")

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(change, range(12)))
    tokens = TokenFile(path, clock).tokens()
    assert len(tokens) == 12
    assert {t.recipient for t in tokens if t.revoked is not None} == {"r0", "r1", "r2", "r3"}


def test_a_token_that_is_rotated_away_at_once_stays_so_when_the_clock_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    book = TokenFile(tmp_path / "tokens.json", clock)
    _, old = book.create("ann")
    book.rotate("ann", None, timedelta())
    clock.later(minutes=-5)
    assert {t.id: t.state(clock()) for t in book.tokens()}[old.id] == "revoked"


def test_a_rotation_leaves_what_has_ended_as_it_is(tmp_path: Path) -> None:
    clock = Clock()
    book = TokenFile(tmp_path / "tokens.json", clock)
    book.create("ann", timedelta(hours=1))
    clock.later(hours=2)
    (before,) = book.tokens()
    book.rotate("ann", None, timedelta(hours=24))
    assert book.tokens()[0] == before


def test_a_linked_file_of_tokens_is_changed_where_it_lies(tmp_path: Path) -> None:
    real = tmp_path / "vault" / "real.json"
    link = tmp_path / "tokens.json"
    TokenFile(real, Clock()).create("ann")
    link.symlink_to(real)
    TokenFile(link, Clock()).revoke("ann")
    assert link.is_symlink()
    assert "revoked" in real.read_text()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")
def test_a_token_made_by_root_leaves_the_file_to_the_server(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    book = TokenFile(path, Clock())
    book.create("ann")
    os.chown(path, 12345, 12345)
    book.create("bob")
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) == (12345, 12345, 0o600)


def test_tokens_are_read_from_where_the_changed_configuration_says(api: Api, lake: Path) -> None:
    write_configuration(api.config, configuration(lake, tokens="new.json"))
    api.clock.later(seconds=2)
    assert api.get("shares").status_code == 401
    token, _ = TokenFile(api.folder / "new.json", api.clock).create("ann")
    assert api.get("shares", token).status_code == 200


def test_whoever_guesses_tokens_holds_up_nobody_at_the_same_address(api: Api) -> None:
    for _ in range(60):
        api.get("shares", "wrong")
    assert api.get("shares", "wrong").status_code == 429
    assert api.get("shares").status_code == 200


def test_a_token_that_a_person_chose_cannot_be_guessed_while_guesses_are_held_up(api: Api, lake: Path) -> None:
    write_configuration(api.config, configuration(lake, authorization={"bearerToken": "secret"}))
    api.clock.later(seconds=2)
    assert api.get("shares", "secret").status_code == 200
    for _ in range(60):
        api.get("shares", "wrong")
    assert api.get("shares", "secret").status_code == 429


def test_more_than_two_live_tokens_are_refused_and_leave_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    book = TokenFile(path, Clock())
    book.create("ann")
    book.create("ann")
    before = path.read_bytes()
    with pytest.raises(InvalidRequestError, match="ann has 2 live tokens already"):
        book.create("ann")
    assert path.read_bytes() == before
