"""The environment and a file to settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeview.model.config import Config, settings
from lakeview.model.errors import InvalidRequestError

ROOTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nothing": ("", ()),
    "one folder": ("/lake", ("/lake",)),
    "folders, as the system separates paths": ("/lake:/demo", ("/lake", "/demo")),
    "folders, by commas": ("/lake, /demo ,", ("/lake", "/demo")),
    "an address": ("s3://lake/a", ("s3://lake/a",)),
    "an address and a folder": ("s3://lake/a,/demo", ("s3://lake/a", "/demo")),
}


@pytest.mark.parametrize(("text", "roots"), ROOTS.values(), ids=list(ROOTS))
def test_roots_are_read(text: str, roots: tuple[str, ...]) -> None:
    assert settings({"LAKEVIEW_ROOTS": text}).roots == roots


def test_an_empty_environment_gives_the_defaults() -> None:
    assert settings({}) == Config()
    assert settings({"LAKEVIEW_DEMO": "", "LAKEVIEW_MAX_LOG_FILE_BYTES": ""}) == Config()


def test_the_other_settings_are_read() -> None:
    configuration = settings({"LAKEVIEW_DEMO": "/demo", "LAKEVIEW_MAX_LOG_FILE_BYTES": "99"})
    assert (configuration.demo, configuration.max_log_file_bytes) == ("/demo", 99)


@pytest.mark.parametrize("text", ["many", "-1", "1e9", "\u00b2", "9" * 5000], ids=lambda t: t[:6])
def test_a_number_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"LAKEVIEW_MAX_LOG_FILE_BYTES is .*, which is no number") as caught:
        settings({"LAKEVIEW_MAX_LOG_FILE_BYTES": text})
    assert caught.value.fix == "set LAKEVIEW_MAX_LOG_FILE_BYTES to a whole number"


RELOCATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "one place": ("s3://old/wh=/new/wh", {"s3://old/wh": "/new/wh"}),
    "two places": ("/a=/b, /c = s3://d ,", {"/a": "/b", "/c": "s3://d"}),
}


@pytest.mark.parametrize(("text", "rules"), RELOCATIONS.values(), ids=list(RELOCATIONS))
def test_moved_places_are_read(text: str, rules: dict[str, str]) -> None:
    assert settings({"LAKEVIEW_RELOCATE": text}).relocate == rules


@pytest.mark.parametrize("text", ["/a", "/a=", "=/b", "/a=/b,c"])
def test_moved_places_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"LAKEVIEW_RELOCATE is .*, which names no places") as caught:
        settings({"LAKEVIEW_RELOCATE": text})
    assert caught.value.fix == "set LAKEVIEW_RELOCATE to old=new, several separated by commas"


FILE = """
roots = ["s3://lake", "/data"]
demo = "/demo"
max_log_file_bytes = 99

[relocate]
"s3://old/wh" = "/new/wh"

[catalogs.prod]
uri = "https://catalog"
token = "s3cr3t"
"""


def test_a_file_says_what_the_environment_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "lakeview.toml").write_text(FILE)
    env = {"LAKEVIEW_CONFIG": str(tmp_path / "lakeview.toml")}
    configuration = settings(env)
    assert (configuration.roots, configuration.demo, configuration.max_log_file_bytes) == (
        ("s3://lake", "/data"),
        "/demo",
        99,
    )
    assert configuration.relocate == {"s3://old/wh": "/new/wh"}
    assert configuration.catalogs == {"prod": {"uri": "https://catalog", "token": "s3cr3t"}}
    assert "s3cr3t" not in repr(configuration)
    over = settings(env | {"LAKEVIEW_ROOTS": "/x", "LAKEVIEW_DEMO": "/y", "LAKEVIEW_RELOCATE": "/a=/b"})
    assert (over.roots, over.demo, over.relocate) == (("/x",), "/y", {"/a": "/b"})


WRONG_FILES: dict[str, tuple[str, str]] = {
    "no TOML": ("token = s3cr3t", "is no TOML: "),
    "a setting that is none": ("token = 's3cr3t'", "sets token, which is no setting"),
    "roots that are no list": ("roots = 's3cr3t'", "sets roots to what is not a list of addresses"),
    "a number that is none": ("max_log_file_bytes = true", "sets max_log_file_bytes to what is not a whole number"),
    "a demo that is none": ("demo = 1", "sets demo to what is not a folder"),
    "a prefix to nothing": ("[relocate]\na = ''", "sets relocate to what is not a table of old to new prefixes"),
    "a catalog without properties": (
        "[catalogs]\nprod = 's3cr3t'",
        "sets catalogs to what is not a table of catalogs with their properties",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_FILES.values(), ids=list(WRONG_FILES))
def test_a_file_that_cannot_be_meant_is_refused_without_showing_its_values(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "lakeview.toml"
    path.write_text(text)
    with pytest.raises(InvalidRequestError) as caught:
        settings({"LAKEVIEW_CONFIG": str(path)})
    assert caught.value.message.startswith(f"the configuration {path} {words}")
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.fix is not None


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be read: No such file") as caught:
        settings({"LAKEVIEW_CONFIG": str(tmp_path / "gone.toml")})
    assert caught.value.fix == "set LAKEVIEW_CONFIG to a file that is there, or unset it"


@pytest.mark.parametrize(("text", "is_set"), [("1", True), ("no", False), ("", False)])
def test_plain_http_and_private_networks_are_switches(text: str, is_set: bool) -> None:
    assert settings({"LAKEVIEW_PLAIN_HTTP": text}).plain_http is is_set
    assert settings({"LAKEVIEW_PRIVATE_NETWORKS": text}).private_networks is (is_set or not text)


def test_a_switch_is_on_or_off() -> None:
    with pytest.raises(InvalidRequestError, match="neither on nor off"):
        settings({"LAKEVIEW_PRIVATE_NETWORKS": "perhaps"})


def test_the_sharing_server_is_read_from_environment_and_file(tmp_path: Path) -> None:
    file = tmp_path / "lakeview.toml"
    file.write_text('share = "/etc/server.yaml"\nshare_tokens = true\n')
    configuration = settings({"LAKEVIEW_CONFIG": str(file)})
    assert (configuration.share, configuration.share_tokens) == ("/etc/server.yaml", True)
    configuration = settings({"LAKEVIEW_CONFIG": str(file), "LAKEVIEW_SHARE": "own.yaml", "LAKEVIEW_SHARE_TOKENS": "0"})
    assert (configuration.share, configuration.share_tokens) == ("own.yaml", False)
