"""Configurations: what the reference server reads, what is refused by name, and what happens when a file changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.config_file import folder_settings, read_settings
from lakeview.sharing.server.serving import check_exposure
from lakeview.sharing.server.settings import Settings, Tls
from tests.server.conftest import Api
from tests.server.shared_lake import configuration, write_configuration

REFERENCE = """
version: 1
shares:
- name: "share1"
  schemas:
  - name: "schema1"
    tables:
    - name: "table1"
      location: "s3a://bucket/table1"
      id: "00000000-0000-0000-0000-000000000000"
    - name: "table2"
      location: "tables/table2"
      cdfEnabled: true
      startVersion: 1
authorization:
  bearerToken: "token"
host: "localhost"
port: 8080
endpoint: "/delta-sharing"
preSignedUrlTimeoutSeconds: 3600
deltaTableCacheSize: 10
stalenessAcceptable: false
evaluatePredicateHints: false
evaluateJsonPredicateHints: true
evaluateJsonPredicateHintsV2: true
requestTimeoutSeconds: 30
queryTablePageSizeLimit: 10000
queryTablePageTokenTtlMs: 259200000
refreshTokenTtlMs: 3600000
"""


def write_settings(folder: Path, text: str) -> Path:
    path = folder / "server.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_reference_servers_file_is_read_as_it_is(tmp_path: Path) -> None:
    settings, warnings = read_settings(write_settings(tmp_path, REFERENCE))
    first, second = settings.shares[0].schemas[0].tables
    assert warnings == []
    assert first.location == "s3://bucket/table1"
    assert first.id == "00000000-0000-0000-0000-000000000000"
    assert (second.location, second.history_shared, second.start_version) == (str(tmp_path / "tables/table2"), True, 1)
    assert settings.authorization.bearer_token == "token"
    assert settings.evaluate_predicate_hints is False


def test_unknown_keys_are_told_and_have_no_effect(tmp_path: Path) -> None:
    text = REFERENCE + "colour: red\nlimits:\n  apiRat: 5\n"
    _, warnings = read_settings(write_settings(tmp_path, text))
    assert warnings == [
        "server.yaml: colour is not known here and has no effect",
        "server.yaml: limits.apiRat is not known here and has no effect",
    ]


def test_ids_come_from_names_and_never_from_places(tmp_path: Path) -> None:
    def ids(location: str) -> list[str | None]:
        table = {"name": "T", "location": location}
        document = {"shares": [{"name": "s", "schemas": [{"name": "c", "tables": [table]}]}]}
        settings, _ = read_settings(write_configuration(tmp_path / "server.yaml", document))
        return [settings.shares[0].id, settings.shares[0].schemas[0].tables[0].id]

    assert ids("/here") == ids("/there")
    assert None not in ids("/here")


def one(**more: Any) -> dict[str, Any]:
    """A share with one table, which has something odd."""
    return {"shares": [{"name": "s", "schemas": [{"name": "c", "tables": [{"name": "t", "location": "x", **more}]}]}]}


TWICE = {
    "name": "t",
    "schemas": [{"name": "c", "tables": [{"name": "a", "location": "x"}, {"name": "A", "location": "y"}]}],
}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("a: [", "server.yaml is no YAML"),
        ("- 1", "server.yaml holds no settings"),
        ({"version": 2}, "version 2 of the configuration is not known"),
        ({"shares": [{"name": "a b"}]}, "'a b' is no name for a share"),
        ({"shares": [{"name": "a.b"}]}, "'a.b' is no name for a share"),
        ({"shares": [{"name": "a/b"}]}, "'a/b' is no name for a share"),
        ({"shares": [{"name": "a\x01b"}]}, "is no name for a share"),
        ({"shares": [{"name": "x" * 256}]}, "is no name for a share"),
        ({"shares": [{"name": ""}]}, "is no name for a share"),
        ({"shares": [{"name": "a"}, {"name": "A"}]}, "share a is there 2 times"),
        ({"shares": [TWICE]}, "table in t.c a is there 2 times"),
        ({"shares": [{"name": name, "id": "same"} for name in "ab"]}, "share id same is there 2 times"),
        (one(name="a.b"), "'a.b' is no name for a table"),
        (one(startVersion=-1), "startVersion of table t is negative"),
        (one(historyShared="perhaps"), "server.yaml: Expected `bool`"),
        ({"shares": [{"name": "s", "schemas": [{"name": "c", "tables": [{"name": "t"}]}]}]}, "missing required field"),
        (
            {"recipients": [{"name": "ann", "shares": ["nothing"]}]},
            "recipient ann is granted nothing, which is no share",
        ),
        ({"recipients": [{"name": "ann"}, {"name": "ann"}]}, "recipient ann is there 2 times"),
        ({"preSignedUrlTimeoutSeconds": 1}, "preSignedUrlTimeoutSeconds must lie between 60 and 86400"),
        ({"preSignedUrlTimeoutSeconds": 10**6}, "preSignedUrlTimeoutSeconds must lie between 60 and 86400"),
        ({"publicUrl": "ftp://x"}, "publicUrl 'ftp://x' is no http or https address"),
        ({"endpoint": "api"}, "endpoint must begin with /"),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_a_configuration_that_cannot_be_served_is_refused(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "server.yaml"
    with pytest.raises(InvalidRequestError) as caught:
        read_settings(
            write_settings(tmp_path, document) if isinstance(document, str) else write_configuration(path, document)
        )
    assert message in caught.value.message
    assert caught.value.kind == "bad-configuration"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"there is no configuration file nothing\.yaml"):
        read_settings(tmp_path / "nothing.yaml")


def test_a_folder_of_tables_is_a_share(lake: Path) -> None:
    settings = folder_settings(str(lake))
    (share,) = settings.shares
    assert share.name == "lake"
    assert [t.name for t in share.schemas[0].tables] == ["broken", "empty", "fed", "mapped", "months", "odd", "vectors"]
    assert settings.recipients[0].shares == ["*"]


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="there is no table below"):
        folder_settings(str(tmp_path))


def test_a_changed_configuration_is_taken_up(api: Api, lake: Path) -> None:
    document = configuration(lake)
    document["recipients"][0]["shares"] = ["lake", "other"]
    write_configuration(api.config, document)
    api.clock.later(seconds=2)
    assert [s["name"] for s in api.get("shares").json()["items"]] == ["lake", "other"]


def test_a_broken_configuration_keeps_the_old_one_and_is_told(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    api.config.write_text("shares: [{name: 'a b'}]")
    api.clock.later(seconds=2)
    assert [s["name"] for s in api.get("shares").json()["items"]] == ["lake"]
    assert "the configuration in force stays, the changed one is broken: 'a b' is no name" in caplog.text
    api.config.unlink()
    api.clock.later(seconds=2)
    assert api.get("shares").status_code == 200


TLS = Tls("cert.pem", "key.pem")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com"])  # noqa: S104 (nothing is bound)
def test_plain_http_for_others_needs_to_be_allowed(host: str) -> None:
    with pytest.raises(InvalidRequestError, match="tokens would travel in the clear"):
        check_exposure(Settings(host=host))
    check_exposure(Settings(host=host, allow_http=True))
    check_exposure(Settings(host=host, ssl=TLS))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    check_exposure(Settings(host=host))


def test_signed_urls_begin_with_the_public_address(api: Api, lake: Path) -> None:
    write_configuration(api.config, configuration(lake, publicUrl="https://share.example.com/lake/"))
    api.clock.later(seconds=2)
    assert all(f["url"].startswith("https://share.example.com/lake/files/") for f in api.files("months"))
