"""`lakeview share`: tokens by command, keys, and a server that runs as a user starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from lakeview.cli import main
from lakeview.sharing.server.signing import load_keys
from tests.server.shared_lake import configuration, months, write_configuration


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose tables nobody asks for."""
    return write_configuration(tmp_path / "server.yaml", configuration(tmp_path / "lake", port=8099))


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["share", *map(str, words)])


def tokens(config: Path) -> list[dict[str, Any]]:
    tokens_found: list[dict[str, Any]] = json.loads(run("token", "list", config, "--json").stdout)
    return tokens_found


def test_a_token_is_shown_once_as_a_profile(config: Path) -> None:
    done = run("token", "create", config, "ann")
    profile = json.loads(done.stdout)
    assert profile["shareCredentialsVersion"] == 1
    assert profile["endpoint"] == "http://127.0.0.1:8099/delta-sharing/"
    assert profile["expirationTime"].endswith("Z")
    (token,) = tokens(config)
    assert (token["recipient"], token["state"]) == ("ann", "live")
    assert profile["bearerToken"] not in run("token", "list", config).stdout
    assert f"token {token['id']} of ann; it is not shown again" in done.stderr


def test_files_of_the_folder_where_a_command_runs_are_named_without_it(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    done = run("token", "create", config.name, "ann", "--profile", "ann.share")
    assert "cannot be written" not in done.stderr
    assert json.loads(Path("ann.share").read_text())["shareCredentialsVersion"] == 1
    assert load_keys(Path("keys.json")) == load_keys(Path("keys.json"))


def test_a_profile_is_written_for_its_owner_only(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "ann.share"
    done = run("token", "create", config, "ann", "--expires", "never", "--profile", path)
    assert done.stdout == ""
    assert "expirationTime" not in json.loads(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600


def test_tokens_are_rotated_and_revoked(config: Path) -> None:
    run("token", "create", config, "ann")
    run("token", "rotate", config, "ann", "--overlap", "1h")
    assert [t["state"] for t in tokens(config)] == ["live", "live"]
    first = tokens(config)[0]["id"]
    assert run("token", "revoke", config, first).stdout == f"revoked {first} of ann\n"
    run("token", "revoke", config, "ann")
    assert {t["state"] for t in tokens(config)} == {"revoked"}


def test_the_list_of_no_tokens(config: Path) -> None:
    assert run("token", "list", config).stdout == "no tokens\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["token", "create", "CONFIG", "zoe"], "server.yaml names no recipient zoe"),
        (["token", "revoke", "CONFIG", "zoe"], "there is no token to revoke called zoe"),
        (["serve", "CONFIG", "--host", "192.0.2.1"], "tokens would travel in the clear"),
        (["serve", "nothing.yaml"], "there is no configuration file nothing.yaml"),
        (["serve", "EMPTY"], "there is no table below"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_in_two_lines(config: Path, words: list[str], message: str) -> None:
    empty = config.parent / "empty"
    empty.mkdir()
    folders = {"CONFIG": str(config), "EMPTY": str(empty)}
    done = run(*(folders.get(word, word) for word in words))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {message}")
    assert "\nfix: " in done.stderr


def test_a_configuration_without_files_of_tokens_or_keys_says_so(tmp_path: Path) -> None:
    config = write_configuration(tmp_path / "server.yaml", {"version": 1, "recipients": [{"name": "ann"}]})
    assert "names no file of tokens" in run("token", "create", config, "ann").stderr
    assert "names no file of keys" in run("rotate-keys", config).stderr


def test_new_keys_leave_the_present_ones_accepted(config: Path) -> None:
    before = load_keys(config.parent / "keys.json")
    assert run("rotate-keys", config).exit_code == 0
    after = load_keys(config.parent / "keys.json")
    assert (after.files[1:], after.tokens[1:]) == (before.files, before.tokens)


def test_a_life_that_is_none_is_refused(config: Path) -> None:
    done = run("token", "create", config, "ann", "--expires", "soon")
    assert done.exit_code == 2
    assert "give it as 90d, 12h, 30m or never" in done.stderr


def test_the_extra_is_named_where_it_is_missing(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.sharing.server.find_spec", lambda name: None if name == "uvicorn" else object())
    done = run("token", "list", config)
    assert done.exit_code == 2
    assert done.stderr == "error: the sharing server needs uvicorn\nfix: pip install 'lakeview[server]'\n"


def test_a_folder_is_served_with_a_profile_that_opens_it(tmp_path: Path) -> None:
    months(tmp_path / "lake" / "months")
    profile = tmp_path / "lake.share"
    command = [sys.executable, "-m", "lakeview", "share", "serve", str(tmp_path / "lake"), "--port", "0"]
    with subprocess.Popen([*command, "--profile", str(profile)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == f"the profile is in {profile}\n"
            assert process.stderr.readline().startswith("sharing lake at http://127.0.0.1:")
            profile_content = json.loads(profile.read_text())
            headers = {"Authorization": f"Bearer {profile_content['bearerToken']}"}
            with httpx.Client(transport=httpx.HTTPTransport(retries=8), headers=headers, timeout=30) as http:
                tables = http.get(profile_content["endpoint"] + "shares/lake/all-tables").json()["items"]
            assert [t["name"] for t in tables] == ["months"]
        finally:
            process.terminate()
        assert process.wait(30) is not None


def test_a_profile_that_cannot_be_written_is_printed_because_the_token_is_made(config: Path) -> None:
    blocked = config.parent / "file"
    blocked.write_text("in the way")
    done = run("token", "create", config, "ann", "--profile", blocked / "ann.share")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["bearerToken"].startswith("lvs_")
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("name", ["server.yaml", "tokens.json", "keys.json"])
def test_a_profile_takes_no_file_of_the_server(config: Path, name: str) -> None:
    done = run("token", "create", config, "ann", "--profile", config.parent / name)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {name} is a file of the server's own")
    assert tokens(config) == []


def test_an_overlap_without_end_is_refused(config: Path) -> None:
    run("token", "create", config, "ann")
    done = run("token", "rotate", config, "ann", "--overlap", "never")
    assert done.exit_code == 2
    assert "give it as 90d, 12h or 30m" in done.stderr
    assert [t["state"] for t in tokens(config)] == ["live"]
